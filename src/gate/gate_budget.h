// SPDX-License-Identifier: Apache-2.0
/* Instructions of both builds, counted one by one on one small call (src/measure/single_step.h): they say the same on every run and every
 * machine of an architecture, so that they corroborate a time, and a budget on them needs no statistics. */
#ifndef NB_GATE_BUDGET_H
#define NB_GATE_BUDGET_H

#include "src/gate/gate.h"

/* Does the config bound what the case may take? only_absolute: by a number, which binds code that did not change too. */
bool nb_gate_has_budget(const struct nb_gate *g, const struct nb_gate_case *c, bool only_absolute);
/* Fills the case's instructions, or uncounted with the reason. 0, -1 after nb_error, or a signal's number. */
int nb_gate_count(const struct nb_gate *g, struct nb_gate_case *c);
/* REGRESSION with over_budget where a count is above a budget. */
void nb_gate_keep_budget(const struct nb_gate *g, struct nb_gate_case *c);
/* At the end: what passed while its budget could not be looked at is INCONCLUSIVE. */
void nb_gate_settle_budget(const struct nb_gate *g, struct nb_gate_case *c);

#endif
