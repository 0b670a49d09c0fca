// SPDX-License-Identifier: Apache-2.0
/* Which format is which, on stdout and as files; and the formats for programs. */
#include "reports/gate/gate_report.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/gate/gate_summary.h"
#include "reports/text/exports.h"
#include "reports/text/output.h"
#include "src/accuracy/accuracy_json.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/fingerprint.h"

/* ---- JSON: reports/schema/gate.schema.json describes it -------------------------------------------------------------- */

static void add_launches(cJSON *object, const char *name, const struct nb_gate_launch *launches, size_t n) {
    cJSON *array = cJSON_AddArrayToObject(object, name);
    for (size_t i = 0; i < n; i++) {
        cJSON *json = cJSON_CreateObject();
        nb_json_number(json, "ln_ratio", launches[i].ratio);
        nb_json_number(json, "ln_control", launches[i].control);
        nb_json_number(json, "ln_ratio_min", launches[i].ratio_min);
        nb_json_number(json, "order_effect", launches[i].order_effect);
        nb_json_number(json, "contaminated", launches[i].contaminated);
        cJSON_AddNumberToObject(json, "layout", launches[i].layout);
        cJSON_AddItemToArray(array, json);
    }
}

static void add_judgement(cJSON *json, const struct nb_gate_case *c) {
    const struct nb_gate_judgement *j = &c->judgement;
    nb_json_interval(json, "ratio", &j->ratio);
    nb_json_interval(json, "confirmed", &j->confirmed);
    nb_json_interval(json, "control", &j->control);
    nb_json_interval(json, "t_ratio", &j->t_ratio);
    nb_json_number(json, "ratio_min", j->ratio_min);
    nb_json_number(json, "order_effect", j->order_effect);
    nb_json_number(json, "contaminated", j->contaminated);
    nb_json_number(json, "launch_sd", j->launch_sd);
    nb_json_number(json, "smallest_effect", j->smallest_effect);
    nb_json_number(json, "layout_spread", j->layout_spread);
    cJSON_AddBoolToObject(json, "flagged", j->flagged);
}

static cJSON *case_to_json(const struct nb_gate_case *c) {
    cJSON *json = cJSON_CreateObject(), *builds = cJSON_CreateObject();
    nb_json_text(json, "key", c->key);
    nb_json_text(json, "variant", strchr(c->c.variant, ':') ? strchr(c->c.variant, ':') + 1 : c->c.variant);
    nb_json_text(json, "verdict", nb_verdict_name(c->verdict));
    nb_json_text(json, "reason", c->reason[0] ? c->reason : NULL);
    nb_json_number(json, "seconds", c->seconds);
    cJSON_AddBoolToObject(json, "over_budget", c->over_budget);
    nb_json_text(json, "uncounted", c->uncounted[0] ? c->uncounted : NULL);
    cJSON_AddItemToObject(json, "builds", builds);
    for (int b = 0; b < NB_N_BUILDS; b++) {
        cJSON *build = cJSON_AddObjectToObject(builds, nb_build_names[b]);
        nb_json_number(build, "call_ns", nb_gate_judged(c) ? c->call_ns[b] : (double)NAN);
        nb_json_number(build, "instructions", c->instructions[b]);
        if (c->has_accuracy[b])
            cJSON_AddItemToObject(build, "accuracy", nb_accuracy_to_json(&c->accuracy[b], nb_number_of(c->c.dtype)));
    }
    if (!nb_gate_judged(c)) return json;
    add_judgement(json, c);
    cJSON_AddBoolToObject(json, "chunked", c->chunked);
    add_launches(json, "screen", c->screen, c->n_screen);
    add_launches(json, "confirm", c->confirm, c->n_confirm);
    return json;
}

/* "PASS" for all that pass: which way each passed is its case's. Null: no case. */
static const char *overall(const struct nb_gate_summary *s) {
    const bool passed = s->verdict == NB_VERDICT_IDENTICAL || s->verdict == NB_VERDICT_IMPROVED;
    if (s->verdict == NB_VERDICT_NONE) return NULL;
    return nb_verdict_name(passed ? NB_VERDICT_PASS : s->verdict);
}

