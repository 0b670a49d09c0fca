// SPDX-License-Identifier: Apache-2.0
/* Formats of other tools that both runs and gates are written in: Bencher's, github-action-benchmark's and JUnit's. */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "src/core/stats.h"
#include "src/core/text.h"

/* ---- Bencher Metric Format, version 0: {benchmark: {measure: {"value", "lower_value"?, "upper_value"?}}} ---- */

#define NB_BENCHER_LONGEST 1024 /* bytes of a benchmark's name; Bencher refuses the whole file for a longer one */

/* One measure; nothing where the value is not finite, bounds only where both are. */
void nb_bencher_add(cJSON *benchmark, const char *measure, const struct nb_interval *i);
/* The benchmark under its key, without characters that its readers stumble over; nothing when it has no measure. Takes benchmark. */
void nb_bencher_keep(cJSON *document, const char *key, cJSON *benchmark);

/* ---- github-action-benchmark, tool customSmallerIsBetter: [{"name", "unit", "value", "range"?, "extra"?}] ---- */

/* One line of its chart; nothing where the value is not finite. extra: shown beside it, or null. */
void nb_smaller_is_better_add(cJSON *list, const char *key, const char *unit, const struct nb_interval *i,
                              const char *extra);

/* ---- JUnit: one test suite as XML, as Jenkins and GitLab read it and as actions for GitHub do: <testsuites><testsuite> with the
 * properties first, then the cases, in the order that their schemas ask for ---- */

/* Zero-initialise. */
struct nb_junit {
    struct nb_strbuf properties, cases;
    size_t n, n_failures, n_skipped;
};

struct nb_junit_case {
    const char *class_name, *name;
    double time_s;       /* NaN: not known */
    const char *failure; /* its type, such as "REGRESSION", or null */
    const char *skipped; /* why it says nothing, or null */
    const char *message; /* of a failure, one line */
    const char *output;  /* what else there is to say, or null */
};

void nb_junit_property(struct nb_junit *j, const char *name, const char *value);
void nb_junit_add(struct nb_junit *j, const struct nb_junit_case *c);
/* The document; started: ISO 8601, or "". Releases j. */
void nb_junit_finish(struct nb_junit *j, const char *suite, const char *started, double time_s, struct nb_strbuf *out);
