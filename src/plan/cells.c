// SPDX-License-Identifier: Apache-2.0
/* The expansion. The size of a product is known before it is expanded, so that a typing error costs nothing. */
#include "src/plan/cells.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/axes.h"
#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/level_shape.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/params.h"
#include "src/core/registry.h"
#include "src/core/shape.h"
#include "src/device/device.h"
#include "src/plan/inputs.h"

/* ---- does a case fit: values are compared by what they mean, not by how they are written ---- */

bool nb_filters_match(const struct nb_filters *filters, const char *key) {
    for (size_t i = 0; i < filters->n; i++)
        if (strstr(key, filters->texts[i]) || fnmatch(filters->texts[i], key, FNM_LEADING_DIR) == 0) return true;
    return filters->n == 0;
}

/* eps and k, which people write in several ways, in one: cases of equal meaning get equal keys. */
static struct nb_case canonical(const struct nb_case *c) {
    struct nb_case copy = *c;
    snprintf(copy.eps_text, sizeof copy.eps_text, "%.17g", c->eps);
    snprintf(copy.k_text, sizeof copy.k_text, "%lld", (long long)c->k);
    return copy;
}

/* ---- selecting axes ---- */

/* What runs elsewhere than on the CPU is selected by that alone, whoever made it: no run has it unasked. */
static bool backend_selected(const char *text, const struct nb_entry *e) {
    if (e->kernel->backend != NB_BACKEND_CPU) return strcmp(text, nb_backend_names[e->kernel->backend]) == 0;
    if (strcmp(text, "cpu") == 0 || !e->plugin) return strcmp(text, "cpu") == 0 && !e->plugin;
    const char *kind = e->is_peer ? "peer:" : "plugin:";
    const size_t n = strlen(kind);
    return strncmp(text, kind, n) == 0 && fnmatch(text + n, e->plugin, 0) == 0;
}

static bool text_selects(const char *text, const struct nb_axis *axis, const struct nb_entry *e) {
    const struct nb_kernel *k = e->kernel;
    struct nb_strbuf value released_by(nb_strbuf_release) = {0};
    if (strcmp(text, "all") == 0)
        return strcmp(axis->name, "op") == 0        ? k->op != NB_OP_COPY
               : strcmp(axis->name, "backend") == 0 ? k->backend == NB_BACKEND_CPU
                                                    : true;
    if (strcmp(axis->name, "kernel") == 0) return nb_entry_is_named(e, text);
    if (strcmp(text, NB_VECTOR) == 0) return k->width == nb_registry_vector_width();
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
    return strcmp(value.text, text) == 0;
}

/* Is the kernel's value of a selecting axis in the list? Kernel names and plugins are globs; "all" is everything but a copy, for the op,
 * and but what does not run on the CPU, for the backend. */
static bool list_selects(const struct nb_values *list, const struct nb_axis *axis, const struct nb_entry *entry) {
    for (size_t i = 0; i < list->n; i++)
        if (text_selects(list->texts[i], axis, entry)) return true;
    return false;
}

/* ---- cell axes ---- */

static bool same_value(const struct nb_axis *axis, const struct nb_case *a, const struct nb_case *b) {
    released_by(nb_strbuf_release) struct nb_strbuf p = {0}, q = {0};
    nb_axis_print(axis, a, &p);
    nb_axis_print(axis, b, &q);
    return strcmp(p.text, q.text) == 0;
}

static bool list_has_value_of(const struct nb_values *list, const struct nb_axis *axis, const struct nb_case *c) {
    char reason[256];
    if (axis->applies && !axis->applies(c)) return false;
    const struct nb_case wanted = canonical(c);
    for (size_t i = 0; i < list->n; i++) {
        struct nb_case other = *c;
        if (nb_axis_set(axis, &other, list->texts[i], reason, sizeof reason) != 0) continue;
        nb_case_normalize(&other);
        other = canonical(&other);
        if (same_value(axis, &wanted, &other)) return true;
    }
    return false;
}

