// SPDX-License-Identifier: Apache-2.0
/* Bencher Metric Format, version 0: {benchmark: {measure: {"value", "lower_value"?, "upper_value"?}}}. */
#ifndef NB_BENCHER_H
#define NB_BENCHER_H

#include <cjson/cJSON.h>

#include "src/core/stats.h"
#include "src/core/text.h"

#define NB_BENCHER_LONGEST 1024 /* bytes of a benchmark's name; Bencher refuses the whole file for a longer one */

/* One measure; nothing where the value is not finite, bounds only where both are. */
void nb_bencher_add(cJSON *benchmark, const char *measure, const struct nb_interval *i);
/* The benchmark under its key, without characters that its readers stumble over; nothing when it has no measure. Takes benchmark. */
void nb_bencher_keep(cJSON *document, const char *key, cJSON *benchmark);
/* A case's key as other tools take names: no spaces, no control characters. */
void nb_stable_name(const char *key, struct nb_strbuf *out);

#endif
