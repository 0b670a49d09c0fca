// SPDX-License-Identifier: Apache-2.0
/* What training jobs answered: lines of DIR/training.jsonl, each whole and on the disk before the next job begins, and the figures
 * that are made of them.
 *
 *   {"request":{"measure","workload","round","steps","arms":[..]},"status":"ok"|..,"reason"?,"elapsed_s":1.5,
 *    "arms":[{"arm",
 *       steps:  "step":[s,..],"forward":[..],"backward":[..],"norm":[..],"loss":[..],"kept_bytes"
 *       memory: "peak_bytes","kept_bytes","parameter_bytes"
 *       course: "loss":[..],"wanted_steps","failed_steps","final_loss","unseen_loss","kept_bytes","recorded_steps":[..],
 *               "curves":[{"place","gradient","std":[..]}]}]} */
#ifndef NB_TRAIN_RESULTS_H
#define NB_TRAIN_RESULTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "src/core/stats.h"
#include "src/train/steps.h"
#include "src/train/train_plan.h"

#define NB_TRAINING_FILE "training.jsonl"

struct nb_train_results {
    cJSON *answers; /* array of lines; null: nothing */
};
/* Takes the answer. */
void nb_train_results_add(struct nb_train_results *r, cJSON *answer);
/* What DIR holds of an earlier run, nothing when there is no such file; a torn last line is left out. -1 after nb_error. */
int nb_train_results_read(struct nb_train_results *r, const char *dir);
int nb_train_results_append(const char *dir, const cJSON *answer); /* -1 after nb_error */
void nb_train_results_release(struct nb_train_results *r);
/* Was it answered, well or not? */
const cJSON *nb_train_results_find(const struct nb_train_results *r, const cJSON *request);

/* Which jobs a figure is of. */
struct nb_train_question {
    enum nb_train_measure measure;
    const char *workload;
    int steps; /* of a course */
};
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
void nb_train_figure_release(struct nb_train_figure *f);

#endif
