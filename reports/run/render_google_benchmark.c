// SPDX-License-Identifier: Apache-2.0
/* Launches are repetitions: tools that test for differences take them for independent, which they are. */
#include "reports/run/google_benchmark.h"
#include "reports/run/report.h"
#include "reports/text/output.h"

static int render(const struct nb_results *results, FILE *out) {
    struct nb_strbuf text = {0};
    if (nb_google_benchmark_add(results, true, &text) != 0) return -1;
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_google_benchmark = {
    "google_benchmark", "Google Benchmark JSON, a row for every launch: compare.py", render};