static void add_signs(cJSON *object, const char *name, size_t n_slower, size_t n) {
    cJSON *json = cJSON_AddObjectToObject(object, name);
    cJSON_AddNumberToObject(json, "slower", (double)n_slower);
    cJSON_AddNumberToObject(json, "of", (double)n);
    cJSON_AddBoolToObject(json, "leans", nb_leans(n_slower, n));
}

static void add_summary(cJSON *object, const struct nb_gate_summary *s) {
    cJSON *json = cJSON_AddObjectToObject(object, "summary"), *counts = cJSON_AddObjectToObject(json, "counts");
    for (int v = 0; v < NB_N_VERDICTS; v++)
        if (s->counts[v]) cJSON_AddNumberToObject(counts, nb_verdict_name((enum nb_verdict)v), (double)s->counts[v]);
    cJSON_AddNumberToObject(json, "timed", (double)s->n_timed);
    nb_json_interval(json, "geometric_mean", &s->mean);
    nb_json_number(json, "smallest_effect_median", s->smallest_effect);
    nb_json_number(json, "smallest_effect_worst", s->largest_smallest);
    add_signs(json, "signs", s->n_slower, s->n_null);
    add_signs(json, "control_signs", s->n_control_slower, s->n_control);
}

static void add_plan(cJSON *object, const struct nb_gate_plan *plan) {
    cJSON *json = cJSON_AddObjectToObject(object, "plan"), *rule = cJSON_AddObjectToObject(object, "rule");
    cJSON_AddNumberToObject(json, "screen_launches", plan->screen_launches);
    cJSON_AddNumberToObject(json, "confirm_launches", plan->confirm_launches);
    cJSON_AddNumberToObject(json, "blocks", plan->blocks);
    nb_json_number(json, "sample_ms", plan->sample_ms);
    nb_json_number(json, "budget_s", plan->budget_s > 0 ? plan->budget_s : (double)NAN);
    nb_json_uint64(json, "seed", plan->seed);
    cJSON_AddBoolToObject(json, "time_identical", plan->ignore_identity);
    nb_json_number(rule, "fail_margin", plan->rule.fail_margin);
    nb_json_number(rule, "pass_margin", plan->rule.pass_margin);
    nb_json_number(rule, "run_level", plan->rule.run_level);
    nb_json_number(rule, "pass_level", plan->rule.pass_level);
    nb_json_number(rule, "screen_level", plan->rule.screen_level);
    nb_json_number(rule, "most_contaminated", plan->rule.most_contaminated);
}

/* The files as the user named them, one list entry a layout, and what was in them. */
static void add_builds(cJSON *object, const struct nb_gate_builds *b) {
    static const int arms[] = {NB_BUILD_BASELINE, NB_BUILD_CANDIDATE};
    cJSON *json = cJSON_AddObjectToObject(object, "builds");
    for (size_t i = 0; i < 2; i++) {
        cJSON *list = cJSON_AddArrayToObject(json, nb_build_names[arms[i]]);
        for (int l = 0; l < b->n_layouts; l++) {
            char hash[20] = "";
            cJSON *file = cJSON_CreateObject();
            if (b->files[l][arms[i]]) nb_file_hash(b->files[l][arms[i]], hash);
            nb_json_text(file, "file", b->sources[l][arms[i]]);
            nb_json_text(file, "hash", hash[0] ? hash : NULL);
            cJSON_AddItemToArray(list, file);
        }
    }
}

static void add_json(const struct nb_gate_view *view, struct nb_strbuf *out) {
    const struct nb_gate *g = view->g;
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "schema", "2.0");
    nb_json_text(json, "program", "normbench");
    nb_json_text(json, "version", NB_VERSION);
    nb_json_text(json, "verdict", overall(&view->summary));
    nb_json_number(json, "elapsed_s", g->elapsed_s);
    cJSON_AddNumberToObject(json, "layouts", g->builds.n_layouts);
    add_summary(json, &view->summary);
    add_plan(json, &g->plan);
    add_builds(json, &g->builds);
    cJSON *cases = cJSON_AddArrayToObject(json, "cases");
    for (size_t i = 0; i < g->n_cases; i++) cJSON_AddItemToArray(cases, case_to_json(&g->cases[i]));
    cJSON_AddItemToObject(json, "fingerprint", cJSON_Duplicate(view->fingerprint, true));
    nb_json_print_pretty(json, 0, out);
    nb_strbuf_add(out, "\n");
    cJSON_Delete(json);
}

