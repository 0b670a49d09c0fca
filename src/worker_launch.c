// SPDX-License-Identifier: Apache-2.0
/* One launch of a group: cases and twins as arms, timed; then what was timed is compared with what was checked. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/check.h"
#include "src/json.h"
#include "src/log.h"
#include "src/timer.h"
#include "src/worker.h"

static void add_slots(cJSON *json, const struct nb_arm *arm, int blocks) {
    cJSON *slots = cJSON_AddArrayToObject(json, "slot_ns"), *contaminated = cJSON_CreateArray();
    for (int b = 0; b < blocks; b++) {
        /* A tenth of a nanosecond is far below what a slot resolves. */
        double ns = round(arm->slot_ns[b] * 10) / 10;
        cJSON_AddItemToArray(slots, isfinite(ns) ? cJSON_CreateNumber(ns) : cJSON_CreateNull());
        if (arm->contaminated[b]) cJSON_AddItemToArray(contaminated, cJSON_CreateNumber(b));
    }
    cJSON_AddItemToObject(json, "contaminated", contaminated);
}

static void add_noise(cJSON *json, const struct nb_noise *noise) {
    cJSON *n = cJSON_AddObjectToObject(json, "noise");
    nb_json_number(n, "steal_ms", noise->steal_ms);
    nb_json_number(n, "involuntary", (double)noise->involuntary);
    nb_json_number(n, "voluntary", (double)noise->voluntary);
    nb_json_number(n, "wall_s", noise->wall_s);
    nb_json_number(n, "cpu_s", noise->cpu_s);
    nb_json_number(n, "cpu", noise->cpu);
}

static void say_launch(const struct nb_job *job, const struct nb_arm *arms, const struct nb_noise *noise,
                       double elapsed_s) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "launch");
    cJSON_AddNumberToObject(line, "group", job->group);
    cJSON_AddNumberToObject(line, "launch", job->launch);
    cJSON *cases = cJSON_AddArrayToObject(line, "cases"), *twins = cJSON_AddArrayToObject(line, "twins");
    for (int i = 0; i < job->n_cases + job->n_twins; i++) {
        bool is_case = i < job->n_cases;
        cJSON *arm = cJSON_CreateObject();
        if (is_case) {
            nb_json_text(arm, "key", job->keys[i]);
            nb_json_text(arm, "twin", job->twin_of[i] >= 0 ? job->twins[job->twin_of[i]] : NULL);
        } else {
            nb_json_text(arm, "variant", job->twins[i - job->n_cases]);
        }
        add_slots(arm, &arms[i], job->blocks);
        if (is_case) {
            cJSON_AddNumberToObject(arm, "per_slot", (double)arms[i].per_slot);
            cJSON_AddBoolToObject(arm, "chunked", arms[i].chunked);
        }
        cJSON_AddItemToArray(is_case ? cases : twins, arm);
    }
    add_noise(line, noise);
    nb_json_number(line, "elapsed_s", elapsed_s);
    nb_worker_say(line);
}

static void say_failure(const struct nb_job *job, int i, enum nb_status status, const char *reason) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "failure");
    cJSON_AddNumberToObject(line, "group", job->group);
    cJSON_AddNumberToObject(line, "launch", job->launch);
    nb_json_text(line, "key", job->keys[i]);
    nb_json_text(line, "status", nb_status_name(status));
    nb_json_text(line, "reason", reason);
    nb_worker_say(line);
}

/* Which arm harmed the slab? Each alone, on fresh poison. */
static void find_culprit(struct nb_workplace *w, struct nb_pool *pool, const struct nb_arm *arms) {
    char where[200];
    for (int i = 0; i < w->job.n_cases; i++) {
        struct nb_sets sets;
        struct nb_arm arm = {.entry = arms[i].entry, .c = arms[i].c};
        nb_worker_at(w, i);
        if (nb_sets_init(&sets, w, &arm, 1) == 0) {
            nb_arms_init(&arm, 1, sets.sets, 1, 1);
            nb_measure_quickly(&arm, pool, 0);
            if (nb_buffers_verify(&sets.sets[0], where, sizeof where) != NB_INTACT)
                say_failure(&w->job, i, NB_WROTE_OUTSIDE, where);
            nb_arms_release(&arm, 1);
        }
        nb_sets_release(&sets);
    }
}

