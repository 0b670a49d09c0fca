// SPDX-License-Identifier: Apache-2.0
/* The shards of one plan to one run. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/record/record.h"

/* The folders of the shards of one plan, each once, to the results of one run. A shard that is missing is an error that
 * names it; with partial it is a warning, and kept in meta "missing_shards". */
int nb_results_merge(struct nb_results *r, const char *const *dirs, size_t n, bool partial);
