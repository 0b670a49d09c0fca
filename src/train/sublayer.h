// SPDX-License-Identifier: Apache-2.0
/* A sublayer of a transformer with its normalization and the path past it:
 *   pre-norm (Xiong et al. 2020)      out = x + f(norm(x))
 *   post-norm (Vaswani et al. 2017)   out = norm(x + f(x))
 * without "x +" where the model has no residual paths. */
#ifndef NB_TRAIN_SUBLAYER_H
#define NB_TRAIN_SUBLAYER_H

#include "src/train/arena.h"
#include "src/train/norm_layer.h"
#include "src/train/workload.h"

struct nb_sublayer {
    char place[48]; /* "layer3.attention", for observers */
    const struct nb_model *model;
    struct nb_norm_layer norm;
    int64_t rows, width;
    void *inside; /* borrowed: what is wrapped */
    void (*forward)(void *inside, float *y, const float *x, bool training);
    void (*backward)(void *inside, float *dx, const float *dy, const float *x); /* overwrites dx */
    float *normed, *sum; /* kept: the norm's output; f's output, with x where there is a residual path */
    const float *x;      /* of the last forward; borrowed */
};

/* norm_name: "layer3.input_layernorm". The caller sets inside, forward and backward. -1 after nb_error. */
int nb_sublayer_init(struct nb_sublayer *s, struct nb_model *model, const char *place, const char *norm_name,
                     int64_t rows, int64_t width, struct nb_arena *kept);
/* Returns the output; x must stay until backward. Tells of "PLACE.input" (what f works on), "PLACE.output" (what f makes of it)
 * and "PLACE.stream" (the sublayer's output). */
const float *nb_sublayer_forward(struct nb_sublayer *s, const float *x, bool training);
/* d: the gradient by the output, in whose place that by x comes. Two arenas of rows x width. */
void nb_sublayer_backward(struct nb_sublayer *s, float *d, float *arena, float *other_arena);
void nb_sublayer_release(struct nb_sublayer *s);

#endif
