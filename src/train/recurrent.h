// SPDX-License-Identifier: Apache-2.0
/* The parts of recurrent models: two gated cells (GRU, LSTM) and additive attention, with normalizations where the code of Zhang &
 * Sennrich 2019 has them; and what the recurrent workloads have in common: options, their bounds, the optimizer. Tensors are
 * steps x batch x width. */
#ifndef NB_TRAIN_RECURRENT_H
#define NB_TRAIN_RECURRENT_H

#include "src/train/projection.h"
#include "src/train/workload.h"

struct nb_recurrent_defaults {
    int hidden, batch, sequence;
    double learning_rate;
};

/* Fills what is 0 and refuses what a recurrent workload cannot do: null or the reason. hidden must be a multiple of 16, so that
 * the other widths, which are shares of it, are whole; a sequence at least 4 long. defaults: a struct nb_recurrent_defaults. */
const char *nb_recurrent_complete(const void *defaults, struct nb_train_options *options);
/* Adam (Kingma & Ba 2015) with the rate of the options, as in all experiments of Zhang & Sennrich 2019. */
struct nb_optimizer nb_recurrent_optimizer(const void *defaults, const struct nb_train_options *options);

/* Of a cell. One that runs backwards in time finds the state before step t at step t + 1. */
struct nb_recurrent_shape {
    int64_t n_steps, batch, in, hidden;
    bool backwards;
    bool
        input_by_step; /* GRU: norms of the input once a step (Theano's scan), else for all steps at once (TensorFlow's Nematus) */
};

/* ---- GRU ---- */

/* A gated recurrent unit as in Nematus, and in layers.py for the order embedding: a norm behind each of its four products, those of the input x and those of the state h:
 *   r, u = sigmoid(norm(x Wg^T + bg) + norm(h Ug^T))          width 2 hidden
 *   c    = tanh(norm(x Wc^T + bc) + r * norm(h Uc^T))         width hidden
 *   h'   = u * h + (1 - u) * c */
struct nb_gru {
    struct nb_recurrent_shape shape;
    struct nb_model *model; /* borrowed */
    struct nb_projection x_gates, x_candidate, h_gates, h_candidate;
    float *gates;     /* r and u, steps x batch x 2 hidden */
    float *candidate; /* c */
};

/* Parameters: NAME.x_gates, NAME.x_candidate, NAME.h_gates, NAME.h_candidate, each as of a projection. -1 after nb_error. */
int nb_gru_init(struct nb_gru *g, struct nb_model *model, const char *name, const struct nb_recurrent_shape *shape);
enum { NB_GRU_PARAMETERS = 4 * 4 }; /* at most */

/* Step by step, for a layer whose input depends on its earlier output. Input first, for one step or several. */
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

void nb_gru_observe(const struct nb_gru *g);
void nb_gru_observe_gradients(const struct nb_gru *g);
double nb_gru_flops(const struct nb_recurrent_shape *shape); /* forward and backward, products alone */
void nb_gru_release(struct nb_gru *g);

/* ---- LSTM ---- */

/* A long short-term memory as in layers.py, after Cooijmans et al. 2017: norms behind the products of input and state, each of 4 hidden, and behind the cell, each called once a step:
 *   i, f, o = sigmoid(.), g = tanh(.)  of norm(x W^T) + norm(h U^T) + b
 *   c' = f * c + i * g;   h' = o * tanh(norm(c'))
 * States and cells have one step more, whose first (backwards: last) one is the caller's. */
struct nb_lstm {
    struct nb_recurrent_shape shape;
    struct nb_model *model; /* borrowed */
    char name[40];
    struct nb_projection x, h;
    struct nb_norm_steps cell_norm;
    struct nb_parameter *bias;
    float *gates;                              /* i, f, o, g: steps x batch x 4 hidden */
    float *cells;                              /* c: steps + 1; the first one 0 */
    float *squashed;                           /* tanh(norm(c')), steps */
    float *normed, *dnormed, *through, *dcell; /* of one step */
};

/* Parameters: NAME.x, NAME.h (as of projections), NAME.cell (the norm's), NAME.bias. -1 after nb_error. */
int nb_lstm_init(struct nb_lstm *l, struct nb_model *model, const char *name, const struct nb_recurrent_shape *shape);
enum { NB_LSTM_PARAMETERS = 9 }; /* at most */

/* states: the caller sets the first (backwards: the last), the others are written. */
void nb_lstm_forward(struct nb_lstm *l, float *states, const float *x);
/* dstates: the gradient by each state from elsewhere; afterwards it is complete. dx is overwritten. */
void nb_lstm_backward(struct nb_lstm *l, float *dx, float *dstates, const float *states, const float *x);
/* Where the outputs of all steps begin in states. */
float *nb_lstm_outputs(const struct nb_lstm *l, float *states);

void nb_lstm_observe(const struct nb_lstm *l);
void nb_lstm_observe_gradients(const struct nb_lstm *l);
double nb_lstm_flops(const struct nb_recurrent_shape *shape); /* forward and backward, products alone */
void nb_lstm_release(struct nb_lstm *l);

/* ---- additive attention ---- */

/* Additive attention (Bahdanau et al. 2015) of queries, step by step, over a memory that stays:
 *   score_j = v . tanh(norm(query Wq^T) + norm(memory_j Wm^T + b));   context = sum_j softmax(score)_j memory_j
 * memory: sources x batch x width. */
struct nb_additive_shape {
    int64_t n_steps, n_sources, batch;
    int64_t query, memory, width; /* width: of the hidden layer */
    bool normed;
};

struct nb_additive {
    struct nb_additive_shape shape;
    struct nb_model *model; /* borrowed */
    struct nb_projection from_query, from_memory;
    struct nb_parameter *score;
    float *hidden;  /* tanh(.): steps x sources x batch x width */
    float *weights; /* steps x batch x sources */
};

/* Parameters: NAME.query, NAME.memory (as of projections), NAME.score. -1 after nb_error. */
int nb_additive_init(struct nb_additive *a, struct nb_model *model, const char *name,
                     const struct nb_additive_shape *shape);
enum { NB_ADDITIVE_PARAMETERS = 8 }; /* at most */

void nb_additive_memory(struct nb_additive *a, const float *memory);
void nb_additive_step(struct nb_additive *a, int64_t step, float *context, const float *query, const float *memory);
/* Before the first step's backward. */
void nb_additive_start_backward(struct nb_additive *a);
/* Adds to dquery and to dmemory. */
void nb_additive_step_backward(struct nb_additive *a, int64_t step, float *dquery, float *dmemory,
                               const float *dcontext, const float *memory);
/* After the last: adds what came through the scores to dmemory; queries of all steps, packed. */
void nb_additive_finish(struct nb_additive *a, float *dmemory, const float *memory, const float *queries);

double nb_additive_flops(const struct nb_additive_shape *shape); /* forward and backward, the sums over sources too */
void nb_additive_release(struct nb_additive *a);

#endif
