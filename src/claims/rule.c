// SPDX-License-Identifier: Apache-2.0
/* Figures against bounds, groups against each other. */
#include "src/claims/rule.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/rule_groups.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/measure/timing.h"

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

static void print_step(const struct nb_selector *s, struct nb_strbuf *out) {
    for (size_t i = 0; i < s->n; i++)
        nb_strbuf_addf(out, "%s%s=%s", i ? ", " : "", s->axes[i].axis, s->axes[i].values[0]);
}

static void label_step(const struct nb_rule *rule, size_t s, const struct nb_rule_group *groups, struct nb_ruled *r) {
    struct nb_strbuf label = {0};
    for (size_t i = s - 1; i <= s; i++) {
        nb_strbuf_addf(&label, "%s%.4g at ", i == s ? ", " : "", nb_rule_group_value(&groups[i]).value);
        print_step(&rule->steps[i], &label);
    }
    r->label = label.text;
}

static void apply_ordering(const struct nb_rule *rule, const struct nb_findings *findings, const char *relaxed,
                           const char *value, struct nb_rulings *out) {
    struct nb_rule_group *groups = nb_alloc(rule->n_steps, sizeof *groups);
    for (size_t s = 0; s < rule->n_steps; s++)
        for (size_t i = 0; i < findings->n; i++)
            if (takes(rule, &findings->items[i], relaxed, value) &&
                nb_selector_takes(&rule->steps[s], &findings->items[i], NULL))
                nb_rule_group_add(&groups[s], &findings->items[i]);
    for (size_t s = 1; s < rule->n_steps; s++) {
        const struct nb_rule_gap gap = nb_rule_gap_of(&groups[s], &groups[s - 1]);
        struct nb_ruled *r = add(out, rule, NB_NO_FINDING, gap.value);
        label_step(rule, s, groups, r);
        decide(r, rule->margin, INFINITY, gap.n_launches, groups[s].n == 0 ? groups[s].missing : groups[s - 1].missing);
    }
    for (size_t s = 0; s < rule->n_steps; s++) nb_rule_group_release(&groups[s]);
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

static struct nb_rule_group group_at(const struct nb_rule *rule, const struct nb_findings *findings, const char *tag,
                                     const char *relaxed, const char *value) {
    struct nb_rule_group g = {0};
    for (size_t i = 0; i < findings->n; i++) {
        const char *own = nb_finding_get(&findings->items[i], rule->across);
        if (own && strcmp(own, tag) == 0 && takes(rule, &findings->items[i], relaxed, value))
            nb_rule_group_add(&g, &findings->items[i]);
    }
    return g;
}

struct extremes { /* of groups of one axis */
    struct nb_rule_gap spread;
    double least, most;
};

/* Largest less smallest: at least what surely parts two groups, at most what may part any two. */
static struct extremes extremes_of(const struct nb_rule_group *groups, size_t n) {
    struct extremes e = {{{NAN, 0, -INFINITY}, 0}, INFINITY, -INFINITY};
    bool bounded = n > 1;
    for (size_t i = 0; i < n; i++) {
        const double v = nb_rule_group_value(&groups[i]).value;
        e.least = fmin(e.least, v);
        e.most = fmax(e.most, v);
        for (size_t j = 0; j < n; j++) {
            if (i == j) continue;
            const struct nb_rule_gap gap = nb_rule_gap_of(&groups[i], &groups[j]);
            bounded &= !isnan(gap.value.low);
            e.spread.value.value =
                fmax(e.spread.value.value, gap.value.value); /* fmax() takes the number beside a NaN */
            e.spread.value.low = fmax(e.spread.value.low, gap.value.low);
            e.spread.value.high = fmax(e.spread.value.high, gap.value.high);
            e.spread.n_launches = gap.n_launches;
        }
    }
    if (!bounded) e.spread.value.low = e.spread.value.high = NAN;
    return e;
}

static void apply_spread(const struct nb_rule *rule, const struct nb_findings *findings, const char *relaxed,
                         const char *value, struct nb_rulings *out) {
    const char **seen = nb_alloc(findings->n + 1, sizeof *seen), *tag;
    struct nb_rule_group *groups = nb_alloc(findings->n + 1, sizeof *groups);
    size_t n = 0, n_known = 0;
    while ((tag = next_value(rule, findings, seen, n, relaxed, value))) {
        seen[n++] = tag;
        groups[n_known] = group_at(rule, findings, tag, relaxed, value);
        n_known += groups[n_known].n > 0;
    }
    const struct extremes e = extremes_of(groups, n_known);
    struct nb_ruled *r = add(out, rule, NB_NO_FINDING, e.spread.value);
    struct nb_strbuf label = {0};
    nb_strbuf_addf(&label, "from %.4g to %.4g over %zu values of %s", e.least, e.most, n_known, rule->across);
    r->label = label.text;
    decide(r, rule->least, rule->most, e.spread.n_launches, "fewer than two values of the axis were measured");
    for (size_t i = 0; i < n_known; i++) nb_rule_group_release(&groups[i]);
    free(groups);
    free(seen);
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
