// SPDX-License-Identifier: Apache-2.0
/* Calibration under way: a few cases of every group (op, pass, dtype, shape) are launched round robin, as the gate does. */
#ifndef NB_CALIBRATION_RUN_H
#define NB_CALIBRATION_RUN_H

#include "src/gate/calibration.h"
#include "src/gate/gate.h"

struct nb_calibration_group {
    const struct nb_case *c; /* the first of its cases: op, pass, dtype and shape are the group's */
    size_t *cases;           /* of the gate's: those that are launched; owned */
    size_t n_cases, n_all;   /* n_all: cases that the group has */
    struct nb_calibration_launch *launches;
    size_t n_launches;
    char refused[240]; /* a case that could not be launched, and why; "" */
    struct nb_calibration noise;
};

struct nb_calibration_run {
    const struct nb_gate *g; /* its cases, builds, blocks and seed; both builds are copies of one */
    int launches, cases_per_group;
    double budget_s; /* 0: none */
    struct nb_calibration_group *groups;
    size_t n_groups;
    double elapsed_s;
    /* Every launch as the worker told it; may be null. */
    void (*record)(const struct nb_gate_case *c, int launch, const cJSON *line, void *arg);
    void *record_arg;
};

/* Fills groups. 0, -1 after nb_error, or a signal's number: what was measured stands. */
int nb_calibration_run(struct nb_calibration_run *r);
/* From a worker's line, arms: baseline, then the copies. -1: it is not one. */
int nb_calibration_read(const cJSON *line, struct nb_calibration_launch *out);
void nb_calibration_run_release(struct nb_calibration_run *r);

#endif
