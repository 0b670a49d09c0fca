// SPDX-License-Identifier: Apache-2.0
/* Defaults, and what a gate owns. */
#include "src/gate.h"

#include <stdlib.h>

const struct nb_gate_plan nb_gate_plan_default = {.screen_launches = 12,
                                                  .confirm_launches = 24,
                                                  .blocks = 100,
                                                  .slot_ms = 0.3,
                                                  .case_timeout_s = 20,
                                                  .seed = 1,
                                                  .rule = {.fail_margin = 0.01,
                                                           .pass_margin = 0.03,
                                                           .run_level = 0.01,
                                                           .pass_level = 0.05,
                                                           .screen_level = 0.05,
                                                           .most_contaminated = 0.30}};

void nb_gate_release(struct nb_gate *g) {
    for (size_t i = 0; i < g->n_cases; i++) {
        free(g->cases[i].key);
        for (int b = 0; b < NB_N_BUILDS; b++) free(g->cases[i].arm_keys[b]);
        free(g->cases[i].screen);
        free(g->cases[i].confirm);
    }
    free(g->cases);
    nb_gate_builds_release(&g->builds);
}
