// SPDX-License-Identifier: Apache-2.0
/* Whole training steps measured as kernels are: the arms of one workload take turns, step by step, in one process. A block is one step
 * of every arm on the same batch; orders are random, and each is followed by its reverse, so that drift and neighbours weigh on all arms
 * alike. Ratios are formed within blocks. */
#ifndef NB_TRAIN_STEPS_H
#define NB_TRAIN_STEPS_H

#include "src/train/workload.h"

enum nb_step_part { NB_STEP_WHOLE, NB_STEP_PASSES, NB_STEP_FORWARD, NB_STEP_BACKWARD, NB_STEP_NORM, NB_N_STEP_PARTS };
extern const char *const nb_step_part_names[NB_N_STEP_PARTS]; /* "step", "passes", ... */

struct nb_step_arm {
    struct nb_train_options options; /* given */
    struct nb_model model;
    double *seconds
        [NB_N_STEP_PARTS]; /* by block; passes: forward and backward, without clipping and update, which do not grow with
                                       * the batch; norm: within all normalizations */
    double *loss;          /* by block */
    size_t kept_bytes;     /* activations kept from forward to backward */
};

struct nb_steps_options {
    double launch_s; /* go on for so long, and for two blocks at least */
    int most_blocks;
    uint64_t seed;
    void (*beat)(void *context, int arm); /* a step of the arm begins; may be null */
    void *context;
};

/* Makes the models, warms each by a step, measures. *n_blocks: even. -1 after nb_error; release in either case. */
int nb_steps_measure(struct nb_step_arm *arms, int n_arms, const struct nb_workload *workload,
                     const struct nb_text *text, const struct nb_steps_options *options, int *n_blocks);
void nb_steps_release(struct nb_step_arm *arms, int n_arms);

#endif
