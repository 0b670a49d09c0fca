// SPDX-License-Identifier: Apache-2.0
/* Figures against bounds, groups against each other. */
#include "src/claims/rule.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/log.h"
#include "src/base/strbuf.h"
#include "src/record/timing.h"

const char *const nb_outcome_names[NB_N_OUTCOMES] = {"holds", "fails", "undecided", "missing"};

static void __attribute__((format(printf, 2, 3))) say(struct nb_ruled *r, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    free(r->reason);
    r->reason = nb_strdup(text);
}

static struct nb_ruled *add(struct nb_rulings *out, const struct nb_rule *rule, size_t finding,
                            struct nb_interval value) {
    if ((out->n & (out->n - 1)) == 0) out->items = nb_realloc(out->items, out->n ? 2 * out->n : 1, sizeof *out->items);
    struct nb_ruled *r = &out->items[out->n++];
    *r = (struct nb_ruled){.rule = rule, .finding = finding, .value = value};
    return r;
}

/* How many launches would shrink the interval so far that the bound lies outside; half-widths go with 1 / sqrt(n). */
static void say_launches(struct nb_ruled *r, double bound, int n_launches) {
    const double half = r->value.value > bound ? r->value.value - r->value.low : r->value.high - r->value.value;
    const double distance = fabs(r->value.value - bound);
    const double needed = n_launches * (half / distance) * (half / distance);
    if (n_launches <= 0)
        say(r, "[%.4g, %.4g] holds the bound %.4g", r->value.low, r->value.high, bound);
    else if (distance > 0 && needed < 1000)
        say(r, "[%.4g, %.4g] holds the bound %.4g; about %.0f launches would tell (--launches)", r->value.low,
            r->value.high, bound, round(needed) + 1);
    else
        say(r, "[%.4g, %.4g] holds the bound %.4g, and the value lies on it: no number of launches would tell",
            r->value.low, r->value.high, bound);
}

static void decide(struct nb_ruled *r, double least, double most, int n_launches, const char *missing) {
    const struct nb_interval *v = &r->value;
    if (isnan(v->value)) {
        r->outcome = NB_MISSING;
        say(r, "%s", missing ? missing : "no value");
    } else if (!(v->low <= v->high)) { /* NaN: no interval */
        r->outcome = NB_UNDECIDED;
        say(r, "no interval: %d launch%s, and %d are needed", n_launches, n_launches == 1 ? "" : "es", NB_MIN_LAUNCHES);
    } else if (v->low >= least && v->high <= most) {
        r->outcome = NB_HOLDS_TRUE;
    } else if (v->high < least || v->low > most) {
        r->outcome = NB_FAILS;
    } else {
        r->outcome = NB_UNDECIDED;
        const bool at_least = v->low < least;
        say_launches(r, at_least ? least : most, n_launches);
    }
}

/* ---- which figures ---- */

static bool takes(const struct nb_rule *rule, const struct nb_finding *f, const char *relaxed, const char *value) {
    if (strcmp(f->name, rule->figure) != 0 || !nb_selector_takes(&rule->where, f, relaxed)) return false;
    const char *tag = relaxed ? nb_finding_get(f, relaxed) : NULL;
    return !relaxed || !value || (tag && strcmp(tag, value) == 0);
}

static void apply_bounds(const struct nb_rule *rule, const struct nb_findings *findings, const char *relaxed,
                         const char *value, struct nb_rulings *out) {
    for (size_t i = 0; i < findings->n; i++) {
        const struct nb_finding *f = &findings->items[i];
        if (!takes(rule, f, relaxed, value)) continue;
        decide(add(out, rule, i, f->value), rule->least, rule->most, f->n_launches, f->reason);
    }
}

/* ---- groups ---- */

struct group {
    double *value, *low, *high;
    size_t n;
    int n_launches;
    const char *missing;
};

static void group_add(struct group *g, const struct nb_finding *f) {
    if (isnan(f->value.value)) {
        g->missing = f->reason;
        return;
    }
    const size_t n = g->n + 1;
    g->value = nb_realloc(g->value, n, sizeof *g->value);
    g->low = nb_realloc(g->low, n, sizeof *g->low);
    g->high = nb_realloc(g->high, n, sizeof *g->high);
    g->value[g->n] = f->value.value;
    g->low[g->n] = f->value.low;
    g->high[g->n] = f->value.high;
    g->n = n;
    g->n_launches = f->n_launches;
}

/* Medians; NaN where there is no figure, or one without an interval. */
static struct nb_interval group_value(const struct group *g) {
    if (g->n == 0) return (struct nb_interval){NAN, NAN, NAN};
    return (struct nb_interval){nb_median(g->value, g->n), nb_median(g->low, g->n), nb_median(g->high, g->n)};
}

static void group_release(struct group *g) {
    free(g->value);
    free(g->low);
    free(g->high);
    *g = (struct group){0};
}

static struct nb_interval difference(const struct nb_interval *a, const struct nb_interval *b) {
    return (struct nb_interval){a->value - b->value, a->low - b->high, a->high - b->low};
}

static void print_step(const struct nb_selector *s, struct nb_strbuf *out) {
    for (size_t i = 0; i < s->n; i++)
        nb_strbuf_addf(out, "%s%s=%s", i ? ", " : "", s->axes[i].axis, s->axes[i].values[0]);
}

