// SPDX-License-Identifier: Apache-2.0
/* The inside of a worker process: reads a job (src/measure/job.h), answers in JSON lines:
 *   {"type":"case", as an element of a check line's cases}     as soon as a case is checked
 *   {"type":"copies","copies":[..]}                              the check's trial of copies
 *   {"type":"launch",..} {"type":"counters",..}                whole journal lines
 *   {"type":"failure",..}                                      a case that went wrong while timed
 *   {"type":"answer","case":i,..}                              what the job of an application found out
 *   {"type":"fault",..}                                        last words (src/measure/faults.h) */
#pragma once

#include "src/measure/buffers.h"
#include "src/measure/job.h"
#include "src/measure/measure.h"
#include "src/measure/paired.h"
#include "src/plan/inputs.h"

/* The hidden subcommand. Returns the process's exit code. */
int nb_worker_main(void);

/* What the jobs of all kinds share (struct nb_job_type, src/measure/job.h). */
struct nb_workplace {
    struct nb_job job;
    struct nb_shared *shared;
    uint64_t *digests; /* of the group; null when there are none */
    struct nb_inputs inputs;
};

/* One line to the parent; takes json. */
void nb_worker_say(cJSON *json);
/* Last words of a worker that cannot work, which is no case's fault. */
void nb_worker_say_skipped(const char *reason);
/* Inputs that serve cases [from, to) of the job. -1 after nb_worker_say_skipped(). */
int nb_worker_make_inputs(struct nb_workplace *w, int from, int to);
/* Tells the parent which case is under way; -1: none. */
void nb_worker_at(struct nb_workplace *w, int current);
/* Digests of a case's result, nb_n_digests() of them; null when there are none. */
uint64_t *nb_worker_digests(const struct nb_workplace *w, int case_index);
/* work(w, i, arg) in a process forked off from this one, so that whatever the case's kernel does to memory, to threads or to descriptors
 * ends with it, and the next case finds what cases share (inputs, the exact results) as this process made it. Returns when the case has
 * been answered; where its process died, this one dies the same death, and the parent sees at which case. A kernel of a program
 * (src/programs/kernel_program.h) has a process of its own, and is called from this one. False: a plugin has started
 * threads, which fork() would leave behind, and this process has just done its first case and must not do another. */
bool nb_worker_apart(struct nb_workplace *w, int i, void (*work)(struct nb_workplace *w, int i, void *arg), void *arg);

/* Arms that are timed beside each other, with the threads and the buffers that they share. */
struct nb_bench {
    struct nb_arm *arms; /* the caller's: entry, c and what else it sets */
    int n, blocks;       /* blocks: 0: the job's */
    struct nb_pool *pool;
    bool owns_pool;       /* it was not given, and made */
    bool one_home;        /* the caller's: arms of one kernel, which must differ in nothing but its code */
    bool several_layouts; /* the caller's: blocks of hot cases take turns in sets that are laid out otherwise */
    struct nb_sets {
        /* For cold cases as many as fill cold_bytes, and each arm goes through all. Else each block is on one, or on one for each
         * home: arms with non-temporal stores have a second, where there are both kinds. */
        struct nb_buffers *sets;
        int n, n_of_arm;
    } sets;
    struct nb_measure_options options; /* as the job has them; may be changed before nb_bench_time() */
    struct nb_noise noise;             /* of nb_bench_time() */
};
/* arms and n are given, blocks and pool may be. -1 when there is no memory or no thread, which has been said to the parent. Released also
 * after that. */
int nb_bench_init(struct nb_bench *b, struct nb_workplace *w);
/* The set that an arm keeps to, or begins with. */
struct nb_buffers *nb_bench_home(const struct nb_bench *b, const struct nb_arm *arm);
void nb_bench_time(struct nb_bench *b);
void nb_bench_release(struct nb_bench *b);
/* Members "sample_ns", "preempted", where the order counts "position" and with probes "shared" of an arm that was timed. */
void nb_arm_to_json(cJSON *json, const struct nb_arm *arm, int blocks, bool with_position);
