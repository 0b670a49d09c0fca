// SPDX-License-Identifier: Apache-2.0
/* Results as Google Benchmark writes them (json_schema_version 1), for compare.py and whatever else reads that. Launches are
 * repetitions of one name: tools that test for differences take them for independent, which they are. Dashboards take every row for a
 * benchmark, or only the first of a name: for them a case is one row.
 *
 * Its readers are strict in different places: json_schema_version other than 1, a unit other than the other file's, a row without a
 * time, a bare NaN each end one of them; a row of an error counts as a time of 0. So every row here has its times, in ns, counters
 * are flat, finite and left out where unknown, and what failed stands in a list of our own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "reports/run/summary.h"
#include "reports/text/exports.h"
#include "reports/text/output.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/paired.h"

/* A number that readers want to be there: 0 where it is not known. */
static void add_number(cJSON *json, const char *name, double value) {
    cJSON_AddNumberToObject(json, name, isfinite(value) ? value : 0);
}

static void add_caches(cJSON *context, const cJSON *cpu) {
    static const struct {
        const char *name, *type;
        int level;
    } known[] = {{"l1d_bytes", "Data", 1}, {"l2_bytes", "Unified", 2}, {"l3_bytes", "Unified", 3}};
    cJSON *list = cJSON_AddArrayToObject(context, "caches");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const double bytes = nb_json_get_number(cpu, known[i].name);
        if (!(bytes > 0)) continue;
        cJSON *cache = nb_json_add_object(list);
        nb_json_text(cache, "type", known[i].type);
        cJSON_AddNumberToObject(cache, "level", known[i].level);
        cJSON_AddNumberToObject(cache, "size", bytes);
        cJSON_AddNumberToObject(cache, "num_sharing", 0);
    }
}

static void add_context(cJSON *json, const struct nb_results *results) {
    cJSON *context = cJSON_AddObjectToObject(json, "context");
    /* Several machines have no caches and settings of their own. */
    const cJSON *one = nb_meta_has_several(results) ? NULL : nb_meta(results, "fingerprint");
    const cJSON *cpu = nb_json_get(one, "cpu"), *system = nb_json_get(one, "system");
    const char *governor = nb_json_get_text(system, "governor");
    const double aslr = nb_json_get_number(system, "aslr");
    nb_json_text(context, "date", nb_meta_text(results, "started"));
    nb_json_text(context, "host_name", "");
    nb_json_text(context, "executable", "normbench");
    add_number(context, "num_cpus", nb_json_get_number(cpu, "n_online"));
    add_number(context, "mhz_per_cpu", NAN);
    cJSON_AddBoolToObject(context, "cpu_scaling_enabled", governor && strcmp(governor, "performance") != 0);
    cJSON_AddBoolToObject(context, "aslr_enabled", aslr > 0);
    add_caches(context, cpu);
    cJSON_AddArrayToObject(context, "load_avg");
    nb_json_text(context, "library_version", nb_meta_text(results, "version"));
    nb_json_text(context, "library_build_type", "release");
    cJSON_AddNumberToObject(context, "json_schema_version", 1);
    nb_json_text(context, "cpu_model", nb_meta_cpu_model(results));
    nb_json_text(context, "commit", nb_meta_text(results, "fingerprint.build.commit"));
}

static void add_counter(cJSON *row, const char *name, double value) {
    if (isfinite(value)) cJSON_AddNumberToObject(row, name, value);
}

static void add_counters(cJSON *row, const struct nb_record *r, double wall_ns) {
    const struct nb_shape *s = &r->c.shape;
    add_counter(row, "bytes_per_second", 1e9 * r->bytes / wall_ns);
    add_counter(row, "items_per_second", 1e9 * (double)s->rows * (double)s->cols / wall_ns);
    add_counter(row, "roof", r->timing.roof.value);
    add_counter(row, "vs_reference", r->timing.vs_reference.value);
    if (!r->has_accuracy) return;
    add_counter(row, "max_ulp", r->accuracy.max_ulp);
    add_counter(row, "rows_lost", (double)r->accuracy.n_rows_lost); /* and left out of the others */
    add_counter(row, "mean_ulp", r->accuracy.mean_ulp);
    add_counter(row, "bias_u", r->accuracy.bias_u);
}

struct place {
    size_t family, repetitions, index;
    double machine; /* of merged results of several; else NaN */
};

struct time {
    double wall_ns; /* of one call: median over the launch's samples */
    double cpu_ns;  /* that by the share of CPU time in the whole launch; NaN: not known */
    double calls;   /* that were timed */
};

static void add_row(cJSON *rows, const struct nb_record *r, const struct place *p, const struct time *t) {
    struct nb_strbuf name = {0};
    cJSON *row = nb_json_add_object(rows);
    nb_stable_name(r->key, &name);
    nb_json_text(row, "name", name.text);
    cJSON_AddNumberToObject(row, "family_index", (double)p->family);
    cJSON_AddNumberToObject(row, "per_family_instance_index", 0);
    nb_json_text(row, "run_name", name.text);
    nb_json_text(row, "run_type", "iteration");
    cJSON_AddNumberToObject(row, "repetitions", (double)p->repetitions);
    cJSON_AddNumberToObject(row, "repetition_index", (double)p->index);
    cJSON_AddNumberToObject(row, "threads", r->c.threads);
    cJSON_AddNumberToObject(row, "iterations", t->calls >= 1 ? floor(t->calls) : 1);
    cJSON_AddNumberToObject(row, "real_time", t->wall_ns);
    cJSON_AddNumberToObject(row, "cpu_time", isfinite(t->cpu_ns) ? t->cpu_ns : t->wall_ns);
    nb_json_text(row, "time_unit", "ns");
    add_counters(row, r, t->wall_ns);
    add_counter(row, "machine", p->machine);
    if (r->timing.noisy) nb_json_text(row, "label", "noisy");
    nb_strbuf_release(&name);
}