static bool excludes(const struct nb_block *exclude, const struct nb_case *c, const struct nb_entry *entry) {
    for (size_t a = 0; a < nb_n_axes; a++) {
        const struct nb_values *list = &exclude->values[a];
        if (list->n == 0) continue;
        bool in = nb_axes[a].kind == NB_AXIS_SELECT ? list_selects(list, &nb_axes[a], entry)
                                                    : list_has_value_of(list, &nb_axes[a], c);
        if (!in) return false;
    }
    return true;
}

/* The first exclude of the block that names no axis whose list the case is not in; null: the case stays. */
static const struct nb_block *find_exclude(const struct nb_block *block, const struct nb_case *c,
                                           const struct nb_entry *entry) {
    for (size_t i = 0; i < block->n_excludes; i++)
        if (excludes(&block->excludes[i], c, entry)) return &block->excludes[i];
    return NULL;
}

/* ---- labels: few, so that they are looked for one after another ---- */

static size_t add_label(struct nb_labels *labels, const char *name, const char *source, const char *text) {
    size_t at = 0;
    while (at < labels->n && strcmp(labels->items[at].name, name) != 0) at++;
    if (at == labels->n) *NB_PUSH(labels->items, labels->n) = (struct nb_label){.name = nb_strdup(name)};
    struct nb_label *label = &labels->items[at];
    if (!label->source && source) label->source = nb_strdup(source);
    if (!label->text && text) label->text = nb_strdup(text);
    return at;
}

void nb_labels_release(struct nb_labels *labels) {
    for (size_t i = 0; i < labels->n; i++)
        nb_free_all(labels->items[i].name, labels->items[i].source, labels->items[i].text);
    free(labels->items);
    *labels = (struct nb_labels){0};
}

static void add_to_set(struct nb_label_set *set, size_t label) {
    for (size_t i = 0; i < set->n; i++)
        if (set->at[i] == label) return;
    *NB_PUSH(set->at, set->n) = label;
}

/* ---- does the data exist and fit: each question is put once ---- */

struct data_fits {
    struct nb_text_map known;
    struct data_fit {
        char *key, *reason;
    } * items;
    size_t n;
};

static bool data_exists(const char *name, char *reason, size_t n) {
    struct nb_recipe recipe;
    if (nb_distribution_parse(name, &recipe, reason, n) != 0) return false;
    bool exists = recipe.data || (strpbrk(name, "/.") && nb_path_exists(name));
    struct nb_strings sets released_by(nb_strings_release) = nb_inputs_list();
    for (size_t i = 0; i < sets.n; i++) exists = exists || strcmp(sets.items[i], name) == 0;
    if (exists) return true;
    struct nb_case c;
    nb_case_init(&c);
    snprintf(c.data, sizeof c.data, "%s", name);
    char *why freed = nb_inputs_refuse(&c);
    return nb_reason(reason, n, "%s", why ? why : "cannot be read"), false;
}

static const char *data_refuses(struct data_fits *fits, const struct nb_case *c) {
    char *key = nb_textf("%s %d %u %s %s", c->shape.text, c->op == NB_OP_BATCHNORM, c->pass,
                         nb_case_chooses_dy(c) ? c->dy : "", c->data);
    const size_t found = nb_text_map_add(&fits->known, key, fits->n);
    if (found != NB_NOWHERE) {
        free(key);
        return fits->items[found].reason;
    }
    struct data_fit *fit = NB_PUSH(fits->items, fits->n);
    *fit = (struct data_fit){key, nb_inputs_refuse(c)};
    return fit->reason;
}

static void release_data_fits(struct data_fits *fits) {
    for (size_t i = 0; i < fits->n; i++) nb_free_all(fits->items[i].key, fits->items[i].reason);
    free(fits->items);
    nb_text_map_release(&fits->known);
}

/* ---- which kernels a block selects ---- */

/* One product of lists: a block, or one of its includes with the block's lists where it names none. */
struct product {
    const struct nb_values *lists[NB_MAX_AXES]; /* n == 0: the axis's default */
    const struct nb_block *block;
    int line;
    bool is_include;
};

/* Matching kernels against the lists of a block. Copies stay out unless they are named: every group has its
 * own. */

static struct product product_of(const struct nb_block *block, const struct nb_block *include) {
    struct product p = {.block = block, .line = include ? include->line : block->line, .is_include = include != NULL};
    for (size_t a = 0; a < nb_n_axes; a++)
        p.lists[a] = include && include->values[a].n > 0 ? &include->values[a] : &block->values[a];
    return p;
}

