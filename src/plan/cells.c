// SPDX-License-Identifier: Apache-2.0
/* The expansion. The size of a product is known before it is expanded, so that a slip of the hand costs nothing. */
#include "src/plan/cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/shape.h"
#include "src/plan/data_fit.h"
#include "src/plan/match.h"
#include "src/plan/selection.h"

struct expansion {
    const struct nb_config *config;
    const struct nb_filters *filters;
    struct nb_cells *cells;
    struct nb_skips *skips;
    size_t planned; /* cells of the products so far */
    struct nb_data_fits data;
    int n_cpus;
};

/* ---- sizes ---- */

static int absurd(const struct nb_product *p, double n_cells, const char *with) {
    size_t longest = 0;
    for (size_t a = 1; a < nb_n_axes; a++)
        if (p->lists[a]->n > p->lists[longest]->n) longest = a;
    return nb_error("%s:%d: %s makes %.4g cells%s, more than %d; its longest list is \"%s\" with %zu values",
                    p->block->path, p->line, p->is_include ? "this include" : "this block", n_cells, with, NB_MAX_CASES,
                    nb_axes[longest].name, p->lists[longest]->n);
}

static double count_values(const struct nb_product *p, size_t axis) {
    return p->lists[axis]->n > 0 ? (double)p->lists[axis]->n : 1;
}

/* The product of all cell axes, whatever the kernel. */
static double count_all(const struct nb_product *p) {
    double n = 1;
    for (size_t a = 0; a < nb_n_axes; a++)
        if (nb_axes[a].kind == NB_AXIS_CELL) n *= count_values(p, a);
    return n;
}

static struct nb_case base_case(const struct nb_entry *entry) {
    struct nb_case c;
    nb_case_init(&c);
    c.formula.affine = NB_N_AFFINES; /* the op's usual one */
    nb_case_set_entry(&c, entry);
    return c;
}

/* May the axis apply to any case of the kernel? With parameters that are not as usual, and in training, all do that ever do. */
static bool may_apply(const struct nb_axis *axis, const struct nb_case *base) {
    struct nb_case c = *base;
    if (c.op != NB_OP_COPY) c.formula.affine = NB_AFFINE_GAMMA_BETA;
    c.mode = NB_TRAINING;
    snprintf(c.params, sizeof c.params, "zeros");
    return axis->kind == NB_AXIS_CELL && (!axis->applies || axis->applies(&c));
}

/* ---- one cell ---- */

/* An exclude comes last, even after --axis: where it takes away what an option asked for, it says so. */
static void count_excluded(struct expansion *e, const struct nb_product *p, const struct nb_block *exclude) {
    const char *asked = NULL;
    for (size_t a = 0; a < nb_n_axes && !asked; a++)
        if (exclude->values[a].n > 0 && p->lists[a]->n > 0 && p->lists[a]->line == 0) asked = nb_axes[a].name;
    nb_skips_count(e->skips, 1, "excluded at %s:%d%s%s%s", exclude->path, exclude->line,
                   asked ? ", although --axis " : "", asked ? asked : "", asked ? " asks for it" : "");
}

/* Why the cell makes no sense on any machine, or null. */
static const char *senseless(struct expansion *e, const struct nb_case *c, const struct nb_entry *entry) {
    struct nb_call call;
    const char *reason = nb_case_conflict(c);
    if (!reason) reason = nb_kernel_refuses(entry->kernel, &c->formula);
    if (reason) return reason;
    nb_case_call(c, &call);
    reason = nb_ask_applicable(entry, &call);
    return reason ? reason : nb_data_refuses(&e->data, c);
}

static void add_refusal(struct nb_cell *cell, int n_cpus) {
    struct nb_strbuf text = {0};
    const char *cpu = nb_cpu_refuses(cell->entry->kernel->cpu_features, cell->c.width);
    if (cell->c.threads > n_cpus)
        nb_strbuf_addf(&text, "threads %d: this process may run on %d CPU%s", cell->c.threads, n_cpus,
                       n_cpus == 1 ? "" : "s");
    else if (cpu)
        nb_strbuf_addf(&text, "width %s: %s", nb_width_name(cell->c.width), cpu);
    cell->refused = text.text;
    cell->refused_by_cpu = text.text != NULL;
}

