// SPDX-License-Identifier: Apache-2.0
/* Groups, and launches over them. */
#include "src/gate/calibration_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/gate/gate_samples.h"
#include "src/measure/process.h"

enum { ARMS = 1 + NB_N_REPLICAS };

/* ---- groups ----------------------------------------------------------------------------------------------------------------- */

static bool is_of(const struct nb_calibration_group *group, const struct nb_case *c) {
    const struct nb_case *g = group->c;
    return g->op == c->op && g->pass == c->pass && g->dtype == c->dtype && strcmp(g->shape.text, c->shape.text) == 0;
}

static struct nb_calibration_group *group_of(struct nb_calibration_run *r, const struct nb_case *c) {
    for (size_t i = 0; i < r->n_groups; i++)
        if (is_of(&r->groups[i], c)) return &r->groups[i];
    r->groups = nb_realloc(r->groups, r->n_groups + 1, sizeof *r->groups);
    r->groups[r->n_groups] = (struct nb_calibration_group){.c = c};
    return &r->groups[r->n_groups++];
}

/* Spread evenly over the group's cases, which are in the order of the registry: neighbours are widths of one kernel. */
static void thin(struct nb_calibration_group *group, int most) {
    const size_t keep = group->n_all < (size_t)most ? group->n_all : (size_t)most;
    for (size_t i = 0; i < keep; i++) group->cases[i] = group->cases[i * group->n_all / keep];
    group->n_cases = keep;
}

static void make_groups(struct nb_calibration_run *r) {
    for (size_t i = 0; i < r->g->n_cases; i++) {
        struct nb_calibration_group *group = group_of(r, &r->g->cases[i].c);
        group->cases = nb_realloc(group->cases, group->n_all + 1, sizeof *group->cases);
        group->cases[group->n_all++] = i;
    }
    for (size_t i = 0; i < r->n_groups; i++) thin(&r->groups[i], r->cases_per_group);
}

/* ---- launches --------------------------------------------------------------------------------------------------------------- */

static struct nb_replica_launch replica_of(const struct nb_gate_samples *copy, const struct nb_gate_samples *baseline) {
    return (struct nb_replica_launch){
        .ratio = nb_gate_paired(copy, baseline, NB_PAIRS_ALL),
        .ratio_min = log(nb_gate_fastest(copy) / nb_gate_fastest(baseline)),
        .order_effect =
            nb_gate_paired(copy, baseline, NB_PAIRS_FIRST) - nb_gate_paired(copy, baseline, NB_PAIRS_SECOND),
        .halves = nb_gate_paired(copy, baseline, NB_PAIRS_HALF_A) - nb_gate_paired(copy, baseline, NB_PAIRS_HALF_B),
        .contaminated = nb_gate_contaminated(copy, baseline)};
}

int nb_calibration_read(const cJSON *line, struct nb_calibration_launch *out) {
    const cJSON *arms = cJSON_GetObjectItemCaseSensitive(line, "arms"), *arm;
    const double wall_s = nb_json_get_number(cJSON_GetObjectItemCaseSensitive(line, "noise"), "wall_s");
    struct nb_gate_samples samples[ARMS] = {{0}};
    int n = 0, result = -1;
    *out = (struct nb_calibration_launch){0};
    if (cJSON_GetArraySize(arms) != ARMS) return -1;
    cJSON_ArrayForEach(arm, arms) if (nb_gate_samples_read(&samples[n++], arm) != 0) goto out;
    for (int t = 0; t < NB_N_REPLICAS; t++) out->replicas[t] = replica_of(&samples[1 + t], &samples[0]);
    out->sample_s = wall_s / (ARMS * (double)samples[0].n);
    result = 0;
out:
    for (int i = 0; i < ARMS; i++) nb_gate_samples_release(&samples[i]);
    return result;
}

static int launch(struct nb_calibration_run *r, struct nb_calibration_group *group, size_t which, int number) {
    const struct nb_gate_case *c = &r->g->cases[group->cases[which]];
    const int layout = number % r->g->builds.n_layouts;
    const double start = nb_now_s();
    struct nb_calibration_launch read;
    struct nb_gate_answer answer;
    const struct nb_gate_request q = {.files = (const char **)(uintptr_t)r->g->builds.files[layout],
                                      .n_files = NB_N_BUILDS,
                                      .keys = {c->arm_keys[NB_BUILD_BASELINE], c->arm_keys[NB_BUILD_CONTROL],
                                               c->arm_keys[NB_BUILD_CANDIDATE], c->arm_keys[NB_BUILD_BASELINE]},
                                      .n_arms = ARMS,
                                      .launch = number,
                                      .layout = layout,
                                      .threads = c->c.threads,
                                      .blocks = r->g->plan.blocks,
                                      .sample_ms = r->g->plan.sample_ms,
                                      .silence_s = r->g->plan.case_timeout_s,
                                      .seed = r->g->plan.seed + c->c.seed};
    const int result = nb_gate_launch_run(&q, &answer);
    if (result != 0) return result;
    if (answer.raw && r->record) r->record(c, number, answer.raw, r->record_arg);
    if (answer.status != NB_OK || !answer.raw || nb_calibration_read(answer.raw, &read) != 0) {
        snprintf(group->refused, sizeof group->refused, "%.100s: %s %.100s", c->key, nb_status_name(answer.status),
                 answer.reason);
    } else {
        read.case_index = (int)which;
        read.overhead_s = nb_now_s() - start - read.sample_s * ARMS * r->g->plan.blocks;
        group->launches = nb_realloc(group->launches, group->n_launches + 1, sizeof *group->launches);
        group->launches[group->n_launches++] = read;
    }
    cJSON_Delete(answer.raw);
    return 0;
}

static int rounds(struct nb_calibration_run *r, double started_s) {
    size_t total = 0, done = 0;
    for (size_t i = 0; i < r->n_groups; i++) total += r->groups[i].n_cases;
    for (int l = 0; l < r->launches; l++)
        for (size_t i = 0; i < r->n_groups; i++)
            for (size_t k = 0; k < r->groups[i].n_cases; k++) {
                const double elapsed = nb_now_s() - started_s;
                if (nb_interrupted()) return nb_interrupted();
                if (r->budget_s > 0 && elapsed > r->budget_s) return 0;
                nb_progress((double)done++, (double)total * r->launches, elapsed, r->groups[i].c->variant);
                if (r->groups[i].refused[0]) continue;
                const int result = launch(r, &r->groups[i], k, l);
                if (result != 0) return result;
            }
    return 0;
}

int nb_calibration_run(struct nb_calibration_run *r) {
    const double start = nb_now_s();
    make_groups(r);
    nb_watch_interrupts();
    const int result = rounds(r, start);
    nb_progress_end();
    for (size_t i = 0; i < r->n_groups; i++)
        nb_calibration_estimate(r->groups[i].launches, r->groups[i].n_launches, r->g->plan.blocks, &r->groups[i].noise);
    r->elapsed_s = nb_now_s() - start;
    return result;
}

void nb_calibration_run_release(struct nb_calibration_run *r) {
    for (size_t i = 0; i < r->n_groups; i++) {
        free(r->groups[i].cases);
        free(r->groups[i].launches);
        nb_calibration_release(&r->groups[i].noise);
    }
    free(r->groups);
    r->groups = NULL;
    r->n_groups = 0;
}
