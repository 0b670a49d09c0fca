// SPDX-License-Identifier: Apache-2.0
/* What recurrent layers are made of: y = norm(x w^T + b) over steps of time. */
#ifndef NB_TRAIN_PROJECTION_H
#define NB_TRAIN_PROJECTION_H

#include "src/train/norm_layer.h"
#include "src/train/workload.h"

/* The piece that gated layers, attention and readouts are made of. It is called for some steps of time at once; what the backward pass
 * needs is kept for all of them (the norm has the same gain at every step, and statistics of each), and the gradient of w is one product
 * over all steps at the end. */

enum nb_projection_flag {
    NB_PROJECTION_BIASED = 1,
    NB_PROJECTION_NORMED = 2,    /* a normalization stands behind the product */
    NB_PROJECTION_BY_STEP = 4,   /* it is called once a step even where many come at once, as inside theano.scan */
    NB_PROJECTION_READ_BACK = 8, /* the caller's backward pass reads the result */
};

struct nb_projection_shape {
    int64_t n_steps, rows, in, out; /* rows of a step */
    unsigned flags;
};

struct nb_projection {
    struct nb_projection_shape shape;
    struct nb_model *model; /* borrowed */
    struct nb_place place;
    struct nb_parameter *weight, *bias; /* bias null: none */
    struct nb_norm_layer norm;          /* of the rows of all steps */
    float *product;                     /* steps x rows x out: x w^T + b */
    float *normed;                      /* null: the product is the result */
    float *gradient;                    /* of the loss by the result: the caller writes it, step by step */
    float *before;                      /* of the loss by the product; null: gradient is */
};

/* Adds PLACE.weight, PLACE.bias and the parameters of the norm PLACE, for the place NAME.WHAT. gradient null: it has an array of its
 * own; else the gradient by this result is that of another tensor of the same size, such as the other addend of a sum. */
void nb_projection_init(struct nb_projection *p, struct nb_model *model, const char *name, const char *what,
                        struct nb_projection_shape shape, float *gradient);
/* x and what is returned belong to step `first`. */
const float *nb_projection_forward(struct nb_projection *p, const float *x, int64_t first, int64_t n_steps);
/* The result and its gradient at a step. */
const float *nb_projection_result(const struct nb_projection *p, int64_t step);
float *nb_projection_gradient(const struct nb_projection *p, int64_t step);
/* From the gradient by the result: dx = gradient by x + keep * dx, where dx is not null. */
void nb_projection_backward(struct nb_projection *p, float *dx, int64_t first, int64_t n_steps, float keep);
/* After the backward pass of all steps: x of all steps, packed. Adds to the gradients of weight and bias. */
void nb_projection_finish(struct nb_projection *p, const float *x);
/* Shows the observer product and result, or the gradients of both, over all steps. */
void nb_projection_observe(const struct nb_projection *p, enum nb_observed what);
double nb_projection_flops(struct nb_projection_shape shape); /* forward and backward, products alone */

#endif
