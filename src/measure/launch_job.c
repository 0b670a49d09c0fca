// SPDX-License-Identifier: Apache-2.0
/* One launch of a group: cases and copies as arms, timed; then what was timed is compared with what was checked. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/measure/check.h"
#include "src/measure/core_rate.h"
#include "src/measure/worker.h"

/* {"clock_ghz","fma_ns","widen_ns":{"f16","bf16"},"narrow_ns":{"f16","bf16"}} */
/* Four digits: a nanosecond's thousandth is below what the clock resolves. */
static void add_rate(cJSON *json, const char *name, double value) {
    nb_json_number(json, name, isfinite(value) ? round(value * 1e6) / 1e6 : (double)NAN);
}

static cJSON *rates_to_json(const struct nb_core_rates *rates) {
    cJSON *json = cJSON_CreateObject();
    add_rate(json, "clock_ghz", rates->clock_ghz);
    add_rate(json, "fma_ns", rates->fma_ns);
    cJSON *widen = cJSON_AddObjectToObject(json, "widen_ns"), *narrow = cJSON_AddObjectToObject(json, "narrow_ns");
    for (int d = NB_F16; d <= NB_BF16; d++) {
        add_rate(widen, nb_formats[d].name, rates->widen_ns[d]);
        add_rate(narrow, nb_formats[d].name, rates->narrow_ns[d]);
    }
    return json;
}

/* What bounds a case that is timed in the first place: the core, or a level of memory. */
static void add_bounds(cJSON *json, const struct nb_case *c, const struct nb_core_rates *rates) {
    const double core_ns = nb_core_bound_ns(c, rates);
    nb_json_number(json, "core_ns", isfinite(core_ns) ? round(core_ns * 10) / 10 : (double)NAN);
    nb_json_text(json, "level", nb_case_level(c));
}

static void say_launch(const struct nb_job *job, const struct nb_arm *arms, const struct nb_noise *noise,
                       const struct nb_core_rates *rates, double elapsed_s) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "launch");
    cJSON_AddNumberToObject(line, "group", job->group);
    cJSON_AddNumberToObject(line, "launch", job->launch);
    cJSON *cases = cJSON_AddArrayToObject(line, "cases"), *copies = cJSON_AddArrayToObject(line, "copies");
    for (int i = 0; i < job->n_cases + job->n_copies; i++) {
        bool is_case = i < job->n_cases;
        cJSON *arm = cJSON_CreateObject();
        if (is_case) {
            nb_json_text(arm, "key", job->keys[i]);
            nb_json_text(arm, "copy", job->copy_of[i] >= 0 ? job->copies[job->copy_of[i]] : NULL);
        } else {
            nb_json_text(arm, "variant", job->copies[i - job->n_cases]);
        }
        nb_arm_to_json(arm, &arms[i], job->blocks, false);
        if (is_case) {
            cJSON_AddNumberToObject(arm, "per_sample", (double)arms[i].per_sample);
            cJSON_AddBoolToObject(arm, "chunked", arms[i].chunked);
            add_bounds(arm, &job->cases[i], rates);
        }
        cJSON_AddItemToArray(is_case ? cases : copies, arm);
    }
    cJSON_AddItemToObject(line, "noise", nb_json_of_members(nb_noise_members, noise));
    cJSON_AddItemToObject(line, "core", rates_to_json(rates));
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

/* ---- after timing -------------------------------------------------------------------------------------------------- */

struct aftermath {
    struct nb_workplace *w;
    const struct nb_bench *bench;
    bool *failed; /* by case */
};

static void fail(const struct aftermath *a, int i, enum nb_status status, const char *reason) {
    say_failure(&a->w->job, i, status, reason);
    a->failed[i] = true;
}

static enum nb_status status_of(enum nb_damage damage) {
    return damage == NB_DAMAGED_INPUT ? NB_CHANGED_INPUT : NB_WROTE_OUTSIDE;
}

/* One more sample of the case, on memory as it was at first: the same result as in the check, and nothing harmed? */
static void recheck(const struct aftermath *a, int i) {
    const struct nb_arm *arm = &a->bench->arms[i];
    const uint64_t *digests = nb_worker_digests(a->w, i);
    struct nb_buffers *set = &a->bench->sets.sets[0];
    char reason[200], where[160];
    int64_t row = 0;
    nb_worker_at(a->w, i);
    if (arm->damage != NB_INTACT) {
        snprintf(reason, sizeof reason, "%s while timed", arm->where);
        fail(a, i, status_of(arm->damage), reason);
        return;
    }
    if (arm->error) {
        snprintf(reason, sizeof reason, "run() returned %d while timed", arm->error);
        fail(a, i, NB_RETURNED_ERROR, reason);
        return;
    }
    if (!digests || arm->c->op == NB_OP_COPY) return;
    bool same = !arm->is_wrong && nb_measure_recheck(&a->bench->arms[i], set, a->bench->pool, digests, &row);
    if (arm->is_wrong) row = arm->wrong_row;
    enum nb_damage damage = nb_buffers_verify(set, where, sizeof where);
    if (damage != NB_INTACT) {
        nb_buffers_fill(set);
        snprintf(reason, sizeof reason, "%s while timed", where);
        fail(a, i, status_of(damage), reason);
    } else if (!same) {
        if (row < arm->c->shape.rows)
            snprintf(reason, sizeof reason, "row %lld of the timed output differs from the checked one",
                     (long long)row);
        else
            snprintf(reason, sizeof reason,
                     "what the timed calls wrote for all rows together differs from the checked");
        fail(a, i, NB_WRONG_WHEN_TIMED, reason);
    }
}

