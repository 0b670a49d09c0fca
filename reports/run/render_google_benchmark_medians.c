// SPDX-License-Identifier: Apache-2.0
/* One row a case: dashboards take every row for a benchmark, or only the first of a name. */
#include "reports/run/google_benchmark.h"
#include "reports/run/report.h"
#include "reports/text/output.h"

static int render(const struct nb_results *results, FILE *out) {
    struct nb_strbuf text = {0};
    if (nb_google_benchmark_add(results, false, &text) != 0) return -1;
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_google_benchmark_medians = {
    "google_benchmark_medians", "Google Benchmark JSON, a row for every case: dashboards", render};
