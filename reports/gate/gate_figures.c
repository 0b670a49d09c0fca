// SPDX-License-Identifier: Apache-2.0
/* A gate as figures: those of the whole, gate.json, and what other tools keep of it as metrics. */
#include "reports/gate/gate_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/text/exports.h"
#include "src/accuracy/accuracy.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/registry.h"
#include "src/core/stats.h"
#include "src/core/tuning.h"
#include "src/gate/gate.h"
#include "src/record/fingerprint.h"
#include "src/record/record.h"

bool nb_gate_is_judged(const struct nb_gate_case *c) {
    return c->launches.n_screen > 0 && c->judgement.ratio.value != 0;
}

static bool is_timed(const struct nb_gate_case *c) {
    return nb_gate_is_judged(c) && isfinite(c->judgement.ratio.value);
}

/* ---- order ---------------------------------------------------------------------------------------------------------- */

/* Verdicts are numbered from the best to the worst; among equals the slowest comes first, then the order of the plan. */
static int by_badness(const void *left, const void *right, void *cases) {
    const size_t i = *(const size_t *)left, j = *(const size_t *)right;
    const struct nb_gate_case *a = (const struct nb_gate_case *)cases + i, *b = (const struct nb_gate_case *)cases + j;
    const double x = is_timed(a) ? a->judgement.ratio.value : 0, y = is_timed(b) ? b->judgement.ratio.value : 0;
    if (a->verdict != b->verdict) return a->verdict < b->verdict ? 1 : -1;
    if (x != y) return x < y ? 1 : -1;
    return i < j ? -1 : i > j;
}

/* ---- geometric mean ------------------------------------------------------------------------------------------------- */

static size_t n_launches(const struct nb_gate_case *c) { return c->launches.n_screen + c->launches.n_confirm; }

/* The case's launches drawn again with replacement, and their median. */
static double redrawn(const struct nb_gate_case *c, uint64_t *state, double *drawn) {
    const size_t n = n_launches(c);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const double value = c->launches.launches[nb_random_next(state) % n].ratio;
        if (isfinite(value)) drawn[kept++] = value;
    }
    return kept ? nb_median(drawn, kept) : log(c->judgement.ratio.value);
}

/* Bootstrap over launches, the independent units. Percentiles of the spread about the bootstrap's own centre: medians of draws
 * and Hodges-Lehmann of the launches need not agree. */
static struct nb_interval geometric_mean(const struct nb_gate *g, size_t n_timed) {
    enum { DRAWS = 500 };
    double draws[DRAWS] = {0}, mean = 0;
    bool is_known = true;
    size_t most = 1;
    uint64_t state = g->plan.seed;
    if (n_timed == 0) return NB_NO_INTERVAL;
    for (size_t i = 0; i < g->n_cases; i++)
        if (n_launches(&g->cases[i]) > most) most = n_launches(&g->cases[i]);
    double *drawn freed = nb_alloc(most, sizeof *drawn);
    for (size_t i = 0; i < g->n_cases; i++) {
        if (!is_timed(&g->cases[i])) continue;
        mean += log(g->cases[i].judgement.ratio.value) / (double)n_timed;
        is_known &= nb_interval_known(&g->cases[i].judgement.ratio);
        for (int d = 0; d < DRAWS; d++) draws[d] += redrawn(&g->cases[i], &state, drawn) / (double)n_timed;
    }
    if (!is_known) return (struct nb_interval){exp(mean), NAN, NAN};
    const double centre = nb_median(draws, DRAWS);
    return (struct nb_interval){exp(mean), exp(mean + nb_quantile(draws, DRAWS, 0.025) - centre),
                                exp(mean + nb_quantile(draws, DRAWS, 0.975) - centre)};
}

/* ---- signs and sensitivity -------------------------------------------------------------------------------------------- */

bool nb_gate_leans(size_t k, size_t n) {
    const size_t most = k > n - k ? k : n - k;
    return n > 0 && nb_proportion_lower((int64_t)most, (int64_t)n, 0.995) > 0.5;
}

