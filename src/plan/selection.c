// SPDX-License-Identifier: Apache-2.0
/* Matching kernels against the lists of a block. Copies stay out unless they are asked for by name: every group has its
 * own. */
#include "src/plan/selection.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/log.h"
#include "src/plan/match.h"

struct nb_product nb_product_of(const struct nb_block *block, const struct nb_block *include) {
    struct nb_product p = {
        .block = block, .line = include ? include->line : block->line, .is_include = include != NULL};
    for (size_t a = 0; a < nb_n_axes; a++)
        p.lists[a] = include && include->values[a].n > 0 ? &include->values[a] : &block->values[a];
    return p;
}

static const struct nb_values *list_of(const struct nb_product *p, const char *axis) {
    return p->lists[nb_axis_find(axis) - nb_axes];
}

static bool is_copy_glob(const char *glob) { return strncmp(glob, "copy", 4) == 0; }

/* A copy that no op list names: only where a glob says "copy". */
static bool names_copy(const struct nb_product *p, const struct nb_entry *e) {
    const struct nb_values *globs = list_of(p, "kernel");
    for (size_t i = 0; i < globs->n; i++) {
        const struct nb_values one = {.texts = &globs->texts[i], .n = 1};
        if (is_copy_glob(globs->texts[i]) && nb_list_selects(&one, nb_axis_find("kernel"), e)) return true;
    }
    return false;
}

/* A kernel that chooses its width itself has none to be selected by: else a preset's list of widths would keep every plugin
 * out. */
static bool axis_selects(const struct nb_product *p, size_t axis, const struct nb_entry *e) {
    const struct nb_values *list = p->lists[axis];
    if (e->kernel->width == NB_NATIVE && strcmp(nb_axes[axis].name, "width") == 0) return true;
    if (list->n > 0) return nb_list_selects(list, &nb_axes[axis], e);
    if (!nb_axes[axis].fallback) return true;
    char *fallback = nb_strdup(nb_axes[axis].fallback);
    const struct nb_values one = {.texts = &fallback, .n = 1};
    bool selected = nb_list_selects(&one, &nb_axes[axis], e);
    free(fallback);
    return selected;
}

bool nb_product_selects(const struct nb_product *p, const struct nb_entry *entry) {
    for (size_t a = 0; a < nb_n_axes; a++)
        if (nb_axes[a].kind == NB_AXIS_SELECT && !axis_selects(p, a, entry)) return false;
    return entry->kernel->op != NB_OP_COPY || list_of(p, "op")->n > 0 || names_copy(p, entry);
}

/* ---- what is not there ---- */

static void count_backends(const struct nb_product *p, size_t cells, struct nb_skips *skips) {
    const struct nb_values *backends = list_of(p, "backend");
    for (size_t i = 0; i < backends->n; i++) {
        const char *text = backends->texts[i];
        const struct nb_values one = {.texts = &backends->texts[i], .n = 1};
        const bool is_peer = strncmp(text, "peer:", 5) == 0;
        bool loaded = false;
        if (strcmp(text, "cuda") == 0) nb_skips_count(skips, cells, "backend %s: not built", text);
        if (!is_peer && strncmp(text, "plugin:", 7) != 0) continue;
        for (size_t k = 0; k < nb_registry_size() && !loaded; k++)
            loaded = nb_list_selects(&one, nb_axis_find("backend"), nb_registry_at(k));
        if (!loaded)
            nb_skips_count(skips, cells, "backend %s: not loaded; --%s loads it", text,
                           is_peer ? "peer NAME" : "plugin FILE");
    }
}

static void count_widths(const struct nb_product *p, size_t cells, struct nb_skips *skips) {
    const struct nb_values *widths = list_of(p, "width");
    for (size_t i = 0; i < widths->n; i++) {
        bool built = strcmp(widths->texts[i], "all") == 0;
        for (size_t k = 0; k < nb_registry_size() && !built; k++)
            built = strcmp(nb_width_name(nb_registry_at(k)->kernel->width), widths->texts[i]) == 0;
        if (!built) nb_skips_count(skips, cells, "width %s: no kernel is built for it", widths->texts[i]);
    }
}

static void count_kernels(const struct nb_product *p, size_t cells, struct nb_skips *skips) {
    const struct nb_values *globs = list_of(p, "kernel");
    const size_t n = nb_registry_size();
    for (size_t i = 0; i < globs->n; i++) {
        bool known = false;
        const struct nb_values one = {.texts = &globs->texts[i], .n = 1};
        const char **names = nb_alloc(n, sizeof *names);
        for (size_t k = 0; k < n; k++) {
            names[k] = nb_registry_at(k)->kernel_id;
            known = known || nb_list_selects(&one, nb_axis_find("kernel"), nb_registry_at(k));
        }
        const char *nearest = nb_nearest(globs->texts[i], names, n);
        if (!known && strcmp(globs->texts[i], "*:*") == 0)
            nb_skips_count(skips, cells,
                           "kernel *:*: no peer and no plugin is loaded; `normbench list peers` has the peers");
        else if (!known)
            nb_skips_count(skips, cells, "kernel %s: none has this name%s%s%s", globs->texts[i],
                           nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
        free(names);
    }
}

/* Is there, and does the product select, any kernel of this op, pass and dtype? */
static void find_kernel(const struct nb_product *p, const char *op, const char *pass, const char *dtype, bool *exists,
                        bool *selected) {
    *exists = *selected = false;
    for (size_t i = 0; i < nb_registry_size() && !*selected; i++) {
        const struct nb_kernel *k = nb_registry_at(i)->kernel;
        if (strcmp(nb_op_name(k->op), op) != 0 || strcmp(nb_pass_name(k->pass), pass) != 0 ||
            strcmp(nb_dtype_names[k->dtype], dtype) != 0)
            continue;
        *exists = true;
        *selected = nb_product_selects(p, nb_registry_at(i));
    }
}

static const char *text_at(const struct nb_values *list, size_t i, const char *fallback) {
    return list->n == 0 ? fallback : list->texts[i];
}

static void count_ops(const struct nb_product *p, size_t cells, struct nb_skips *skips) {
    const struct nb_values *ops = list_of(p, "op"), *passes = list_of(p, "pass"), *dtypes = list_of(p, "dtype");
    for (size_t o = 0; o < ops->n; o++)
        for (size_t s = 0; s < (passes->n ? passes->n : 1); s++)
            for (size_t d = 0; d < (dtypes->n ? dtypes->n : 1); d++) {
                const char *op = ops->texts[o], *pass = text_at(passes, s, "forward"),
                           *dtype = text_at(dtypes, d, "f32");
                bool exists, selected;
                if (!strcmp(op, "all") || !strcmp(pass, "all") || !strcmp(dtype, "all")) continue;
                find_kernel(p, op, pass, dtype, &exists, &selected);
                if (!exists) nb_skips_count(skips, cells, "no kernel for %s %s %s", op, pass, dtype);
                if (exists && !selected)
                    nb_skips_count(skips, cells, "no kernel for %s %s %s is among those selected at %s:%d", op, pass,
                                   dtype, p->block->path, p->line);
            }
}

void nb_product_count_missing(const struct nb_product *p, size_t cells, struct nb_skips *skips) {
    count_backends(p, cells, skips);
    count_widths(p, cells, skips);
    count_kernels(p, cells, skips);
    count_ops(p, cells, skips);
}
