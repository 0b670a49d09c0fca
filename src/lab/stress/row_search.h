// SPDX-License-Identifier: Apache-2.0
/* The worst rows that a time budget finds for a kernel: rows built along its order of summation, the same numbers in other orders,
 * interval splitting on scale, rho and outliers, hill climbing. Only rows that the kernel claims its accuracy for, where it claims any. */
#ifndef NB_ROW_SEARCH_H
#define NB_ROW_SEARCH_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/core/dtype.h"
#include "src/lab/stress/row_score.h"
#include "src/lab/stress/trial.h"

/* Options, each optional: "budget_s" (2), "budget_calls" (instead of time, for repeatable results), "witness_dir" (a folder that is
 * there: the worst rows as .npy), "eps_range" [low, high] (eps is zoomed on too).
 * An array with an object for each objective that has a worst row:
 *   objective          "bound" |error| / a-priori bound, "noise" / input noise, "ulp", "scaled_ulp" (src/lab/stress/row_score.h), "strange" NaN,
 *                      Inf or lost zeros, "sum_error_u" of the sum of squares in u, as the outputs show it
 *   value, violation   violation: the bound is exceeded, which is a fault of the kernel or of the bound
 *   bound, noise, ulp, scaled_ulp, nan, inf, zero, loss, gain_u, sum_error_u   all that is known of the row
 *   generator, seed, eps                 what made it
 *   row {mean, variance, kurtosis, max_abs}, witness {col, x, got, want}, x (up to 16 columns, exact)
 *   file, key, replay                    with witness_dir
 * and at its end {"objective":"search","calls","seconds","attempts":[..]}: the greedy rows tried, "best_of" 1 being random ones.
 * Null with t->reason when the kernel fails or the op cannot be searched. */
cJSON *nb_worst_case(struct nb_trial *t, const cJSON *options);

/* ---- rows that a sum rounds badly ---- */

/* Follows the order in which a kernel adds, draws several candidates for each element
 * from the distribution that is wanted, keeps the one whose addition rounds the most in the wanted direction. The row keeps the
 * distribution's mean and variance, since only low bits of the sums decide. */

/* The order that is assumed of the kernel. */
struct nb_sum_order {
    int lanes;    /* element i goes to lane i mod lanes, at most NB_MAX_LANES; 0: pairwise, halves down to leaves */
    int leaf;     /* pairwise: elements summed one after another */
    bool squares; /* what is summed: squares of x - about (fused: rounded once, in the addition), or x */
    double about;
    enum nb_dtype sum; /* the accumulators' format */
    bool fused;        /* squares enter unrounded */
};
enum { NB_MAX_LANES = 128 };

struct nb_greedy {
    struct nb_sum_order order;
    enum nb_dtype dtype;  /* of the elements, as stored */
    double offset, scale; /* the distribution: offset + scale N(0,1) */
    int best_of;
    int sign; /* of the rounding errors wanted: 1 or -1 */
    uint64_t seed;
};

/* What a row can be worst in: the four measures, and two more. */
enum nb_objective {
    NB_OBJECTIVE_STRANGE =
        NB_N_MEASURES, /* NaN, Inf or a lost zero where the exact result is an ordinary number: how many */
    NB_OBJECTIVE_SUM,  /* |error of the sum of squares| in u, as the outputs show it */
    NB_N_OBJECTIVES
};
extern const char *const nb_objective_names[NB_N_OBJECTIVES];

/* How ordinary a row looks: a search that finds only freak rows would convince nobody. */
struct nb_row_look {
    double mean, variance, kurtosis, max_abs; /* kurtosis: 3 for a normal distribution; NaN without a spread */
};

#endif
