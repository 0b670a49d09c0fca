// SPDX-License-Identifier: Apache-2.0
/* Results as Google Benchmark writes them (json_schema_version 1), for compare.py and whatever else reads that. */
#ifndef NB_GOOGLE_BENCHMARK_H
#define NB_GOOGLE_BENCHMARK_H

#include <stdbool.h>

#include "src/record/results.h"

/* With repetitions every launch is a row of the same name; without, a case is one row. -1 after nb_error. */
int nb_google_benchmark_add(const struct nb_results *results, bool repetitions, struct nb_strbuf *out);

#endif
