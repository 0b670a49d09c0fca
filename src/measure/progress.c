// SPDX-License-Identifier: Apache-2.0
/* The state of a run, from its plan and its journal. */
#include "src/measure/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/measure/journal.h"

const struct nb_case *nb_group_case(const struct nb_plan *plan, int group, int index) {
    return &plan->cases[plan->groups[group].cases[index]];
}
const char *nb_group_key(const struct nb_plan *plan, int group, int index) {
    return plan->keys[plan->groups[group].cases[index]];
}
int nb_group_find(const struct nb_plan *plan, int group, const char *key) {
    for (int i = 0; key && i < (int)plan->groups[group].n; i++)
        if (strcmp(nb_group_key(plan, group, i), key) == 0) return i;
    return -1;
}

void nb_run_state_init(struct nb_run_state *s, const struct nb_plan *plan) {
    *s = (struct nb_run_state){.plan = plan, .groups = nb_alloc(plan->n_groups, sizeof *s->groups)};
    for (size_t g = 0; g < plan->n_groups; g++) {
        s->groups[g].cases = nb_alloc(plan->groups[g].n, sizeof *s->groups[g].cases);
        s->groups[g].launched = nb_alloc((unsigned)plan->launches, sizeof(bool));
        s->groups[g].digests_at = -1;
    }
}

void nb_run_state_release(struct nb_run_state *s) {
    for (size_t g = 0; s->plan && g < s->plan->n_groups; g++) {
        free(s->groups[g].cases);
        free(s->groups[g].launched);
        cJSON_Delete(s->groups[g].copies);
    }
    free(s->groups);
    *s = (struct nb_run_state){0};
}

const char *nb_group_copy(const struct nb_group_state *g, int n_loads, int n_stores) {
    const char *best = NULL;
    double best_ns = INFINITY;
    const cJSON *copy;
    cJSON_ArrayForEach(copy, g->copies) {
        const char *variant = nb_json_get_text(copy, "variant");
        double ns = nb_json_get_number(copy, "ns");
        const struct nb_entry *entry = variant ? nb_registry_find(variant) : NULL;
        if (!entry || entry->kernel->loads != (float)n_loads || entry->kernel->stores != (float)n_stores) continue;
        if (ns < best_ns) {
            best_ns = ns;
            best = variant;
        }
    }
    return best;
}

/* ---- from the journal --------------------------------------------------------------------------------------------- */

static int take_run(struct nb_run_state *s, const cJSON *line) {
    const char *hash = nb_json_get_text(cJSON_GetObjectItemCaseSensitive(line, "plan"), "hash");
    const cJSON *groups = cJSON_GetObjectItemCaseSensitive(line, "groups");
    if (hash && strcmp(hash, s->plan->hash) == 0 && cJSON_GetArraySize(groups) == (int)s->plan->n_groups) return 0;
    return nb_error(
        "the journal belongs to another plan: another config, other kernels or another CPU; start a new run");
}

static void take_check(struct nb_run_state *s, int g, const cJSON *line) {
    const cJSON *c, *copies = cJSON_GetObjectItemCaseSensitive(line, "copies");
    cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(line, "cases")) {
        int i = nb_group_find(s->plan, g, nb_json_get_text(c, "key"));
        const char *status = nb_json_get_text(c, "status");
        if (i < 0 || !status) continue;
        s->groups[g].cases[i] = (struct nb_case_state){true, nb_status_parse(status)};
    }
    s->groups[g].checked = true;
    if (cJSON_GetArraySize(copies) > 0) {
        cJSON_Delete(s->groups[g].copies);
        s->groups[g].copies = cJSON_Duplicate(copies, 1);
    }
}

static void take_failure(struct nb_run_state *s, int g, const cJSON *line) {
    int i = nb_group_find(s->plan, g, nb_json_get_text(line, "key"));
    const char *status = nb_json_get_text(line, "status");
    if (i >= 0 && status) s->groups[g].cases[i] = (struct nb_case_state){true, nb_status_parse(status)};
}

static int take_line(const cJSON *line, void *arg) {
    struct nb_run_state *s = arg;
    const char *type = nb_json_get_text(line, "type");
    if (!type) return 0;
    if (strcmp(type, "run") == 0) return take_run(s, line);
    double group = nb_json_get_number(line, "group"), launch = nb_json_get_number(line, "launch");
    if (!(group >= 0 && group < (double)s->plan->n_groups)) return 0;
    int g = (int)group;
    if (strcmp(type, "check") == 0)
        take_check(s, g, line);
    else if (strcmp(type, "failure") == 0)
        take_failure(s, g, line);
    else if (strcmp(type, "counters") == 0)
        s->groups[g].counted = true;
    else if (strcmp(type, "launch") == 0 && launch >= 0 && launch < s->plan->launches)
        s->groups[g].launched[(int)launch] = true;
    return 0;
}

int nb_run_state_read(struct nb_run_state *s, const char *dir) { return nb_journal_read(dir, take_line, s); }
