// SPDX-License-Identifier: Apache-2.0
/* Values are compared by what they mean, not by how they are written. */
#include "src/plan/match.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

bool nb_filters_match(const struct nb_filters *filters, const char *key) {
    assert(key);
    for (size_t i = 0; i < filters->n; i++)
        if (strstr(key, filters->texts[i]) || fnmatch(filters->texts[i], key, FNM_LEADING_DIR) == 0) return true;
    return filters->n == 0;
}

struct nb_case nb_case_canonical(const struct nb_case *c) {
    struct nb_case copy = *c;
    snprintf(copy.eps_text, sizeof copy.eps_text, "%.17g", c->eps);
    snprintf(copy.k_text, sizeof copy.k_text, "%lld", (long long)c->k);
    return copy;
}

/* ---- selecting axes ---- */

static bool kernel_selected(const char *glob, const struct nb_entry *e) {
    return fnmatch(glob, e->kernel_id, 0) == 0 || fnmatch(glob, e->kernel->name, 0) == 0;
}

static bool backend_selected(const char *text, const struct nb_entry *e) {
    if (strcmp(text, "cpu") == 0 || !e->plugin) return strcmp(text, "cpu") == 0 && !e->plugin;
    const char *kind = e->is_peer ? "peer:" : "plugin:";
    const size_t n = strlen(kind);
    return strncmp(text, kind, n) == 0 && fnmatch(text + n, e->plugin, 0) == 0;
}

static bool text_selects(const char *text, const struct nb_axis *axis, const struct nb_entry *e) {
    const struct nb_kernel *k = e->kernel;
    struct nb_strbuf value = {0};
    if (strcmp(text, "all") == 0) return strcmp(axis->name, "op") != 0 || k->op != NB_OP_COPY;
    if (strcmp(axis->name, "kernel") == 0) return kernel_selected(text, e);
    if (strcmp(axis->name, "backend") == 0) return backend_selected(text, e);
    /* Only what selecting axes print; a whole case would be read from text, and this is asked for every kernel. */
    const struct nb_case c = {.op = k->op,
                              .pass = k->pass,
                              .dtype = k->dtype,
                              .width = k->width,
                              .style = k->style,
                              .stats = k->stats,
                              .stats_dtype = k->stats_dtype,
                              .variance = k->variance};
    nb_axis_print(axis, &c, &value);
    bool selected = strcmp(value.text, text) == 0;
    nb_strbuf_release(&value);
    return selected;
}

bool nb_list_selects(const struct nb_values *list, const struct nb_axis *axis, const struct nb_entry *entry) {
    for (size_t i = 0; i < list->n; i++)
        if (text_selects(list->texts[i], axis, entry)) return true;
    return false;
}

/* ---- cell axes ---- */

static bool same_value(const struct nb_axis *axis, const struct nb_case *a, const struct nb_case *b) {
    struct nb_strbuf p = {0}, q = {0};
    nb_axis_print(axis, a, &p);
    nb_axis_print(axis, b, &q);
    bool same = strcmp(p.text, q.text) == 0;
    nb_strbuf_release(&p);
    nb_strbuf_release(&q);
    return same;
}

static bool list_has_value_of(const struct nb_values *list, const struct nb_axis *axis, const struct nb_case *c) {
    char reason[256];
    if (axis->applies && !axis->applies(c)) return false;
    const struct nb_case wanted = nb_case_canonical(c);
    for (size_t i = 0; i < list->n; i++) {
        struct nb_case other = *c;
        if (nb_axis_set(axis, &other, list->texts[i], reason, sizeof reason) != 0) continue;
        nb_case_normalize(&other);
        other = nb_case_canonical(&other);
        if (same_value(axis, &wanted, &other)) return true;
    }
    return false;
}

static bool excludes(const struct nb_block *exclude, const struct nb_case *c, const struct nb_entry *entry) {
    for (size_t a = 0; a < nb_n_axes; a++) {
        const struct nb_values *list = &exclude->values[a];
        if (list->n == 0) continue;
        bool in = nb_axes[a].kind == NB_AXIS_SELECT ? nb_list_selects(list, &nb_axes[a], entry)
                                                    : list_has_value_of(list, &nb_axes[a], c);
        if (!in) return false;
    }
    return true;
}

const struct nb_block *nb_block_excludes(const struct nb_block *block, const struct nb_case *c,
                                         const struct nb_entry *entry) {
    for (size_t i = 0; i < block->n_excludes; i++)
        if (excludes(&block->excludes[i], c, entry)) return &block->excludes[i];
    return NULL;
}
