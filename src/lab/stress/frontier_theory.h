// SPDX-License-Identifier: Apache-2.0
/* Where a kernel should break down, in closed form, from what it declares: the dtype of its statistics, its way to the variance, its
 * chain. For rows of N(0,1) draws that are scaled, or moved by rho of their standard deviations. */
#ifndef NB_FRONTIER_THEORY_H
#define NB_FRONTIER_THEORY_H

#include "src/accuracy/bound.h"
#include "src/lab/stress/trial.h"

enum nb_frontier_of { NB_SCALE_MAX, NB_SCALE_MIN, NB_RHO_MAX, NB_N_FRONTIERS };

/* How near the result must be to count as what the oracle says. All grant what src/lab/stress/row_score.h does; the later ones more. */
enum nb_demand {
    NB_DEMAND_ACCURATE, /* no more than that */
    NB_DEMAND_HALF,     /* half of the dtype's bits: relative error sqrt(u) */
    NB_DEMAND_DIGIT,    /* one decimal digit: relative error 0.1 */
    NB_N_DEMANDS
};
extern const char *const nb_demand_names[NB_N_DEMANDS];                /* "accurate", "half_the_bits", "one_digit" */
double nb_demand_relative(enum nb_demand demand, enum nb_dtype dtype); /* 0 for accurate */

/* What the rows are, beside N(0,1): their extremes, as the prediction needs them. */
struct nb_draw_facts {
    int64_t n;           /* elements that the statistics see */
    double max_abs;      /* largest |z| of all rows */
    double mean_square;  /* largest of a row */
    double least_square; /* least of a row */
};

struct nb_prediction {
    double at; /* the largest (smallest) value that should still do; Inf, or 0 for the smallest scale: no limit */
    const char *rule; /* "x^2 overflows the statistics' dtype" */
};
struct nb_prediction nb_frontier_predict(const struct nb_trial *t, enum nb_frontier_of of, enum nb_demand demand,
                                         const struct nb_draw_facts *facts);

#endif
