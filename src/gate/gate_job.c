// SPDX-License-Identifier: Apache-2.0
/* One launch of the gate. In the worker: the builds of one kernel as arms over the same buffers, with the same samples; what each wrote while
 * timed is compared with what it wrote before, and that it wrote nowhere else. Outside: the request as a job, and the worker's line as
 * logarithms of ratios. */
#include "src/gate/gate.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/measure/check.h"
#include "src/measure/launcher.h"
#include "src/measure/paired.h"
#include "src/measure/worker.h"

/* ---- the worker ---- */

static void add_arm(cJSON *arms, const struct nb_arm *arm, int blocks, bool same) {
    cJSON *json = cJSON_CreateObject();
    nb_arm_to_json(json, arm, blocks, true);
    cJSON_AddNumberToObject(json, "error", arm->error);
    cJSON_AddBoolToObject(json, "reproduced", same);
    if (arm->is_wrong && nb_wrong_deed(arm->wrong_row)) nb_json_text(json, "deed", nb_wrong_deed(arm->wrong_row));
    if (arm->damage != NB_INTACT) {
        nb_json_text(json, "harmed", arm->where);
        cJSON_AddBoolToObject(json, "changed_input", arm->damage == NB_DAMAGED_INPUT);
    }
    cJSON_AddItemToArray(arms, json);
}

/* Of what a whole call of the arm writes; owned. */
static uint64_t *digests_of(struct nb_arm *arm, struct nb_bench *bench) {
    struct nb_buffers *set = nb_bench_home(bench, arm);
    nb_buffers_poison_outputs(set);
    arm->error = nb_pool_run(bench->pool, arm->entry->kernel, &arm->calls[0]);
    return nb_take_digests(set, arm->c);
}

/* One more sample of the arm, on memory as it was at first: the same result, and nothing harmed? */
static bool recheck(struct nb_arm *arm, struct nb_buffers *set, struct nb_pool *pool) {
    int64_t row;
    if (arm->error || arm->damage != NB_INTACT) return true;
    if (arm->is_wrong) return false;
    nb_buffers_fill(set);
    const bool same = nb_measure_recheck(arm, set, pool, arm->digests, &row);
    arm->damage = nb_buffers_verify(set, arm->where, sizeof arm->where);
    return same;
}

