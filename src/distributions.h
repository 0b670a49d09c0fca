// SPDX-License-Identifier: Apache-2.0
/* The generated data: what each name means, as a function from (seed, row, column) to a real number. Numbers beyond the
 * dtype's range are taken to its largest finite one, except where the distribution is about Inf and NaN. */
#ifndef NB_DISTRIBUTIONS_H
#define NB_DISTRIBUTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/dtype.h"
#include "src/random.h"

struct nb_draw {
    const struct nb_data *data;
    double parameter;
    const struct nb_format *format;
    int64_t cols;
    struct nb_random random;
};

struct nb_data {
    const char *name, *help; /* help says what a number in brackets, name(number), stands for */
    bool has_parameter;
    double fallback, low, high; /* of the parameter; NaN as fallback: it depends on the dtype */
    bool random; /* independent draws about 0 with a finite variance: the bias of an error can be predicted */
    double (*value)(const struct nb_draw *d, int64_t row, int64_t col);
};
extern const struct nb_data nb_distributions[];
extern const size_t nb_n_distributions;

/* "normal", "offset(1000)" -> *data and *parameter. Null in *data: no distribution has this name. -1 with the reason
 * written when the name is one but the rest of the text is not right. */
int nb_distribution_parse(const char *text, const struct nb_data **data, double *parameter, char *reason, size_t n);

double nb_draw_value(const struct nb_draw *d, int64_t row, int64_t col);

#endif