static void count_signs(struct nb_gate_summary *s, const struct nb_gate_case *c) {
    const double ratio = c->judgement.ratio.value, control = c->judgement.control.value;
    if (fabs(log(ratio)) < log1p(s->g->plan.rule.fail_margin)) {
        s->n_null++;
        s->n_slower += ratio > 1;
    }
    if (!isfinite(control)) return;
    s->n_control++;
    s->n_control_slower += control > 1;
}

static void count_timed(struct nb_gate_summary *s) {
    double *effects freed = nb_alloc(s->g->n_cases + 1, sizeof *effects);
    size_t n = 0;
    for (size_t i = 0; i < s->g->n_cases; i++) {
        const struct nb_gate_case *c = &s->g->cases[i];
        if (!is_timed(c)) continue;
        s->n_timed++;
        count_signs(s, c);
        if (isfinite(c->judgement.smallest_effect)) effects[n++] = c->judgement.smallest_effect;
    }
    s->smallest_effect = n ? nb_median(effects, n) : (double)NAN;
    s->largest_smallest = n ? nb_quantile(effects, n, 1) : (double)NAN;
}

void nb_gate_summary_init(struct nb_gate_summary *s, const struct nb_gate *g) {
    *s = (struct nb_gate_summary){.g = g, .fingerprint = nb_fingerprint()};
    const char **keys freed = nb_alloc(g->n_cases + 1, sizeof *keys);
    s->order = nb_alloc(g->n_cases + 1, sizeof *s->order);
    for (size_t i = 0; i < g->n_cases; i++) {
        const enum nb_verdict v = g->cases[i].verdict;
        s->order[i] = i;
        keys[i] = g->cases[i].key;
        s->counts[v]++;
        if (v > s->verdict) s->verdict = v;
    }
    nb_key_parts_init(&s->parts, keys, g->n_cases);
    qsort_r(s->order, g->n_cases, sizeof *s->order, by_badness, g->cases);
    count_timed(s);
    s->mean = geometric_mean(g, s->n_timed);
}

void nb_gate_summary_release(struct nb_gate_summary *s) {
    nb_key_parts_release(&s->parts);
    cJSON_Delete(s->fingerprint);
    free(s->order);
    *s = (struct nb_gate_summary){0};
}

char *nb_gate_replay(const struct nb_gate *g, const struct nb_gate_case *c) {
    const char *file = g->builds.sources[0][NB_BUILD_CANDIDATE];
    if (c->verdict != NB_VERDICT_WRONG || g->subject != &nb_gate_kernels || !file) return NULL;
    char *plugin freed = nb_plugin_name(file), *key freed = nb_textf("%s:%s", plugin, c->key),
                 *tuning freed = nb_tuning_replay();
    return nb_replay_command(&(struct nb_replay){key, c->wrong_when_timed ? NULL : "--check-only", file, tuning});
}

/* ---- JSON: reports/schema/gate.schema.json describes it -------------------------------------------------------------- */

static void add_launches(cJSON *object, const char *name, const struct nb_gate_launch *launches, size_t n) {
    cJSON *array = cJSON_AddArrayToObject(object, name);
    for (size_t i = 0; i < n; i++) {
        cJSON *json = nb_json_add_object(array);
        nb_json_number(json, "ln_ratio", launches[i].ratio);
        nb_json_number(json, "ln_control", launches[i].control);
        for (int s = NB_UNCONTENDED; s < NB_ANY_STATE && launches[i].is_probed; s++) {
            cJSON *in = cJSON_AddObjectToObject(json, nb_state_names[s]);
            nb_json_number(in, "ln_ratio", launches[i].ratio_in.ln[s]);
            nb_json_number(in, "ln_control", launches[i].control_in.ln[s]);
        }
        nb_json_number(json, "ln_ratio_min", launches[i].ratio_min);
        nb_json_number(json, "order_effect", launches[i].order_effect);
        nb_json_number(json, "preempted", launches[i].preempted);
        cJSON_AddNumberToObject(json, "layout", launches[i].layout);
    }
}

