// SPDX-License-Identifier: Apache-2.0
/* Findings as a growing list; selectors over their tags. */
#include "src/claims/finding.h"

#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/format.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"

struct nb_finding *nb_findings_add(struct nb_findings *f, const char *name, const char *unit,
                                   struct nb_interval value) {
    struct nb_finding *one = NB_PUSH(f->items, f->n);
    *one = (struct nb_finding){.name = nb_strdup(name), .unit = nb_strdup(unit), .value = value};
    return one;
}

struct nb_finding *nb_findings_add_exact(struct nb_findings *f, const char *name, const char *unit, double value) {
    return nb_findings_add(f, name, unit, nb_exactly(value));
}

struct nb_finding *nb_findings_add_missing(struct nb_findings *f, const char *name, const char *reason, ...) {
    struct nb_finding *one = nb_findings_add(f, name, "", NB_NO_INTERVAL);
    char text[400];
    va_list args;
    va_start(args, reason);
    vsnprintf(text, sizeof text, reason, args);
    va_end(args);
    one->reason = nb_strdup(text);
    return one;
}

void nb_finding_tag(struct nb_finding *f, const char *axis, const char *value) {
    *NB_PUSH(f->tags, f->n_tags) = (struct nb_tag){nb_strdup(axis), nb_strdup(value)};
}

void nb_finding_tag_number(struct nb_finding *f, const char *axis, double value) {
    char text[32];
    nb_shortest_text(value, text);
    if (fabs(value) < 1e15 && value == floor(value)) snprintf(text, sizeof text, "%.0f", value);
    nb_finding_tag(f, axis, text);
}

const char *nb_finding_get(const struct nb_finding *f, const char *axis) {
    for (size_t i = 0; i < f->n_tags; i++)
        if (strcmp(f->tags[i].axis, axis) == 0) return f->tags[i].value;
    return NULL;
}

/* "44.7%", "1.81", "12 ulp"; a count, an exact 0 and 100% without decimals. */
static void print_exact(struct nb_strbuf *out, double value, const char *unit) {
    const bool share = strcmp(unit, "share") == 0, points = strcmp(unit, "points") == 0;
    const double shown = share || points ? 100 * value : value, size = fabs(shown), whole = round(shown);
    if (!points && size < 1e6 && fabs(shown - whole) <= 1e-12 * fabs(whole))
        nb_strbuf_addf(out, "%.0f", whole + 0.0);
    else if (share || points)
        nb_strbuf_addf(out, share && size < 0.1 ? "%.2g" : "%.1f", shown);
    else
        nb_format_digits(out, value, 4);
    nb_strbuf_addf(out, "%s%s", share ? "%" : *unit ? " " : "", share ? "" : unit);
}

void nb_figure_print(struct nb_strbuf *out, struct nb_interval i, const char *unit) {
    if (!isfinite(i.value))
        nb_strbuf_add(out, "-");
    else if (!nb_interval_known(&i) || i.low == i.high)
        print_exact(out, i.value, unit);
    else if (strcmp(unit, "share") == 0)
        nb_format_share(out, i);
    else if (strcmp(unit, "points") == 0)
        nb_format_interval(out, nb_interval_times(i, 100), " points");
    else
        nb_format_ratio(out, i);
}

const char *nb_tag_word(const char *value) { return strcmp(value, "composed") == 0 ? "unfused" : value; }

void nb_findings_release(struct nb_findings *f) {
    for (size_t i = 0; i < f->n; i++) {
        struct nb_finding *one = &f->items[i];
        for (size_t j = 0; j < one->n_tags; j++) {
            free(one->tags[j].axis);
            free(one->tags[j].value);
        }
        nb_free_all(one->tags, one->name, one->unit, one->units, one->evidence, one->reason);
    }
    free(f->items);
    *f = (struct nb_findings){0};
}

/* ---- selectors ---- */

static bool is_bounded(const char *pattern, const char *value, bool *inside) {
    const bool above = pattern[0] == '>';
    char *end, *value_end;
    if (!above && pattern[0] != '<') return false;
    const bool equal = pattern[1] == '=';
    const double bound = strtod(pattern + 1 + equal, &end), number = strtod(value, &value_end);
    *inside = value_end != value && !*value_end && !*end &&
              ((above ? number > bound : number < bound) || (equal && number == bound));
    return true;
}

