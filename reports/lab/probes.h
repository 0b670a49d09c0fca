// SPDX-License-Identifier: Apache-2.0
/* What probes found out, on a stream. */
#ifndef NB_PROBES_H
#define NB_PROBES_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "src/core/case.h"

/* answers[i]: nb_probe_kernel()'s of cases[i], or what a study says of a worker that died; null: not asked. format: "table" or "json":
 * {"probes": [{"variant", "called_as" (a case key), "status", "answers" ..}]}. */
void nb_probes_print(const struct nb_case *cases, cJSON *const *answers, int n, const char *format, FILE *out);

#endif
