// SPDX-License-Identifier: Apache-2.0
/* What our own kernels do inside, from their sources (kernels/rows/row.h, reduce.h, composed_norm.h ...): the truth that answers of probes
 * are held against. */
#ifndef NB_TEST_SUPPORT_PROBE_H
#define NB_TEST_SUPPORT_PROBE_H

#include <cjson/cJSON.h>

#include "src/core/case.h"
#include "src/core/kernel_entry.h"

/* A case as `normbench probe` makes it. The formula is fitted to what the kernel implements. 0, or -1 when this
 * combination does not exist. */
int probe_case(struct nb_case *c, const struct nb_entry *entry, struct nb_formula formula);

/* Appends a line for every answer that is wrong, and for every one that should be known and is not. Returns how many. */
int probe_complaints(const struct nb_case *c, const struct nb_kernel *kernel, const cJSON *result,
                     struct nb_strbuf *out);

#endif