/* What a block wants of a cell, which another block may have made. */
static void take_block(struct nb_cells *cells, size_t cell, const struct nb_block *block) {
    if (cell == NB_NOWHERE) return;
    cells->items[cell].isolate_width |= block->isolate_width;
    if (!block->label) return;
    nb_label_set_add(&cells->items[cell].labels,
                     nb_labels_add(&cells->labels, block->label, block->source, block->text));
}

/* Keeps the key by which the cell is known; false when another cell has it, which takes the block's label too. */
static bool is_new(struct nb_cells *cells, const struct nb_case *c, const struct nb_block *block) {
    const struct nb_case canonical = nb_case_canonical(c);
    struct nb_strbuf key = {0};
    size_t n = cells->known.n;
    nb_case_key(&canonical, &key);
    const size_t known = nb_text_map_add(&cells->known, key.text, n);
    if (known != NB_NOWHERE) {
        nb_strbuf_release(&key);
        take_block(cells, cells->known_at[known], block);
        return false;
    }
    if ((n & (n - 1)) == 0) {
        cells->known_keys = nb_realloc(cells->known_keys, n ? 2 * n : 1, sizeof *cells->known_keys);
        cells->known_at = nb_realloc(cells->known_at, n ? 2 * n : 1, sizeof *cells->known_at);
    }
    cells->known_keys[n] = key.text;
    cells->known_at[n] = NB_NOWHERE;
    return true;
}

static void add_cell(struct expansion *e, const struct nb_product *p, const struct nb_entry *entry,
                     const struct nb_case *c) {
    struct nb_cells *cells = e->cells;
    struct nb_strbuf key = {0};
    const struct nb_block *exclude = nb_block_excludes(p->block, c, entry);
    if (exclude) {
        count_excluded(e, p, exclude);
        return;
    }
    if (!is_new(cells, c, p->block)) return;
    nb_case_key(c, &key);
    const char *reason = senseless(e, c, entry);
    bool wanted = nb_filters_match(e->filters, key.text);
    if (!wanted || reason) {
        nb_skips_count(e->skips, 1, "%s", wanted ? reason : "does not match --filter");
        nb_strbuf_release(&key);
        return;
    }
    if ((cells->n & (cells->n - 1)) == 0)
        cells->items = nb_realloc(cells->items, cells->n ? 2 * cells->n : 1, sizeof *cells->items);
    struct nb_cell *cell = &cells->items[cells->n++];
    *cell = (struct nb_cell){.c = *c, .key = key.text, .entry = entry};
    cells->known_at[cells->known.n - 1] = cells->n - 1;
    take_block(cells, cells->n - 1, p->block);
    add_refusal(cell, e->n_cpus);
}

/* ---- one kernel, one product ---- */

/* Counts through all combinations; false when the last was there. */
static bool next_combination(size_t *at, const size_t *lengths) {
    for (size_t a = nb_n_axes; a-- > 0;) {
        if (++at[a] < lengths[a]) return true;
        at[a] = 0;
    }
    return false;
}

/* What the cells of one kernel in one product have in common. */
struct combinations {
    struct nb_case base;
    bool applies[NB_MAX_AXES]; /* the axis has a list and may mean something */
    size_t lengths[NB_MAX_AXES], at[NB_MAX_AXES];
    double n;
};

static void count_combinations(struct combinations *k, const struct nb_product *p, const struct nb_entry *entry) {
    k->base = base_case(entry);
    k->n = 1;
    for (size_t a = 0; a < nb_n_axes; a++) {
        k->applies[a] = p->lists[a]->n > 0 && may_apply(&nb_axes[a], &k->base);
        k->lengths[a] = k->applies[a] ? p->lists[a]->n : 1;
        k->n *= (double)k->lengths[a];
    }
}

/* The shape of a level becomes one of this machine; a cell that cannot be is counted, and false. */
static bool is_sized(struct expansion *e, const struct nb_case *c, const struct nb_axis *axis, const char **text,
                     char plain[128]) {
    const struct nb_cpu *cpu = nb_cpu_light();
    const struct nb_level_caches caches = {cpu->l1d_bytes, cpu->l2_bytes, cpu->l3_bytes};
    char reason[200];
    enum nb_level level;
    if (strcmp(axis->name, "shape") != 0 || nb_shape_level(*text, &level, plain, 128) != 0) return true;
    if (nb_level_shape(c, *text, &caches, plain, 128, reason, sizeof reason) == 0) {
        *text = plain;
        return true;
    }
    nb_skips_count(e->skips, 1, "%s", reason);
    return false;
}

