// SPDX-License-Identifier: Apache-2.0
#include "cmd/shared/gate_selection.h"

#include <stdio.h>
#include <stdlib.h>

#include "reports/text/output.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/gate/gate.h"
#include "src/plan/config.h"

static int add_builtin(struct nb_gate_selection *s) {
    if (nb_registry_load_builtin() != 0) return -1;
    s->builtin = nb_strdup(nb_registry_file(0));
    nb_texts_add(&s->baselines, s->builtin);
    return 0;
}

int nb_selection_make(struct nb_gate_selection *s, struct nb_gate *g, bool with_itself) {
    const struct nb_filters filters = {s->filters.items, s->filters.n};
    struct nb_config config = {0};
    struct nb_skips skips = {0};
    if (with_itself && s->baselines.n == 0 && add_builtin(s) != 0) return -1;
    const struct nb_texts *candidates = with_itself ? &s->baselines : &s->candidates;
    int result = nb_gate_builds_init(&g->builds, s->baselines.items, s->baselines.n, candidates->items, candidates->n);
    if (result == 0 && !s->builtin) result = nb_registry_load_builtin(); /* copies of theirs are roofs */
    if (result != 0) return result;
    result = nb_config_read(&config, s->config ? s->config : "gate");
    for (size_t i = 0; i < s->axes.n && result == 0; i++) result = nb_config_axis(&config, s->axes.items[i]);
    if (result == 0)
        result = nb_gate_cases_make(g, &config, s->kernels.items, s->kernels.n, &filters, &skips, &s->n_elsewhere);
    g->settings = config.gate;
    config.gate = (struct nb_gate_settings){0};
    nb_config_release(&config);
    nb_skips_release(&skips);
    return result;
}

bool nb_selection_settles(const struct nb_gate_selection *s, const struct nb_gate *g, int *exit_code) {
    if (g->n_cases == 0) {
        nb_error("no case is left; `normbench list kernels` and --list show what there is");
        *exit_code = s->n_elsewhere > 0 ? NB_EXIT_NOTHING_RUNS : NB_EXIT_USAGE;
        return true;
    }
    if (!s->list) return false;
    for (size_t i = 0; i < g->n_cases; i++) nb_print_line(stdout, "%s", g->cases[i].key);
    *exit_code = NB_EXIT_OK;
    return true;
}

void nb_selection_release(struct nb_gate_selection *s) {
    free(s->builtin);
    nb_texts_release(&s->baselines);
    nb_texts_release(&s->candidates);
    nb_texts_release(&s->kernels);
    nb_texts_release(&s->filters);
    nb_texts_release(&s->axes);
}
