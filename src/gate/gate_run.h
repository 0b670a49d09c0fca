// SPDX-License-Identifier: Apache-2.0
/* A gate under way: identical code passes at once, wrong code fails at once, the rest is screened, and what screening does not
 * clear is confirmed. Launches go round robin over the cases, so that those of a case are spread over the run. */
#ifndef NB_GATE_RUN_H
#define NB_GATE_RUN_H

#include "src/gate/gate.h"

/* The gate's cases are there already. 0, -1 after nb_error, or the number of the signal that ended it: what is decided then
 * stands, the rest is INCONCLUSIVE. */
int nb_gate_run(struct nb_gate *g);

/* IMPROVED becomes SUSPECT, with the reason, where the candidate takes less time than its instructions can, or than a copy of the same bytes
 * in the same launches. 0, -1 after nb_error, or the number of the signal that ended it. */
int nb_gate_doubt(const struct nb_gate *g, struct nb_gate_case *c);

/* ---- budgets of instructions ----------------------------------------------------------------------------------------- */

/* Instructions of both builds, counted one by one on one small call (src/measure/single_step.h): the same number on every run and every
 * machine of an architecture, so that they corroborate a time, and a budget on them needs no statistics. */

/* ---- accuracy -------------------------------------------------------------------------------------------------------- */

/* The margins of accuracy: worse by more than this is LESS ACCURATE. */
#define NB_GATE_ULP_FACTOR 1.1 /* of the largest error, and */
#define NB_GATE_ULP_MORE 0.1   /* in ulp besides */
#define NB_GATE_BIAS_MORE_U 0.05
#define NB_GATE_NORM_FACTOR 2 /* more, of the norm of a parameter's error: its few sums over rows are chance too */

#endif
