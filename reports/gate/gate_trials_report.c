// SPDX-License-Identifier: Apache-2.0
/* What the gate's self-test found, and what it leaves behind: DIR/samples.jsonl with every sample of every launch, so that the same
 * samples can be judged by other rules, and DIR/trials.json with what the gate said of them. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "reports/gate/gate_report.h"
#include "reports/text/output.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/stats.h"
#include "src/core/timer.h"
#include "src/gate/gate.h"
#include "src/record/fingerprint.h"

enum { CLUSTER = 10, RUN_CASES = 30 };

/* ---- what came of it ---------------------------------------------------------------------------------------------------- */

struct tally { /* of one load and effect */
    int n, regression, pass, inconclusive;
};

/* False alarms are those of trials of the copy alone: beside injected arms, which run the same code, its code is the warmer one. Where
 * there are no such trials, those must do. */
static bool counts(const struct nb_trials *t, const struct nb_trial_result *r, int effect) {
    if (r->effect != effect) return false;
    if (effect != 0 || !r->powered) return true;
    for (size_t i = 0; i < t->n; i++)
        if (!t->results[i].powered) return false;
    return true;
}

/* load -1: all. */
static struct tally count(const struct nb_trials *t, int load, int effect) {
    struct tally tally = {0};
    for (size_t i = 0; i < t->n; i++) {
        const struct nb_trial_result *r = &t->results[i];
        if ((load >= 0 && r->load != load) || !counts(t, r, effect)) continue;
        tally.n++;
        tally.regression += r->judgement.verdict == NB_VERDICT_REGRESSION;
        tally.pass += r->judgement.verdict == NB_VERDICT_PASS || r->judgement.verdict == NB_VERDICT_IMPROVED;
        tally.inconclusive += r->judgement.verdict == NB_VERDICT_INCONCLUSIVE;
    }
    return tally;
}

enum { DRAWS = 4000 };

/* 1 where the i-th trial with this effect had the verdict; owned; *n of them. */
static unsigned char *outcomes(const struct nb_trials *t, int effect, enum nb_verdict v, size_t *n) {
    unsigned char *hits = nb_alloc(t->n + 1, 1);
    *n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (counts(t, &t->results[i], effect)) hits[(*n)++] = t->results[i].judgement.verdict == v;
    return hits;
}

/* A bound at 95 % on the rate of a verdict by resampling stretches of `cluster` neighbouring trials, since neighbours in time are not
 * independent. */
static double cluster_upper(const struct nb_trials *t, int effect, enum nb_verdict v, int cluster) {
    size_t n;
    unsigned char *hits freed = outcomes(t, effect, v, &n);
    const size_t clusters = n / (size_t)cluster;
    double *rates freed = nb_alloc(DRAWS, sizeof *rates), upper = NAN;
    uint64_t random = 1;
    for (size_t d = 0; d < DRAWS && clusters > 1; d++) {
        size_t sum = 0;
        for (size_t c = 0; c < clusters; c++) {
            const size_t first = nb_random_next(&random) % clusters * (size_t)cluster;
            for (size_t i = 0; i < (size_t)cluster; i++) sum += hits[first + i];
        }
        rates[d] = (double)sum / (double)(clusters * (size_t)cluster);
    }
    if (clusters > 1) upper = nb_quantile(rates, DRAWS, 0.95);
    return upper;
}

/* Of runs of n cases drawn from the trials: the share with any REGRESSION. */
static double run_rate(const struct nb_trials *t, int n_cases) {
    size_t n, alarms = 0;
    unsigned char *hits freed = outcomes(t, 0, NB_VERDICT_REGRESSION, &n);
    uint64_t random = 2;
    for (size_t d = 0; d < DRAWS && n > 0; d++) {
        bool any = false;
        for (int c = 0; c < n_cases; c++) any |= hits[nb_random_next(&random) % n] != 0;
        alarms += any;
    }
    return n > 0 ? (double)alarms / DRAWS : (double)NAN;
}

static double median_of(const struct nb_trials *t, int effect, double (*figure)(const struct nb_trial_result *)) {
    double *v freed = nb_alloc(t->n + 1, sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->results[i].effect == effect && isfinite(figure(&t->results[i]))) v[n++] = figure(&t->results[i]);
    return n ? nb_median(v, n) : (double)NAN;
}
static double seconds_of(const struct nb_trial_result *r) { return r->seconds; }
static double spread_of(const struct nb_trial_result *r) { return r->judgement.launch_sd; }
static double ratio_of(const struct nb_trial_result *r) { return r->judgement.ratio.value; }