/* value null: no */
static bool wanted_takes(const struct nb_wanted *w, const char *value) {
    bool inside;
    for (size_t i = 0; value && i < w->n; i++) {
        if (is_bounded(w->values[i], value, &inside) ? inside : fnmatch(w->values[i], value, 0) == 0) return true;
    }
    return false;
}

/* A kernel may be named as for --axis, by its variant too; the finding's tags are its kernel, dtype and width. */
static bool is_variant_of(const struct nb_wanted *w, const struct nb_finding *f) {
    const char *kernel = nb_finding_get(f, "kernel"), *dtype = nb_finding_get(f, "dtype"),
               *width = nb_finding_get(f, "width");
    for (size_t i = 0; kernel && dtype && width && i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        if (strcmp(e->kernel_id, kernel) != 0 || strcmp(nb_dtype_names[e->kernel->dtype], dtype) != 0 ||
            strcmp(nb_width_names[e->kernel->width], width) != 0)
            continue;
        for (size_t k = 0; k < w->n; k++)
            if (nb_entry_is_named(e, w->values[k])) return true;
    }
    return false;
}

bool nb_selector_takes(const struct nb_selector *s, const struct nb_finding *f, const char *but_not) {
    for (size_t i = 0; i < s->n; i++) {
        if (but_not && strcmp(s->axes[i].axis, but_not) == 0) continue;
        const struct nb_wanted *w = &s->axes[i];
        if (!wanted_takes(w, nb_finding_get(f, w->axis)) && !(strcmp(w->axis, "kernel") == 0 && is_variant_of(w, f)))
            return false;
    }
    return true;
}

const struct nb_wanted *nb_selector_axis(const struct nb_selector *s, const char *axis) {
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->axes[i].axis, axis) == 0) return &s->axes[i];
    return NULL;
}

static int read_value(struct nb_wanted *w, const struct nb_jsonc *file, const cJSON *node) {
    char text[32];
    const char *value = cJSON_GetStringValue(node);
    if (cJSON_IsNumber(node)) {
        snprintf(text, sizeof text, "%.15g", node->valuedouble);
        value = text;
    }
    if (!value || !*value) return nb_jsonc_wrong_type(file, node, w->axis, "a text, a number, or a list of them");
    *NB_PUSH(w->values, w->n) = nb_strdup(value);
    return 0;
}

int nb_selector_read(const struct nb_jsonc *file, const cJSON *node, void *selector) {
    struct nb_selector *s = selector;
    if (!cJSON_IsObject(node))
        return nb_jsonc_wrong_type(file, node, node->string ? node->string : "entry", "an object that names axes");
    s->axes = nb_alloc((unsigned)cJSON_GetArraySize(node) + 1, sizeof *s->axes);
    for (const cJSON *item = node->child; item; item = item->next) {
        if (nb_selector_axis(s, item->string)) return nb_jsonc_twice(file, item);
        struct nb_wanted *w = &s->axes[s->n++];
        w->axis = nb_strdup(item->string);
        const bool list = cJSON_IsArray(item);
        if (list && !item->child)
            return nb_jsonc_error(file, item, "\"%s\" is an empty list; leave the key out to take every value",
                                  item->string);
        for (const cJSON *value = list ? item->child : item; value; value = list ? value->next : NULL)
            if (read_value(w, file, value) != 0) return -1;
    }
    return 0;
}

void nb_selector_release(struct nb_selector *s) {
    for (size_t i = 0; i < s->n; i++) {
        for (size_t j = 0; j < s->axes[i].n; j++) free(s->axes[i].values[j]);
        free(s->axes[i].values);
        free(s->axes[i].axis);
    }
    free(s->axes);
    *s = (struct nb_selector){0};
}

/* ---- sides ---- */

bool nb_sides_both_name(const struct nb_sides *s, const char *axis) {
    return nb_selector_axis(&s->of, axis) && nb_selector_axis(&s->against, axis);
}

bool nb_sides_alike(const struct nb_sides *s, const struct nb_finding *of, const struct nb_finding *against,
                    bool (*may_differ)(const struct nb_sides *s, const char *axis)) {
    for (size_t i = 0; i < of->n_tags; i++) {
        const char *axis = of->tags[i].axis, *other = nb_finding_get(against, axis);
        if (other && strcmp(other, of->tags[i].value) != 0 && !nb_sides_both_name(s, axis) &&
            !(may_differ && may_differ(s, axis)))
            return false;
    }
    return true;
}

void nb_sides_release(struct nb_sides *s) {
    nb_selector_release(&s->of);
    nb_selector_release(&s->against);
}
