// SPDX-License-Identifier: Apache-2.0
/* What all searches for the worst row share: a trial, a budget, and the worst rows so far. Rows beyond what the kernel claims are not
 * taken. */
#ifndef NB_HUNT_H
#define NB_HUNT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/lab/stress/row_score.h"

/* What is hunted for: the four measures, and two more. */
enum nb_quarry {
    NB_QUARRY_STRANGE =
        NB_N_MEASURES, /* NaN, Inf or a lost zero where the exact result is an ordinary number: how many */
    NB_QUARRY_SUM,     /* |error of the sum of squares| in u, as the outputs tell it */
    NB_N_QUARRIES
};
const char *nb_quarry_name(int quarry);

struct nb_champion {
    double *x; /* null: none yet */
    double value, eps;
    double mean, deviation; /* of the row that a search made first; climbing draws from these and keeps them */
    struct nb_row_score score;
    char generator[96]; /* what made it */
    uint64_t seed;
};

struct nb_hunt {
    struct nb_trial *t;
    int64_t rows, cols;
    double *x; /* rows x cols: the next call's */
    struct nb_row_score *scores;
    struct nb_champion champions[NB_N_QUARRIES];
    const struct nb_champion *climbs_from; /* null: rows are new */
    double started_s, budget_s, stage_until_s;
    int64_t first_call, budget_calls, stage_until_call; /* budget_calls 0: time alone counts */
    bool failed;                                        /* the kernel; t->reason says how */
};

/* budget_calls > 0: so many calls, whatever the time. -1 with t->reason. */
int nb_hunt_init(struct nb_hunt *h, struct nb_trial *t, double budget_s, int64_t budget_calls);
void nb_hunt_release(struct nb_hunt *h);
/* From here on nb_hunt_over() is true once this much of the whole budget is used up. */
void nb_hunt_stage(struct nb_hunt *h, double until_share);
bool nb_hunt_over(const struct nb_hunt *h);
/* Calls the kernel on the first n rows of h->x, scores them, and keeps the worst. -1: failed. */
int nb_hunt_call(struct nb_hunt *h, int64_t n, uint64_t seed, const char *generator);
/* What a row is worth to a quarry; NaN: nothing. */
double nb_quarry_value(const struct nb_row_score *s, int quarry);

/* How ordinary a row looks: a search that only finds freaks convinces nobody. */
struct nb_row_look {
    double mean, variance, kurtosis, max_abs; /* kurtosis: 3 for a normal distribution; NaN without a spread */
};
struct nb_row_look nb_row_look(const double *x, int64_t n);

/* In [0, 1), for choices. */
double nb_hunt_uniform(uint64_t *state);

/* ---- the searches; each stops when nb_hunt_over() ---- */
/* Along assumed orders of summation; an array of attempts, {"order","best_of","sign","offset","sum_error_u","bound",..}. */
void nb_hunt_greedy(struct nb_hunt *h, cJSON *attempts);
/* The same numbers in other orders. */
void nb_hunt_orders(struct nb_hunt *h);
/* Scale, rho, outlier, and eps where eps_low < eps_high: halves of the box that score worse are kept. */
void nb_hunt_zoom(struct nb_hunt *h, double eps_low, double eps_high);
/* Elements of the worst rows are drawn again, and what is worse is kept. */
void nb_hunt_climb(struct nb_hunt *h);

/* One object for each quarry that has a champion; files go to witness_dir, where that is not null. */
cJSON *nb_hunt_report(struct nb_hunt *h, const char *witness_dir);

#endif
