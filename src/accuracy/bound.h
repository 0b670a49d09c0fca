// SPDX-License-Identifier: Apache-2.0
/* How far a correct kernel of the declared formula may be off, element by element: an a-priori rounding-error bound from the
 * formula, the kernel's chain, the dtypes and the row's own statistics. src/README.md derives it. Nothing in here is fitted. */
#ifndef NB_BOUND_H
#define NB_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/oracle.h"
#include "src/accuracy/statistics_error.h"

struct nb_bound {
    const struct nb_case *c;
    const struct nb_oracle *o;
    int64_t chain;
    bool folded; /* y = a x + b with the mean inside b */
    struct nb_arithmetic arithmetic;
    struct nb_statistics_error *channels; /* NHWC, where each column has its own: of each; else null */
};

void nb_bound_init(struct nb_bound *b, const struct nb_case *c, const struct nb_oracle *o, int64_t chain);
void nb_bound_release(struct nb_bound *b);
/* Sets tolerance[i] = |allowed error| of y_i for each column of a row, the last rounding to the dtype included, from the exact
 * y of nb_oracle_row(). Infinity: a loss is predicted for the element and any value is right. Returns the first loss. */
enum nb_loss nb_bound_row(const struct nb_bound *b, int64_t row, const double *y, double *tolerance);
/* The same for the outputs beside y of a row or channel: mean, and rstd = 1 / sqrt(var + eps) relative to itself. */
struct nb_statistics_error nb_bound_statistics(const struct nb_bound *b, int64_t truth);
/* BatchNorm: how far the running statistics of a channel may be off after the call; infinite where the batch's are lost. */
struct nb_running_error {
    double mean, var;
} nb_bound_running(const struct nb_bound *b, int64_t channel);

#endif
