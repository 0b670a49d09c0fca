// SPDX-License-Identifier: Apache-2.0
/* The parameters of a model with their gradients and what the optimizer keeps of them, in one place, so that they can be
 * updated, clipped, compared by finite differences and counted. */
#ifndef NB_TRAIN_PARAMETERS_H
#define NB_TRAIN_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

struct nb_place {
    char text[48]; /* "layer3.attention.wq" */
};
/* PLACE.WHAT, or the one of both that is not empty. */
struct nb_place nb_place_of(const char *place, const char *what);

struct nb_parameter {
    char name[48]; /* as a place */
    int64_t rows, cols;
    float *value, *gradient;
    float *rounded;        /* value in the dtype of a mixed-precision run, as f32; null: value is used as it is */
    float *first, *second; /* Adam's moments; null until the first update */
    uint64_t seed;         /* of a matrix: what its first values were drawn from, */
    double deviation;      /* and how wide */
    bool decays;           /* weight decay applies: matrices, not gains and biases */
    bool frozen;
};

struct nb_parameters { /* zero-initialise */
    struct nb_parameter *items;
    int n;
    int64_t step; /* updates made */
    /* Of a model that shares the seed and was not updated yet, or null: matrices that are the same there are copied, which takes a tenth of
     * the time to draw them. Read while parameters are added, not later. */
    const struct nb_parameters *like;
};

/* Each adds a parameter of the name PLACE.WHAT; the pointer stays valid until nb_parameters_release(). */
/* A matrix, which decays: normal with the standard deviation given, from the seed and the name alone, so that arms with other norms
 * share it. */
struct nb_parameter *nb_parameter_matrix(struct nb_parameters *p, const char *place, const char *what, int64_t rows,
                                         int64_t cols, uint64_t seed, double deviation);
/* A gain or a bias, every element of it `value` at first. */
struct nb_parameter *nb_parameter_vector(struct nb_parameters *p, const char *place, const char *what, int64_t n,
                                         float value);
/* Before a forward pass of mixed precision: matrices (those that decay) are rounded for use; nothing with f32. */
void nb_parameters_round(struct nb_parameters *p, enum nb_dtype dtype);
/* After its backward pass: gradients of matrices, which leave their product in the dtype. */
void nb_parameters_round_gradients(struct nb_parameters *p, enum nb_dtype dtype);
/* What a product takes: rounded, where there is such a thing. */
const float *nb_parameter_used(const struct nb_parameter *parameter);
void nb_parameters_zero_gradients(struct nb_parameters *p);
/* Root of the sum of squares of the gradients of all that is not frozen; infinite or NaN when one is. */
double nb_parameters_gradient_norm(const struct nb_parameters *p);
void nb_parameters_scale_gradients(struct nb_parameters *p, float factor);
int64_t nb_parameters_count(const struct nb_parameters *p);                              /* scalars */
struct nb_parameter *nb_parameter_find(const struct nb_parameters *p, const char *name); /* null */
void nb_parameters_release(struct nb_parameters *p);

/* NB_ADAMW: m and v as Adam (Kingma & Ba 2015) with corrected bias, value -= rate * (m / (sqrt(v) + eps) + decay * value), the decay for
 * matrices alone. NB_SGD: value -= rate * (gradient + decay * value). */
struct nb_optimizer {
    enum { NB_SGD, NB_ADAMW } kind;
    double learning_rate, beta1, beta2, eps, decay; /* decoupled decay, Loshchilov & Hutter 2019 */
};
void nb_optimizer_update(const struct nb_optimizer *o, struct nb_parameters *p);

/* The dynamic loss scale of f16 (Micikevicius et al. 2018; figures as torch.amp.GradScaler): the loss is multiplied by it, so that small
 * gradients stay above f16's least numbers. A step whose gradients overflow is left out and the scale halved; after many good ones it
 * doubles. */

struct nb_loss_scale {
    bool dynamic; /* f16; else the scale stays 1 */
    double scale;
    int64_t good_steps; /* since it last changed */
    int64_t growth_interval;
    int64_t skipped_steps; /* in all */
};

void nb_loss_scale_init(struct nb_loss_scale *s, enum nb_dtype dtype);
/* After a backward pass: shall the update be made? */
bool nb_loss_scale_update(struct nb_loss_scale *s, bool gradients_are_finite);

#endif