static cJSON *tally_to_json(const struct tally *k) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "trials", k->n);
    cJSON_AddNumberToObject(json, "regression", k->regression);
    cJSON_AddNumberToObject(json, "pass", k->pass);
    cJSON_AddNumberToObject(json, "inconclusive", k->inconclusive);
    nb_json_number(json, "regression_low", k->n ? nb_proportion_lower(k->regression, k->n, 0.975) : (double)NAN);
    nb_json_number(json, "regression_high", k->n ? nb_proportion_upper(k->regression, k->n, 0.975) : (double)NAN);
    return json;
}

static cJSON *trials_to_json(const struct nb_gate *g, const struct nb_trial_plan *plan, const struct nb_trials *t) {
    cJSON *json = cJSON_CreateObject(), *effects = cJSON_AddArrayToObject(json, "effects");
    nb_json_number(json, "elapsed_s", g->elapsed_s);
    for (int i = -1; i < plan->n_effects; i++) {
        const int effect = i < 0 ? 0 : plan->effects[i];
        cJSON *one = cJSON_CreateObject(), *loads = cJSON_CreateObject();
        const struct tally all = count(t, -1, effect);
        cJSON_AddNumberToObject(one, "effect_percent", effect);
        nb_json_number(one, "injected", i < 0 ? 0 : t->injected[i]);
        nb_json_number(one, "median_ratio", median_of(t, effect, ratio_of));
        cJSON_AddItemToObject(one, "all", tally_to_json(&all));
        cJSON_AddItemToObject(one, "loads", loads);
        for (int l = 0; l < NB_N_LOAD_KINDS; l++) {
            const struct tally k = count(t, l, effect);
            if (k.n > 0) cJSON_AddItemToObject(loads, nb_load_names[l], tally_to_json(&k));
        }
        cJSON_AddItemToArray(effects, one);
    }
    nb_json_number(json, "cluster_upper", cluster_upper(t, 0, NB_VERDICT_REGRESSION, CLUSTER));
    nb_json_number(json, "run_of_30_rate", run_rate(t, RUN_CASES));
    nb_json_number(json, "launch_sd", median_of(t, 0, spread_of));
    nb_json_number(json, "seconds_per_case", median_of(t, 0, seconds_of));
    return json;
}

/* "0 of 20, 0.0% [0.0, 16.8]" */
static void add_share(struct nb_strbuf *out, int k, int n) {
    nb_strbuf_addf(out, "%d of %d, %.1f%% [%.1f, %.1f]", k, n, 100.0 * k / n, 100 * nb_proportion_lower(k, n, 0.975),
                   100 * nb_proportion_upper(k, n, 0.975));
}

static void add_answer(const struct nb_gate *g, const struct nb_trial_plan *plan, const struct nb_trials *t,
                       const struct nb_page *page) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    const struct tally same = count(t, -1, 0);
    int n = 0;
    if (same.n == 0) {
        nb_strbuf_add(&text, "No trial came to its end: nothing is known of false alarms");
    } else {
        nb_strbuf_add(&text, "False alarms: ");
        add_share(&text, same.regression, same.n);
        nb_strbuf_add(&text, " of a byte copy");
    }
    for (int i = 0; i < plan->n_effects; i++) {
        const struct tally k = count(t, -1, plan->effects[i]);
        if (k.n > 0)
            nb_strbuf_addf(&text, "%s%d of %d at %d%%", n++ ? ", " : ". Slowdowns found: ", k.regression, k.n,
                           plan->effects[i]);
    }
    nb_strbuf_addf(&text, ". %zu case%s, %.0f s%s.", g->n_cases, g->n_cases == 1 ? "" : "s", g->elapsed_s,
                   g->ended_by ? ", ended by a signal" : "");
    nb_page_say(page, text.text);
}

static void add_tally(struct nb_strbuf *out, const char *name, const struct tally *k) {
    if (k->n == 0) return;
    nb_strbuf_addf(out, "  %-8s %6d %6d %13d    ", name, k->n, k->pass, k->inconclusive);
    add_share(out, k->regression, k->n);
    nb_strbuf_add(out, "\n");
}

/* Why the first of them that is INCONCLUSIVE is so. */
static void add_reason(const struct nb_trials *t, int effect, const struct nb_page *page) {
    for (size_t i = 0; i < t->n; i++) {
        const struct nb_trial_result *r = &t->results[i];
        if (!counts(t, r, effect) || r->judgement.verdict != NB_VERDICT_INCONCLUSIVE) continue;
        char *text freed = nb_textf("INCONCLUSIVE, for example: %s", r->judgement.reason);
        nb_strbuf_add(page->out, "  ");
        nb_page_say(page, text);
        return;
    }
}