/* The whole launch of one case again, alone on fresh memory: does that harm it? */
static void try_alone(const struct aftermath *a, int i) {
    struct nb_arm arm = {.entry = a->bench->arms[i].entry, .c = a->bench->arms[i].c};
    struct nb_bench alone = {.arms = &arm, .n = 1, .pool = a->bench->pool};
    char where[160] = "", reason[200];
    nb_worker_at(a->w, i);
    if (nb_bench_init(&alone, a->w) == 0) {
        enum nb_damage damage = NB_INTACT;
        alone.options.current_arm = NULL;
        alone.options.watched = NULL;
        nb_bench_time(&alone);
        for (int s = 0; s < alone.sets.n && damage == NB_INTACT; s++)
            damage = nb_buffers_verify(&alone.sets.sets[s], where, sizeof where);
        snprintf(reason, sizeof reason, "%s while timed", where);
        if (damage != NB_INTACT) fail(a, i, status_of(damage), reason);
    }
    nb_bench_release(&alone);
}

/* Where memory was harmed and no case is convicted, none of them can be believed. */
static void settle(const struct aftermath *a) {
    const struct nb_job *job = &a->w->job;
    enum nb_damage damage = NB_INTACT;
    char where[160] = "", reason[240];
    bool convicted = false;
    for (int s = 0; s < a->bench->sets.n && damage == NB_INTACT; s++)
        damage = nb_buffers_verify(&a->bench->sets.sets[s], where, sizeof where);
    if (damage != NB_INTACT)
        for (int s = 0; s < a->bench->sets.n; s++) nb_buffers_fill(&a->bench->sets.sets[s]);
    for (int i = 0; i < job->n_cases; i++) recheck(a, i);
    for (int i = 0; i < job->n_cases; i++) convicted |= a->failed[i] && !a->bench->arms[i].error;
    if (damage == NB_INTACT || convicted) return;
    for (int i = 0; i < job->n_cases; i++)
        if (!a->failed[i]) try_alone(a, i);
    for (int i = 0; i < job->n_cases; i++) convicted |= a->failed[i] && !a->bench->arms[i].error;
    snprintf(reason, sizeof reason, "a case of this group %s while timed, and it cannot be told which", where);
    for (int i = 0; i < job->n_cases && !convicted; i++)
        if (!a->failed[i]) fail(a, i, status_of(damage), reason);
}

/* Arms: the job's cases, then its copies, each on the case it serves. */
static int init_arms(struct nb_workplace *w, struct nb_arm *arms, struct nb_case *copy_cases) {
    const struct nb_job *job = &w->job;
    for (int i = 0; i < job->n_cases; i++)
        arms[i] = (struct nb_arm){.entry = job->entries[i], .c = &job->cases[i], .digests = nb_worker_digests(w, i)};
    for (int t = 0; t < job->n_copies; t++) {
        const struct nb_entry *entry = nb_registry_find(job->copies[t]);
        if (!entry) return nb_error("no kernel %s", job->copies[t]);
        copy_cases[t] = job->cases[0];
        nb_case_set_entry(&copy_cases[t], entry);
        arms[job->n_cases + t] = (struct nb_arm){.entry = entry, .c = &copy_cases[t]};
    }
    return 0;
}

static int launch_job(struct nb_workplace *w) {
    const struct nb_job *job = &w->job;
    const int n_arms = job->n_cases + job->n_copies;
    const double start = nb_now_s();
    struct nb_arm *arms = nb_alloc((unsigned)n_arms, sizeof *arms);
    struct nb_case *copy_cases = nb_alloc((unsigned)job->n_copies, sizeof *copy_cases);
    bool *failed = nb_alloc((unsigned)job->n_cases, sizeof *failed);
    struct nb_bench bench = {.arms = arms, .n = n_arms};
    struct nb_core_rates rates, after; /* a clock that moves shows in one of them */
    int result = -1;
    if (init_arms(w, arms, copy_cases) != 0 || nb_bench_init(&bench, w) != 0) goto out;
    nb_core_rates_measure(&rates);
    nb_bench_time(&bench);
    nb_core_rates_measure(&after);
    nb_core_rates_best(&rates, &after);
    settle(&(struct aftermath){w, &bench, failed});
    nb_worker_at(w, -1);
    say_launch(job, arms, &bench.noise, &rates, nb_now_s() - start);
    result = 0;
out:
    nb_bench_release(&bench);
    free(arms);
    free(copy_cases);
    free(failed);
    return result;
}

const struct nb_job_type nb_launch_job = {.work = launch_job};
