// SPDX-License-Identifier: Apache-2.0
/* One worker counts both builds; the copy of the baseline need not be counted. */
#include "src/gate/gate_budget.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/json.h"
#include "src/measure/process.h"
#include "src/measure/session.h"
#include "src/plan/match.h"

static bool is_bound_by(const struct nb_instruction_budget *budget, const struct nb_gate_case *c) {
    const char *const text = budget->filter;
    const struct nb_filters filter = {&text, 1};
    return nb_filters_match(&filter, c->key);
}

bool nb_gate_has_budget(const struct nb_gate *g, const struct nb_gate_case *c, bool only_absolute) {
    for (size_t i = 0; i < g->settings.n_budgets; i++)
        if (is_bound_by(&g->settings.budgets[i], c) && !(only_absolute && g->settings.budgets[i].relative)) return true;
    return false;
}

/* ---- counting ---------------------------------------------------------------------------------------------------------- */

static void take(cJSON *line, void *arg) {
    struct nb_gate_case *c = arg;
    const char *type = nb_json_get_text(line, "type"), *key = nb_json_get_text(line, "key"), *name;
    const cJSON *counter;
    for (int b = 0; b < NB_N_BUILDS && key && strcmp(type, "case") == 0; b++) {
        if (strcmp(key, c->arm_keys[b]) != 0) continue;
        cJSON_ArrayForEach(counter, cJSON_GetObjectItemCaseSensitive(line, "counters")) {
            if (!(name = nb_json_get_text(counter, "name")) || strcmp(name, "instructions_exact") != 0) continue;
            const char *reason = nb_json_get_text(counter, "reason");
            c->instructions[b] = nb_json_get_number(counter, "value");
            if (reason) snprintf(c->uncounted, sizeof c->uncounted, "%s: %.100s", nb_build_names[b], reason);
        }
    }
    cJSON_Delete(line);
}

int nb_gate_count(const struct nb_gate *g, struct nb_gate_case *c) {
    const char *keys[] = {c->arm_keys[NB_BUILD_BASELINE], c->arm_keys[NB_BUILD_CANDIDATE]};
    int samples[] = {0, 0}, copies[] = {-1, -1};
    bool steps[] = {true, true};
    struct nb_outcome o;
    const struct nb_job job = {.kind = NB_JOB_COUNTERS,
                               .launch = -1,
                               .plugins = (const char **)(uintptr_t)g->builds.files[0],
                               .n_plugins = NB_N_BUILDS,
                               .keys = keys,
                               .samples = samples,
                               .copy_of = copies,
                               .steps = steps,
                               .n_cases = 2,
                               .check_only = true,
                               .digests_at = -1};
    snprintf(c->uncounted, sizeof c->uncounted, "the count did not come to its end");
    nb_process_run(&job, -1, g->plan.case_timeout_s, g->plan.seed, take, c, &o);
    if (o.ending == NB_NOT_STARTED) return -1;
    if (o.ending == NB_ENDED_BY_USER) return nb_interrupted();
    if (isfinite(c->instructions[NB_BUILD_BASELINE]) && isfinite(c->instructions[NB_BUILD_CANDIDATE]))
        c->uncounted[0] = '\0';
    return 0;
}

/* ---- judging ----------------------------------------------------------------------------------------------------------- */

void nb_gate_keep_budget(const struct nb_gate *g, struct nb_gate_case *c) {
    const double counted = c->instructions[NB_BUILD_CANDIDATE], before = c->instructions[NB_BUILD_BASELINE];
    for (size_t i = 0; i < g->settings.n_budgets; i++) {
        const struct nb_instruction_budget *b = &g->settings.budgets[i];
        const double most = b->relative ? (1 + b->most) * before : b->most;
        if (!is_bound_by(b, c) || !(counted > most)) continue;
        c->verdict = NB_VERDICT_REGRESSION;
        c->over_budget = true;
        if (b->relative)
            snprintf(c->reason, sizeof c->reason,
                     "instructions: %.0f against the baseline's %.0f (%+.2f %%), \"%.60s\" allows +%g %%", counted,
                     before, 100 * (counted / before - 1), b->filter, 100 * b->most);
        else
            snprintf(c->reason, sizeof c->reason, "instructions: %.0f, \"%.60s\" allows %.0f", counted, b->filter,
                     most);
        return;
    }
}

void nb_gate_settle_budget(const struct nb_gate *g, struct nb_gate_case *c) {
    const bool passed =
        c->verdict == NB_VERDICT_PASS || c->verdict == NB_VERDICT_IMPROVED || c->verdict == NB_VERDICT_IDENTICAL;
    if (!passed || !c->uncounted[0] || !nb_gate_has_budget(g, c, c->verdict == NB_VERDICT_IDENTICAL)) return;
    c->verdict = NB_VERDICT_INCONCLUSIVE;
    snprintf(c->reason, sizeof c->reason, "its budget of instructions cannot be looked at: %.150s", c->uncounted);
}
