// SPDX-License-Identifier: Apache-2.0
/* A gated recurrent unit over time with normalizations where the code of Zhang & Sennrich 2019 has them (Nematus, and layers.py for the
 * order embedding): behind each of its four products, those of the input x and those of the state h:
 *   r, u = sigmoid(norm(x Wg^T + bg) + norm(h Ug^T))          width 2 hidden
 *   c    = tanh(norm(x Wc^T + bc) + r * norm(h Uc^T))         width hidden
 *   h'   = u * h + (1 - u) * c
 * Tensors are steps x batch x width. Where it runs backwards in time the state before step t is that of step t + 1. */
#ifndef NB_TRAIN_GRU_H
#define NB_TRAIN_GRU_H

#include "src/train/projection.h"

struct nb_gru_shape {
    int64_t n_steps, batch, in, hidden;
    bool backwards;
    bool
        input_by_step; /* norms of the input once a step (Theano's scan), else once for all steps (TensorFlow's Nematus) */
};

struct nb_gru {
    struct nb_gru_shape shape;
    struct nb_model *model; /* borrowed */
    struct nb_projection x_gates, x_candidate, h_gates, h_candidate;
    float *gates;     /* r and u, steps x batch x 2 hidden */
    float *candidate; /* c */
};

/* Parameters: NAME.x_gates, NAME.x_candidate, NAME.h_gates, NAME.h_candidate, each as of a projection. -1 after nb_error. */
int nb_gru_init(struct nb_gru *g, struct nb_model *model, struct nb_model_arenas *arenas, const char *name,
                const struct nb_gru_shape *shape);
enum { NB_GRU_PARAMETERS = 4 * 4 }; /* at most */

/* Step by step, for a layer whose input hangs on what it said before. Input first, for one step or several. */
void nb_gru_input(struct nb_gru *g, const float *x, int64_t first, int64_t n_steps);
void nb_gru_step(struct nb_gru *g, int64_t step, float *next, const float *state);
/* Adds the gradient by the state before to dstate. */
void nb_gru_step_backward(struct nb_gru *g, int64_t step, float *dstate, const float *dnext, const float *state);
/* After the steps' backward: dx = gradient by the input of these steps + keep * dx. */
void nb_gru_input_backward(struct nb_gru *g, float *dx, int64_t first, int64_t n_steps, float keep);
/* At the end: input and state before each step, packed, for the gradients of the weights. */
void nb_gru_finish(struct nb_gru *g, const float *x, const float *states_before);

/* All steps. states: steps + 1 of them; the caller sets the first (backwards: the last), the others are written. */
void nb_gru_forward(struct nb_gru *g, float *states, const float *x);
/* dstates: the gradient by each state from elsewhere, the first one's as well; afterwards that by the first state is complete, and the
 * others too. dx is overwritten. */
void nb_gru_backward(struct nb_gru *g, float *dx, float *dstates, const float *states, const float *x);
/* Where the outputs of all steps begin in states. */
float *nb_gru_outputs(const struct nb_gru *g, float *states);

void nb_gru_tell(const struct nb_gru *g);
void nb_gru_tell_gradients(const struct nb_gru *g);
double nb_gru_flops(const struct nb_gru_shape *shape); /* forward and backward, products alone */
void nb_gru_release(struct nb_gru *g);

#endif