static const struct nb_values *list_of(const struct product *p, const char *axis) {
    return p->lists[nb_axis_find(axis) - nb_axes];
}

/* A copy that no op list names: only where a glob says "copy". */
static bool names_copy(const struct product *p, const struct nb_entry *e) {
    const struct nb_values *globs = list_of(p, "kernel");
    for (size_t i = 0; i < globs->n; i++)
        if (strncmp(globs->texts[i], "copy", 4) == 0 && nb_entry_is_named(e, globs->texts[i])) return true;
    return false;
}

/* A kernel that chooses its width itself has none to be selected by: else a preset's list of widths would keep every plugin
 * out. */
static bool axis_selects(const struct product *p, size_t axis, const struct nb_entry *e) {
    const struct nb_values *list = p->lists[axis];
    if (e->kernel->width == NB_NATIVE && strcmp(nb_axes[axis].name, "width") == 0) return true;
    if (list->n > 0) return list_selects(list, &nb_axes[axis], e);
    const char *default_text = strcmp(nb_axes[axis].name, "backend") == 0 ? "all" : nb_axes[axis].fallback;
    if (!default_text) return true;
    return text_selects(default_text, &nb_axes[axis], e);
}

static bool product_selects(const struct product *p, const struct nb_entry *entry) {
    for (size_t a = 0; a < nb_n_axes; a++)
        if (nb_axes[a].kind == NB_AXIS_SELECT && !axis_selects(p, a, entry)) return false;
    return entry->kernel->op != NB_OP_COPY || list_of(p, "op")->n > 0 || names_copy(p, entry);
}

/* ---- what is not there ---- */

static void count_backends(const struct product *p, size_t cells, struct nb_skips *skips) {
    const struct nb_values *backends = list_of(p, "backend");
    for (size_t i = 0; i < backends->n; i++) {
        const char *text = backends->texts[i];
        const bool is_peer = strncmp(text, "peer:", 5) == 0, is_plugin = strncmp(text, "plugin:", 7) == 0;
        bool loaded = strcmp(text, "all") == 0 || strcmp(text, nb_backend_names[NB_BACKEND_CPU]) == 0;
        for (size_t k = 0; k < nb_registry_size() && !loaded; k++) loaded = backend_selected(text, nb_registry_at(k));
        if (!loaded && (is_peer || is_plugin))
            nb_skips_count(skips, cells, "backend %s: not loaded; --%s loads it", text,
                           is_peer ? "peer NAME" : "plugin FILE");
        else if (!loaded)
            nb_skips_count(skips, cells, "backend %s: not built; `make %s` builds it", text, text);
    }
}

/* Kernels of a plugin that only the axis backend selects. */
static void count_unasked(const struct product *p, size_t cells, struct nb_skips *skips) {
    bool unasked[NB_N_BACKENDS] = {false};
    for (size_t k = 0; k < nb_registry_size(); k++) {
        const struct nb_entry *e = nb_registry_at(k);
        if (!axis_selects(p, (size_t)(nb_axis_find("backend") - nb_axes), e)) unasked[e->kernel->backend] = true;
    }
    for (int b = NB_BACKEND_CUDA; b < NB_N_BACKENDS; b++)
        if (unasked[b])
            nb_skips_count(skips, cells, "backend %s: kernels of a plugin, which --axis backend=%s selects",
                           nb_backend_names[b], nb_backend_names[b]);
}

/* Kernels that this block asks for by name or by width, that the sources have and this build does not: a reason for each width. */
static void count_absent(const struct product *p, size_t cells, struct nb_skips *skips) {
    const struct nb_entry *first[NB_N_WIDTHS] = {NULL};
    size_t n[NB_N_WIDTHS] = {0};
    const bool names_width = list_of(p, "width")->n > 0;
    size_t n_known;
    const struct nb_entry *catalogue = nb_catalogue(&n_known);
    if (!names_width && list_of(p, "kernel")->n == 0) return;
    for (size_t i = 0; i < n_known; i++) {
        const struct nb_entry *e = &catalogue[i];
        if (nb_registry_find(e->id) || !product_selects(p, e)) continue;
        if (!names_width && nb_registry_has_kernel(e->kernel_id)) continue;
        if (!first[e->kernel->width]) first[e->kernel->width] = e;
        n[e->kernel->width]++;
    }
    for (size_t w = 0; w < NB_N_WIDTHS; w++)
        if (first[w])
            nb_skips_count(skips, cells * n[w], "width %s: %s%s not built: %s", nb_width_names[w], first[w]->kernel_id,
                           n[w] > 1 ? " and others are" : " is", nb_catalogue_remedy(first[w]));
}

