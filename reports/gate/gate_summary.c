// SPDX-License-Identifier: Apache-2.0
/* Figures of a whole gate, and the sentences that say them. */
#include "reports/gate/gate_summary.h"

#include <math.h>
#include <stdlib.h>

#include "reports/text/format.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/stats.h"

bool nb_gate_judged(const struct nb_gate_case *c) { return c->n_screen > 0 && c->judgement.ratio.value != 0; }

static bool is_timed(const struct nb_gate_case *c) { return nb_gate_judged(c) && isfinite(c->judgement.ratio.value); }

/* ---- order ---------------------------------------------------------------------------------------------------------- */

struct ranked {
    size_t index;
    enum nb_verdict verdict;
    double ratio;
};

/* Verdicts are numbered from the best to the worst; among equals the slowest comes first, then the order of the plan. */
static int by_badness(const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    if (a->verdict != b->verdict) return a->verdict < b->verdict ? 1 : -1;
    if (a->ratio != b->ratio) return a->ratio < b->ratio ? 1 : -1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void make_order(struct nb_gate_summary *s) {
    struct ranked *ranked = nb_alloc(s->g->n_cases + 1, sizeof *ranked);
    for (size_t i = 0; i < s->g->n_cases; i++) {
        const struct nb_gate_case *c = &s->g->cases[i];
        ranked[i] = (struct ranked){i, c->verdict, is_timed(c) ? c->judgement.ratio.value : 0};
    }
    if (s->g->n_cases) qsort(ranked, s->g->n_cases, sizeof *ranked, by_badness);
    s->order = nb_alloc(s->g->n_cases + 1, sizeof *s->order);
    for (size_t i = 0; i < s->g->n_cases; i++) s->order[i] = ranked[i].index;
    free(ranked);
}

/* ---- geometric mean ------------------------------------------------------------------------------------------------- */

static double launch_at(const struct nb_gate_case *c, size_t i) {
    return i < c->n_screen ? c->screen[i].ratio : c->confirm[i - c->n_screen].ratio;
}

/* The case's launches drawn again with replacement, and their median. */
static double redrawn(const struct nb_gate_case *c, uint64_t *state, double *drawn) {
    const size_t n = c->n_screen + c->n_confirm;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const double value = launch_at(c, (size_t)(nb_random_next(state) % n));
        if (isfinite(value)) drawn[kept++] = value;
    }
    return kept ? nb_median(drawn, kept) : log(c->judgement.ratio.value);
}

/* Bootstrap over launches, the independent units. Percentiles of the spread about the bootstrap's own centre: medians of draws
 * and Hodges-Lehmann of the launches need not agree. */
static struct nb_interval geometric_mean(const struct nb_gate *g, size_t n_timed) {
    enum { DRAWS = 500 };
    double draws[DRAWS] = {0}, mean = 0;
    size_t most = 1;
    uint64_t state = g->plan.seed;
    if (n_timed == 0) return (struct nb_interval){NAN, NAN, NAN};
    for (size_t i = 0; i < g->n_cases; i++)
        if (g->cases[i].n_screen + g->cases[i].n_confirm > most) most = g->cases[i].n_screen + g->cases[i].n_confirm;
    double *drawn = nb_alloc(most, sizeof *drawn);
    for (size_t i = 0; i < g->n_cases; i++) {
        if (!is_timed(&g->cases[i])) continue;
        mean += log(g->cases[i].judgement.ratio.value) / (double)n_timed;
        for (int d = 0; d < DRAWS; d++) draws[d] += redrawn(&g->cases[i], &state, drawn) / (double)n_timed;
    }
    free(drawn);
    const double centre = nb_median(draws, DRAWS);
    return (struct nb_interval){exp(mean), exp(mean + nb_quantile(draws, DRAWS, 0.025) - centre),
                                exp(mean + nb_quantile(draws, DRAWS, 0.975) - centre)};
}

/* ---- signs and sensitivity -------------------------------------------------------------------------------------------- */

bool nb_leans(size_t k, size_t n) {
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
    double *effects = nb_alloc(s->g->n_cases + 1, sizeof *effects);
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
    free(effects);
}

void nb_gate_summary_init(struct nb_gate_summary *s, const struct nb_gate *g) {
    *s = (struct nb_gate_summary){.g = g, .n_layouts = g->builds.n_layouts};
    const char **keys = nb_alloc(g->n_cases + 1, sizeof *keys);
    for (size_t i = 0; i < g->n_cases; i++) {
        const enum nb_verdict v = g->cases[i].verdict;
        keys[i] = g->cases[i].key;
        s->counts[v]++;
        if (v > s->verdict) s->verdict = v;
    }
    nb_key_parts_init(&s->parts, keys, g->n_cases);
    free((void *)keys);
    make_order(s);
    count_timed(s);
    s->mean = geometric_mean(g, s->n_timed);
}

