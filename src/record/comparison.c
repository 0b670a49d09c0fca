// SPDX-License-Identifier: Apache-2.0
/* Cases of two runs by key, and what may be said of each pair. */
#include "src/record/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/stats.h"
#include "src/core/text.h"
#include "src/record/fingerprint.h"

static const char *const change_names[NB_N_CHANGES] = {"refused", "not shown", "slower", "faster", "mixed"};
static const char *const side_names[NB_N_SIDES] = {"before", "after"};

const char *nb_change_name(enum nb_change c) { return c < NB_N_CHANGES ? change_names[c] : "?"; }

/* What two runs differ in before any figure: machine, system, build, libraries, plan, load. */

/* ---- the CPU ---------------------------------------------------------------------------------------------------------- */

/* Merged results have several machines. */
static const cJSON *fingerprint_of(const struct nb_results *r, int machine) {
    const cJSON *machines = nb_json_get(r->meta, "machines");
    const cJSON *one = cJSON_IsArray(machines) ? cJSON_GetArrayItem(machines, machine) : NULL;
    return one ? nb_json_get(one, "fingerprint") : nb_json_get(r->meta, "fingerprint");
}

static bool is_identity(const char *name) { return nb_name_find(nb_cpu_identity, name) >= 0; }

static void look_for_identity(const char *path, const cJSON *a, const cJSON *b, void *arg) {
    bool *same = arg;
    if (is_identity(path)) *same = false;
}

/* What is not known is not the same. */
static bool same_cpu(const struct nb_results *before, int machine, const struct nb_results *after, int other) {
    const cJSON *a = nb_json_get(fingerprint_of(before, machine), "cpu"),
                *b = nb_json_get(fingerprint_of(after, other), "cpu");
    bool same = nb_json_get_text(a, "model") && nb_json_get_text(b, "model");
    nb_json_differences(a, b, look_for_identity, &same);
    return same;
}

/* ---- differences ------------------------------------------------------------------------------------------------------ */

struct section {
    struct nb_comparison *c;
    const char *name;
};

static void add(const char *path, const cJSON *a, const cJSON *b, void *arg) {
    const struct section *s = arg;
    struct nb_comparison *c = s->c;
    char *whole = nb_textf("%s%s%s", s->name, *path ? "." : "", path);
    *NB_PUSH(c->differences, c->n_differences) =
        (struct nb_difference){.path = whole,
                               .values = {nb_json_shown(a), nb_json_shown(b)},
                               .forbids_times = strcmp(s->name, "cpu") == 0 && is_identity(path)};
}

/* Shared objects by their content: where they lie says nothing. */
static cJSON *hashes_of(const cJSON *fingerprint) {
    cJSON *list = cJSON_CreateArray();
    const cJSON *kernel;
    cJSON_ArrayForEach(kernel, nb_json_get(fingerprint, "kernels")) {
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
            nb_json_differences(nb_json_get(a, sections[i]), nb_json_get(b, sections[i]), add, &s);
            continue;
        }
        released_by(nb_json_release) cJSON *before = hashes_of(a), *after = hashes_of(b);
        nb_json_differences(before, after, add, &s);
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
    nb_json_differences(nb_json_get(a, "config"), nb_json_get(b, "config"), add, &config);
    nb_json_differences(nb_json_get(a, "plan"), nb_json_get(b, "plan"), add, &plan);
    const int n_before = cJSON_GetArraySize(nb_json_get(a, "machines")),
              n_after = cJSON_GetArraySize(nb_json_get(b, "machines"));
    cJSON *before released_by(nb_json_release) = cJSON_CreateNumber(n_before > 1 ? n_before : 1);
    cJSON *after released_by(nb_json_release) = cJSON_CreateNumber(n_after > 1 ? n_after : 1);
    nb_json_differences(before, after, add, &machines);
    c->same_plan = plans_agree(nb_json_get(a, "plan"), nb_json_get(b, "plan"));
}

/* ---- load ------------------------------------------------------------------------------------------------------------- */

