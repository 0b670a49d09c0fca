// SPDX-License-Identifier: Apache-2.0
/* One launch of a trial of `normbench tune`: one kernel on one shape, its calls differing in nothing but the tuning, as arms with equal
 * samples. What they write is compared first: a tuning is about time alone. */

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/tuning.h"
#include "src/measure/check.h"
#include "src/measure/worker.h"

static int init_arms(const struct nb_job *job, struct nb_arm *arms, struct nb_case *cases, struct nb_tuning *tunings) {
    const cJSON *list = nb_json_get(job->options, "tunings");
    for (int i = 0; i < job->n_cases; i++) {
        tunings[i] = (struct nb_tuning){.struct_size = sizeof tunings[i]};
        if (nb_tuning_from_json(&tunings[i], cJSON_GetArrayItem(list, i)) != 0) return -1;
        cases[i] = job->cases[i];
        cases[i].tuning = &tunings[i];
        arms[i] = (struct nb_arm){.entry = job->entries[i], .c = &cases[i]};
    }
    return 0;
}

/* One digest of all that a whole call of the arm writes. */
static uint64_t digest_of(struct nb_arm *arm, struct nb_bench *bench) {
    struct nb_buffers *set = nb_bench_home(bench, arm);
    uint64_t digest = 0;
    nb_buffers_poison_outputs(set);
    arm->error = nb_pool_run(bench->pool, arm->entry->kernel, &arm->calls[0]);
    for (int i = 0; i < NB_N_TENSORS; i++) {
        const struct nb_tensor *t = &set->tensors[i];
        const bool is_output = t->data && !t->source && i != NB_T_SCRATCH;
        for (int64_t r = 0; is_output && r < t->rows; r++)
            digest = digest * 0x100000001b3u ^ nb_row_digest(nb_tensor_row(t, r), t->cols, t->item);
    }
    return digest;
}

static void say(const struct nb_job *job, const struct nb_bench *bench, bool differs) {
    const struct nb_arm *arms = bench->arms;
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "type", "answer");
    cJSON_AddBoolToObject(answer, "differs", differs);
    cJSON *list = cJSON_AddArrayToObject(answer, "arms");
    for (int i = 0; i < job->n_cases; i++) {
        cJSON *arm = nb_json_add_object(list);
        nb_arm_to_json(arm, &arms[i], job->blocks, false);
        if (arms[i].error) nb_json_text(answer, "reason", "the kernel returned an error");
        if (arms[i].damage != NB_INTACT) nb_json_text(answer, "reason", "the kernel wrote outside its rows");
    }
    cJSON_AddItemToObject(answer, "noise", nb_json_of_members(nb_noise_members, &bench->noise));
    nb_worker_say(answer);
}

static int tune_job(struct nb_workplace *w) {
    const struct nb_job *job = &w->job;
    const int n = job->n_cases;
    struct nb_arm *arms freed = nb_alloc((unsigned)n, sizeof *arms);
    struct nb_case *cases freed = nb_alloc((unsigned)n, sizeof *cases);
    struct nb_tuning *tunings freed = nb_alloc((unsigned)n, sizeof *tunings);
    struct nb_bench bench released_by(nb_bench_release) = {.arms = arms, .n = n};
    bool differs = false;
    uint64_t first = 0;
    if (init_arms(job, arms, cases, tunings) != 0 || nb_bench_init(&bench, w) != 0) return -1;
    for (int i = 0; i < n; i++) {
        nb_worker_at(w, i);
        const uint64_t digest = digest_of(&arms[i], &bench);
        differs |= i > 0 && digest != first && !arms[i].error;
        if (i == 0) first = digest;
    }
    bench.options.even_samples = true;
    nb_bench_time(&bench);
    nb_worker_at(w, -1);
    say(job, &bench, differs);
    return 0;
}

const struct nb_job_type nb_tune_job = {.work = tune_job};
