// SPDX-License-Identifier: Apache-2.0
/* The parts of recurrent models: two gated cells (GRU, LSTM) and additive attention, with normalizations where the code of Zhang &
 * Sennrich 2019 has them; and the options of the recurrent workloads. Tensors are steps x batch x width. */
#ifndef NB_TRAIN_RECURRENT_H
#define NB_TRAIN_RECURRENT_H

#include "src/train/norm_layer.h"
#include "src/train/workload.h"

/* A product with its norm over time, y = norm(x w^T + b): the piece that gated layers, attention and readouts are made of. It is called for
 * some steps of time at once; what the backward pass needs is kept for all of them (the norm has the same gain at every step, and
 * statistics of each), and the gradient of w is one product over all steps at the end. */

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
double nb_projection_flops(struct nb_projection_shape shape); /* forward and backward, products alone */

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

/* A gated recurrent unit as in Nematus, and in layers.py for the order embedding: a norm behind each of its four
 * products, those of the input x and those of the state h:
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

/* A long short-term memory as in layers.py, after Cooijmans et al. 2017: norms behind the products of input and state, each of 4 hidden,
 * and behind the cell, each called once a step:
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
