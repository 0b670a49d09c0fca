// SPDX-License-Identifier: Apache-2.0
/* What gamma and beta hold: the values of the params axis. Stored values; a weight_offset is added to them by the formula.
 *   drawn        1 + 0.3 N(0,1) and 0.1 N(0,1), or the files beside real rows
 *   negative     every gamma below 0
 *   zeros        every third gamma and beta 0, the others drawn
 *   tiny         2^-8 N(0,1): 1 + gamma is all but 1, and bf16 has few numbers there
 *   fixed(g,b)   g and b everywhere; fixed(g): beta 0
 *   values(g,h,..)  these gammas, cycled over the columns */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NB_PARAMS_DRAWN "drawn"

enum nb_params_kind {
    NB_PARAMS_OF_DRAWS,
    NB_PARAMS_NEGATIVE,
    NB_PARAMS_ZEROS,
    NB_PARAMS_TINY,
    NB_PARAMS_FIXED,
    NB_PARAMS_OF_VALUES
};
enum { NB_PARAMS_VALUES = 8 };

struct nb_params {
    enum nb_params_kind kind;
    double values[NB_PARAMS_VALUES]; /* of NB_PARAMS_FIXED gamma and beta */
    int n;                           /* of NB_PARAMS_OF_VALUES */
};

/* "" is drawn. -1 with the reason written, as by nb_axis.set. */
int nb_params_parse(const char *text, struct nb_params *params, char *reason, size_t n);
/* Element i from a standard normal draw z. */
double nb_params_gamma(const struct nb_params *params, int64_t i, double z);
double nb_params_beta(const struct nb_params *params, int64_t i, double z);
