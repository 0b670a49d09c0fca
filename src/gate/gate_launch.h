// SPDX-License-Identifier: Apache-2.0
/* One launch of the gate from outside: a worker process times builds of one kernel, and what it says becomes logarithms of
 * ratios to the first of them. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

#include "src/gate/gate_judge.h"
#include "src/measure/job.h"
#include "src/measure/measure.h"
#include "src/measure/status.h"

#define NB_GATE_ARMS 12

/* Arms: the baseline, its byte copy (the control), then candidates. */
struct nb_gate_subject;
struct nb_gate_case;
struct nb_outcome;
struct nb_gate_request {
    const char **files; /* shared objects, loaded in this order */
    int n_files;
    const char *keys[NB_GATE_ARMS]; /* "baseline:variant/shape..", as the files are called */
    int extra_percent[NB_GATE_ARMS];
    int n_arms;
    const struct nb_gate_subject *subject;
    const struct nb_gate_case *c;
    int launch, layout; /* the launch decides CPU, seed and padding */
    int threads;
    int blocks;
    double sample_ms, silence_s;
    uint64_t seed;
    struct nb_floors *floors; /* of the run so far; a launch adds to them. Null: of the launch alone */
    bool check_only;          /* nothing is timed */
};

struct nb_gate_answer {
    struct nb_gate_launch launch[NB_GATE_ARMS]; /* arm / baseline */
    double call_ns[NB_GATE_ARMS];               /* median over blocks of one call on the whole shape */
    bool chunked;
    size_t n_blocks;
    double wall_s;         /* of all blocks */
    enum nb_status status; /* NB_OK, or what ended it */
    int failed;            /* which arm did */
    char reason[200];
};

/* 0, -1 after nb_error (no process can be started), or the number of the signal that ended the run. line: null, or where the worker's goes, owned;
 * null where it is none. */
int nb_gate_launch_run(const struct nb_gate_request *q, struct nb_gate_answer *out, cJSON **line);
/* The worker's line alone, or its other answer; owned. */
cJSON *nb_gate_launch_ask(const struct nb_gate_request *q, struct nb_outcome *o);
/* From a worker's line alone: for samples that were recorded. floors: as the request's. -1: it is not one. */
int nb_gate_launch_read(const cJSON *line, int n_arms, int layout, struct nb_floors *floors,
                        struct nb_gate_answer *out);

/* In the worker. */

/* Gives the code of the job's files pages of this process's own. */
void nb_gate_own_pages(const struct nb_job *job);
/* The worker's line: the arms' samples, and which of them wrote the same as before. */
void nb_gate_say(const struct nb_job *job, struct nb_arm *arms, int n, const struct nb_noise *noise, const bool *same);
