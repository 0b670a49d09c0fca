// SPDX-License-Identifier: Apache-2.0
/* Which cases a gate has: the cells of a config for the candidate's kernels, each with its counterpart in the baseline; and the
 * kernels that only the baseline has. */
#ifndef NB_GATE_CASES_H
#define NB_GATE_CASES_H

#include "src/gate/gate.h"
#include "src/plan/config.h"
#include "src/plan/match.h"
#include "src/plan/skips.h"

/* The builds are loaded already. kernels: globs on the kernel's name, any may match; none: all. Fills g->cases. What does not apply
 * or cannot run here is counted in skips; *n_elsewhere: cells that only this CPU refuses. -1 after nb_error. */
int nb_gate_cases_make(struct nb_gate *g, struct nb_config *config, const char *const *kernels, size_t n_kernels,
                       const struct nb_filters *filters, struct nb_skips *skips, size_t *n_elsewhere);

#endif
