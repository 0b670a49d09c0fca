// SPDX-License-Identifier: Apache-2.0
/* Defaults, and what a gate owns. */
#include "src/gate/gate.h"

#include <stdlib.h>

void nb_gate_init(struct nb_gate *g) {
    *g = (struct nb_gate){.plan = {.screen_launches = 12,
                                   .confirm_launches = 24,
                                   .blocks = 100,
                                   .sample_ms = 0.3,
                                   .case_timeout_s = 20,
                                   .seed = 1,
                                   .rule = nb_gate_rule_default}};
}

void nb_gate_release(struct nb_gate *g) {
    for (size_t i = 0; i < g->n_cases; i++) {
        free(g->cases[i].key);
        for (int b = 0; b < NB_N_BUILDS; b++) free(g->cases[i].arm_keys[b]);
        free(g->cases[i].screen);
        free(g->cases[i].confirm);
    }
    free(g->cases);
    nb_gate_settings_release(&g->settings);
    nb_gate_builds_release(&g->builds);
}
