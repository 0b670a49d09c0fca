// SPDX-License-Identifier: Apache-2.0
/* Figures of a whole gate. */
#include "reports/gate/gate_summary.h"

#include <math.h>
#include <stdlib.h>

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
static double redrawn(const struct nb_gate_case *c, uint64_t *state, double *room) {
    const size_t n = c->n_screen + c->n_confirm;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const double value = launch_at(c, (size_t)(nb_random_next(state) % n));
        if (isfinite(value)) room[kept++] = value;
    }
    return kept ? nb_median(room, kept) : log(c->judgement.ratio.value);
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
    double *room = nb_alloc(most, sizeof *room);
    for (size_t i = 0; i < g->n_cases; i++) {
        if (!is_timed(&g->cases[i])) continue;
        mean += log(g->cases[i].judgement.ratio.value) / (double)n_timed;
        for (int d = 0; d < DRAWS; d++) draws[d] += redrawn(&g->cases[i], &state, room) / (double)n_timed;
    }
    free(room);
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