struct nb_run_noise nb_run_noise_of(const struct nb_results *r) {
    struct nb_run_noise noise = {.preempted = NAN, .wall_per_cpu = NAN};
    double *wall freed = nb_alloc(r->n + 1, sizeof *wall), samples = 0, preempted = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct nb_timing *t = &r->records[i].timing;
        if (!r->records[i].has_timing) continue;
        noise.n_timed++;
        noise.n_noisy += t->noisy;
        samples += t->n_samples;
        preempted += t->n_preempted;
        noise.steal_ms = fmax(noise.steal_ms, t->steal_ms);
        if (isfinite(t->wall_per_cpu)) wall[n++] = t->wall_per_cpu;
    }
    if (samples > 0) noise.preempted = preempted / samples;
    if (n > 0) noise.wall_per_cpu = nb_median(wall, n);
    return noise;
}

static void compare_runs(struct nb_comparison *c) {
    add_fingerprints(c);
    add_plans(c);
    c->same_cpu = same_cpu(c->runs[NB_BEFORE], 0, c->runs[NB_AFTER], 0);
    for (int side = 0; side < NB_N_SIDES; side++) c->noise[side] = nb_run_noise_of(c->runs[side]);
}

/* ---- ratios ----------------------------------------------------------------------------------------------------------- */

static bool is_bounded(const struct nb_interval *i) {
    return i->low > 0 && i->low <= i->value && i->value <= i->high && isfinite(i->high);
}

/* a / b of two independent estimates: on the logarithms, each bound of the difference has the distances of a's bound and of b's
 * opposite bound, added in squares. */
static struct nb_interval quotient(const struct nb_interval *a, const struct nb_interval *b) {
    struct nb_interval q = NB_NO_INTERVAL;
    if (!(a->value > 0 && b->value > 0 && isfinite(a->value) && isfinite(b->value))) return q;
    const double ln = log(a->value / b->value);
    q.value = exp(ln);
    if (!is_bounded(a) || !is_bounded(b)) return q;
    q.low = exp(ln - hypot(log(a->value / a->low), log(b->high / b->value)));
    q.high = exp(ln + hypot(log(a->high / a->value), log(b->value / b->low)));
    return q;
}

static bool same_text(const char *a, const char *b) { return a && b && strcmp(a, b) == 0; }

static bool is_own_reference(const struct nb_record *r) { return same_text(r->key, r->timing.reference); }

static void compare_times(const struct nb_comparison *all, struct nb_compared *c) {
    const struct nb_record *before = c->sides[NB_BEFORE], *after = c->sides[NB_AFTER];
    const struct nb_timing *a = &before->timing, *b = &after->timing;
    c->time = quotient(&b->time_ns, &a->time_ns);
    if (!same_cpu(all->runs[NB_BEFORE], before->machine, all->runs[NB_AFTER], after->machine))
        snprintf(c->time_reason, sizeof c->time_reason, "different CPUs");
    if (a->copy[0] && strcmp(a->copy, b->copy) == 0)
        c->to_copy = quotient(&a->vs_copy, &b->vs_copy);
    else
        snprintf(c->copy_reason, sizeof c->copy_reason, a->copy[0] && b->copy[0] ? "another copy" : "no copy");
    if (is_own_reference(before) && is_own_reference(after))
        snprintf(c->reference_reason, sizeof c->reference_reason, "is the reference");
    else if (same_text(a->reference, b->reference))
        c->to_reference = quotient(&b->vs_reference, &a->vs_reference);
    else
        snprintf(c->reference_reason, sizeof c->reference_reason, "another reference case");
}

/* ---- what is refused -------------------------------------------------------------------------------------------------- */

/* True, so that a function can end with it. */
#define refuse(c, ...) nb_reason((c)->refused, sizeof(c)->refused, __VA_ARGS__)

static bool differ(double a, double b) { return a != b && !(isnan(a) && isnan(b)); }

