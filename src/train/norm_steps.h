// SPDX-License-Identifier: Apache-2.0
/* One normalization of a recurrent layer: the same gain at every step of time, and the statistics of every step kept until the
 * backward pass comes to it. */
#ifndef NB_TRAIN_NORM_STEPS_H
#define NB_TRAIN_NORM_STEPS_H

#include "src/train/norm_layer.h"
#include "src/train/workload.h"

struct nb_norm_steps {
    struct nb_norm_layer layer;
    struct nb_model *model; /* borrowed; its norm_seconds and norm_calls grow here */
    float *mean, *rstd;     /* of all steps */
    int64_t rows;           /* of a step */
};

/* Parameters as nb_norm_layer_init() adds them; the statistics are added to the model's activation_bytes. -1 after nb_error. */
int nb_norm_steps_init(struct nb_norm_steps *s, struct nb_model *model, const char *name, int64_t n_steps, int64_t rows,
                       int64_t cols);
bool nb_norm_steps_are_none(const struct nb_norm_steps *s);
/* x and arena are those of step `first`, n_steps of them in one call. What is returned is arena, or x itself where no normalization is. */
const float *nb_norm_steps_forward(struct nb_norm_steps *s, float *arena, const float *x, int64_t first,
                                   int64_t n_steps);
const float *nb_norm_steps_backward(struct nb_norm_steps *s, float *arena, const float *dy, const float *x,
                                    int64_t first, int64_t n_steps);
void nb_norm_steps_release(struct nb_norm_steps *s);

#endif
