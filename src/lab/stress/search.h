// SPDX-License-Identifier: Apache-2.0
/* How far a kernel can be taken: the largest and the smallest scale of its rows, and the largest rho = |mean| / standard
 * deviation, at which it still returns what the oracle says. Searched, not computed: outwards from 1 (rho: 1/16) by powers of two until
 * a row comes back wrong, then by bisection on the bits of the parameter, which is exponent first and significand next.
 *
 * What counts as right does not lean on the a-priori bound: no NaN, Inf or lost zero where the exact result is an ordinary number,
 * and an error of at most 16 ulp (f16, bf16: 4) or 4 times the effect of half-ulp input noise, whichever is larger
 * (src/lab/stress/row_score.h). */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/core/dtype.h"
#include "src/lab/stress/row_score.h"
#include "src/lab/stress/trial.h"

/* Two seeds, from the case's own on, each with all rows of the shape. No options.
 * An array with an object for each frontier:
 *   of                                  which
 *   ulp, noise                          the errors granted: in ulp(magnitude), in input noise
 *   status                              "found", "none" (right as far as was searched),
 * "never" (wrong at the start already: scale 1, rho 1/16)
 *   good, bad, searched_to              the last right and the first wrong value, neighbours in the dtype unless bad is null
 *   monotone, good_beyond               false: something beyond the frontier is right again, or something before it wrong
 *   predicted, rule, ratio              closed form (null, for the smallest scale 0: no limit) and good / predicted
 *   seen                                at the first wrong value: counts, largest error in ulp, a reproducer
 *   good_key, bad_key, replay           as data axes
 * Null with t->reason when the kernel fails or the op has no such frontiers. */
cJSON *nb_frontiers(struct nb_trial *t, const cJSON *options);

/* ---- One of them, as numbers ---- */

enum nb_frontier_of { NB_SCALE_MAX, NB_SCALE_MIN, NB_RHO_MAX, NB_N_FRONTIERS };

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
    double good, bad, searched_to; /* NaN: there is none; neither: nothing was searched, since the op does not centre */
    bool monotone;
    double good_beyond; /* a value beyond the frontier that is right again; NaN: none seen */
    struct nb_prediction predicted;
};

/* ---- The worst rows that a time budget finds for a kernel: rows built along its order of summation, interval splitting
 * on scale, rho and outliers, hill climbing. Only rows that the kernel
 * claims its accuracy for, where it claims any. ---- */

/* Options, each optional: "budget_calls" (in place of 2 s, for repeatable results), "reproducer_dir" (a folder that is
 * there: the worst rows as .npy).
 * An array with an object for each objective that has a worst row:
 *   objective          "bound" |error| / a-priori bound, "noise" / input noise, "ulp",
 * "scaled_ulp" (src/lab/stress/row_score.h), "strange" NaN,
 *                      Inf or lost zeros, "sum_error_u" of the sum of squares in u, as the outputs show it
 *   value, violation   violation: the bound is exceeded, which is a fault of the kernel or of the bound
 *   bound, noise, ulp, scaled_ulp, nan, inf, zero, loss, gain_u, sum_error_u   all that is known of the row
 *   generator, seed, eps                 what made it
 *   row {mean, variance, kurtosis, max_abs}, reproducer {col, x, got, want}, x (up to 16 columns, exact)
 *   file, key, replay                    with reproducer_dir
 * and at its end {"objective":"search","calls","seconds"}.
 * Null with t->reason when the kernel fails or the op cannot be searched. */
cJSON *nb_worst_case(struct nb_trial *t, const cJSON *options);

/* What a row can be worst in: the four measures, and two more. */
enum nb_objective {
    NB_OBJECTIVE_STRANGE =
        NB_N_MEASURES, /* NaN, Inf or a lost zero where the exact result is an ordinary number: how many */
    NB_OBJECTIVE_SUM,  /* |error of the sum of squares| in u, as the outputs show it */
    NB_N_OBJECTIVES
};

/* How ordinary a row looks: a search that finds only freak rows would convince nobody. */
struct nb_row_look {
    double mean, variance, kurtosis, max_abs; /* kurtosis: 3 for a normal distribution; NaN without a spread */
};

/* ---- Error over scale and rho, the whole range of the dtype at once, beside the lines where theory says that it changes. For the
 * inside of a worker. */

/* {"n":.., "rows":.., "eps":.., "log2_scale": [..], "log2_rho": [..],
 *  "log10_ulp": [[..] ..],              largest |error| in ulp at rms(y) (2 u rms(y)); [rho][scale]; null where no element is finite
 *  "state": [["ok"|"nan"|"inf"|"zero"|"unstorable"|"undefined"|"failed" ..] ..],
 *  "predicted": [{"name":.., "line": [[log2 scale, log2 rho] ..]} ..]}
 * or {"reason":..} for a kernel that cannot be scanned. An error of 0 counts as 2^-10 ulp.
 * 2 rows of 1024 elements at 48 scales and 32 rhos. No options. */
cJSON *nb_landscape(struct nb_trial *t, const cJSON *options);
