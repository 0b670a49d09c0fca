// SPDX-License-Identifier: Apache-2.0
/* Rules: what they make of figures and of groups of figures, and how files and people write them. */

#include "src/claims/rule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/measure/paired.h"

/* ---- groups: the figures on one side of a comparison, such as all shapes of one width, and the gap between two such sides ---- */

struct rule_group {
    const struct nb_finding **figures; /* that have a value */
    size_t n;
    const char *missing; /* why some have none, or no interval; or null */
};

struct rule_gap {
    struct nb_interval value;
    int n_launches;
};

static void rule_group_release(struct rule_group *g) {
    free(g->figures);
    *g = (struct rule_group){0};
}

/* The median of the values, and of both ends of the intervals; NaN where there is no figure. */
static struct nb_interval rule_group_value(const struct rule_group *g) {
    if (g->n == 0) return NB_NO_INTERVAL;
    double *v freed = nb_alloc(3 * g->n, sizeof *v), *low = v + g->n, *high = low + g->n;
    for (size_t i = 0; i < g->n; i++) {
        v[i] = g->figures[i]->value.value;
        low[i] = g->figures[i]->value.low;
        high[i] = g->figures[i]->value.high;
    }
    return (struct nb_interval){nb_median(v, g->n), nb_median(low, g->n), nb_median(high, g->n)};
}

/* ---- pairs ---- */

/* How many units all figures may have in common. */
static size_t common_units(const struct rule_group *g) {
    size_t n = g->n > 0 ? (size_t)-1 : 0;
    for (size_t i = 0; i < g->n; i++) n = g->figures[i]->n_units < n ? g->figures[i]->n_units : n;
    return n;
}

/* The group's median in one unit, NaN where a figure has no value there: a median over other figures would be another quantity. */
static double median_in(const struct rule_group *g, size_t unit) {
    double *v freed = nb_alloc(g->n, sizeof *v);
    bool whole = true;
    for (size_t i = 0; i < g->n; i++) {
        v[i] = g->figures[i]->units[unit];
        whole &= isfinite(v[i]) != 0;
    }
    return whole ? nb_median(v, g->n) : (double)NAN;
}

static int n_launches(const struct rule_group *g) { return g->n > 0 ? g->figures[g->n - 1]->n_launches : 0; }

/* a - b. Where both sides know their values launch by launch (seed by seed), differences are formed in each of them, between the
 * medians of both sides, and the interval is that of the differences: what a launch or seed does to both cancels. Else the bounds
 * are added, which holds whatever correlation there is. */
static struct rule_gap rule_gap_of(const struct rule_group *a, const struct rule_group *b) {
    const struct nb_interval p = rule_group_value(a), q = rule_group_value(b);
    const size_t na = common_units(a), nb = common_units(b), units = na < nb ? na : nb;
    double *v freed = nb_alloc(units + 1, sizeof *v);
    size_t n = 0;
    for (size_t u = 0; u < units; u++) {
        const double difference = median_in(a, u) - median_in(b, u);
        if (isfinite(difference)) v[n++] = difference;
    }
    struct rule_gap gap = {{p.value - q.value, p.low - q.high, p.high - q.low}, n_launches(a)};
    if (n > 0) gap = (struct rule_gap){nb_over_launches(v, n, 0.95), gap.n_launches ? (int)n : 0};
    return gap;
}

/* ---- figures against bounds, groups against each other ---- */

const char *const nb_outcome_names[NB_N_OUTCOMES] = {"holds", "fails", "undecided", "missing"};

#define say(r, ...) (free((r)->reason), (r)->reason = nb_textf(__VA_ARGS__))

static struct nb_ruled *add(struct nb_rulings *out, const struct nb_rule *rule, size_t finding,
                            struct nb_interval value, const char *unit) {
    struct nb_ruled *r = NB_PUSH(out->items, out->n);
    *r = (struct nb_ruled){.rule = rule, .finding = finding, .value = value, .unit = unit};
    return r;
}

