// SPDX-License-Identifier: Apache-2.0
/* Rules as files have them and as people read them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/fields.h"
#include "src/claims/rule.h"
#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/log.h"

const char *const nb_rule_form_names[] = {"at_least", "at_most",  "between", "near",
                                          "equals",   "ordering", "spread",  NULL};

/* As it stands in the file; NaN: the key is not there. */
struct written {
    char *form, *figure, *text, *across;
    double least, most, published, within, factor, to, margin;
    struct nb_selector where;
    struct nb_selector *steps;
    size_t n_steps;
};

static int read_where(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_selector_read(&((struct written *)into)->where, file, node);
}

static int read_steps(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct written *w = into;
    if (!cJSON_IsArray(node) || cJSON_GetArraySize(node) < 2)
        return nb_jsonc_wrong_type(file, node, "steps", "a list of two or more objects that name axes");
    w->steps = nb_alloc((unsigned)cJSON_GetArraySize(node), sizeof *w->steps);
    for (const cJSON *item = node->child; item; item = item->next)
        if (nb_selector_read(&w->steps[w->n_steps++], file, item) != 0) return -1;
    return 0;
}

#define TEXT(member)                                                                                                   \
    { #member, NB_FIELD_TEXT, offsetof(struct written, member), false, NULL }
#define NUMBER(member)                                                                                                 \
    { #member, NB_FIELD_NUMBER, offsetof(struct written, member), false, NULL }
static const struct nb_field fields[] = {{"form", NB_FIELD_TEXT, offsetof(struct written, form), true, NULL},
                                         {"figure", NB_FIELD_TEXT, offsetof(struct written, figure), true, NULL},
                                         TEXT(text),
                                         TEXT(across),
                                         NUMBER(least),
                                         NUMBER(most),
                                         NUMBER(published),
                                         NUMBER(within),
                                         NUMBER(factor),
                                         NUMBER(to),
                                         NUMBER(margin),
                                         {"where", NB_FIELD_READ, 0, false, read_where},
                                         {"steps", NB_FIELD_READ, 0, false, read_steps}};
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/* The keys that each form needs and may have beside form, figure, text, where and published. */
static const struct form_keys {
    const char *needed, *allowed;
} form_keys[NB_N_RULE_FORMS] = {
    {"least", ""},    {"most", ""},        {"least most", ""},      {"published", "within factor"},
    {"to", "within"}, {"steps", "margin"}, {"across", "least most"}};

static bool names(const char *list, const char *key) {
    const size_t n = strlen(key);
    for (const char *p = list; (p = strstr(p, key)); p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || !p[n])) return true;
    return false;
}

static int check_keys(const struct nb_jsonc *file, const cJSON *node, enum nb_rule_form form) {
    static const char *const own[] = {"least", "most", "within", "factor", "to", "margin", "steps", "across", NULL};
    const struct form_keys *k = &form_keys[form];
    for (size_t i = 0; own[i]; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(node, own[i]);
        if (item && !names(k->needed, own[i]) && !names(k->allowed, own[i]))
            return nb_error("%s:%d: \"%s\" does not belong to the form %s, which has: %s %s", file->path,
                            nb_jsonc_line(file, item), own[i], nb_rule_form_names[form], k->needed, k->allowed);
    }
    for (size_t i = 0; own[i]; i++)
        if (names(k->needed, own[i]) && !cJSON_GetObjectItemCaseSensitive(node, own[i]))
            return nb_error("%s:%d: the form %s needs \"%s\"", file->path, nb_jsonc_line(file, node),
                            nb_rule_form_names[form], own[i]);
    return 0;
}

/* The bounds that the form and its numbers come to. */
static int set_bounds(struct nb_rule *rule, const struct written *w, const struct nb_jsonc *file, const cJSON *node) {
    const int line = nb_jsonc_line(file, node);
    rule->least = isnan(w->least) ? -INFINITY : w->least;
    rule->most = isnan(w->most) ? INFINITY : w->most;
    if (rule->form == NB_RULE_NEAR) {
        if (isnan(w->published) || isnan(w->within) == isnan(w->factor))
            return nb_error("%s:%d: the form near needs \"published\" and either \"within\" or \"factor\"", file->path,
                            line);
        const bool by_factor = !isnan(w->factor);
        if (by_factor && !(w->factor > 1 && w->published > 0))
            return nb_error("%s:%d: a \"factor\" is above 1, of a \"published\" above 0", file->path, line);
        rule->least = by_factor ? w->published / w->factor : w->published - w->within;
        rule->most = by_factor ? w->published * w->factor : w->published + w->within;
    }
    if (rule->form == NB_RULE_EQUALS) {
        const double within = isnan(w->within) ? 0 : w->within;
        rule->least = w->to - within;
        rule->most = w->to + within;
    }
    if (rule->form == NB_RULE_SPREAD && isnan(w->least) == isnan(w->most))
        return nb_error("%s:%d: the form spread needs \"least\" or \"most\"", file->path, line);
    if (rule->least > rule->most)
        return nb_error("%s:%d: nothing lies between %g and %g", file->path, line, rule->least, rule->most);
    return 0;
}

static int convert(struct nb_rule *rule, struct written *w, const struct nb_jsonc *file, const cJSON *node) {
    char reason[200];
    const int form = nb_name_find(nb_rule_form_names, w->form);
    if (form < 0) {
        nb_name_refuse(nb_rule_form_names, w->form, reason, sizeof reason);
        return nb_error("%s:%d: \"form\": '%.40s' %s", file->path, nb_jsonc_line(file, node), w->form, reason);
    }
    rule->form = (enum nb_rule_form)form;
    rule->published = w->published;
    rule->margin = isnan(w->margin) ? 0 : w->margin;
    rule->line = nb_jsonc_line(file, node);
    return check_keys(file, node, rule->form) != 0 ? -1 : set_bounds(rule, w, file, node);
}

int nb_rule_read(struct nb_rule *rule, const struct nb_jsonc *file, const cJSON *node) {
    struct written w = {
        .least = NAN, .most = NAN, .published = NAN, .within = NAN, .factor = NAN, .to = NAN, .margin = NAN};
    int result = nb_fields_read(file, node, fields, N_FIELDS, "an entry of \"expect\"", &w);
    if (result == 0) result = convert(rule, &w, file, node);
    rule->figure = w.figure;
    rule->text = w.text;
    rule->across = w.across;
    rule->where = w.where;
    rule->steps = w.steps;
    rule->n_steps = w.n_steps;
    free(w.form);
    return result;
}

void nb_rule_release(struct nb_rule *rule) {
    free(rule->figure);
    free(rule->text);
    free(rule->across);
    nb_selector_release(&rule->where);
    for (size_t i = 0; i < rule->n_steps; i++) nb_selector_release(&rule->steps[i]);
    free(rule->steps);
    *rule = (struct nb_rule){0};
}

static void print_selector(const struct nb_selector *s, const char *before, struct nb_strbuf *out) {
    for (size_t i = 0; i < s->n; i++) {
        nb_strbuf_addf(out, "%s%s=", i ? ", " : before, s->axes[i].axis);
        for (size_t j = 0; j < s->axes[i].n; j++) nb_strbuf_addf(out, "%s%s", j ? "|" : "", s->axes[i].values[j]);
    }
}

void nb_rule_print(const struct nb_rule *rule, struct nb_strbuf *out) {
    if (rule->form == NB_RULE_SPREAD) nb_strbuf_addf(out, "spread over %s of ", rule->across);
    nb_strbuf_add(out, rule->figure);
    if (rule->form == NB_RULE_ORDERING) {
        nb_strbuf_addf(out, " rises by %.4g", rule->margin);
        for (size_t i = 0; i < rule->n_steps; i++) print_selector(&rule->steps[i], i ? " to " : " from ", out);
    } else if (rule->least == rule->most) {
        nb_strbuf_addf(out, " = %.6g", rule->least);
    } else if (isinf(rule->most)) {
        nb_strbuf_addf(out, " >= %.4g", rule->least);
    } else if (isinf(rule->least)) {
        nb_strbuf_addf(out, " <= %.4g", rule->most);
    } else {
        nb_strbuf_addf(out, " in [%.4g, %.4g]", rule->least, rule->most);
    }
    print_selector(&rule->where, " where ", out);
}
