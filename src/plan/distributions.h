// SPDX-License-Identifier: Apache-2.0
/* The generated data: what each name means, as a function from (seed, row, column) to a real number. Numbers beyond the
 * dtype's range are taken to its largest finite one, except where the distribution is about Inf and NaN. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/dtype.h"
#include "src/core/random.h"

#define NB_MAX_NUMBERS 64 /* in the brackets of a distribution */

/* What a generated value is a function of: the numbers in the brackets of its distribution, the dtype, the row and the column. */
struct nb_draw {
    double numbers[NB_MAX_NUMBERS]; /* those left out have their fallbacks */
    int n_given;                    /* how many stood in the brackets */
    const struct nb_format *format;
    int64_t cols;
    struct nb_random random;
};

/* A number in the brackets behind the name. */
struct nb_data_number {
    double fallback, low, high; /* NaN as fallback: it depends on the dtype */
};

struct nb_data {
    const char *name, *help;          /* help says what the numbers in brackets, name(number,..), stand for */
    int least, most;                  /* how many of them; with least 0 the brackets may be left away */
    struct nb_data_number numbers[4]; /* the last of them holds for all further ones */
    bool random; /* independent draws about 0 with a finite variance: the bias of an error can be predicted */
    double (*value)(const struct nb_draw *d, int64_t row, int64_t col);
};
extern const struct nb_data nb_distributions[];
extern const size_t nb_n_distributions;

/* A name with its numbers. */
struct nb_recipe {
    const struct nb_data *data; /* null: no distribution has this name */
    double numbers[NB_MAX_NUMBERS];
    int n_given;
};

/* "normal", "offset(1000)", "values(1,-0,0x1p-24)" -> *recipe. -1 with the reason written when the name is a distribution's but the
 * rest of the text is not right. */
int nb_distribution_parse(const char *text, struct nb_recipe *recipe, char *reason, size_t n);

/* The draw of a recipe: rows of so many columns, numbers from this stream. */
struct nb_draw nb_draw_of(const struct nb_recipe *recipe, const struct nb_format *format, int64_t cols,
                          struct nb_random random);
double nb_draw_value(const struct nb_data *data, const struct nb_draw *d, int64_t row, int64_t col);
