// SPDX-License-Identifier: Apache-2.0
/* How far a kernel can be taken: the largest and the smallest scale of its rows, and the largest rho = |mean| / standard
 * deviation, at which it still returns what the oracle says. Searched, not computed: outwards from 1 (rho: 1/16) by powers of two until
 * a row comes back wrong, then by bisection on the bits of the parameter, which is exponent first and significand next.
 *
 * What counts as right does not lean on the a-priori bound: no NaN, Inf or lost zero where the exact result is an ordinary number,
 * and an error of at most 16 ulp (f16, bf16: 4) or 4 times the effect of half-ulp input noise, whichever is larger
 * (src/lab/stress/row_score.h); two laxer demands are searched too. */
#ifndef NB_FRONTIER_H
#define NB_FRONTIER_H

#include <cjson/cJSON.h>

#include "src/lab/stress/trial.h"

/* Options: "seeds" (2): how many seeds, from the case's own on, each with all rows of the shape.
 * An array with an object for each frontier and demand:
 *   of, demand                          which
 *   ulp, noise, relative                the errors granted: in ulp(magnitude), in input noise, relative to the magnitude
 *   status                              "found", "none" (right as far as was searched), "never" (wrong at the start already: scale 1, rho 1/16)
 *   good, bad, searched_to              the last right and the first wrong value, neighbours in the dtype unless bad is null
 *   monotone, good_beyond               false: something beyond the frontier is right again, or something before it wrong
 *   predicted, rule, ratio              closed form (null, for the smallest scale 0: no limit) and good / predicted
 *   seen                                at the first wrong value: counts, largest error in ulp, a witness
 *   good_key, bad_key, replay           as data axes
 * Null with t->reason when the kernel fails or the op has no such frontiers. */
cJSON *nb_frontiers(struct nb_trial *t, const cJSON *options);

/* ---- One of them, as numbers ---- */

enum nb_frontier_of { NB_SCALE_MAX, NB_SCALE_MIN, NB_RHO_MAX, NB_N_FRONTIERS };

/* How near the result must be to count as what the oracle says. All grant what src/lab/stress/row_score.h does; the later ones more. */
enum nb_demand {
    NB_DEMAND_ACCURATE, /* no more than that */
    NB_DEMAND_HALF,     /* half of the dtype's bits: relative error sqrt(u) */
    NB_DEMAND_DIGIT,    /* one decimal digit: relative error 0.1 */
    NB_N_DEMANDS
};

/* What the rows are, beside N(0,1): their extremes, as predictions need them. */
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
struct nb_frontier {
    enum nb_frontier_of of;
    enum nb_demand demand;
    bool has_good, has_bad; /* neither: nothing was searched, since the op does not centre */
    double good, bad, searched_to;
    bool monotone;
    double good_beyond; /* a value beyond the frontier that is right again; NaN: none seen */
    struct nb_prediction predicted;
    struct nb_draw_facts facts;
};

#endif
