// SPDX-License-Identifier: Apache-2.0
/* Call overhead, where a run has ladders of row counts (src/record/call_overhead.h). */
#ifndef NB_OVERHEADS_H
#define NB_OVERHEADS_H

#include "src/record/results.h"

/* One line a kernel: the overhead with its interval, and the time of a byte. Empty without ladders. */
void nb_overheads_print(const struct nb_results *results, struct nb_strbuf *out);

#endif
