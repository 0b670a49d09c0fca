// SPDX-License-Identifier: Apache-2.0
/* How far a kernel can be taken: the largest and the smallest scale of its rows, and the largest rho = |mean| / standard
 * deviation, at which it still returns what the oracle says. Searched, not computed: outwards from 1 (rho: 1/16) by powers of two until
 * a row comes back wrong, then by bisection on the bits of the parameter, which is exponent first and significand next.
 *
 * What counts as right does not lean on the a-priori bound: no NaN, Inf or lost zero where the exact result is an ordinary number,
 * and an error of at most 16 ulp (f16, bf16: 4) or 4 times the effect of half-ulp input noise, whichever is larger
 * (src/lab/stress/row_score.h); two laxer demands are searched too (src/lab/stress/frontier_theory.h). */
#ifndef NB_FRONTIER_H
#define NB_FRONTIER_H

#include <cjson/cJSON.h>

#include "src/lab/stress/frontier_theory.h"
#include "src/lab/stress/row_score.h"
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

/* ---- One question of the search for frontiers: do the rows of this family and parameter come back right? ---- */

/* What the worst row of one call over all seeds had. */
struct nb_seen {
    int64_t nan, inf, zero; /* elements of all rows */
    double accurate, relative, max_ulp;
    uint64_t seed; /* of the witness: the first strange element, else the one with the largest error */
    int64_t row, col;
    double got, want;
};

struct nb_prober {
    struct nb_trial *t;
    int n_seeds;
    struct nb_draws *draws;
    struct nb_draw_facts facts;
    struct nb_row_score *scores;
    struct nb_answer *answers; /* remembered */
    int n_answers, room;
};

int nb_prober_init(struct nb_prober *p, struct nb_trial *t, int n_seeds); /* -1 with t->reason */
void nb_prober_release(struct nb_prober *p);

/* One of them, as numbers. */
struct nb_frontier {
    enum nb_frontier_of of;
    enum nb_demand demand;
    bool has_good, has_bad; /* neither: nothing was searched, since the op does not centre */
    double good, bad, searched_to;
    bool monotone;
    double good_beyond; /* a value beyond the frontier that is right again; NaN: none seen */
    struct nb_prediction predicted;
};
/* p: made for the trial (nb_prober_init). -1 with the trial's reason. */
int nb_frontier_find(struct nb_prober *p, enum nb_frontier_of of, enum nb_demand demand, struct nb_frontier *out);

#endif