/* ---- metrics --------------------------------------------------------------------------------------------------------- */

/* The gate as metrics: ratios travel between machines, where times do not. */

static void add_bencher(const struct nb_gate_view *view, struct nb_strbuf *out) {
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < view->g->n_cases; i++) {
        const struct nb_gate_case *c = &view->g->cases[i];
        cJSON *benchmark = cJSON_CreateObject();
        if (nb_gate_judged(c)) {
            nb_bencher_add(benchmark, "ratio", &c->judgement.ratio);
            nb_bencher_add(benchmark, "control", &c->judgement.control);
        }
        nb_bencher_keep(json, c->key, benchmark);
    }
    nb_json_print_pretty(json, 0, out);
    nb_strbuf_add(out, "\n");
    cJSON_Delete(json);
}

/* ---- formats --------------------------------------------------------------------------------------------------------- */

static const struct format {
    const char *name, *file; /* null: no file */
    void (*add)(const struct nb_gate_view *view, struct nb_strbuf *out);
} formats[] = {{"table", NULL, NULL},
               {"json", "gate.json", add_json},
               {"markdown", "gate.md", nb_gate_add_markdown},
               {"junit", "gate.xml", nb_gate_add_junit},
               {"bencher", "gate.bencher.json", add_bencher}};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

static const struct format *find_format(const char *name) {
    for (size_t i = 0; i < N_FORMATS; i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

bool nb_gate_format_known(const char *format) { return find_format(format) != NULL; }

static void view_init(struct nb_gate_view *view, const struct nb_gate *g) {
    *view = (struct nb_gate_view){.g = g, .fingerprint = nb_fingerprint()};
    nb_gate_summary_init(&view->summary, g);
}

static void view_release(struct nb_gate_view *view) {
    nb_gate_summary_release(&view->summary);
    cJSON_Delete(view->fingerprint);
}

int nb_gate_print(const struct nb_gate *g, const char *format, FILE *out) {
    const struct format *f = find_format(format);
    struct nb_gate_view view;
    struct nb_strbuf text = {0};
    assert(f);
    view_init(&view, g);
    if (f->add)
        f->add(&view, &text);
    else
        nb_gate_add_table(&view, nb_screen_width(out), nb_screen_color(out), &text);
    view_release(&view);
    return nb_output(&text, out);
}

int nb_gate_write(const struct nb_gate *g, const char *dir) {
    struct nb_gate_view view;
    int result = nb_dir_make(dir);
    if (result != 0) return -1;
    view_init(&view, g);
    for (size_t i = 0; i < N_FORMATS && result == 0; i++) {
        struct nb_strbuf text = {0};
        if (!formats[i].file) continue;
        char *path = nb_path_join(dir, formats[i].file);
        formats[i].add(&view, &text);
        result = nb_file_write(path, text.text, text.len);
        nb_strbuf_release(&text);
        free(path);
    }
    view_release(&view);
    return result;
}

FILE *nb_gate_samples_open(const char *dir) {
    if (nb_dir_make(dir) != 0) return NULL;
    char *path = nb_path_join(dir, "samples.jsonl");
    FILE *out = fopen(path, "we");
    if (!out) nb_error("%s: %s", path, strerror(errno));
    free(path);
    return out;
}

void nb_gate_record_sample(FILE *samples, const struct nb_gate_case *c, enum nb_gate_stage stage, const cJSON *line) {
    struct nb_strbuf text = {0};
    cJSON *sample = cJSON_Duplicate(line, 1);
    nb_json_text(sample, "key", c->key);
    cJSON_AddNumberToObject(sample, "stage", stage);
    nb_json_print(sample, &text);
    fprintf(samples, "%s\n", text.text);
    nb_strbuf_release(&text);
    cJSON_Delete(sample);
}