static void count_widths(const struct product *p, size_t cells, struct nb_skips *skips) {
    const struct nb_values *widths = list_of(p, "width");
    size_t n_known;
    const struct nb_entry *catalogue = nb_catalogue(&n_known);
    for (size_t i = 0; i < widths->n; i++) {
        bool built = strcmp(widths->texts[i], "all") == 0 || strcmp(widths->texts[i], NB_VECTOR) == 0;
        for (size_t k = 0; k < nb_registry_size() && !built; k++)
            built = strcmp(nb_width_names[nb_registry_at(k)->kernel->width], widths->texts[i]) == 0;
        for (size_t k = 0; k < n_known && !built; k++) /* count_absent() names those */
            built = strcmp(nb_width_names[catalogue[k].kernel->width], widths->texts[i]) == 0;
        if (!built) nb_skips_count(skips, cells, "width %s: no kernel is built for it", widths->texts[i]);
    }
}

static bool is_glob(const char *text) { return strpbrk(text, "*?[") != NULL; }

static bool is_known_kernel(const char *text) {
    size_t n_known;
    const struct nb_entry *catalogue = nb_catalogue(&n_known);
    bool known = strcmp(text, "all") == 0;
    for (size_t k = 0; k < nb_registry_size() && !known; k++) known = nb_entry_is_named(nb_registry_at(k), text);
    for (size_t k = 0; k < n_known && !known; k++) known = nb_entry_is_named(&catalogue[k], text);
    return known;
}

static void count_kernels(const struct product *p, size_t cells, struct nb_skips *skips) {
    const struct nb_values *globs = list_of(p, "kernel");
    for (size_t i = 0; i < globs->n; i++) {
        if (!is_glob(globs->texts[i]) || is_known_kernel(globs->texts[i])) continue;
        if (strcmp(globs->texts[i], "*:*") == 0)
            nb_skips_count(skips, cells,
                           "kernel *:*: no peer and no plugin is loaded; `normbench list peers` has the peers");
        else
            nb_skips_count(skips, cells, "kernel %s: none has a name that matches", globs->texts[i]);
    }
}

/* A name, unlike a glob, is there or a mistake. */
static int check_kernels(const struct nb_values *list, const char *path) {
    int result = 0;
    for (size_t i = 0; i < list->n; i++) {
        char *text = list->texts[i], *colon = strchr(text, ':');
        struct nb_strbuf near released_by(nb_strbuf_release) = nb_strbuf_empty();
        if (is_glob(text) || is_known_kernel(text)) continue;
        char *place freed = list->line > 0 ? nb_textf("%s:%d: ", path, list->line) : nb_strdup("");
        nb_registry_suggest(text, &near);
        nb_error("%skernel '%s': no kernel has this name%s; %s", place, text, near.text,
                 colon ? "--plugin FILE or --peer NAME loads other kernels" : "`normbench list kernels` has the names");
        result = -1;
    }
    return result;
}

/* Is there, and does the product select, any kernel of this op, pass and dtype? */
static void find_kernel(const struct product *p, const char *op, const char *pass, const char *dtype, bool *exists,
                        bool *selected) {
    *exists = *selected = false;
    for (size_t i = 0; i < nb_registry_size() && !*selected; i++) {
        const struct nb_kernel *k = nb_registry_at(i)->kernel;
        if (strcmp(nb_op_names[k->op], op) != 0 || strcmp(nb_pass_names[k->pass], pass) != 0 ||
            strcmp(nb_dtype_names[k->dtype], dtype) != 0)
            continue;
        *exists = true;
        *selected = product_selects(p, nb_registry_at(i));
    }
}

