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

/* n elements, each a number of the dtype. */
void nb_greedy_row(const struct nb_greedy *g, int64_t n, double *x);

/* ---- what all searches share: a trial, a budget, and the worst rows so far ---- */

/* What a row can be worst in: the four measures, and two more. */
enum nb_objective {
    NB_OBJECTIVE_STRANGE =
        NB_N_MEASURES, /* NaN, Inf or a lost zero where the exact result is an ordinary number: how many */
    NB_OBJECTIVE_SUM,  /* |error of the sum of squares| in u, as the outputs show it */
    NB_N_OBJECTIVES
};
const char *nb_objective_name(int objective);

struct nb_found_row {
    double *x; /* null: none yet */
    double value, eps;
    double mean, deviation; /* of the row that a search made first; climbing draws from these and keeps them */
    struct nb_row_score score;
    char generator[96]; /* what made it */
    uint64_t seed;
};

struct nb_row_search {
    struct nb_trial *t;
    int64_t rows, cols;
    double *x; /* rows x cols: the next call's */
    struct nb_row_score *scores;
    struct nb_found_row found[NB_N_OBJECTIVES];
    const struct nb_found_row *climbs_from; /* null: rows are new */
    double started_s, budget_s, stage_until_s;
    int64_t first_call, budget_calls, stage_until_call; /* budget_calls 0: time alone counts */
    bool failed;                                        /* the kernel; t->reason says how */
};

/* budget_calls > 0: so many calls, whatever the time. -1 with t->reason. */
int nb_row_search_init(struct nb_row_search *h, struct nb_trial *t, double budget_s, int64_t budget_calls);
void nb_row_search_release(struct nb_row_search *h);
/* From here on nb_row_search_over() is true once this much of the whole budget is used up. */
void nb_row_search_stage(struct nb_row_search *h, double until_share);
bool nb_row_search_over(const struct nb_row_search *h);
/* Calls the kernel on the first n rows of h->x, scores them, and keeps the worst. -1: failed. */
int nb_row_search_call(struct nb_row_search *h, int64_t n, uint64_t seed, const char *generator);
/* What a row is worth by an objective; NaN: nothing. */
double nb_objective_value(const struct nb_row_score *s, int objective);

/* How ordinary a row looks: a search that finds only freak rows would convince nobody. */
struct nb_row_look {
    double mean, variance, kurtosis, max_abs; /* kurtosis: 3 for a normal distribution; NaN without a spread */
};
struct nb_row_look nb_row_look(const double *x, int64_t n);

/* ---- the searches; each stops when nb_row_search_over() ---- */
/* Along assumed orders of summation; an array of attempts, {"order","best_of","sign","offset","sum_error_u","bound",..}. */
void nb_row_search_greedy(struct nb_row_search *h, cJSON *attempts);
/* The same numbers in other orders. */
void nb_row_search_orders(struct nb_row_search *h);
/* Scale, rho, outlier, and eps where eps_low < eps_high: halves of the box that score worse are kept. */
void nb_row_search_zoom(struct nb_row_search *h, double eps_low, double eps_high);
/* Elements of the worst rows are drawn again, and what is worse is kept. */
void nb_row_search_climb(struct nb_row_search *h);

#endif