#define J(KIND, field) NB_MEMBER(KIND, struct nb_gate_judgement, field)
static const struct nb_member judgement_members[] = {NB_MEMBER_NAMED(struct nb_gate_judgement, state, nb_state_names),
                                                     J(INTERVAL, ratio),
                                                     J(INTERVAL, confirmed),
                                                     J(INTERVAL, control),
                                                     J(NUMBER, ratio_min),
                                                     J(NUMBER, order_effect),
                                                     J(NUMBER, preempted),
                                                     J(NUMBER, launch_sd),
                                                     J(NUMBER, smallest_effect),
                                                     J(NUMBER, layout_spread),
                                                     J(BOOL, flagged),
                                                     NB_MEMBERS_END};

static cJSON *case_to_json(const struct nb_gate *g, const struct nb_gate_case *c) {
    cJSON *json = cJSON_CreateObject(), *builds = cJSON_CreateObject();
    char *replay freed = nb_gate_replay(g, c);
    nb_json_text(json, "key", c->key);
    char *variant freed = nb_textf("%.*s", (int)strcspn(c->key, "/"), c->key);
    nb_json_text(json, "variant", variant);
    nb_json_text(json, "verdict", nb_verdict_name(c->verdict));
    nb_json_text(json, "reason", c->reason[0] ? c->reason : NULL);
    nb_json_text(json, "replay", replay);
    nb_json_number(json, "seconds", c->seconds);
    cJSON_AddBoolToObject(json, "over_budget", c->over_budget);
    nb_json_text(json, "uncounted", c->uncounted[0] ? c->uncounted : NULL);
    cJSON_AddItemToObject(json, "builds", builds);
    for (int b = 0; b < NB_N_BUILDS; b++) {
        cJSON *build = cJSON_AddObjectToObject(builds, nb_build_names[b]);
        nb_json_number(build, "call_ns", nb_gate_is_judged(c) ? c->call_ns[b] : (double)NAN);
        nb_json_number(build, "instructions", c->instructions[b]);
        if (c->has_accuracy[b])
            cJSON_AddItemToObject(build, "accuracy", nb_accuracy_to_json(&c->accuracy[b], nb_number_of(c->c.dtype)));
    }
    if (!nb_gate_is_judged(c)) return json;
    nb_json_add_members(json, judgement_members, &c->judgement);
    cJSON_AddBoolToObject(json, "chunked", c->chunked);
    add_launches(json, "screen", c->launches.launches, c->launches.n_screen);
    add_launches(json, "confirm", c->launches.launches + c->launches.n_screen, c->launches.n_confirm);
    return json;
}

const char *nb_gate_overall(const struct nb_gate_summary *s) {
    const bool passed = s->verdict == NB_VERDICT_IDENTICAL || s->verdict == NB_VERDICT_IMPROVED;
    if (s->verdict == NB_VERDICT_NONE) return NULL;
    return nb_verdict_name(passed ? NB_VERDICT_PASS : s->verdict);
}