static void add_effect(const struct nb_gate *g, const struct nb_trials *t, int effect, double injected,
                       const struct nb_page *page) {
    struct nb_strbuf *out = page->out;
    const struct tally all = count(t, -1, effect);
    if (all.n == 0) return;
    char *text freed = effect == 0 ? nb_strdup("Nothing changed (a byte copy): every REGRESSION is a false alarm")
                                   : nb_textf("%d%% slower (%s): median %+.2f%%", effect, g->subject->injects,
                                              100 * (median_of(t, effect, ratio_of) - 1));
    nb_strbuf_add(out, "\n");
    nb_page_say(page, text);
    if (effect != 0 && isfinite(injected))
        nb_strbuf_addf(out, "  instructions counted one by one: %+.3f%%\n", 100 * injected);
    else if (effect != 0 && t->injected_reason[0])
        nb_strbuf_addf(out, "  instructions not counted: %s\n", t->injected_reason);
    nb_strbuf_add(out, "  load     trials   PASS  INCONCLUSIVE    REGRESSION [95% CI]\n");
    for (int l = 0; l < NB_N_LOAD_KINDS; l++) {
        const struct tally k = count(t, l, effect);
        if (k.n < all.n) add_tally(out, nb_load_names[l], &k);
    }
    add_tally(out, "all", &all);
    add_reason(t, effect, page);
}

static void add_false_alarms(const struct nb_trials *t, const struct nb_page *page) {
    const double upper = cluster_upper(t, 0, NB_VERDICT_REGRESSION, CLUSTER);
    if (count(t, -1, 0).n == 0) return;
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(&text, "False alarms by stretches of %d neighbours: ", CLUSTER);
    if (isnan(upper))
        nb_strbuf_addf(&text, "not known below %d trials", 2 * CLUSTER);
    else
        nb_strbuf_addf(&text, "at most %.2f%% of cases (95%%, bootstrap)", 100 * upper);
    nb_strbuf_addf(&text,
                   "; runs of %d cases with any, by resampling: %.2f%%. Spread between launches %.2f%%, %.1f s for a "
                   "case without change.",
                   RUN_CASES, 100 * run_rate(t, RUN_CASES), 100 * median_of(t, 0, spread_of),
                   median_of(t, 0, seconds_of));
    nb_strbuf_add(page->out, "\n");
    nb_page_say(page, text.text);
}

int nb_gate_print_trials(const struct nb_gate *g, const struct nb_trial_plan *plan, const struct nb_trials *t,
                         const char *format, FILE *out) {
    if (strcmp(format, "json") == 0) return nb_output_json(trials_to_json(g, plan, t), out);
    struct nb_strbuf text = {0};
    const struct nb_page page = nb_page_for(out, false, &text);
    add_answer(g, plan, t, &page);
    add_effect(g, t, 0, 0, &page);
    for (int i = 0; i < plan->n_effects; i++) add_effect(g, t, plan->effects[i], t->injected[i], &page);
    add_false_alarms(t, &page);
    return nb_output(&text, out);
}

/* ---- what is recorded ------------------------------------------------------------------------------------------------ */

/* Lines in the order of what happened: a session, then launches and verdicts. */

static const char *const arm_names[] = {"baseline", "control", "copy", "injected"};

/* Deletes the line. In one write: a gate that is killed leaves whole lines. */
static void write_line(FILE *samples, cJSON *line) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_json_print(line, &text);
    nb_strbuf_add(&text, "\n");
    fwrite(text.text, 1, text.len, samples);
    cJSON_Delete(line);
}

static FILE *open_samples(const char *dir) {
    if (nb_dir_make(dir) != 0) return NULL;
    char *path freed = nb_path_join(dir, "samples.jsonl");
    FILE *out = fopen(path, "we");
    if (out)
        setvbuf(out, NULL, _IONBF, 0);
    else
        nb_error("%s: %s", path, strerror(errno));
    return out;
}

static int close_samples(FILE *samples) {
    const bool failed = ferror(samples) != 0;
    return fclose(samples) == 0 && !failed ? 0 : nb_error("samples.jsonl: not all was written; the disk may be full");
}

static void record_sample(const struct nb_gate_case *c, enum nb_gate_stage stage, const struct nb_gate_request *q,
                          const cJSON *line, void *samples) {
    cJSON *sample = cJSON_Duplicate(line, 1);
    nb_json_text(sample, "key", c->key);
    cJSON_AddNumberToObject(sample, "stage", stage);
    write_line(samples, sample);
}

int nb_gate_record(struct nb_gate *g, const char *dir) {
    g->record_arg = open_samples(dir);
    g->record = g->record_arg ? record_sample : NULL;
    return g->record ? 0 : -1;
}

int nb_gate_record_end(struct nb_gate *g) {
    const int result = g->record ? close_samples(g->record_arg) : 0;
    g->record = NULL;
    return result;
}

static cJSON *begin_line(const struct nb_trials_record *r, const char *type) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", type);
    nb_json_text(line, "session", r->session);
    return line;
}

