// SPDX-License-Identifier: Apache-2.0
/* What a config says about gating, under its key "gate":
 *   { "fail_margin": 1, "pass_margin": 3, "level": 1,                   in %, as the options of the same names
 *     "instructions": { "rmsnorm_*_f32": 5200, "*": "+2%" } }            budgets of exact instruction counts
 * A budget belongs to the cases that a filter (nb_filters_match) takes, and is a number of instructions of one small call or a
 * share above the baseline's. A case keeps to every budget that is its. */
#ifndef NB_CONFIG_GATE_H
#define NB_CONFIG_GATE_H

#include <stdbool.h>
#include <stddef.h>

#include "src/core/json.h"

struct nb_instruction_budget {
    char *filter;
    double most; /* instructions, or with relative the share above the baseline's (0.02) */
    bool relative;
};

struct nb_gate_settings {
    double fail_margin, pass_margin, level; /* shares, not %; 0: not said */
    struct nb_instruction_budget *budgets;
    size_t n_budgets;
};

int nb_config_read_gate(const struct nb_jsonc *file, const cJSON *node, struct nb_gate_settings *out);
void nb_gate_settings_release(struct nb_gate_settings *settings);

#endif