static bool is_timed(const struct nb_record *r) {
    return r->key && r->has_timing && !nb_status_failed(r->status) && r->timing.time_ns.value > 0 &&
           isfinite(r->timing.time_ns.value);
}

/* The case's launches as rows, none where the table does not have it: results.json keeps what the launches came to, the journal has them
 * one by one. Returns how many. */
static size_t add_launches(cJSON *rows, const struct nb_record *r, size_t family, const struct nb_sample_table *table) {
    const size_t at = nb_text_map_find(&table->index, r->key);
    const struct nb_sample_case *c = at == NB_NOWHERE ? NULL : &table->cases[at];
    struct time *times = nb_alloc(c ? c->n : 0, sizeof *times);
    size_t n = 0;
    for (size_t i = 0; c && i < c->n; i++) {
        const struct nb_sample_row *row = &c->rows[i];
        const double median = nb_samples_median(&row->samples);
        const double rows_of_call = row->chunked && r->c.shape.rows > 0 ? (double)r->c.shape.rows : 1;
        size_t finite = 0;
        if (row->part != c->part || !isfinite(median)) continue;
        for (size_t b = 0; b < row->samples.n; b++) finite += isfinite(row->samples.ns[b]) != 0;
        times[n++] = (struct time){median, median * row->cpu_per_wall, (double)finite * row->per_sample / rows_of_call};
    }
    for (size_t i = 0; i < n; i++) {
        const struct place place = {.family = family, .repetitions = n, .index = i, .machine = NAN};
        add_row(rows, r, &place, &times[i]);
    }
    free(times);
    return n;
}

static void add_whole(cJSON *rows, const struct nb_results *results, size_t family) {
    const struct nb_record *r = &results->records[family];
    const struct nb_timing *t = &r->timing;
    const double per_call = t->chunked && r->c.shape.rows > 0 ? (double)r->c.shape.rows : 1;
    const struct time whole = {t->time_ns.value, t->time_ns.value / t->wall_per_cpu,
                               t->n_samples * t->per_sample / per_call};
    const struct place place = {
        .family = family, .repetitions = 1, .machine = nb_meta_has_several(results) ? r->machine : (double)NAN};
    add_row(rows, r, &place, &whole);
}

/* Merged results have no journal. -1 after nb_error. */
static int read_launches(struct nb_sample_table *table, const struct nb_results *results) {
    char *path = results->dir ? nb_path_join(results->dir, NB_JOURNAL_FILE) : NULL;
    const int result = path && nb_path_exists(path) ? nb_sample_table_read(table, results->dir) : 0;
    free(path);
    return result;
}

static void add_left_out(cJSON *list, const struct nb_record *r) {
    cJSON *json = nb_json_add_object(list);
    nb_json_text(json, "name", r->key);
    nb_json_text(json, "status", r->status < NB_N_STATUSES ? nb_status_name(r->status) : NULL);
    nb_json_text(json, "reason", r->reason ? r->reason : r->timing_reason);
}

/* With repetitions every launch is a row of the same name. */
static int render(const struct nb_results *results, bool repetitions, FILE *out) {
    struct nb_sample_table samples = {0};
    if (repetitions && read_launches(&samples, results) != 0) {
        nb_sample_table_release(&samples);
        return -1;
    }
    cJSON *json = cJSON_CreateObject(), *own = cJSON_CreateObject(), *left_out = cJSON_CreateArray();
    add_context(json, results);
    cJSON *rows = cJSON_AddArrayToObject(json, "benchmarks");
    size_t fewest = NB_COMPARE_PY_REPETITIONS;
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (!is_timed(r)) {
            add_left_out(left_out, r);
            continue;
        }
        const size_t n = add_launches(rows, r, i, &samples);
        if (n == 0) add_whole(rows, results, i);
        if (n < fewest) fewest = n;
    }
    if (repetitions && fewest < NB_COMPARE_PY_REPETITIONS)
        nb_note("compare.py wants %d repetitions and some cases have %zu: measure with --launches %d",
                NB_COMPARE_PY_REPETITIONS, fewest ? fewest : 1, NB_COMPARE_PY_REPETITIONS);
    nb_json_text(own, "format", "1.0");
    nb_json_text(own, "config", nb_meta_text(results, "config"));
    nb_json_text(own, "plan", nb_meta_text(results, "plan.hash"));
    cJSON_AddItemToObject(own, "left_out", left_out);
    cJSON_AddItemToObject(json, "normbench", own);
    nb_sample_table_release(&samples);
    return nb_output_json(json, out);
}

static int render_launches(const struct nb_results *results, FILE *out) { return render(results, true, out); }
static int render_medians(const struct nb_results *results, FILE *out) { return render(results, false, out); }

const struct nb_renderer nb_renderer_google_benchmark[] = {
    {"google_benchmark", "Google Benchmark JSON, a row for every launch: compare.py", render_launches},
    {"google_benchmark_medians", "Google Benchmark JSON, a row for every case: dashboards", render_medians},
    {0}};