void nb_gate_say(const struct nb_job *job, struct nb_arm *arms, int n, const struct nb_noise *noise, const bool *same) {
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
void nb_gate_own_pages(const struct nb_job *job) {
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
    const cJSON *extra = nb_json_get(job->options, "extra_percent");
    struct nb_arm *arms freed = nb_alloc((unsigned)n, sizeof *arms);
    bool *same freed = nb_alloc((unsigned)n, sizeof *same);
    struct nb_bench bench released_by(nb_bench_release) = {
        .arms = arms, .n = n, .one_home = true, .several_layouts = true};
    for (int i = 0; i < n; i++) {
        const cJSON *percent = cJSON_GetArrayItem(extra, i);
        arms[i] = (struct nb_arm){.entry = job->entries[i], .c = &job->cases[i]};
        arms[i].extra_percent = percent ? percent->valueint : 0;
    }
    const int result = nb_bench_init(&bench, w);
    if (result != 0) return result;
    nb_gate_own_pages(job);
    for (int i = 0; i < n; i++) {
        nb_worker_at(w, i);
        arms[i].digests = digests_of(&arms[i], &bench);
    }
    for (int s = 0; s < bench.sets.n; s++) nb_buffers_fill(&bench.sets.sets[s]);
    bench.options.even_samples = true;
    nb_bench_time(&bench);
    for (int i = 0; i < n; i++) {
        nb_worker_at(w, i);
        same[i] = recheck(&arms[i], nb_bench_home(&bench, &arms[i]), bench.pool);
    }
    nb_worker_at(w, -1);
    nb_gate_say(job, arms, n, &bench.noise, same);
    for (int i = 0; i < n; i++) free((void *)(uintptr_t)arms[i].digests);
    return 0;
}

const struct nb_job_type nb_gate_job = {.work = gate_job};

/* ---- from outside ---- */

/* The first arm that went wrong while timed. */
static void find_failure(const cJSON *arms, struct nb_gate_answer *out) {
    const cJSON *arm;
    int i = 0;
    cJSON_ArrayForEach(arm, arms) {
        const double error = nb_json_get_number(arm, "error");
        const char *harmed = nb_json_get_text(arm, "harmed");
        if (error != 0) {
            out->status = NB_RETURNED_ERROR;
            snprintf(out->reason, sizeof out->reason, "run() returned %g while timed", error);
        } else if (harmed) {
            out->status = nb_json_get_bool(arm, "changed_input") ? NB_CHANGED_INPUT : NB_WROTE_OUTSIDE;
            snprintf(out->reason, sizeof out->reason, "%s", harmed);
        } else if (!nb_json_get_bool(arm, "reproduced")) {
            out->status = NB_WRONG_WHEN_TIMED;
            const char *deed = nb_json_get_text(arm, "deed");
            snprintf(out->reason, sizeof out->reason, "%s%s", deed ? "it " : "",
                     deed ? deed : "what it wrote while timed differs from what it wrote before");
        }
        if (out->status != NB_OK) {
            out->failed = i;
            return;
        }
        i++;
    }
}

/* infinity: there is none */
static double samples_fastest(const struct nb_samples *s) {
    double least = INFINITY;
    for (size_t i = 0; i < s->n; i++) least = fmin(least, s->ns[i]);
    return least;
}

/* Of the launch's CPU, the launch counted. */
static double floor_of(const cJSON *line, struct nb_floors *floors) {
    struct nb_floors own released_by(nb_floors_release) = {0}, *const f = floors ? floors : &own;
    nb_floors_take_line(f, line);
    return nb_floors_of_line(f, line);
}

int nb_gate_launch_read(const cJSON *line, int n_arms, int layout, struct nb_floors *floors,
                        struct nb_gate_answer *out) {
    const cJSON *arms = nb_json_get(line, "arms"), *arm;
    struct nb_samples samples[NB_GATE_ARMS] = {{0}};
    int n = 0, result = -1;
    *out = (struct nb_gate_answer){.status = NB_OK};
    if (n_arms > NB_GATE_ARMS || cJSON_GetArraySize(arms) != n_arms) return -1;
    const double floor = floor_of(line, floors);
    cJSON_ArrayForEach(arm, arms) {
        struct nb_samples *s = &samples[n++];
        if (nb_samples_from_json(s, arm, floor) != 0 || s->n == 0 || !s->position) goto out;
    }
    out->chunked = nb_json_get_bool(line, "chunked");
    out->n_blocks = samples[0].n;
    out->wall_s = nb_json_get_number(nb_json_get(line, "noise"), "wall_s");
    find_failure(arms, out);
    for (int i = 0; i < n_arms; i++) {
        out->call_ns[i] = nb_samples_median(&samples[i]);
        const struct nb_by_state ratio = nb_pairs_ln(&samples[i], &samples[0]);
        const struct nb_by_state control = n_arms > 1 ? nb_pairs_ln(&samples[1], &samples[0]) : NB_NO_STATE;
        out->launch[i] =
            (struct nb_gate_launch){.ratio = ratio.ln[NB_ANY_STATE],
                                    .control = control.ln[NB_ANY_STATE],
                                    .is_probed = samples[i].probe != NULL,
                                    .ratio_in = ratio,
                                    .control_in = control,
                                    .ratio_min = log(samples_fastest(&samples[i]) / samples_fastest(&samples[0])),
                                    .order_effect = nb_paired_ln(&samples[i], &samples[0], NB_PAIRS_FIRST) -
                                                    nb_paired_ln(&samples[i], &samples[0], NB_PAIRS_SECOND),
                                    .halves = nb_paired_ln(&samples[i], &samples[0], NB_PAIRS_HALF_A) -
                                              nb_paired_ln(&samples[i], &samples[0], NB_PAIRS_HALF_B),
                                    .preempted = nb_paired_preempted(&samples[i], &samples[0]),
                                    .layout = layout};
    }
    result = 0;
out:
    for (int i = 0; i < NB_GATE_ARMS; i++) nb_samples_release(&samples[i]);
    return result;
}

cJSON *nb_gate_launch_ask(const struct nb_gate_request *q, struct nb_outcome *o) {
    assert(q && q->n_arms <= NB_GATE_ARMS);
    int percent[NB_GATE_ARMS], cpus[NB_MAX_CPUS];
    struct nb_asked asked[NB_GATE_ARMS];
    cJSON *options = cJSON_CreateObject();
    memcpy(percent, q->extra_percent, sizeof percent);
    cJSON_AddItemToObject(options, "extra_percent", cJSON_CreateIntArray(percent, q->n_arms));
    for (int i = 0; i < q->n_arms; i++) asked[i] = (struct nb_asked){.key = q->keys[i]};
    if (q->subject->describe) q->subject->describe(q, options);
    struct nb_job job = {.kind = q->subject->job,
                         .n_cases = q->subject->describe ? 0 : q->n_arms,
                         .launch = q->launch,
                         .check_only = q->check_only,
                         .plugins = q->files,
                         .n_plugins = q->n_files,
                         .asked = asked,
                         .blocks = q->blocks,
                         .sample_s = 1e-3 * q->sample_ms,
                         .digests_at = -1,
                         .seed = nb_random_bits(nb_random_stream(q->seed, (uint64_t)q->launch), 0),
                         .cpus = cpus,
                         .n_cpus = nb_launcher_cpus(cpus, q->threads, q->launch),
                         .options = options};
    if (q->floors) job.floor = nb_floors_get(q->floors, cpus[0], q->threads);
    cJSON *answer = nb_launcher_ask(&job, q->silence_s, o);
    cJSON_Delete(options);
    return answer;
}

int nb_gate_launch_run(const struct nb_gate_request *q, struct nb_gate_answer *out, cJSON **line) {
    struct nb_outcome o;
    cJSON *own = nb_gate_launch_ask(q, &o);
    if (!own) return nb_launcher_ends(&o);
    const bool is_read = nb_gate_launch_read(own, q->n_arms, q->layout, q->floors, out) == 0;
    if (!is_read) {
        *out = (struct nb_gate_answer){.failed = o.current >= 0 ? o.current : 0};
        out->status = nb_outcome_blame(&o, out->reason, sizeof out->reason);
    }
    if (line && is_read)
        *line = own;
    else
        cJSON_Delete(own);
    return 0;
}