static void recheck(struct nb_workplace *w, struct nb_pool *pool, struct nb_arm *arms, struct nb_sets *sets) {
    char reason[200];
    for (int i = 0; i < w->job.n_cases; i++) {
        const uint64_t *digests = nb_worker_digests(w, i);
        int64_t row = 0;
        nb_worker_at(w, i);
        if (arms[i].error) {
            snprintf(reason, sizeof reason, "run() returned %d while timed", arms[i].error);
            say_failure(&w->job, i, NB_RETURNED_ERROR, reason);
        } else if (digests && arms[i].c->op != NB_OP_TWIN &&
                   !nb_measure_recheck(&arms[i], &sets->sets[0], pool, digests, &row)) {
            snprintf(reason, sizeof reason, "row %lld of the timed output differs from the checked one",
                     (long long)row);
            say_failure(&w->job, i, NB_WRONG_WHEN_TIMED, reason);
        }
    }
    for (int s = 0; s < sets->n; s++)
        if (nb_buffers_verify(&sets->sets[s], reason, sizeof reason) != NB_INTACT) {
            find_culprit(w, pool, arms);
            return;
        }
}

/* Arms: the job's cases, then its twins, each on the case it serves. */
static int init_arms(struct nb_workplace *w, struct nb_arm *arms, struct nb_case *twin_cases) {
    const struct nb_job *job = &w->job;
    for (int i = 0; i < job->n_cases; i++) arms[i] = (struct nb_arm){.entry = job->entries[i], .c = &job->cases[i]};
    for (int t = 0; t < job->n_twins; t++) {
        const struct nb_entry *entry = nb_registry_find(job->twins[t]);
        if (!entry) return nb_error("no kernel %s", job->twins[t]);
        nb_twin_case(&twin_cases[t], &job->cases[0], entry);
        arms[job->n_cases + t] = (struct nb_arm){.entry = entry, .c = &twin_cases[t]};
    }
    return 0;
}

int nb_worker_launch(struct nb_workplace *w) {
    const struct nb_job *job = &w->job;
    const int n_arms = job->n_cases + job->n_twins;
    const double start = nb_now_s();
    struct nb_arm *arms = nb_alloc((unsigned)n_arms, sizeof *arms);
    struct nb_case *twin_cases = nb_alloc((unsigned)job->n_twins, sizeof *twin_cases);
    struct nb_sets sets = {0};
    struct nb_pool *pool = NULL;
    struct nb_noise noise;
    int result = -1;
    if (init_arms(w, arms, twin_cases) != 0 || nb_sets_init(&sets, w, arms, n_arms) != 0) goto out;
    pool = nb_pool_new(job->cases[0].threads, job->cpus);
    if (!pool) goto out;
    nb_arms_init(arms, n_arms, sets.sets, sets.n, job->blocks);
    struct nb_measure_options options = {.blocks = job->blocks,
                                         .slot_s = job->slot_s,
                                         .seed = job->seed,
                                         .cold = job->cases[0].cache == NB_COLD,
                                         .current_arm = &w->shared->current,
                                         .beats = &w->shared->beats};
    nb_measure_group(arms, n_arms, sets.n, pool, &options, &noise);
    recheck(w, pool, arms, &sets);
    nb_worker_at(w, -1);
    say_launch(job, arms, &noise, nb_now_s() - start);
    result = 0;
out:
    nb_arms_release(arms, n_arms);
    nb_pool_free(pool);
    nb_sets_release(&sets);
    free(arms);
    free(twin_cases);
    return result;
}
