// SPDX-License-Identifier: Apache-2.0
/* Rows that numerical mistakes are known by: given values, sorted rows, outlier channels, heavy tails, every exponent. Each is a
 * function as in distributions.h, whose table says what the numbers mean. */
#ifndef NB_DISTRIBUTIONS_SPECIAL_H
#define NB_DISTRIBUTIONS_SPECIAL_H

#include "src/plan/draw.h"

double nb_draw_values(const struct nb_draw *d, int64_t row, int64_t col);
double nb_draw_linear(const struct nb_draw *d, int64_t row, int64_t col);
double nb_draw_noise(const struct nb_draw *d, int64_t row, int64_t col);
double nb_draw_columns(const struct nb_draw *d, int64_t row, int64_t col);
double nb_draw_every(const struct nb_draw *d, int64_t row, int64_t col);
double nb_draw_massive(const struct nb_draw *d, int64_t row, int64_t col);
double nb_draw_cauchy(const struct nb_draw *d, int64_t row, int64_t col);
double nb_draw_stratified(const struct nb_draw *d, int64_t row, int64_t col);

/* The same numbers in every order: cols quantiles of the normal distribution, evenly spaced in probability from a place that is
 * the row's own. */
double nb_draw_ascending(const struct nb_draw *d, int64_t row, int64_t col);
double nb_draw_descending(const struct nb_draw *d, int64_t row, int64_t col);
double nb_draw_interleaved(const struct nb_draw *d, int64_t row, int64_t col);
double nb_draw_growing(const struct nb_draw *d, int64_t row, int64_t col);
double nb_draw_shrinking(const struct nb_draw *d, int64_t row, int64_t col);

double nb_draw_inf(const struct nb_draw *d, int64_t row, int64_t col);
double nb_draw_nan(const struct nb_draw *d, int64_t row, int64_t col);

#endif