static int expand_kernel(struct expansion *e, const struct nb_product *p, const struct nb_entry *entry) {
    char reason[256];
    struct combinations k = {0};
    count_combinations(&k, p, entry);
    do {
        struct nb_case c = k.base;
        bool can_be = true;
        for (size_t a = 0; a < nb_n_axes && can_be; a++) {
            char plain[128];
            const char *text = k.applies[a] ? p->lists[a]->texts[k.at[a]] : NULL;
            if (text) can_be = is_sized(e, &c, &nb_axes[a], &text, plain);
            if (text && can_be && nb_axis_set(&nb_axes[a], &c, text, reason, sizeof reason) != 0)
                return nb_error("%s:%d: \"%s\": '%s' %s", p->block->path, p->lists[a]->line, nb_axes[a].name, text,
                                reason);
        }
        if (!can_be) continue;
        nb_case_normalize(&c);
        add_cell(e, p, entry, &c);
    } while (next_combination(k.at, k.lengths));
    return 0;
}

/* A name that stands for nothing is a mistake, not a cell that does not apply. */
static int check_data(const struct nb_product *p) {
    const struct nb_values *list = p->lists[nb_axis_find("data") - nb_axes];
    for (size_t i = 0; i < list->n; i++) {
        char reason[512];
        if (nb_data_exists(list->texts[i], reason, sizeof reason)) continue;
        return list->line > 0 ? nb_error("%s:%d: \"data\": %s", p->block->path, list->line, reason)
                              : nb_error("--axis data: %s", reason);
    }
    return 0;
}

/* Before anything is expanded. */
static int check_product(struct expansion *e, const struct nb_product *p) {
    double n_cells = count_all(p), n_with_kernels = 0;
    if (check_data(p) != 0) return -1;
    if (n_cells > NB_MAX_CASES) return absurd(p, n_cells, "");
    for (size_t i = 0; i < nb_registry_size(); i++) {
        struct combinations k = {0};
        if (!nb_product_selects(p, nb_registry_at(i))) continue;
        count_combinations(&k, p, nb_registry_at(i));
        n_with_kernels += k.n;
    }
    if (n_with_kernels > NB_MAX_CASES) return absurd(p, n_with_kernels, " with the kernels that it selects");
    e->planned += (size_t)n_with_kernels;
    return e->planned > NB_MAX_CASES ? absurd(p, (double)e->planned, " with the blocks before it") : 0;
}

static int expand_product(struct expansion *e, const struct nb_product *p) {
    nb_product_count_missing(p, (size_t)count_all(p), e->skips);
    for (size_t i = 0; i < nb_registry_size(); i++)
        if (nb_product_selects(p, nb_registry_at(i)) && expand_kernel(e, p, nb_registry_at(i)) != 0) return -1;
    return 0;
}

/* Calls step for each product of the config, in order, until one fails. */
static int for_products(struct expansion *e, int (*step)(struct expansion *e, const struct nb_product *p)) {
    int result = 0;
    for (size_t i = 0; i < e->config->n_blocks && result == 0; i++) {
        const struct nb_block *block = &e->config->blocks[i];
        struct nb_product p = nb_product_of(block, NULL);
        result = step(e, &p);
        for (size_t j = 0; j < block->n_includes && result == 0; j++) {
            p = nb_product_of(block, &block->includes[j]);
            result = step(e, &p);
        }
    }
    return result;
}

int nb_cells_expand(struct nb_cells *cells, const struct nb_config *config, const struct nb_filters *filters,
                    struct nb_skips *skips) {
    int cpus[1024];
    struct expansion e = {.config = config, .filters = filters, .cells = cells, .skips = skips};
    e.n_cpus = nb_cpu_allowed(cpus, 1024);
    int result = for_products(&e, check_product);
    if (result == 0) result = for_products(&e, expand_product);
    nb_data_fits_release(&e.data);
    return result;
}

void nb_cells_release(struct nb_cells *cells) {
    for (size_t i = 0; i < cells->n; i++) {
        free(cells->items[i].key);
        free(cells->items[i].refused);
        nb_label_set_release(&cells->items[i].labels);
    }
    for (size_t i = 0; i < cells->known.n; i++) free(cells->known_keys[i]);
    free(cells->items);
    free(cells->known_keys);
    free(cells->known_at);
    nb_labels_release(&cells->labels);
    nb_text_map_release(&cells->known);
    *cells = (struct nb_cells){0};
}
