// SPDX-License-Identifier: Apache-2.0
/* Histories of figures over commits. Bencher Metric Format: times, rates and errors of a case side by side, with the bounds that they have;
 * and github-action-benchmark's list of times. */
#include <math.h>

#include "reports/run/report.h"
#include "reports/text/exports.h"
#include "reports/text/output.h"

/* Elements per second; the bounds of a rate are those of the time, the other way round. */
static struct nb_interval throughput(const struct nb_record *r) {
    const struct nb_interval *t = &r->timing.time_ns;
    const double elements = 1e9 * (double)r->c.shape.rows * (double)r->c.shape.cols;
    return (struct nb_interval){elements / t->value, elements / t->high, elements / t->low};
}

static void add_case(cJSON *document, const struct nb_record *r) {
    cJSON *benchmark = cJSON_CreateObject();
    if (r->has_timing) {
        const struct nb_interval rate = throughput(r);
        nb_bencher_add(benchmark, "latency", &r->timing.time_ns);
        nb_bencher_add(benchmark, "throughput", &rate);
        nb_bencher_add(benchmark, "vs-copy", &r->timing.vs_copy);
        nb_bencher_add(benchmark, "vs-reference", &r->timing.vs_reference);
    }
    if (r->has_accuracy && r->accuracy.n_rows_lost == 0) { /* else figures of some rows */
        nb_bencher_add(benchmark, "ulp", &(struct nb_interval){r->accuracy.max_ulp, NAN, NAN});
        nb_bencher_add(benchmark, "bias-u", &(struct nb_interval){r->accuracy.bias_u, NAN, NAN});
    }
    nb_bencher_keep(document, r->key, benchmark);
}

/* A failed case has no place in a history of figures. */
static int render(const struct nb_results *results, FILE *out) {
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < results->n; i++)
        if (results->records[i].key && !nb_status_failed(results->records[i].status))
            add_case(json, &results->records[i]);
    return nb_output_json(json, out);
}

static int render_smaller_is_better(const struct nb_results *results, FILE *out) {
    cJSON *json = cJSON_CreateArray();
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        struct nb_strbuf extra released_by(nb_strbuf_release) = {0};
        if (!r->key || !r->has_timing || nb_status_failed(r->status)) continue;
        nb_meta_whose(results, r, "", r->timing.noise[0] ? "; " : "", &extra);
        nb_strbuf_add(&extra, r->timing.noise);
        nb_smaller_is_better_add(json, r->key, "ns", &r->timing.time_ns, extra.text);
    }
    return nb_output_json(json, out);
}

const struct nb_renderer nb_renderer_bencher[] = {
    {"bencher", "Bencher Metric Format: latency, throughput, ulp", render},
    {"benchmark_action", "github-action-benchmark, tool customSmallerIsBetter: time in ns", render_smaller_is_better},
    {0}};
