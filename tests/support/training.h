// SPDX-License-Identifier: Apache-2.0
/* Models made by hand, and their gradients against differences of the loss. */
#ifndef NB_TEST_SUPPORT_TRAINING_H
#define NB_TEST_SUPPORT_TRAINING_H

#include "src/train/data.h"
#include "src/train/workload.h"

/* Some prose, the same everywhere. Nothing to release. */
struct nb_text plain_text(void);
/* f32, learned gains, one thread; everything else the workload's own. */
struct nb_train_options arm_of(enum nb_norm_kind kind, enum nb_style style);
/* The model stays where it is: its layers point to it. */
void make_model(struct nb_model *model, const char *workload, const struct nb_train_options *options);
void start_model(struct nb_model *model, const struct nb_workload *workload, const struct nb_train_options *options);

/* Asserts for each parameter that the loss of batch 0 changes as its gradient says: along the gradient and a random direction together, by
 * differences of fourth order. Gains and biases are moved off 1 and 0 first, so that none of them hides. */
void assert_gradients(struct nb_model *model, const struct nb_text *text, const char *what);

#endif
