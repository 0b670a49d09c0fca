// SPDX-License-Identifier: Apache-2.0
/* What two runs differ in before any figure: machine, system, build, libraries, plan, load. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/stats.h"
#include "src/record/comparison.h"
#include "src/record/json_differences.h"

static const cJSON *member(const cJSON *json, const char *name) { return cJSON_GetObjectItemCaseSensitive(json, name); }

/* ---- the CPU ---------------------------------------------------------------------------------------------------------- */

/* Merged results have several machines. */
static const cJSON *fingerprint_of(const struct nb_results *r, int machine) {
    const cJSON *machines = member(r->meta, "machines");
    const cJSON *one = cJSON_IsArray(machines) ? cJSON_GetArrayItem(machines, machine) : NULL;
    return one ? member(one, "fingerprint") : member(r->meta, "fingerprint");
}

/* What decides how fast code runs; brand strings of virtual CPUs do not tell generations apart. */
static bool is_identity(const char *name) {
    static const char *const names[] = {"vendor",   "model",     "family",   "model_number", "stepping",
                                        "features", "l1d_bytes", "l2_bytes", "l3_bytes"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static void look_for_identity(const char *path, const cJSON *a, const cJSON *b, void *arg) {
    bool *same = arg;
    (void)a;
    (void)b;
    if (is_identity(path)) *same = false;
}

/* What is not known is not the same. */
bool nb_comparison_same_cpu(const struct nb_comparison *c, int before, int after) {
    const cJSON *a = member(fingerprint_of(c->runs[NB_BEFORE], before), "cpu");
    const cJSON *b = member(fingerprint_of(c->runs[NB_AFTER], after), "cpu");
    bool same = nb_json_get_text(a, "model") && nb_json_get_text(b, "model");
    nb_json_differences(a, b, look_for_identity, &same);
    return same;
}

/* ---- differences ------------------------------------------------------------------------------------------------------ */

static char *value_of(const cJSON *json) {
    struct nb_strbuf text = {0};
    if (cJSON_IsString(json))
        nb_strbuf_add(&text, json->valuestring);
    else if (!json || cJSON_IsNull(json))
        nb_strbuf_add(&text, "-");
    else
        nb_json_print(json, &text);
    return text.text;
}

struct section {
    struct nb_comparison *c;
    const char *name;
};

static void add(const char *path, const cJSON *a, const cJSON *b, void *arg) {
    const struct section *s = arg;
    struct nb_comparison *c = s->c;
    struct nb_strbuf whole = {0};
    nb_strbuf_addf(&whole, "%s%s%s", s->name, *path ? "." : "", path);
    c->differences = nb_realloc(c->differences, c->n_differences + 1, sizeof *c->differences);
    c->differences[c->n_differences++] =
        (struct nb_difference){.path = whole.text,
                               .values = {value_of(a), value_of(b)},
                               .forbids_times = strcmp(s->name, "cpu") == 0 && is_identity(path)};
}

/* Shared objects by their content: where they lie says nothing. */
static cJSON *hashes_of(const cJSON *fingerprint) {
    cJSON *list = cJSON_CreateArray();
    const cJSON *kernel;
    cJSON_ArrayForEach(kernel, member(fingerprint, "kernels")) {
        const char *hash = nb_json_get_text(kernel, "hash");
        cJSON_AddItemToArray(list, cJSON_CreateString(hash ? hash : "-"));
    }
    return list;
}

static void add_fingerprints(struct nb_comparison *c) {
    static const char *const sections[] = {"cpu", "system", "build", "kernels", "libraries"};
    const cJSON *a = fingerprint_of(c->runs[NB_BEFORE], 0), *b = fingerprint_of(c->runs[NB_AFTER], 0);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        struct section s = {c, sections[i]};
        if (strcmp(sections[i], "kernels") != 0) {
            nb_json_differences(member(a, sections[i]), member(b, sections[i]), add, &s);
            continue;
        }
        cJSON *before = hashes_of(a), *after = hashes_of(b);
        nb_json_differences(before, after, add, &s);
        cJSON_Delete(before);
        cJSON_Delete(after);
    }
}

static bool plans_agree(const cJSON *a, const cJSON *b) {
    static const char *const names[] = {"launches", "blocks", "sample_ms"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (nb_json_get_number(a, names[i]) != nb_json_get_number(b, names[i])) return false;
    return true;
}

static void add_plans(struct nb_comparison *c) {
    const cJSON *a = c->runs[NB_BEFORE]->meta, *b = c->runs[NB_AFTER]->meta;
    struct section config = {c, "config"}, plan = {c, "plan"}, machines = {c, "machines"};
    nb_json_differences(member(a, "config"), member(b, "config"), add, &config);
    nb_json_differences(member(a, "plan"), member(b, "plan"), add, &plan);
    const int n_before = cJSON_GetArraySize(member(a, "machines")), n_after = cJSON_GetArraySize(member(b, "machines"));
    cJSON *before = cJSON_CreateNumber(n_before > 1 ? n_before : 1),
          *after = cJSON_CreateNumber(n_after > 1 ? n_after : 1);
    nb_json_differences(before, after, add, &machines);
    cJSON_Delete(before);
    cJSON_Delete(after);
    c->same_plan = plans_agree(member(a, "plan"), member(b, "plan"));
}

/* ---- load ------------------------------------------------------------------------------------------------------------- */

static struct nb_run_noise noise_of(const struct nb_results *r) {
    struct nb_run_noise noise = {.contaminated = NAN, .wall_per_cpu = NAN};
    double *wall = nb_alloc(r->n + 1, sizeof *wall), samples = 0, contaminated = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct nb_timing *t = &r->records[i].timing;
        if (!r->records[i].has_timing) continue;
        noise.n_timed++;
        noise.n_noisy += t->noisy;
        samples += t->n_samples;
        contaminated += t->n_contaminated;
        if (isfinite(t->wall_per_cpu)) wall[n++] = t->wall_per_cpu;
    }
    if (samples > 0) noise.contaminated = contaminated / samples;
    if (n > 0) noise.wall_per_cpu = nb_median(wall, n);
    free(wall);
    return noise;
}

void nb_comparison_runs(struct nb_comparison *c) {
    add_fingerprints(c);
    add_plans(c);
    c->same_cpu = nb_comparison_same_cpu(c, 0, 0);
    for (int side = 0; side < NB_N_SIDES; side++) c->noise[side] = noise_of(c->runs[side]);
}
