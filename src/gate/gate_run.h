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

#endif