static void add_signs(cJSON *object, const char *name, size_t n_slower, size_t n) {
    cJSON *json = cJSON_AddObjectToObject(object, name);
    cJSON_AddNumberToObject(json, "slower", (double)n_slower);
    cJSON_AddNumberToObject(json, "of", (double)n);
    cJSON_AddBoolToObject(json, "leans", nb_gate_leans(n_slower, n));
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

#define P(KIND, field) NB_MEMBER(KIND, struct nb_gate_plan, field)
const struct nb_member nb_gate_plan_members[] = {P(COUNT, screen_launches), P(COUNT, confirm_launches),
                                                 P(COUNT, blocks),          P(NUMBER, sample_ms),
                                                 P(UINT64, seed),           NB_MEMBERS_END};
#define R(field) NB_MEMBER(NUMBER, struct nb_gate_rule, field)
const struct nb_member nb_gate_rule_members[] = {R(fail_margin), R(pass_margin), R(run_level), R(pass_level),
                                                 NB_MEMBERS_END};

static void add_plan(cJSON *object, const struct nb_gate_plan *plan) {
    cJSON *json = nb_json_of_members(nb_gate_plan_members, plan);
    cJSON *rule = nb_json_of_members(nb_gate_rule_members, &plan->rule);
    cJSON_AddItemToObject(object, "plan", json);
    cJSON_AddItemToObject(object, "rule", rule);
    nb_json_number(json, "budget_s", plan->budget_s > 0 ? plan->budget_s : (double)NAN);
    cJSON_AddBoolToObject(json, "time_identical", plan->ignore_identity);
    nb_json_number(rule, "screen_level", plan->rule.screen_level);
    nb_json_number(rule, "most_preempted", plan->rule.most_preempted);
}

/* The files as the user named them, one list entry a layout, and what was in them. */
static void add_builds(cJSON *object, const struct nb_gate_builds *b) {
    static const int arms[] = {NB_BUILD_BASELINE, NB_BUILD_CANDIDATE};
    cJSON *json = cJSON_AddObjectToObject(object, "builds");
    for (size_t i = 0; i < 2; i++) {
        cJSON *list = cJSON_AddArrayToObject(json, nb_build_names[arms[i]]);
        for (int l = 0; l < b->n_layouts; l++) {
            char hash[20] = "";
            cJSON *file = nb_json_add_object(list);
            if (b->files[l][arms[i]]) nb_file_hash(b->files[l][arms[i]], hash);
            nb_json_text(file, "file", b->sources[l][arms[i]]);
            nb_json_text(file, "hash", hash[0] ? hash : NULL);
        }
    }
}

cJSON *nb_gate_document(const struct nb_gate_summary *s) {
    const struct nb_gate *g = s->g;
    cJSON *json = nb_json_document("2.0");
    nb_json_text(json, "verdict", nb_gate_overall(s));
    nb_json_number(json, "elapsed_s", g->elapsed_s);
    cJSON_AddNumberToObject(json, "layouts", g->builds.n_layouts);
    add_summary(json, s);
    add_plan(json, &g->plan);
    add_builds(json, &g->builds);
    cJSON *cases = cJSON_AddArrayToObject(json, "cases");
    for (size_t i = 0; i < g->n_cases; i++) cJSON_AddItemToArray(cases, case_to_json(g, &g->cases[i]));
    cJSON_AddItemToObject(json, "fingerprint", cJSON_Duplicate(s->fingerprint, true));
    nb_json_add_sum(json);
    return json;
}

/* ---- metrics --------------------------------------------------------------------------------------------------------- */

/* The gate as metrics: ratios travel between machines, where times do not. */

/* A case that passed without being timed has an entry too: a reader of a series takes a gap for a benchmark that is gone. Null: no entry. */
static const struct nb_interval *ratio_of(const struct nb_gate_case *c) {
    static const struct nb_interval unchanged = {1, 1, 1};
    if (c->verdict == NB_VERDICT_IDENTICAL) return &unchanged;
    return nb_gate_is_judged(c) ? &c->judgement.ratio : NULL;
}

cJSON *nb_gate_bencher(const struct nb_gate_summary *s) {
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < s->g->n_cases; i++) {
        const struct nb_gate_case *c = &s->g->cases[i];
        cJSON *benchmark = cJSON_CreateObject();
        if (ratio_of(c)) nb_bencher_add(benchmark, "ratio", ratio_of(c));
        if (nb_gate_is_judged(c)) nb_bencher_add(benchmark, "control", &c->judgement.control);
        nb_bencher_keep(json, c->key, benchmark);
    }
    return json;
}

cJSON *nb_gate_benchmark_action(const struct nb_gate_summary *s) {
    cJSON *json = cJSON_CreateArray();
    for (size_t i = 0; i < s->g->n_cases; i++) {
        const struct nb_gate_case *c = &s->g->cases[i];
        if (ratio_of(c))
            nb_smaller_is_better_add(json, c->key, "candidate / baseline", ratio_of(c), nb_verdict_name(c->verdict));
    }
    return json;
}
