// SPDX-License-Identifier: Apache-2.0
/* The parts of recurrent models: two gated cells (GRU, LSTM) and additive attention, with normalizations where the code of Zhang &
 * Sennrich 2019 has them; and the options of the recurrent workloads. Tensors are steps x batch x width. */
#ifndef NB_TRAIN_RECURRENT_H
#define NB_TRAIN_RECURRENT_H

#include "src/train/projection.h"
#include "src/train/workload.h"

/* Fills what is 0 from `usual`, a struct nb_train_options, and refuses what a recurrent workload cannot do: null or the reason. hidden must
 * be a multiple of 16, so that the other widths, which are shares of it, are whole; a sequence at least 4 long. */
const char *nb_recurrent_complete(const void *usual, struct nb_train_options *options);

/* Of a cell. One that runs backwards in time finds the state before step t at step t + 1. */
struct nb_recurrent_shape {
    int64_t n_steps, batch, in, hidden;
    bool backwards;
    bool
        input_by_step; /* GRU: norms of the input once a step (Theano's scan), else once for all (TensorFlow's Nematus) */
};
/* Where the outputs of all steps begin in the states of a cell. */
float *nb_recurrent_outputs(const struct nb_recurrent_shape *shape, float *states);

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

/* Parameters: NAME.x_gates, NAME.x_candidate, NAME.h_gates, NAME.h_candidate, each as of a projection; the cell is called PLACE.WHAT. */
void nb_gru_init(struct nb_gru *g, struct nb_model *model, const char *place, const char *what,
                 const struct nb_recurrent_shape *shape);

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

void nb_gru_observe(const struct nb_gru *g, enum nb_observed what);
double nb_gru_flops(const struct nb_recurrent_shape *shape); /* forward and backward, products alone */

/* ---- LSTM ---- */

/* A long short-term memory as in layers.py, after Cooijmans et al. 2017: norms behind the products of input and state, each of 4 hidden, and behind the cell, each called once a step:
 *   i, f, o = sigmoid(.), g = tanh(.)  of norm(x W^T) + norm(h U^T) + b
 *   c' = f * c + i * g;   h' = o * tanh(norm(c'))
 * States and cells have one step more, whose first (backwards: last) one is the caller's. */
struct nb_lstm {
    struct nb_recurrent_shape shape;
    struct nb_model *model; /* borrowed */
    struct nb_place place;
    struct nb_projection x, h;
    struct nb_norm_layer cell_norm;
    struct nb_parameter *bias;
    float *gates;                              /* i, f, o, g: steps x batch x 4 hidden */
    float *cells;                              /* c: steps + 1; the first one 0 */
    float *squashed;                           /* tanh(norm(c')), steps */
    float *normed, *dnormed, *through, *dcell; /* of one step */
};

/* Parameters: NAME.x, NAME.h (as of projections), NAME.cell (the norm's), NAME.bias; the cell is called PLACE.WHAT. */
void nb_lstm_init(struct nb_lstm *l, struct nb_model *model, const char *place, const char *what,
                  const struct nb_recurrent_shape *shape);

/* states: the caller sets the first (backwards: the last), the others are written. */
void nb_lstm_forward(struct nb_lstm *l, float *states, const float *x);
/* dstates: the gradient by each state from elsewhere; afterwards it is complete. dx is overwritten. */
void nb_lstm_backward(struct nb_lstm *l, float *dx, float *dstates, const float *states, const float *x);

void nb_lstm_observe(const struct nb_lstm *l, enum nb_observed what);
double nb_lstm_flops(const struct nb_recurrent_shape *shape); /* forward and backward, products alone */

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

/* Parameters: NAME.query, NAME.memory (as of projections), NAME.score. */
void nb_additive_init(struct nb_additive *a, struct nb_model *model, const char *name,
                      const struct nb_additive_shape *shape);
/* Steps from the first to the last; the memory is read whole in the first. */
void nb_additive_step(struct nb_additive *a, int64_t step, float *context, const float *query, const float *memory);
/* Steps from the last to the first. Adds to dquery and to dmemory. */
void nb_additive_step_backward(struct nb_additive *a, int64_t step, float *dquery, float *dmemory,
                               const float *dcontext, const float *memory);
/* After these: adds what came through the scores to dmemory; queries of all steps, packed. */
void nb_additive_finish(struct nb_additive *a, float *dmemory, const float *memory, const float *queries);

double nb_additive_flops(const struct nb_additive_shape *shape); /* forward and backward, the sums over sources too */

#endif
