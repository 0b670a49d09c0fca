// SPDX-License-Identifier: Apache-2.0
#include "cmd/gate_self_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/gate/gate_trials_report.h"
#include "reports/gate/trials_record.h"
#include "src/core/log.h"

const struct nb_trial_plan nb_trial_plan_default = {
    .trials = 20, .powered = 2, .effects = {1, 2, 3, 5, 10}, .n_effects = 5, .loads = {true}};

static int set_effects(struct nb_trial_plan *plan, const char *value) {
    const char *at = value;
    for (plan->n_effects = 0; plan->n_effects < NB_MAX_EFFECTS; at++) {
        char *end;
        const long percent = strtol(at, &end, 10);
        if (end == at || percent < 1 || percent > 100) break;
        plan->effects[plan->n_effects++] = (int)percent;
        if (*end == '\0') return 0;
        if (*end != ',') break;
        at = end;
    }
    return nb_error("--effects %s: up to %d whole numbers from 1 to 100, with commas", value, NB_MAX_EFFECTS);
}

static int set_loads(struct nb_trial_plan *plan, const char *value) {
    const char *at = value;
    memset(plan->loads, 0, sizeof plan->loads);
    for (;;) {
        const size_t n = strcspn(at, ",");
        int found = -1;
        for (int l = 0; l < NB_N_LOAD_KINDS; l++)
            if (strlen(nb_load_names[l]) == n && strncmp(nb_load_names[l], at, n) == 0) found = l;
        if (found < 0) return nb_error("--load %s: idle, cpu and memory, with commas", value);
        plan->loads[found] = true;
        if (at[n] == '\0') return 0;
        at += n + 1;
    }
}

int nb_trial_plan_take(struct nb_trial_plan *plan, int id, const char *value) {
    switch (id) {
    case NB_TRIAL_TRIALS:
        return nb_option_count("--trials", value, 0, &plan->trials);
    case NB_TRIAL_POWERED:
        return nb_option_count("--powered", value, 0, &plan->powered);
    case NB_TRIAL_EFFECTS:
        return set_effects(plan, value);
    default:
        return set_loads(plan, value);
    }
}

int nb_self_test(struct nb_gate *g, const struct nb_trial_plan *asked, const char *format, const char *out) {
    struct nb_trials trials;
    struct nb_trials_record record_of;
    struct nb_trial_plan plan = *asked;
    plan.budget_s = g->plan.budget_s;
    if (out && nb_trials_record_open(&record_of, g, &plan, out) != 0) return NB_EXIT_USAGE;
    if (out) plan.recorder = nb_trials_recorder(&record_of);
    const int result = nb_gate_trials_run(g, &plan, &trials);
    int told = 0;
    if (out) told = nb_trials_record_close(&record_of);
    if (out && nb_trials_write(g, &plan, &trials, out) != 0) told = -1;
    if (result >= 0 && nb_gate_print_trials(g, &plan, &trials, format, stdout) != 0) told = -1;
    nb_trials_release(&trials);
    if (result < 0 || told != 0) return NB_EXIT_USAGE;
    return result > 0 ? 128 + result : NB_EXIT_OK;
}
