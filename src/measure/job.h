// SPDX-License-Identifier: Apache-2.0
/* What the parent asks of one worker process, as JSON in a memory file; and the page they share while it works. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/core/case.h"
#include "src/core/kernel_fields.h"

enum { NB_MAX_CPUS = 1024 };

/* File descriptors that a worker inherits. Before it loads any kernel it has read or mapped what it needs of them and closed them, but for
 * the answers (src/measure/answers.h): a kernel that writes to every descriptor finds none of them. */
enum {
    NB_FD_JOB = 3,     /* the job's JSON */
    NB_FD_ANSWERS = 4, /* the worker's lines; of a fork server: requests and answers */
    NB_FD_SHARED = 5,  /* struct nb_shared */
    /* at digests_at: uint64_t [cases of the group][nb_n_digests(rows)], written by the check, read by the launches */
    NB_FD_DIGESTS = 6,
    NB_FD_PROGRAMS = 7, /* messages with programs that it is lent (src/measure/kept_programs.h) */
    NB_FD_MEMORY = 8,   /* of cold cases (src/measure/kept_memory.h) */
    NB_N_WORKER_FDS = 6
};

/* Where the worker is, for a parent that must name what crashed or hung. */
struct nb_shared {
    volatile int32_t current; /* index into the job's cases; -1: none of them */
    volatile int32_t beats;   /* grows with every step forward */
    uint64_t secret;          /* of the answers; the worker erases it */
    volatile pid_t groups[8]; /* process groups of programs with kernels that the worker has running; 0: none */
};

/* A kind of job. The file NAME_job.c of whichever folder defines nb_NAME_job and is thereby listed: a job names its kind "NAME", and a
 * worker finds here what to do, so that this folder need not know the applications. */
struct nb_workplace; /* src/measure/worker.h */
struct nb_job_type {
    int (*work)(struct nb_workplace *w); /* in the worker process: 0 or -1 */
    bool own_inputs;                     /* makes the inputs of its cases itself, or needs none */
    bool no_cases;                       /* its jobs name none */
    bool no_kernels;                     /* nor any kernel: the plugins are files that it opens itself */
    bool apart; /* each case has a process of its own (nb_worker_apart()), which alone opens its kernel */
};

/* What is asked of one case. */
struct nb_asked {
    const char *key;      /* borrowed */
    int sample;           /* its row of the digests */
    int copy, other_copy; /* launch: its copy and the runner-up, from 1, as the job's copies are numbered; 0: none */
    bool step;            /* counters: count its instructions one by one */
    bool many;            /* check: call it on and on, too */
};

struct nb_job {
    const char *kind;               /* borrowed */
    const struct nb_job_type *type; /* of the kind; in the worker */
    int group, launch;
    bool
        check_only; /* nothing will be timed: no copies, no digests; and every figure there is; counters: exact ones alone */
    bool single_width;    /* copies: of the cases' own width alone */
    const char **plugins; /* borrowed from json; a worker loads those of its cases */
    int n_plugins;
    struct nb_case *cases;
    struct nb_asked *asked; /* of each case */
    const struct nb_entry **entries;
    int n_cases;
    const char **copies; /* launch: variants to time beside the cases */
    int n_copies;
    int blocks;
    double sample_s;
    double floor; /* of the first CPU's probe (src/measure/core_state.h), as known so far; NaN: not known */
    uint64_t seed;
    double cold_bytes;
    double until_s;                    /* checks: by nb_now_s(), no case begins later; 0: no limit */
    int n_programs;                    /* that a worker is lent */
    bool programs_anew;                /* in the parent: they are to be new ones */
    int64_t digests_at, digests_bytes; /* the group's part of NB_FD_DIGESTS; at < 0: none */
    int *cpus;                         /* one for each thread; then those to which a single thread may move */
    int n_cpus;
    const cJSON *options; /* of a study; borrowed from json; may be null */
    cJSON *json;
};

/* Is a kernel of the file among the job's? Where this process does not know the file's kernels, it may be. */
bool nb_job_needs(const struct nb_job *job, const char *file);
/* The job's text; the parent fills the struct but for entries and json. Owned. */
char *nb_job_print(const struct nb_job *job);
