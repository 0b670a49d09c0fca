// SPDX-License-Identifier: Apache-2.0
/* Groups grow as they are asked for. */
#include "src/train/train_plan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/train/arm.h"

const char *const nb_train_measure_names[] = {"steps", "memory", "course", NULL};

static struct nb_train_group *group_of(struct nb_train_plan *p, enum nb_train_measure measure,
                                       const struct nb_workload *workload, int steps) {
    for (int i = 0; i < p->n; i++) {
        struct nb_train_group *g = &p->groups[i];
        if (g->measure == measure && g->workload == workload && g->steps == steps) return g;
    }
    p->groups = nb_realloc(p->groups, (unsigned)p->n + 1, sizeof *p->groups);
    p->groups[p->n] = (struct nb_train_group){.measure = measure, .workload = workload, .steps = steps};
    return &p->groups[p->n++];
}

void nb_train_plan_add(struct nb_train_plan *p, enum nb_train_measure measure, const struct nb_workload *workload,
                       int steps, int seeds, const char *arm) {
    struct nb_train_group *g = group_of(p, measure, workload, measure == NB_TRAIN_COURSE ? steps : 0);
    int at = 0;
    while (at < g->n_arms && strcmp(g->arms[at], arm) != 0) at++;
    if (at == g->n_arms) {
        g->arms = nb_realloc(g->arms, (unsigned)g->n_arms + 1, sizeof *g->arms);
        g->seeds = nb_realloc(g->seeds, (unsigned)g->n_arms + 1, sizeof *g->seeds);
        g->seeds[g->n_arms] = 0;
        g->arms[g->n_arms++] = nb_strdup(arm);
    }
    if (measure == NB_TRAIN_COURSE && seeds > g->seeds[at]) g->seeds[at] = seeds;
}

void nb_train_plan_usual_seeds(struct nb_train_plan *p) {
    for (int i = 0; i < p->n; i++)
        for (int a = 0; a < p->groups[i].n_arms; a++) p->groups[i].seeds[a] = 0;
}

void nb_train_plan_release(struct nb_train_plan *p) {
    for (int i = 0; i < p->n; i++) {
        for (int a = 0; a < p->groups[i].n_arms; a++) free(p->groups[i].arms[a]);
        free(p->groups[i].arms);
        free(p->groups[i].seeds);
    }
    free(p->groups);
    *p = (struct nb_train_plan){0};
}

int nb_train_group_jobs(const struct nb_train_group *g) { return g->measure == NB_TRAIN_STEPS ? 1 : g->n_arms; }

int nb_train_job_rounds(const struct nb_train_group *g, int job, int usual) {
    return g->measure == NB_TRAIN_COURSE && g->seeds[job] > usual ? g->seeds[job] : usual;
}

static bool has_arm(const struct nb_train_group *g, int job, int arm) {
    return g->measure == NB_TRAIN_STEPS || job == arm;
}

cJSON *nb_train_request(const struct nb_train_group *g, int round, int job) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "measure", nb_train_measure_names[g->measure]);
    nb_json_text(json, "workload", g->workload->name);
    nb_json_number(json, "round", round);
    nb_json_number(json, "steps", g->steps);
    cJSON *arms = cJSON_AddArrayToObject(json, "arms");
    for (int a = 0; a < g->n_arms; a++)
        if (has_arm(g, job, a)) cJSON_AddItemToArray(arms, cJSON_CreateString(g->arms[a]));
    return json;
}

const char *nb_train_refuses(const struct nb_workload *workload, const char *arm, char *reason, size_t n) {
    struct nb_train_options o;
    nb_arm_default(&o);
    const char *refused = nb_arm_parse(&o, arm, reason, n);
    return refused ? refused : workload->complete(workload->own, &o);
}

double nb_train_job_flops(const struct nb_train_group *g, int job) {
    double flops = 0;
    for (int a = 0; a < g->n_arms; a++) {
        struct nb_train_options o;
        char reason[200];
        nb_arm_default(&o);
        if (!has_arm(g, job, a)) continue;
        if (nb_arm_parse(&o, g->arms[a], reason, sizeof reason) || g->workload->complete(g->workload->own, &o))
            return (double)NAN;
        flops += g->workload->flops(g->workload->own, &o);
    }
    return flops;
}
