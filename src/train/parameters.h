// SPDX-License-Identifier: Apache-2.0
/* The parameters of a model with their gradients and what the optimizer keeps of them, in one place, so that they can be
 * updated, clipped, compared by finite differences and counted. */
#ifndef NB_TRAIN_PARAMETERS_H
#define NB_TRAIN_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nb_parameter {
    char name[48]; /* "layer3.attention.wq" */
    int64_t rows, cols;
    float *value, *gradient;
    float *first, *second; /* Adam's moments; null until the first update */
    bool decays;           /* weight decay applies: matrices, not gains and biases */
    bool frozen;
};

struct nb_parameters {
    struct nb_parameter *items;
    int n;
    int64_t step; /* updates made */
};

/* Adds one, values and gradient zero; the pointer stays valid until nb_parameters_release() (items do not move: reserve first). */
void nb_parameters_reserve(struct nb_parameters *p, int n);
struct nb_parameter *nb_parameter_add(struct nb_parameters *p, const char *name, int64_t rows, int64_t cols,
                                      bool decays);
/* Normal with the standard deviation given, from the seed and the name alone, so that arms with other norms share it. */
void nb_parameter_draw(struct nb_parameter *parameter, uint64_t seed, double deviation);
void nb_parameter_fill(struct nb_parameter *parameter, float value);
void nb_parameters_zero_gradients(struct nb_parameters *p);
/* Root of the sum of squares of all gradients; infinite or NaN when one is. */
double nb_parameters_gradient_norm(const struct nb_parameters *p);
void nb_parameters_scale_gradients(struct nb_parameters *p, float factor);
int64_t nb_parameters_count(const struct nb_parameters *p); /* scalars */
void nb_parameters_release(struct nb_parameters *p);

struct nb_optimizer {
    enum { NB_SGD, NB_ADAMW } kind;
    double learning_rate, beta1, beta2, eps, decay; /* decoupled decay, Loshchilov & Hutter 2019 */
};
void nb_optimizer_update(const struct nb_optimizer *o, struct nb_parameters *p);

#endif