static void apply_ordering(const struct nb_rule *rule, const struct nb_findings *findings, const char *relaxed,
                           const char *value, struct nb_rulings *out) {
    struct group *groups = nb_alloc(rule->n_steps, sizeof *groups);
    for (size_t s = 0; s < rule->n_steps; s++)
        for (size_t i = 0; i < findings->n; i++)
            if (takes(rule, &findings->items[i], relaxed, value) &&
                nb_selector_takes(&rule->steps[s], &findings->items[i], NULL))
                group_add(&groups[s], &findings->items[i]);
    for (size_t s = 1; s < rule->n_steps; s++) {
        const struct nb_interval before = group_value(&groups[s - 1]), after = group_value(&groups[s]);
        struct nb_strbuf label = {0};
        struct nb_ruled *r = add(out, rule, NB_NO_FINDING, difference(&after, &before));
        nb_strbuf_addf(&label, "%.4g at ", before.value);
        print_step(&rule->steps[s - 1], &label);
        nb_strbuf_addf(&label, ", %.4g at ", after.value);
        print_step(&rule->steps[s], &label);
        r->label = label.text;
        decide(r, rule->margin, INFINITY, groups[s].n_launches,
               groups[s].n == 0 ? groups[s].missing : groups[s - 1].missing);
    }
    for (size_t s = 0; s < rule->n_steps; s++) group_release(&groups[s]);
    free(groups);
}

/* The value of the axis that comes first in the findings and behind those seen. */
static const char *next_value(const struct nb_rule *rule, const struct nb_findings *findings, const char *const *seen,
                              size_t n, const char *relaxed, const char *value) {
    for (size_t i = 0; i < findings->n; i++) {
        const char *tag = nb_finding_get(&findings->items[i], rule->across);
        bool known = !tag || !takes(rule, &findings->items[i], relaxed, value);
        for (size_t j = 0; j < n && !known; j++) known = strcmp(seen[j], tag) == 0;
        if (!known) return tag;
    }
    return NULL;
}

/* Largest less smallest: at least what surely parts two groups, at most what may part any two. */
static void apply_spread(const struct nb_rule *rule, const struct nb_findings *findings, const char *relaxed,
                         const char *value, struct nb_rulings *out) {
    const char **seen = nb_alloc(findings->n + 1, sizeof *seen), *tag;
    struct nb_interval top = {-INFINITY, -INFINITY, -INFINITY}, bottom = {INFINITY, INFINITY, INFINITY};
    size_t n = 0, n_known = 0;
    int n_launches = 0;
    while ((tag = next_value(rule, findings, seen, n, relaxed, value))) {
        struct group g = {0};
        for (size_t i = 0; i < findings->n; i++) {
            const char *own = nb_finding_get(&findings->items[i], rule->across);
            if (own && strcmp(own, tag) == 0 && takes(rule, &findings->items[i], relaxed, value))
                group_add(&g, &findings->items[i]);
        }
        const struct nb_interval v = group_value(&g);
        seen[n++] = tag;
        n_known += !isnan(v.value);
        n_launches = g.n_launches;
        if (!isnan(v.value)) {
            top = (struct nb_interval){fmax(top.value, v.value), fmax(top.low, v.low), fmax(top.high, v.high)};
            bottom =
                (struct nb_interval){fmin(bottom.value, v.value), fmin(bottom.low, v.low), fmin(bottom.high, v.high)};
        }
        group_release(&g);
    }
    free(seen);
    struct nb_interval spread = {top.value - bottom.value, fmax(0, top.low - bottom.high), top.high - bottom.low};
    if (n_known < 2) spread = (struct nb_interval){NAN, NAN, NAN};
    struct nb_ruled *r = add(out, rule, NB_NO_FINDING, spread);
    struct nb_strbuf label = {0};
    nb_strbuf_addf(&label, "from %.4g to %.4g over %zu values of %s", bottom.value, top.value, n_known, rule->across);
    r->label = label.text;
    decide(r, rule->least, rule->most, n_launches, "fewer than two values of the axis were measured");
}

void nb_rule_apply(const struct nb_rule *rule, const struct nb_findings *findings, const char *relaxed,
                   const char *value, struct nb_rulings *out) {
    const size_t before = out->n;
    if (rule->form == NB_RULE_ORDERING)
        apply_ordering(rule, findings, relaxed, value, out);
    else if (rule->form == NB_RULE_SPREAD)
        apply_spread(rule, findings, relaxed, value, out);
    else
        apply_bounds(rule, findings, relaxed, value, out);
    if (out->n == before && !relaxed) { /* a rule that nothing answers to must not pass by silence */
        struct nb_ruled *r = add(out, rule, NB_NO_FINDING, (struct nb_interval){NAN, NAN, NAN});
        r->outcome = NB_MISSING;
        struct nb_strbuf text = {0};
        nb_rule_print(rule, &text);
        say(r, "nothing was measured for: %s", text.text);
        nb_strbuf_release(&text);
    }
    for (size_t i = before; i < out->n; i++) out->count[out->items[i].outcome]++;
}

void nb_rulings_release(struct nb_rulings *r) {
    for (size_t i = 0; i < r->n; i++) {
        free(r->items[i].label);
        free(r->items[i].reason);
    }
    free(r->items);
    *r = (struct nb_rulings){0};
}