/* One key, but another thing: a plugin's kernel may declare itself anew. */
static const char *redeclared(const struct nb_record *a, const struct nb_record *b) {
    if (a->c.op != b->c.op || a->c.pass != b->c.pass) return "op";
    if (a->c.dtype != b->c.dtype) return "dtype";
    if (a->c.width != b->c.width) return "width";
    if (strcmp(a->c.shape.text, b->c.shape.text) != 0 || a->c.shape.rows != b->c.shape.rows) return "shape";
    if (a->c.style != b->c.style || a->c.stats != b->c.stats || a->c.stats_dtype != b->c.stats_dtype ||
        a->c.variance != b->c.variance)
        return "algorithm";
    return differ(a->bytes, b->bytes) ? "number of bytes" : NULL;
}

const struct nb_interval *nb_compared_rank(const struct nb_compared *c) {
    return isfinite(c->to_copy.value) ? &c->to_copy : &c->to_reference;
}

static bool is_refused(const struct nb_comparison *all, struct nb_compared *c) {
    for (int side = 0; side < NB_N_SIDES; side++) {
        const struct nb_record *r = c->sides[side];
        if (nb_status_failed(r->status)) return refuse(c, "%s %s", nb_status_name(r->status), side_names[side]);
        if (!r->has_timing) return refuse(c, "not timed %s", side_names[side]);
    }
    const char *declared = redeclared(c->sides[NB_BEFORE], c->sides[NB_AFTER]);
    if (declared) return refuse(c, "another %s under the same key", declared);
    if (!all->same_plan) return refuse(c, "measured by another plan: launches, blocks or samples differ");
    for (int side = 0; side < NB_N_SIDES; side++) {
        const struct nb_timing *t = &c->sides[side]->timing;
        if (t->noisy) return refuse(c, "noisy %s%s%.150s", side_names[side], t->noise[0] ? ": " : "", t->noise);
        if (t->suspect) return refuse(c, "faster than the copy %s", side_names[side]);
    }
    const struct nb_interval *rank = nb_compared_rank(c);
    if (!isfinite(rank->value)) return refuse(c, "no ratio to the copy or to a reference in both runs");
    return !is_bounded(rank) && refuse(c, "no interval: fewer than %d launches", NB_MIN_LAUNCHES);
}

static int side_of(const struct nb_interval *i) { return !is_bounded(i) ? 0 : i->low > 1 ? 1 : i->high < 1 ? -1 : 0; }

static enum nb_change change_of(const struct nb_compared *c) {
    const int first = side_of(nb_compared_rank(c)), copy = side_of(&c->to_copy), reference = side_of(&c->to_reference);
    if (copy * reference < 0) return NB_CHANGE_MIXED;
    return first > 0 ? NB_CHANGE_SLOWER : first < 0 ? NB_CHANGE_FASTER : NB_CHANGE_NOT_SHOWN;
}

/* ---- accuracy: the same inputs and the same code give the same bits, so that any difference is one ------------------------- */

static bool accuracy_differs(const struct nb_record *a, const struct nb_record *b) {
    const struct nb_accuracy *x = &a->accuracy, *y = &b->accuracy;
    if (a->has_accuracy != b->has_accuracy) return true;
    return a->has_accuracy && (differ(x->max_ulp, y->max_ulp) || differ(x->mean_ulp, y->mean_ulp) ||
                               differ(x->bias_u, y->bias_u) || x->n_beyond != y->n_beyond);
}

/* ---- both runs -------------------------------------------------------------------------------------------------------- */

static struct nb_compared *add_case(struct nb_comparison *c, const struct nb_record *before,
                                    const struct nb_record *after) {
    struct nb_compared *one = NB_PUSH(c->cases, c->n);
    *one = (struct nb_compared){.sides = {before, after}};
    one->time = one->to_copy = one->to_reference = NB_NO_INTERVAL;
    return one;
}