static const char *text_at(const struct nb_values *list, size_t i, const char *fallback) {
    return list->n == 0 ? fallback : list->texts[i];
}

static void count_ops(const struct product *p, size_t cells, struct nb_skips *skips) {
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

/* ---- what a config needs ---- */

/* Calls step for each product of the config, in order, until it returns other than 0, which is returned. */
static int for_products(const struct nb_config *config, int (*step)(const struct product *p, void *arg), void *arg) {
    int result = 0;
    for (size_t i = 0; i < config->n_blocks && result == 0; i++) {
        const struct nb_block *block = &config->blocks[i];
        struct product p = product_of(block, NULL);
        result = step(&p, arg);
        for (size_t j = 0; j < block->n_includes && result == 0; j++) {
            p = product_of(block, &block->includes[j]);
            result = step(&p, arg);
        }
    }
    return result;
}

static int selects_entry(const struct product *p, void *entry) { return product_selects(p, entry); }

void nb_config_print_variants(const struct nb_config *config, FILE *out) {
    bool needs_copies[NB_N_WIDTHS][NB_N_DTYPES] = {{false}};
    size_t n;
    const struct nb_entry *catalogue = nb_catalogue(&n);
    for (int copies = 0; copies <= 1; copies++)
        for (size_t i = 0; i < n; i++) {
            const struct nb_entry *e = &catalogue[i];
            const struct nb_kernel *k = e->kernel;
            if ((k->op == NB_OP_COPY) != (copies == 1) || nb_cpu_refuses(k->cpu_features, k->width)) continue;
            if (!(copies && needs_copies[k->width][k->dtype]) && !for_products(config, selects_entry, (void *)e))
                continue;
            needs_copies[k->width][k->dtype] = true;
            fprintf(out, "%s\n", e->id);
        }
}

struct expansion {
    const struct nb_block *mistaken; /* the last with a name that stands for nothing; null: none has */
    size_t n_checked;
    const struct nb_filters *filters;
    struct nb_cells *cells;
    struct nb_skips *skips;
    size_t planned; /* cells of the products so far */
    struct data_fits data;
    int n_cpus;
};

/* ---- sizes ---- */

static int absurd(const struct product *p, double n_cells, const char *with) {
    size_t longest = 0;
    for (size_t a = 1; a < nb_n_axes; a++)
        if (p->lists[a]->n > p->lists[longest]->n) longest = a;
    return nb_error("%s:%d: %s makes %.4g cells%s, more than %d; its longest list is \"%s\" with %zu values",
                    p->block->path, p->line, p->is_include ? "this include" : "this block", n_cells, with, NB_MAX_CASES,
                    nb_axes[longest].name, p->lists[longest]->n);
}

static double count_values(const struct product *p, size_t axis) {
    return p->lists[axis]->n > 0 ? (double)p->lists[axis]->n : 1;
}

/* The product of all cell axes, whatever the kernel. */
static double count_all(const struct product *p) {
    double n = 1;
    for (size_t a = 0; a < nb_n_axes; a++)
        if (nb_axes[a].kind == NB_AXIS_CELL) n *= count_values(p, a);
    return n;
}

/* Of a plugin that does not implement the usual formula: with one that it does, where the block says nothing. */
static struct nb_case base_case(const struct nb_entry *entry) {
    struct nb_case c, usual;
    nb_case_init(&c);
    c.formula.affine = NB_N_AFFINES; /* the op's usual one */
    nb_case_set_entry(&c, entry);
    if (!entry->plugin || entry->is_peer || entry->kernel->op == NB_OP_COPY) return c;
    usual = c;
    nb_case_normalize(&usual);
    c.formula = usual.formula;
    nb_kernel_fit_formula(entry->kernel, &c.formula);
    if (c.formula.affine == usual.formula.affine) c.formula.affine = NB_N_AFFINES;
    return c;
}

/* May the axis apply to any case of the kernel? With parameters that are not as usual, and in training, all do that ever do. */
static bool may_apply(const struct nb_axis *axis, const struct nb_case *base) {
    struct nb_case c = *base;
    if (c.op != NB_OP_COPY) c.formula.affine = NB_AFFINE_GAMMA_BETA;
    c.mode = NB_TRAINING;
    snprintf(c.params, sizeof c.params, "zeros");
    snprintf(c.dy, sizeof c.dy, NB_DY_PARALLEL);
    return axis->kind == NB_AXIS_CELL && (!axis->applies || axis->applies(&c));
}

/* ---- one cell ---- */

/* An exclude comes last, even after --axis: where it takes away what an option asked for, it says so. */
static void count_excluded(struct expansion *e, const struct product *p, const struct nb_block *exclude) {
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
    if (entry->kernel->backend != NB_BACKEND_CUDA) reason = nb_ask_applicable(entry, &call);
    return reason ? reason : data_refuses(&e->data, c);
}

static void add_refusal(struct nb_cell *cell, int n_cpus) {
    const char *cpu = nb_cpu_refuses(cell->entry->kernel->cpu_features, cell->c.width);
    const char *device = nb_device_refuses(cell->entry->kernel->backend);
    if (!device && cell->c.backend == NB_BACKEND_CUDA) { /* what a GPU's kernel answers is also its driver's answer */
        struct nb_call call;
        nb_case_call(&cell->c, &call);
        device = nb_ask_applicable(cell->entry, &call);
    }
    if (cell->c.threads > n_cpus)
        cell->refused =
            nb_textf("threads %d: this process may run on %d CPU%s", cell->c.threads, n_cpus, n_cpus == 1 ? "" : "s");
    else if (cpu)
        cell->refused = nb_textf("width %s: %s", nb_width_names[cell->c.width], cpu);
    else if (device)
        cell->refused = nb_textf("backend %s: %s", nb_backend_names[cell->c.backend], device);
}

/* What a block wants of a cell, which another block may have made. */
static void take_block(struct nb_cells *cells, size_t cell, const struct nb_block *block) {
    if (cell == NB_NOWHERE) return;
    cells->items[cell].isolate_width |= block->isolate_width;
    if (!block->label) return;
    add_to_set(&cells->items[cell].labels, add_label(&cells->labels, block->label, block->source, block->text));
}

/* Keeps the key by which the cell is known; false when another cell has it, which takes the block's label too. */
static bool is_new(struct nb_cells *cells, const struct nb_case *c, const struct nb_block *block) {
    const struct nb_case written = canonical(c);
    char *key = nb_case_key(&written);
    const size_t known = nb_text_map_add(&cells->known, key, cells->n_places);
    if (known != NB_NOWHERE) {
        free(key);
        take_block(cells, cells->places[known].at, block);
        return false;
    }
    *NB_PUSH(cells->places, cells->n_places) = (struct nb_cell_place){key, NB_NOWHERE};
    return true;
}

static void add_cell(struct expansion *e, const struct product *p, const struct nb_entry *entry,
                     const struct nb_case *c) {
    struct nb_cells *cells = e->cells;
    const struct nb_block *exclude = find_exclude(p->block, c, entry);
    if (exclude) {
        count_excluded(e, p, exclude);
        return;
    }
    if (!is_new(cells, c, p->block)) return;
    char *key = nb_case_key(c);
    const char *reason = senseless(e, c, entry);
    bool wanted = nb_filters_match(e->filters, key);
    if (!wanted || reason) {
        nb_skips_count(e->skips, 1, "%s", wanted ? reason : "does not match --filter");
        free(key);
        return;
    }
    if ((cells->n & (cells->n - 1)) == 0)
        cells->items = nb_realloc(cells->items, cells->n ? 2 * cells->n : 1, sizeof *cells->items);
    struct nb_cell *cell = &cells->items[cells->n++];
    *cell = (struct nb_cell){.c = *c, .key = key, .entry = entry};
    cells->places[cells->n_places - 1].at = cells->n - 1;
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

static void count_combinations(struct combinations *k, const struct product *p, const struct nb_entry *entry) {
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
    struct nb_level_caches caches = {cpu->l1d_bytes, cpu->l2_bytes, cpu->l3_bytes};
    if (c->backend == NB_BACKEND_CUDA) { /* a device has two, of which the first is many small ones */
        const int64_t l2_bytes = (int64_t)nb_device_survey(c->backend)->l2_bytes;
        caches = (struct nb_level_caches){l2_bytes / 8, l2_bytes, l2_bytes};
    }
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

static int expand_kernel(struct expansion *e, const struct product *p, const struct nb_entry *entry) {
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
static int check_data(const struct product *p, const char *axis) {
    const struct nb_values *list = list_of(p, axis);
    int result = 0;
    for (size_t i = 0; i < list->n; i++) {
        char reason[512];
        const char *text = list->texts[i];
        const bool is_word =
            strcmp(axis, "dy") == 0 && (strcmp(text, NB_PARAMS_DRAWN) == 0 || strcmp(text, NB_DY_PARALLEL) == 0);
        if (is_word || data_exists(text, reason, sizeof reason)) continue;
        result = list->line > 0 ? nb_error("%s:%d: \"%s\": %s", p->block->path, list->line, axis, reason)
                                : nb_error("--axis %s: %s", axis, reason);
    }
    return result;
}

/* All mistakes of a block are said, and those of the next; what an option put into every block is said once. */
static int check_names(const struct product *p, void *expansion) {
    struct expansion *e = expansion;
    if (e->mistaken == p->block) return 0; /* its includes have the same lists */
    const struct nb_values *kernels = list_of(p, "kernel");
    const bool is_first = e->n_checked++ == 0;
    int result = is_first || list_of(p, "data")->line > 0 ? check_data(p, "data") : 0;
    if ((is_first || list_of(p, "dy")->line > 0) && check_data(p, "dy") != 0) result = -1;
    if ((is_first || kernels->line > 0) && check_kernels(kernels, p->block->path) != 0) result = -1;
    for (size_t i = 0; i < p->block->n_excludes; i++)
        if (check_kernels(&p->block->excludes[i].values[nb_axis_find("kernel") - nb_axes], p->block->path) != 0)
            result = -1;
    if (result != 0) e->mistaken = p->block;
    return 0;
}

/* Before anything is expanded. */
static int check_product(const struct product *p, void *expansion) {
    struct expansion *e = expansion;
    double n_cells = count_all(p), n_with_kernels = 0;
    if (n_cells > NB_MAX_CASES) return absurd(p, n_cells, "");
    for (size_t i = 0; i < nb_registry_size(); i++) {
        struct combinations k = {0};
        if (!product_selects(p, nb_registry_at(i))) continue;
        count_combinations(&k, p, nb_registry_at(i));
        n_with_kernels += k.n;
    }
    if (n_with_kernels > NB_MAX_CASES) return absurd(p, n_with_kernels, " with the kernels that it selects");
    e->planned += (size_t)n_with_kernels;
    return e->planned > NB_MAX_CASES ? absurd(p, (double)e->planned, " with the blocks before it") : 0;
}

static int expand_product(const struct product *p, void *expansion) {
    static void (*const counts[])(const struct product *p, size_t cells, struct nb_skips *skips) = {
        count_backends, count_unasked, count_absent, count_widths, count_kernels, count_ops};
    struct expansion *e = expansion;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) counts[i](p, (size_t)count_all(p), e->skips);
    for (size_t i = 0; i < nb_registry_size(); i++)
        if (product_selects(p, nb_registry_at(i)) && expand_kernel(e, p, nb_registry_at(i)) != 0) return -1;
    return 0;
}

int nb_cells_expand(struct nb_cells *cells, const struct nb_config *config, const struct nb_filters *filters,
                    struct nb_skips *skips) {
    int cpus[1024];
    struct expansion e = {.filters = filters, .cells = cells, .skips = skips};
    e.n_cpus = nb_cpu_allowed(cpus, 1024);
    int result = for_products(config, check_names, &e);
    if (e.mistaken) result = -1;
    if (result == 0) result = for_products(config, check_product, &e);
    if (result == 0) result = for_products(config, expand_product, &e);
    release_data_fits(&e.data);
    return result;
}

void nb_cells_release(struct nb_cells *cells) {
    for (size_t i = 0; i < cells->n; i++)
        nb_free_all(cells->items[i].key, cells->items[i].refused, cells->items[i].labels.at);
    for (size_t i = 0; i < cells->n_places; i++) free(cells->places[i].key);
    free(cells->items);
    free(cells->places);
    nb_labels_release(&cells->labels);
    nb_text_map_release(&cells->known);
    *cells = (struct nb_cells){0};
}
