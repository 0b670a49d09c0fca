// SPDX-License-Identifier: Apache-2.0
/* One training run from its beginning, and its curves: how wide activations and gradients are while a model trains, as the standard
 * deviation of each tensor that the model names, in the steps that are recorded. */
#ifndef NB_TRAIN_COURSE_H
#define NB_TRAIN_COURSE_H

#include <stdbool.h>

#include "src/train/workload.h"

struct nb_curve {
    char place[96]; /* "layer3.attention.input" */
    bool gradient;  /* of the loss by it */
    double *std;    /* by record; NaN where the place was not observed */
};
struct nb_curves {
    struct nb_curve *items;
    int n;
    int *steps; /* by record */
    int n_records, most_records;
    double scale;                /* of the loss, which gradients carry */
    struct nb_observer observer; /* for nb_model.observer; context is this struct, which must stay where it is */
};

/* One training run from its beginning: the loss of each step, how many steps failed, curves, and the loss in inference mode on batches
 * behind those that were trained on. */

struct nb_course_options {
    int steps;
    int records; /* steps that curves are taken of, evenly over the run, the first and the last among them */
    void (*beat)(void *context, int step); /* may be null */
    void *context;
};

struct nb_course {
    double *loss;        /* by step; NaN is a result */
    int n_steps;         /* fewer than asked for once the loss is no number: it stays so */
    int n_failed;        /* steps without a finite loss and gradient, and all that were not made after one */
    double unseen_loss;  /* in inference mode */
    double uniform_loss; /* of the first step, made from weights that know nothing */
    size_t kept_bytes;
    struct nb_curves curves;
};

/* -1 after nb_error; release in either case. */
int nb_course_run(struct nb_course *c, const struct nb_workload *workload, const struct nb_train_options *options,
                  const struct nb_text *text, const struct nb_course_options *how);
/* Mean over the last tenth of the steps; that of knowing nothing where the run ended in no number. */
double nb_course_final_loss(const double *loss, int n_steps, int n_wanted);
void nb_course_release(struct nb_course *c);

#endif