static void add_pair(struct nb_comparison *c, const struct nb_record *before, const struct nb_record *after) {
    struct nb_compared *one = add_case(c, before, after);
    c->n_common++;
    if (before->has_timing && after->has_timing) compare_times(c, one);
    one->change = is_refused(c, one) ? NB_CHANGE_REFUSED : change_of(one);
    one->status_differs = before->status != after->status;
    one->accuracy_differs = accuracy_differs(before, after);
    c->n_changes[one->change]++;
    c->n_inaccurate += one->accuracy_differs || one->status_differs;
}

/* Cells that were left out in a run are no cases of it. */
static bool is_case(const struct nb_record *r, const struct nb_filters *filters) {
    return r->key && r->status != NB_SKIPPED && r->status != NB_NOT_RUN && nb_filters_match(filters, r->key);
}

static void match(struct nb_comparison *c, const struct nb_filters *filters) {
    struct nb_text_map keys[NB_N_SIDES] = {{0}};
    for (int side = 0; side < NB_N_SIDES; side++)
        for (size_t i = 0; i < c->runs[side]->n; i++)
            if (is_case(&c->runs[side]->records[i], filters))
                nb_text_map_add(&keys[side], c->runs[side]->records[i].key, i);
    for (int pass = 0; pass <= NB_N_SIDES; pass++) { /* pairs, then what each side has alone */
        const int side = pass ? pass - 1 : NB_BEFORE;
        for (size_t i = 0; i < c->runs[side]->n; i++) {
            const struct nb_record *r = &c->runs[side]->records[i];
            if (!is_case(r, filters) || nb_text_map_find(&keys[side], r->key) != i) continue;
            const size_t other = nb_text_map_find(&keys[!side], r->key);
            if (pass == 0 && other != NB_NOWHERE) add_pair(c, r, &c->runs[NB_AFTER]->records[other]);
            if (pass == 0 || other != NB_NOWHERE) continue;
            add_case(c, side == NB_BEFORE ? r : NULL, side == NB_AFTER ? r : NULL);
            c->n_only[side]++;
        }
    }
    for (int side = 0; side < NB_N_SIDES; side++) nb_text_map_release(&keys[side]);
}

static int by_rank(const void *left, const void *right, void *cases) {
    const size_t i = *(const size_t *)left, j = *(const size_t *)right;
    const struct nb_compared *a = (const struct nb_compared *)cases + i, *b = (const struct nb_compared *)cases + j;
    const bool refused = a->change == NB_CHANGE_REFUSED;
    const double x = nb_compared_rank(a)->value, y = nb_compared_rank(b)->value;
    if (refused != (b->change == NB_CHANGE_REFUSED)) return refused ? 1 : -1;
    if (!refused && x != y) return x < y ? 1 : -1;
    return i < j ? -1 : i > j;
}

static void rank(struct nb_comparison *c) {
    c->order = nb_alloc(c->n_common + 1, sizeof *c->order);
    for (size_t i = 0; i < c->n_common; i++) c->order[i] = i;
    qsort_r(c->order, c->n_common, sizeof *c->order, by_rank, c->cases);
}

int nb_comparison_make(struct nb_comparison *c, const struct nb_results *before, const struct nb_results *after,
                       const struct nb_filters *filters) {
    *c = (struct nb_comparison){.runs = {before, after}};
    compare_runs(c);
    match(c, filters);
    rank(c);
    if (c->n > 0) return 0;
    nb_comparison_release(c);
    return nb_error("no case of either run is left to compare");
}

void nb_comparison_release(struct nb_comparison *c) {
    for (size_t i = 0; i < c->n_differences; i++) {
        free(c->differences[i].path);
        for (int side = 0; side < NB_N_SIDES; side++) free(c->differences[i].values[side]);
    }
    nb_free_all(c->differences, c->cases, c->order);
    *c = (struct nb_comparison){0};
}

bool nb_comparison_is_whole(const struct nb_comparison *c) {
    bool same_cpu = c->same_cpu;
    for (size_t i = 0; i < c->n_common; i++) same_cpu = same_cpu && !c->cases[i].time_reason[0];
    return same_cpu && c->same_plan && c->n_common == c->n && c->n_changes[NB_CHANGE_REFUSED] == 0;
}