/* How many launches would shrink the interval so far that the bound lies outside; half-widths go with 1 / sqrt(n). */
static void say_launches(struct nb_ruled *r, double bound, int n_launches) {
    const double half = r->value.value > bound ? r->value.value - r->value.low : r->value.high - r->value.value;
    const double distance = fabs(r->value.value - bound);
    const double needed = n_launches * (half / distance) * (half / distance);
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_figure_print(&text, r->value, r->unit);
    nb_strbuf_add(&text, " includes the threshold ");
    nb_figure_print(&text, nb_exactly(bound), r->unit);
    if (n_launches > 0 && distance > 0 && needed < 1000)
        nb_strbuf_addf(&text, "; about --launches %.0f would decide", round(needed) + 1);
    else if (n_launches > 0)
        nb_strbuf_add(&text, "; it would take more than 1000 launches");
    say(r, "%s", text.text);
}

/* why: what is missing, or what kept launches from being made; or null. */
static void decide(struct nb_ruled *r, double least, double most, int n_launches, const char *why) {
    const struct nb_interval *v = &r->value;
    if (isnan(v->value)) {
        r->outcome = NB_MISSING;
        say(r, "%s", why ? why : "no value");
    } else if (!(v->low <= v->high)) { /* NaN: no interval */
        r->outcome = NB_UNDECIDED;
        say(r, "no interval from %d of %d launches or seeds%s%s", n_launches, NB_MIN_LAUNCHES, why ? "; " : "",
            why ? why : "");
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

/* Why nothing was found: the first reason among the findings, or null. */
static const char *why_none(const struct nb_findings *findings) {
    for (size_t i = 0; i < findings->n; i++)
        if (isnan(findings->items[i].value.value) && findings->items[i].reason) return findings->items[i].reason;
    return NULL;
}

static void apply_bounds(const struct nb_rule *rule, const struct nb_findings *findings, const char *relaxed,
                         const char *value, struct nb_rulings *out) {
    for (size_t i = 0; i < findings->n; i++) {
        const struct nb_finding *f = &findings->items[i];
        if (!takes(rule, f, relaxed, value)) continue;
        decide(add(out, rule, i, f->value, f->unit), rule->least, rule->most, f->n_launches, f->reason);
    }
}

/* ---- groups ---- */

static void print_step(const struct nb_selector *s, struct nb_strbuf *out) {
    for (size_t i = 0; i < s->n; i++)
        nb_strbuf_addf(out, "%s%s %s", i ? ", " : "", s->axes[i].axis, s->axes[i].values[0]);
}

/* "40.4% at cols 64, 42.2% at cols 16384". */
static void label_step(const struct nb_rule *rule, size_t s, const struct rule_group *groups, struct nb_ruled *r) {
    struct nb_strbuf label = {0};
    for (size_t i = s - 1; i <= s; i++) {
        const struct rule_group *g = &groups[i];
        nb_strbuf_add(&label, i == s ? ", " : "");
        nb_figure_print(&label, nb_exactly(rule_group_value(g).value), g->n ? g->figures[0]->unit : "");
        nb_strbuf_add(&label, " at ");
        print_step(&rule->steps[i], &label);
    }
    r->label = label.text;
}

/* Over what it is measured by; NaN where that is not above 0. */
static void relate(struct nb_interval *v, double to) {
    if (!(to > 0)) to = (double)NAN;
    v->value /= to;
    v->low /= to;
    v->high /= to;
}

/* Of a difference of such figures. */
static const char *unit_of_gap(const struct nb_rule *rule, const struct nb_findings *findings) {
    const char *unit = "";
    for (size_t i = 0; i < findings->n && !*unit; i++)
        if (strcmp(findings->items[i].name, rule->figure) == 0) unit = findings->items[i].unit;
    return rule->relative ? "share" : strcmp(unit, "share") == 0 ? "points" : unit;
}

/* Those of a step, or where step is null those that have the value `tag` of the rule's axis. */
static struct rule_group group_of(const struct nb_rule *rule, const struct nb_findings *findings,
                                  const struct nb_selector *step, const char *tag, const char *relaxed,
                                  const char *value) {
    struct rule_group g = {0};
    for (size_t i = 0; i < findings->n; i++) {
        const struct nb_finding *f = &findings->items[i];
        const char *own = step ? NULL : nb_finding_get(f, rule->across);
        if (!takes(rule, f, relaxed, value)) continue;
        if (step ? !nb_selector_takes(step, f, NULL) : !own || strcmp(own, tag) != 0) continue;
        if (f->reason) g.missing = f->reason;
        if (!isnan(f->value.value)) *NB_PUSH(g.figures, g.n) = f;
    }
    return g;
}

static void apply_ordering(const struct nb_rule *rule, const struct nb_findings *findings, const char *relaxed,
                           const char *value, struct nb_rulings *out) {
    struct rule_group *groups freed = nb_alloc(rule->n_steps, sizeof *groups);
    for (size_t s = 0; s < rule->n_steps; s++)
        groups[s] = group_of(rule, findings, &rule->steps[s], NULL, relaxed, value);
    for (size_t s = 1; s < rule->n_steps; s++) {
        const struct rule_gap gap = rule_gap_of(&groups[s], &groups[s - 1]);
        struct nb_ruled *r = add(out, rule, NB_NO_FINDING, gap.value, unit_of_gap(rule, findings));
        label_step(rule, s, groups, r);
        const char *missing = groups[s].missing ? groups[s].missing : groups[s - 1].missing;
        if (rule->relative) relate(&r->value, rule_group_value(&groups[s - 1]).value);
        decide(r, rule->margin, INFINITY, gap.n_launches,
               missing || !isnan(gap.value.value) ? missing : why_none(findings));
    }
    for (size_t s = 0; s < rule->n_steps; s++) rule_group_release(&groups[s]);
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

struct extremes { /* of groups of one axis */
    struct rule_gap spread;
    double least, most;
};

/* Largest less smallest: at least what surely parts two groups, at most what may part any two. */
static struct extremes extremes_of(const struct rule_group *groups, size_t n, bool relative) {
    struct extremes e = {{{NAN, 0, -INFINITY}, 0}, INFINITY, -INFINITY};
    bool bounded = n > 1;
    for (size_t i = 0; i < n; i++) {
        const double v = rule_group_value(&groups[i]).value;
        e.least = fmin(e.least, v);
        e.most = fmax(e.most, v);
        for (size_t j = 0; j < n; j++) {
            if (i == j) continue;
            const struct rule_gap gap = rule_gap_of(&groups[i], &groups[j]);
            bounded &= !isnan(gap.value.low);
            e.spread.value.value =
                fmax(e.spread.value.value, gap.value.value); /* fmax() takes the number beside a NaN */
            e.spread.value.low = fmax(e.spread.value.low, gap.value.low);
            e.spread.value.high = fmax(e.spread.value.high, gap.value.high);
            e.spread.n_launches = gap.n_launches;
        }
    }
    if (relative) relate(&e.spread.value, e.least);
    if (!bounded) e.spread.value.low = e.spread.value.high = NAN;
    return e;
}

static void apply_spread(const struct nb_rule *rule, const struct nb_findings *findings, const char *relaxed,
                         const char *value, struct nb_rulings *out) {
    const char **seen freed = nb_alloc(findings->n + 1, sizeof *seen), *tag, *why = NULL;
    struct rule_group *groups freed = nb_alloc(findings->n + 1, sizeof *groups);
    size_t n = 0, n_known = 0;
    while ((tag = next_value(rule, findings, seen, n, relaxed, value))) {
        seen[n++] = tag;
        groups[n_known] = group_of(rule, findings, NULL, tag, relaxed, value);
        if (groups[n_known].missing) why = groups[n_known].missing;
        n_known += groups[n_known].n > 0;
    }
    const struct extremes e = extremes_of(groups, n_known, rule->relative);
    struct nb_ruled *r = add(out, rule, NB_NO_FINDING, e.spread.value, unit_of_gap(rule, findings));
    struct nb_strbuf label = {0};
    const char *unit = n_known ? groups[0].figures[0]->unit : "";
    nb_strbuf_add(&label, "from ");
    nb_figure_print(&label, nb_exactly(e.least), unit);
    nb_strbuf_add(&label, " to ");
    nb_figure_print(&label, nb_exactly(e.most), unit);
    nb_strbuf_addf(&label, " over %zu values of %s", n_known, rule->across);
    r->label = label.text;
    decide(r, rule->least, rule->most, e.spread.n_launches,
           n_known > 1 ? why : "fewer than two values of the axis were measured");
    for (size_t i = 0; i < n_known; i++) rule_group_release(&groups[i]);
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
        struct nb_ruled *r = add(out, rule, NB_NO_FINDING, NB_NO_INTERVAL, "");
        r->outcome = NB_MISSING;
        struct nb_strbuf text released_by(nb_strbuf_release) = {0};
        nb_rule_print(rule, &text);
        if (why_none(findings))
            say(r, "%s", why_none(findings));
        else
            say(r, "nothing was measured for: %s", text.text);
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

/* ---- rules in files, and as people read them ---- */

const char *const nb_rule_form_names[] = {"at_least", "at_most",  "between", "near",
                                          "equals",   "ordering", "spread",  NULL};

/* As in the file; NaN: the key is not there. */
struct written {
    struct nb_rule rule;
    char *form;
    double within, factor, to;
};

static int read_steps(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_rule *rule = &((struct written *)into)->rule;
    if (!cJSON_IsArray(node) || cJSON_GetArraySize(node) < 2)
        return nb_jsonc_wrong_type(file, node, "steps", "a list of two or more objects that name axes");
    rule->steps = nb_alloc((unsigned)cJSON_GetArraySize(node), sizeof *rule->steps);
    for (const cJSON *item = node->child; item; item = item->next)
        if (nb_selector_read(file, item, &rule->steps[rule->n_steps++]) != 0) return -1;
    return 0;
}

/* A figure, or a list of it and the bounds of its interval. */
static int read_published(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_interval *p = &((struct written *)into)->rule.published;
    double *const parts[] = {&p->value, &p->low, &p->high};
    const bool list = cJSON_IsArray(node);
    const cJSON *item = list ? node->child : node;
    if (list && cJSON_GetArraySize(node) != 3)
        return nb_jsonc_wrong_type(file, node, "published", "a number, or a list of it and the bounds of its interval");
    for (int i = 0; item && i < (list ? 3 : 1); i++, item = item->next)
        if (nb_jsonc_number(file, item, -INFINITY, INFINITY, false, parts[i]) != 0) return -1;
    if (list && !(p->low <= p->value && p->value <= p->high))
        return nb_jsonc_error(file, node, "\"published\": %g does not lie between %g and %g", p->value, p->low,
                              p->high);
    return 0;
}

#define OF_RULE(member) offsetof(struct written, rule.member)
static const struct nb_field fields[] = {{NB_FIELD(TEXT, struct written, form), .required = true},
                                         {"figure", NB_FIELD_TEXT, .offset = OF_RULE(figure), .required = true},
                                         {"text", NB_FIELD_TEXT, .offset = OF_RULE(text)},
                                         {"across", NB_FIELD_TEXT, .offset = OF_RULE(across)},
                                         {"least", NB_FIELD_NUMBER, .offset = OF_RULE(least)},
                                         {"most", NB_FIELD_NUMBER, .offset = OF_RULE(most)},
                                         {"published", NB_FIELD_READ, .read = read_published},
                                         {"relative", NB_FIELD_BOOL, .offset = OF_RULE(relative)},
                                         {"margin", NB_FIELD_NUMBER, .offset = OF_RULE(margin)},
                                         {NB_FIELD(NUMBER, struct written, within)},
                                         {NB_FIELD(NUMBER, struct written, factor)},
                                         {NB_FIELD(NUMBER, struct written, to)},
                                         {"where", NB_FIELD_MEMBER, .offset = OF_RULE(where), .read = nb_selector_read},
                                         {"steps", NB_FIELD_READ, .read = read_steps}};
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/* The keys that each form needs and may have beside form, figure, text, where and published. */
static const struct form_keys {
    const char *needed, *allowed;
} form_keys[NB_N_RULE_FORMS] = {{"least", ""},
                                {"most", ""},
                                {"least most", ""},
                                {"published", "within factor"},
                                {"to", "within"},
                                {"steps", "margin relative"},
                                {"across", "least most relative"}};

static bool names(const char *list, const char *key) {
    const size_t n = strlen(key);
    for (const char *p = list; (p = strstr(p, key)); p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || !p[n])) return true;
    return false;
}

static int check_keys(const struct nb_jsonc *file, const cJSON *node, enum nb_rule_form form) {
    static const char *const own[] = {"least",  "most",  "within", "factor",   "to",
                                      "margin", "steps", "across", "relative", NULL};
    const struct form_keys *k = &form_keys[form];
    for (size_t i = 0; own[i]; i++) {
        const cJSON *item = nb_json_get(node, own[i]);
        if (item && !names(k->needed, own[i]) && !names(k->allowed, own[i]))
            return nb_jsonc_error(file, item, "\"%s\" does not belong to the form %s, which has: %s %s", own[i],
                                  nb_rule_form_names[form], k->needed, k->allowed);
    }
    for (size_t i = 0; own[i]; i++)
        if (names(k->needed, own[i]) && !nb_json_get(node, own[i]))
            return nb_jsonc_error(file, node, "the form %s needs \"%s\"", nb_rule_form_names[form], own[i]);
    return 0;
}

/* The bounds that the form and its numbers come to. */
static int set_bounds(struct written *w, const struct nb_jsonc *file, const cJSON *node) {
    struct nb_rule *rule = &w->rule;
    if (rule->form == NB_RULE_SPREAD && isnan(rule->least) == isnan(rule->most))
        return nb_jsonc_error(file, node, "the form spread needs \"least\" or \"most\"");
    if (isnan(rule->least)) rule->least = -INFINITY;
    if (isnan(rule->most)) rule->most = INFINITY;
    if (rule->form == NB_RULE_NEAR) {
        const double published = rule->published.value;
        const bool by_factor = !isnan(w->factor), within = !isnan(w->within), interval = !isnan(rule->published.low);
        if (isnan(published) || by_factor + within + interval != 1)
            return nb_jsonc_error(
                file, node,
                "the form near needs \"published\" and one of \"within\", \"factor\" and an interval, \"published\": [figure, low, high]");
        if (by_factor && !(w->factor > 1 && published > 0))
            return nb_jsonc_error(file, node, "a \"factor\" is above 1, of a \"published\" above 0");
        rule->least = by_factor ? published / w->factor : within ? published - w->within : rule->published.low;
        rule->most = by_factor ? published * w->factor : within ? published + w->within : rule->published.high;
    }
    if (rule->form == NB_RULE_EQUALS) {
        const double within = isnan(w->within) ? 0 : w->within;
        rule->least = w->to - within;
        rule->most = w->to + within;
    }
    if (rule->least > rule->most)
        return nb_jsonc_error(file, node, "nothing lies between %g and %g", rule->least, rule->most);
    return 0;
}

static int convert(struct written *w, const struct nb_jsonc *file, const cJSON *node) {
    char reason[200];
    const int form = nb_name_find(nb_rule_form_names, w->form);
    if (form < 0) {
        nb_name_refuse(nb_rule_form_names, reason, sizeof reason);
        return nb_jsonc_error(file, node, "\"form\": '%.40s' %s", w->form, reason);
    }
    w->rule.form = (enum nb_rule_form)form;
    if (isnan(w->rule.margin)) w->rule.margin = 0;
    w->rule.line = nb_jsonc_line(file, node);
    return check_keys(file, node, w->rule.form) != 0 ? -1 : set_bounds(w, file, node);
}

int nb_rule_read(struct nb_rule *rule, const struct nb_jsonc *file, const cJSON *node) {
    struct written w = {.rule = {.least = NAN, .most = NAN, .published = NB_NO_INTERVAL, .margin = NAN},
                        .within = NAN,
                        .factor = NAN,
                        .to = NAN};
    int result = nb_fields_read(file, node, fields, N_FIELDS, "an entry of \"expect\"", &w);
    if (result == 0) result = convert(&w, file, node);
    *rule = w.rule;
    free(w.form);
    return result;
}

void nb_rule_release(struct nb_rule *rule) {
    nb_free_all(rule->figure, rule->text, rule->across);
    nb_selector_release(&rule->where);
    for (size_t i = 0; i < rule->n_steps; i++) nb_selector_release(&rule->steps[i]);
    free(rule->steps);
    *rule = (struct nb_rule){0};
}

static void print_selector(const struct nb_selector *s, const char *before, struct nb_strbuf *out) {
    for (size_t i = 0; i < s->n; i++) {
        nb_strbuf_addf(out, "%s%s ", i ? ", " : before, s->axes[i].axis);
        for (size_t j = 0; j < s->axes[i].n; j++)
            nb_strbuf_addf(out, "%s%s", j ? " or " : "", nb_tag_word(s->axes[i].values[j]));
    }
}

void nb_rule_figure_print(const char *figure, struct nb_strbuf *out) {
    const char *saved = strstr(figure, "cut");
    nb_strbuf_add(out, saved == figure ? "time " : "");
    for (const char *p = figure; *p && p != saved; p++) nb_strbuf_addf(out, "%c", *p == '_' ? ' ' : *p);
    nb_strbuf_add(out, saved ? "saved" : "");
}

void nb_rule_number_print(const struct nb_rule *rule, double bound, struct nb_strbuf *out) {
    const bool share = rule->relative || strstr(rule->figure, "cut");
    const bool of_gap = rule->form == NB_RULE_ORDERING || rule->form == NB_RULE_SPREAD;
    nb_strbuf_addf(out, "%.4g%s", share ? 100 * bound : bound,
                   !share                      ? ""
                   : of_gap && !rule->relative ? " points"
                                               : "%");
}

void nb_rule_print(const struct nb_rule *rule, struct nb_strbuf *out) {
    if (rule->form == NB_RULE_SPREAD)
        nb_strbuf_addf(out, "%sspread over %s of ", rule->relative ? "relative " : "", rule->across);
    nb_rule_figure_print(rule->figure, out);
    if (rule->form == NB_RULE_ORDERING) {
        nb_strbuf_add(out, " rises by at least ");
        nb_rule_number_print(rule, rule->margin, out);
        for (size_t i = 0; i < rule->n_steps; i++) print_selector(&rule->steps[i], i ? " to " : " from ", out);
    } else {
        nb_strbuf_add(out, rule->least == rule->most ? " is "
                           : isinf(rule->most)       ? " at least "
                           : isinf(rule->least)      ? " at most "
                                                     : " from ");
        nb_rule_number_print(rule, isinf(rule->least) ? rule->most : rule->least, out);
        if (rule->least < rule->most && isfinite(rule->least) && isfinite(rule->most)) {
            nb_strbuf_add(out, " to ");
            nb_rule_number_print(rule, rule->most, out);
        }
    }
    print_selector(&rule->where, ", where ", out);
}
