// SPDX-License-Identifier: Apache-2.0
/* One training run from its beginning: the loss of each step, how many steps failed, curves, and the loss in inference mode on batches
 * behind those that were trained on. */
#ifndef NB_TRAIN_COURSE_H
#define NB_TRAIN_COURSE_H

#include "src/train/curves.h"

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
