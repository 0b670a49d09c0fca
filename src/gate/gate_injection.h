// SPDX-License-Identifier: Apache-2.0
/* Is a sample that does p % more rows really p % more work? Counted, instruction by instruction. */
#ifndef NB_GATE_INJECTION_H
#define NB_GATE_INJECTION_H

#include "src/core/case.h"
#include "src/core/registry.h"

/* Instructions of 100 + percent rows / instructions of 100 rows - 1, on rows of at most 64 columns; NaN with the reason. */
double nb_gate_injection(const struct nb_case *c, const struct nb_entry *entry, int percent, char *reason, size_t n);

#endif
