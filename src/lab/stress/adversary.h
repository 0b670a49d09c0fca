// SPDX-License-Identifier: Apache-2.0
/* The worst rows that a time budget finds for a kernel: rows built along its order of summation, the same numbers in other orders,
 * interval splitting on scale, rho and outliers, hill climbing. Within the rows that the kernel claims its accuracy for, if it
 * does. */
#ifndef NB_ADVERSARY_H
#define NB_ADVERSARY_H

#include <cjson/cJSON.h>

#include "src/lab/stress/trial.h"

/* Options, each optional: "budget_s" (2), "budget_calls" (instead of time, for repeatable results), "witness_dir" (a folder that is
 * there: the worst rows as .npy), "eps_range" [low, high] (eps is zoomed on too).
 * An array with an object for each objective that has a worst row:
 *   objective          "bound" |error| / a-priori bound, "noise" / input noise, "ulp", "scaled_ulp" (src/lab/stress/row_score.h), "strange" NaN,
 *                      Inf or lost zeros, "sum_error_u" of the sum of squares in u, as the outputs tell it
 *   value, violation   violation: the bound is exceeded, which is a fault of the kernel or of the bound
 *   bound, noise, ulp, scaled_ulp, nan, inf, zero, loss, gain_u, sum_error_u   all that is known of the row
 *   generator, seed, eps                 what made it
 *   row {mean, variance, kurtosis, max_abs}, witness {col, x, got, want}, x (up to 16 columns, exact)
 *   file, key, replay                    with witness_dir
 * and at its end {"objective":"search","calls","seconds","attempts":[..]}: the greedy rows tried, "best_of" 1 being random ones.
 * Null with t->reason when the kernel fails or the op cannot be searched. */
cJSON *nb_worst_case(struct nb_trial *t, const cJSON *options);

#endif
