// SPDX-License-Identifier: Apache-2.0
/* One launch of the gate: the builds of one kernel as arms over the same buffers, with the same samples. What each wrote while timed is
 * compared with what it wrote before, and that it wrote nowhere else. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/check.h"
#include "src/measure/worker.h"

static void add_arm(cJSON *arms, const struct nb_arm *arm, int blocks, bool same) {
    cJSON *json = cJSON_CreateObject();
    nb_arm_to_json(json, arm, blocks, true);
    cJSON_AddNumberToObject(json, "error", arm->error);
    cJSON_AddBoolToObject(json, "reproduced", same);
    if (arm->damage != NB_INTACT) {
        nb_json_text(json, "harmed", arm->where);
        cJSON_AddBoolToObject(json, "changed_input", arm->damage == NB_DAMAGED_INPUT);
    }
    cJSON_AddItemToArray(arms, json);
}

/* Of what a whole call of the arm writes; owned. */
static uint64_t *digests_of(struct nb_arm *arm, struct nb_bench *bench) {
    nb_buffers_poison_outputs(&bench->sets.sets[0]);
    arm->error = nb_pool_run(bench->pool, arm->entry->kernel, &arm->calls[0]);
    return nb_take_digests(&bench->sets.sets[0], arm->c);
}

/* One more sample of the arm, on memory as it was at first: the same result, and nothing harmed? */
static bool recheck(struct nb_arm *arm, struct nb_buffers *set, struct nb_pool *pool, const uint64_t *digests) {
    int64_t row;
    if (arm->error || arm->damage != NB_INTACT) return true;
    nb_buffers_fill(set);
    const bool same = nb_measure_recheck(arm, set, pool, digests, &row);
    arm->damage = nb_buffers_verify(set, arm->where, sizeof arm->where);
    return same;
}

static void say(const struct nb_job *job, struct nb_arm *arms, int n, const struct nb_noise *noise, const bool *same) {
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "type", "answer");
    cJSON *list = cJSON_AddArrayToObject(answer, "arms");
    for (int i = 0; i < n; i++) add_arm(list, &arms[i], job->blocks, same[i]);
    cJSON_AddNumberToObject(answer, "per_sample", (double)arms[0].per_sample);
    cJSON_AddBoolToObject(answer, "chunked", arms[0].chunked);
    cJSON_AddItemToObject(answer, "noise", nb_json_of_members(nb_noise_members, noise));
    nb_worker_say(answer);
}

/* The pages of a file are where the system's cache has them, in this launch and the next, and how code falls into the caches depends on
 * that: a copy could be slower in all launches. Pages of the worker's own lie elsewhere each time. Written over with themselves
 * they become so; where the system does not allow it, they stay. */
static void own_pages(const struct nb_job *job) {
    const long page = sysconf(_SC_PAGESIZE);
    char line[PATH_MAX + 200];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        char rights[8];
        bool ours = false;
        for (int i = 0; i < job->n_plugins && !ours; i++) ours = strstr(line, job->plugins[i]) != NULL;
        if (!ours || sscanf(line, "%lx-%lx %7s", &begin, &end, rights) != 3 || strcmp(rights, "r-xp") != 0) continue;
        if (mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) continue;
        for (volatile char *at = (volatile char *)begin; at < (volatile char *)end; at += page) {
            const char same = *at;
            *at = same;
        }
        mprotect((void *)begin, end - begin, PROT_READ | PROT_EXEC);
    }
    if (maps) fclose(maps);
}

static int gate_job(struct nb_workplace *w) {
    const struct nb_job *job = &w->job;
    const int n = job->n_cases;
    const cJSON *extra = cJSON_GetObjectItemCaseSensitive(job->options, "extra_percent");
    struct nb_arm *arms = nb_alloc((unsigned)n, sizeof *arms);
    uint64_t **digests = nb_alloc((unsigned)n, sizeof *digests);
    bool *same = nb_alloc((unsigned)n, sizeof *same);
    struct nb_bench bench = {.arms = arms, .n = n};
    for (int i = 0; i < n; i++) {
        const cJSON *percent = cJSON_GetArrayItem(extra, i);
        arms[i] = (struct nb_arm){.entry = job->entries[i], .c = &job->cases[i]};
        arms[i].extra_percent = percent ? percent->valueint : 0;
    }
    const int result = nb_bench_init(&bench, w);
    if (result != 0) goto out;
    own_pages(job);
    for (int i = 0; i < n; i++) {
        nb_worker_at(w, i);
        digests[i] = digests_of(&arms[i], &bench);
    }
    nb_buffers_fill(&bench.sets.sets[0]);
    bench.options.even_samples = true;
    nb_bench_time(&bench);
    for (int i = 0; i < n; i++) {
        nb_worker_at(w, i);
        same[i] = recheck(&arms[i], &bench.sets.sets[0], bench.pool, digests[i]);
    }
    nb_worker_at(w, -1);
    say(job, arms, n, &bench.noise, same);
out:
    nb_bench_release(&bench);
    for (int i = 0; i < n; i++) free(digests[i]);
    free(digests);
    free(arms);
    free(same);
    return result;
}

const struct nb_job_type nb_gate_job = {.work = gate_job};
