// SPDX-License-Identifier: Apache-2.0
/* One launch of the gate from outside: a worker process times builds of one kernel, and what it says becomes logarithms of
 * ratios to the first of them. */
#ifndef NB_GATE_LAUNCH_H
#define NB_GATE_LAUNCH_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "src/gate/gate_judge.h"
#include "src/measure/status.h"

#define NB_GATE_ARMS 12

/* Arms: the baseline, its byte copy (the control), then candidates. */
struct nb_gate_request {
    const char **files; /* shared objects, loaded in this order */
    int n_files;
    const char *keys[NB_GATE_ARMS]; /* "baseline:variant/shape..", as the files are called */
    int extra_percent[NB_GATE_ARMS];
    int n_arms;
    int launch, layout; /* the launch decides CPU, seed and padding */
    int threads;
    int blocks;
    double sample_ms, silence_s;
    uint64_t seed;
};

struct nb_gate_answer {
    struct nb_gate_launch launch[NB_GATE_ARMS]; /* arm / baseline */
    double call_ns[NB_GATE_ARMS];               /* median over blocks of one call on the whole shape */
    bool chunked;
    size_t n_blocks;
    double per_sample;
    enum nb_status status; /* NB_OK, or what ended it */
    int failed;            /* which arm did */
    char reason[200];
    cJSON *raw; /* the worker's line; owned by the caller, may be null */
};

/* 0, -1 after nb_error (no process can be started), or the number of the signal that ended the run. */
int nb_gate_launch_run(const struct nb_gate_request *q, struct nb_gate_answer *out);
/* From a worker's line alone: for samples that were recorded. -1: it is not one. */
int nb_gate_launch_read(const cJSON *line, int n_arms, int layout, struct nb_gate_answer *out);

#endif
