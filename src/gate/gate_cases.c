// SPDX-License-Identifier: Apache-2.0
/* The matrix is expanded for the candidate, and once more for the baseline to see what has gone. */
#include "src/gate/gate_cases.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/text_map.h"
#include "src/plan/cells.h"

struct making {
    struct nb_gate *g;
    const char *const *kernels;
    size_t n_kernels;
    const struct nb_filters *filters;
    struct nb_text_map known; /* keys without the build */
    size_t *n_elsewhere;
    struct nb_skips *skips;
};

static bool is_wanted(const struct making *m, const char *kernel) {
    for (size_t i = 0; i < m->n_kernels; i++)
        if (fnmatch(m->kernels[i], kernel, 0) == 0) return true;
    return m->n_kernels == 0;
}

/* "candidate:rmsnorm_.." -> "rmsnorm_.." */
static const char *without_build(const char *key) {
    const char *colon = strchr(key, ':');
    return colon ? colon + 1 : key;
}

static const struct nb_entry *counterpart(const struct nb_entry *entry, int build) {
    struct nb_strbuf id = {0};
    nb_strbuf_addf(&id, "%s:%s", nb_build_names[build], without_build(entry->id));
    const struct nb_entry *found = nb_registry_find(id.text);
    nb_strbuf_release(&id);
    return found;
}

static void add_case(struct making *m, const struct nb_cell *cell) {
    struct nb_gate *g = m->g;
    const char *key = without_build(cell->key);
    if (!is_wanted(m, cell->entry->kernel->name) || !nb_filters_match(m->filters, key)) return;
    if (cell->refused) {
        nb_skips_count(m->skips, 1, "%s", cell->refused);
        *m->n_elsewhere += cell->refused_by_cpu;
        return;
    }
    char *copy = nb_strdup(key);
    if (nb_text_map_add(&m->known, copy, g->n_cases) != NB_NOWHERE) {
        free(copy);
        return;
    }
    if ((g->n_cases & (g->n_cases - 1)) == 0)
        g->cases = nb_realloc(g->cases, g->n_cases ? 2 * g->n_cases : 1, sizeof *g->cases);
    struct nb_gate_case *c = &g->cases[g->n_cases++];
    *c = (struct nb_gate_case){.key = copy, .c = cell->c};
    for (int b = 0; b < NB_N_BUILDS; b++) {
        struct nb_strbuf arm = {0};
        nb_strbuf_addf(&arm, "%s:%s", nb_build_names[b], key);
        c->arm_keys[b] = arm.text;
        c->entries[b] = counterpart(cell->entry, b);
        c->instructions[b] = NAN;
    }
}

static int expand(struct making *m, struct nb_config *config, int build) {
    static const struct nb_filters none = {0};
    struct nb_cells cells = {0};
    struct nb_strbuf backend = {0};
    nb_strbuf_addf(&backend, "backend=plugin:%s", nb_build_names[build]);
    int result = nb_config_axis(config, backend.text);
    if (result == 0) result = nb_cells_expand(&cells, config, &none, m->skips);
    for (size_t i = 0; i < cells.n && result == 0; i++) add_case(m, &cells.items[i]);
    nb_cells_release(&cells);
    nb_strbuf_release(&backend);
    return result;
}

int nb_gate_cases_make(struct nb_gate *g, struct nb_config *config, const char *const *kernels, size_t n_kernels,
                       const struct nb_filters *filters, struct nb_skips *skips, size_t *n_elsewhere) {
    struct making m = {.g = g,
                       .kernels = kernels,
                       .n_kernels = n_kernels,
                       .filters = filters,
                       .n_elsewhere = n_elsewhere,
                       .skips = skips};
    struct nb_skips again = {0}; /* the same cells fall away a second time */
    *n_elsewhere = 0;
    int result = expand(&m, config, NB_BUILD_CANDIDATE);
    m.skips = &again;
    size_t elsewhere_again = 0;
    m.n_elsewhere = &elsewhere_again;
    if (result == 0) result = expand(&m, config, NB_BUILD_BASELINE);
    nb_skips_release(&again);
    nb_text_map_release(&m.known);
    return result;
}
