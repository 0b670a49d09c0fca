// SPDX-License-Identifier: Apache-2.0
/* What is to be trained for all who ask: arms by workload and measurement, each once, whoever needs it. */
#ifndef NB_TRAIN_PLAN_H
#define NB_TRAIN_PLAN_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "src/train/workload.h"

enum nb_train_measure {
    NB_TRAIN_STEPS,  /* times of steps, the arms interleaved in one process: steps.h; a round is a launch */
    NB_TRAIN_MEMORY, /* peak memory of a process that makes steps of one arm; a round is a launch of each */
    NB_TRAIN_COURSE, /* a run from its beginning: course.h; a round is a seed */
    NB_N_TRAIN_MEASURES
};
extern const char *const nb_train_measure_names[]; /* "steps", "memory", "course"; null-terminated */

struct nb_train_group {
    enum nb_train_measure measure;
    const struct nb_workload *workload;
    int steps;   /* of a course */
    char **arms; /* canonical texts (arm.h) */
    int *seeds;  /* of a course of each arm, as many as who asks for most needs; 0: the usual number */
    int n_arms;
};
struct nb_train_plan {
    struct nb_train_group *groups;
    int n;
};
/* Takes the arm along; an arm that is there already is not taken twice. seeds: of a course, 0: as usual. */
void nb_train_plan_add(struct nb_train_plan *p, enum nb_train_measure measure, const struct nb_workload *workload,
                       int steps, int seeds, const char *arm);
/* Whatever was asked for, the usual number of seeds. */
void nb_train_plan_usual_seeds(struct nb_train_plan *p);
void nb_train_plan_release(struct nb_train_plan *p);

/* Jobs of a round: one for all arms where they take turns, else one for each. */
int nb_train_group_jobs(const struct nb_train_group *g);
/* Rounds that the job takes part in, where others of its measure have so many as usual. */
int nb_train_job_rounds(const struct nb_train_group *g, int job, int usual);
/* What a job is asked, as JSON without what does not change its answer; owned. job: of the round. */
cJSON *nb_train_request(const struct nb_train_group *g, int round, int job);
/* Floating-point operations of a step of each of the job's arms, together; NaN where an arm is refused. */
double nb_train_job_flops(const struct nb_train_group *g, int job);
/* Why the workload does not take the arm, or null; reason holds the text. */
const char *nb_train_refuses(const struct nb_workload *workload, const char *arm, char *reason, size_t n);

#endif