static cJSON *plan_to_json(const struct nb_gate *g, const struct nb_trial_plan *plan) {
    cJSON *json = cJSON_CreateObject(), *effects = cJSON_AddArrayToObject(json, "effects_percent");
    for (int i = 0; i < plan->n_effects; i++) cJSON_AddItemToArray(effects, cJSON_CreateNumber(plan->effects[i]));
    cJSON_AddNumberToObject(json, "trials", plan->trials);
    cJSON_AddNumberToObject(json, "powered", plan->powered);
    nb_json_add_members(json, nb_gate_plan_members, &g->plan);
    nb_json_add_members(json, nb_gate_rule_members, &g->plan.rule);
    return json;
}

static void record_launch(const struct nb_gate_case *c, enum nb_gate_stage stage, const struct nb_gate_request *q,
                          const cJSON *answer, void *arg) {
    const struct nb_trials_record *r = arg;
    cJSON *line = begin_line(r, "launch"), *arms, *arm, *item;
    cJSON_AddNumberToObject(line, "trial", r->trials->trial);
    nb_json_text(line, "load", nb_load_names[r->trials->load]);
    nb_json_text(line, "case", c->key);
    cJSON_AddNumberToObject(line, "stage", stage);
    cJSON_AddNumberToObject(line, "launch", q->launch);
    cJSON_AddNumberToObject(line, "layout", q->layout);
    nb_json_number(line, "at_s", round(1e3 * (nb_now_s() - r->g->started_s)) / 1e3);
    cJSON_ArrayForEach(item, answer) if (strcmp(item->string, "type") != 0)
        cJSON_AddItemToObject(line, item->string, cJSON_Duplicate(item, 1));
    int i = 0;
    arms = nb_json_get(line, "arms");
    cJSON_ArrayForEach(arm, arms) {
        nb_json_text(arm, "arm", arm_names[i < 3 ? i : 3]);
        cJSON_AddNumberToObject(arm, "effect_percent", i < q->n_arms ? q->extra_percent[i] : 0);
        i++;
    }
    write_line(r->samples, line);
}

static cJSON *result_to_json(cJSON *json, const struct nb_gate *g, const struct nb_trial_result *result) {
    cJSON_AddNumberToObject(json, "trial", result->trial);
    nb_json_text(json, "load", nb_load_names[result->load]);
    nb_json_text(json, "case", g->cases[result->case_index].key);
    cJSON_AddNumberToObject(json, "effect_percent", result->effect);
    nb_json_text(json, "verdict", nb_verdict_name(result->judgement.verdict));
    nb_json_number(json, "ratio", result->judgement.ratio.value);
    nb_json_number(json, "launch_sd", result->judgement.launch_sd);
    nb_json_number(json, "smallest_effect", result->judgement.smallest_effect);
    nb_json_number(json, "seconds", result->seconds);
    return json;
}

static void record_verdict(const struct nb_trial_result *result, void *arg) {
    const struct nb_trials_record *r = arg;
    write_line(r->samples, result_to_json(begin_line(r, "verdict"), r->g, result));
}

int nb_trials_record_open(struct nb_trials_record *r, struct nb_gate *g, struct nb_trial_plan *plan,
                          const struct nb_trials *t, const char *dir) {
    *r = (struct nb_trials_record){.samples = open_samples(dir), .g = g, .trials = t};
    if (!r->samples) return -1;
    g->record = record_launch;
    g->record_arg = r;
    plan->record = record_verdict;
    nb_utc_now("%Y-%m-%dT%H:%M:%SZ", r->session, sizeof r->session);
    cJSON *line = begin_line(r, "session");
    nb_json_text(line, "schema", "2.0");
    cJSON_AddItemToObject(line, "plan", plan_to_json(g, plan));
    cJSON_AddItemToObject(line, "fingerprint", nb_fingerprint());
    write_line(r->samples, line);
    return 0;
}

static int write_trials(const struct nb_gate *g, const struct nb_trial_plan *plan, const struct nb_trials *t,
                        const char *dir) {
    cJSON *json released_by(nb_json_release) = trials_to_json(g, plan, t), *results;
    nb_json_text(json, "schema", "2.0");
    cJSON_AddItemToObject(json, "plan", plan_to_json(g, plan));
    results = cJSON_AddArrayToObject(json, "results");
    for (size_t i = 0; i < t->n; i++)
        cJSON_AddItemToArray(results, result_to_json(cJSON_CreateObject(), g, &t->results[i]));
    cJSON_AddItemToObject(json, "fingerprint", nb_fingerprint());
    nb_json_add_sum(json);
    char *path freed = nb_path_join(dir, "trials.json");
    return nb_json_write(json, path);
}

int nb_trials_record_close(struct nb_trials_record *r, const struct nb_trial_plan *plan, const char *dir) {
    const int result = close_samples(r->samples);
    return write_trials(r->g, plan, r->trials, dir) != 0 ? -1 : result;
}
