// SPDX-License-Identifier: Apache-2.0
/* What is to be trained, and what came of it. The plan holds arms by workload and measurement, each once, however many claims need it; its
 * jobs run in worker processes, so that one that crashes or hangs costs its own answer. Rounds go over all groups, so that a group's
 * launches are spread over the run. Jobs that time steps run alone; the others side by side. */
#ifndef NB_TRAIN_STUDY_H
#define NB_TRAIN_STUDY_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/core/stats.h"
#include "src/measure/journal.h"
#include "src/train/workload.h"

enum nb_train_measure {
    NB_TRAIN_STEPS,  /* times of steps, the arms interleaved in one process; a round is a launch */
    NB_TRAIN_MEMORY, /* peak memory of a process that makes steps of one arm; a round is a launch of each */
    NB_TRAIN_COURSE, /* a run from its beginning; a round is a seed */
    NB_N_TRAIN_MEASURES
};
extern const char *const nb_train_measure_names[]; /* "steps", "memory", "course"; null-terminated */
/* Of a step: all of it, its passes, clipping and update; the normalizations in both and in each pass. */
enum nb_step_part {
    NB_STEP_WHOLE,
    NB_STEP_PASSES,
    NB_STEP_FORWARD,
    NB_STEP_BACKWARD,
    NB_STEP_UPDATE,
    NB_STEP_NORM,
    NB_STEP_NORM_FORWARD,
    NB_STEP_NORM_BACKWARD,
    NB_N_STEP_PARTS
};
extern const char *const nb_step_part_names[NB_N_STEP_PARTS]; /* "step", "passes", ... */

struct nb_train_group {
    enum nb_train_measure measure;
    const struct nb_workload *workload;
    int steps;   /* of a course */
    char **arms; /* canonical texts (options.h) */
    int *seeds;  /* of a course of each arm, the most that any claim needs; 0: the usual number */
    int n_arms;
    bool stays; /* others are left out before it where time is short */
};
struct nb_train_plan {
    struct nb_train_group *groups;
    int n;
};
/* Takes the arm along; an arm that is there already is not taken twice. seeds: of a course, 0: as usual. Its group, valid until the next one
 * is added. */
struct nb_train_group *nb_train_plan_add(struct nb_train_plan *p, enum nb_train_measure measure,
                                         const struct nb_workload *workload, int steps, int seeds, const char *arm);
/* Whatever was asked for, the usual number of seeds. */
void nb_train_plan_usual_seeds(struct nb_train_plan *p);
void nb_train_plan_release(struct nb_train_plan *p);

/* What training jobs answered, and the figures that are made of it. In the journal (src/measure/journal.h) each is a line
 * {"type":"answer","answer":..}, on the disk before the next job begins.
 *
 *   {"request":{"measure","workload","round","steps","arms":[..]},"status":"ok"|..,"reason"?,"elapsed_s":1.5,
 *    "arms":[{"arm",
 *       steps:  "step":[s,..],"passes":[..], .. by part;"loss":[..],"kept_bytes","products":[s,..] and
 *              "products_forward":[..],"ops":{count of a step's operations, by part},"flops":{of its products, by part},
 *              "memory_rate": bytes/s of a copy,"call_s": of an operation on a few numbers
 *       memory: "peak_bytes","kept_bytes","parameter_bytes"
 *       course: "loss":[..],"wanted_steps","failed_steps","final_loss","unseen_loss","kept_bytes","recorded_steps":[..],
 *               "curves":[{"place","gradient","std":[..]}]}]} */

struct nb_train_results {
    cJSON *answers; /* array; null: nothing */
};
/* Takes the answer. */
void nb_train_results_add(struct nb_train_results *r, cJSON *answer);
void nb_train_results_release(struct nb_train_results *r);

/* Which jobs a figure is of. */
struct nb_train_question {
    enum nb_train_measure measure;
    const char *workload;
    int steps; /* of a course */
};
/* What an answer to the question holds of an arm; null: nothing, or it is no answer to it. */
const cJSON *nb_train_answer_arm(const cJSON *answer, const struct nb_train_question *q, const char *arm);
/* Value of an arm in a round, or of an arm against another: NaN where there is none. */
typedef double nb_train_value(const cJSON *arm, const cJSON *against, const void *context);
/* Over the rounds in which the arm, and against unless it is null, were measured: Hodges-Lehmann of the values, or of their logarithms,
 * which are then taken back. Rounds are independent units: processes, or seeds. */
struct nb_train_figure {
    struct nb_interval value;
    double *rounds; /* the value in each, NaN where there is none; owned */
    int n_rounds, n_measured;
    const char *reason; /* why there is no value, borrowed from the results; or null */
};
struct nb_train_figure nb_train_figure_of(const struct nb_train_results *r, const struct nb_train_question *q,
                                          const char *arm, const char *against, nb_train_value *value,
                                          const void *context, bool logarithmic);

struct nb_train_study {
    const struct nb_train_plan *plan;
    const char *dir;            /* of the journal; what that answers is not asked again */
    struct nb_journal *journal; /* open, and begun */
    const char *text;           /* file to train on; null: the usual one */
    const char *max_width;      /* or null */
    double budget_s;  /* groups that do not fit are left out, the most expensive first, those that stay last */
    bool may_overrun; /* those that stay are made even where they do not fit */
    double launch_s;  /* how long the steps of a launch go on */
    int rounds[NB_N_TRAIN_MEASURES]; /* of each kind of group, where the plan asks for no more */
};

/* Answers, those of an earlier run included, go to *out. 0, -1 after nb_error, or the number of the signal that ended it. */
int nb_train_study_run(const struct nb_train_study *study, struct nb_train_results *out);

#endif