void nb_gate_summary_release(struct nb_gate_summary *s) {
    nb_key_parts_release(&s->parts);
    free(s->order);
    *s = (struct nb_gate_summary){0};
}

/* ---- in words -------------------------------------------------------------------------------------------------------- */

/* The gate's figures in words. */

void nb_gate_say_counts(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    const char *separator = ": ";
    nb_strbuf_addf(out, "%zu case%s", s->g->n_cases, s->g->n_cases == 1 ? "" : "s");
    for (int v = NB_N_VERDICTS - 1; v >= 0; v--) {
        if (!s->counts[v]) continue;
        nb_strbuf_addf(out, "%s%zu %s", separator, s->counts[v], nb_verdict_name((enum nb_verdict)v));
        separator = ", ";
    }
    nb_strbuf_addf(out, "; %.0f s", s->g->elapsed_s);
}

void nb_gate_say_mean(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    const struct nb_interval *m = &s->mean;
    nb_strbuf_add(out, "");
    if (s->n_timed == 0) return;
    nb_strbuf_addf(out, "%zu case%s timed: candidate / baseline %.4f", s->n_timed, s->n_timed == 1 ? "" : "s",
                   m->value);
    if (nb_interval_known(m)) nb_strbuf_addf(out, " [%.4f, %.4f]", m->low, m->high);
    nb_strbuf_add(out, s->n_timed == 1 ? "." : " (geometric mean).");
    if (!isfinite(s->smallest_effect)) return;
    nb_strbuf_addf(out,
                   " The smallest slowdown that this run would have called a REGRESSION in 95 %% of cases: %.1f %%",
                   100 * s->smallest_effect);
    if (s->n_timed > 1) nb_strbuf_addf(out, " for the median case, %.1f %% for the worst", 100 * s->largest_smallest);
    nb_strbuf_add(out, ".");
}

void nb_gate_say_layouts(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    nb_strbuf_add(out, "");
    if (s->n_timed == 0) return;
    if (s->n_layouts > 1)
        nb_strbuf_addf(out, "%d layouts of the code examined.", s->n_layouts);
    else
        nb_strbuf_add(out,
                      "Layout not examined: one build of each side, whose place in memory alone may be worth about "
                      "1 %. --baseline and --candidate can be given several times.");
}

void nb_gate_say_leaning(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    nb_strbuf_add(out, "");
    if (!nb_leans(s->n_slower, s->n_null)) return;
    const bool slower = 2 * s->n_slower > s->n_null;
    nb_strbuf_addf(
        out, "%zu of %zu cases inside the margin lean to the %s side, which chance does in less than 1 %% of runs: ",
        slower ? s->n_slower : s->n_null - s->n_slower, s->n_null, slower ? "slow" : "fast");
    const bool control =
        nb_leans(s->n_control_slower, s->n_control) && (2 * s->n_control_slower > s->n_control) == slower;
    nb_strbuf_add(
        out, control ? "so do the copies of the baseline, so that the measurement leans and not the change."
                     : "something small changed everywhere (flags, compiler, layout), while copies of the baseline "
                       "do not lean.");
}

static const char *text_at(const cJSON *json, const char *object, const char *name) {
    const char *text = nb_json_get_text(cJSON_GetObjectItemCaseSensitive(json, object), name);
    return text ? text : "";
}

void nb_say_machine(const cJSON *fingerprint, struct nb_strbuf *out) {
    static const char *const places[][2] = {
        {"cpu", "model"}, {"cpu", "hypervisor"}, {"system", "kernel"}, {"system", "os"}};
    const char *separator = "";
    nb_strbuf_add(out, "");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *text = text_at(fingerprint, places[i][0], places[i][1]);
        if (!*text) continue;
        nb_strbuf_addf(out, "%s%s", separator, text);
        separator = ", ";
    }
}

const char *nb_gate_advice(enum nb_verdict v) {
    switch (v) {
    case NB_VERDICT_WRONG:
        return "The candidate computes something wrong, or breaks: mend it first, its speed means nothing. "
               "`normbench run --plugin CANDIDATE.so` with the same case says where it is worst.";
    case NB_VERDICT_LESS_ACCURATE:
        return "The candidate's results are worse than the baseline's beyond the margin. "
               "`normbench stress --plugin CANDIDATE.so` shows for which inputs; if the loss is wanted, say so in the "
               "change.";
    case NB_VERDICT_REGRESSION:
        return "Slower by more than the margin, seen in launches made to confirm it, or above a budget of "
               "instructions. Compare the machine code of both builds (objdump -d); the same command with "
               "--filter KEY repeats a case alone.";
    case NB_VERDICT_NOT_COMPARABLE:
        return "There is nothing to compare with. Expected where a kernel was added, renamed or removed; otherwise the "
               "reason says what to mend.";
    case NB_VERDICT_INCONCLUSIVE:
        return "Neither shown to be slower nor shown to be within the margin; this is no failure of the change. A "
               "quieter machine, a larger --budget or more layouts decide it.";
    default:
        return "";
    }
}
