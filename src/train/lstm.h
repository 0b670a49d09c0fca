// SPDX-License-Identifier: Apache-2.0
/* A long short-term memory over time with normalizations where the code of Zhang & Sennrich 2019 has them (layers.py, after Cooijmans
 * et al. 2017): behind the products of input and state, each of 4 hidden, and behind the cell, each called once a step:
 *   i, f, o = sigmoid(.), g = tanh(.)  of norm(x W^T) + norm(h U^T) + b
 *   c' = f * c + i * g;   h' = o * tanh(norm(c'))
 * Tensors are steps x batch x width; states and cells have one step more, whose first (backwards: last) one is the caller's. */
#ifndef NB_TRAIN_LSTM_H
#define NB_TRAIN_LSTM_H

#include "src/train/projection.h"

struct nb_lstm_shape {
    int64_t n_steps, batch, in, hidden;
    bool backwards; /* in time */
};

struct nb_lstm {
    struct nb_lstm_shape shape;
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
int nb_lstm_init(struct nb_lstm *l, struct nb_model *model, struct nb_model_arenas *arenas, const char *name,
                 const struct nb_lstm_shape *shape);
enum { NB_LSTM_PARAMETERS = 9 }; /* at most */

/* states: the caller sets the first (backwards: the last), the others are written. */
void nb_lstm_forward(struct nb_lstm *l, float *states, const float *x);
/* dstates: the gradient by each state from elsewhere; afterwards it is complete. dx is overwritten. */
void nb_lstm_backward(struct nb_lstm *l, float *dx, float *dstates, const float *states, const float *x);
/* Where the outputs of all steps begin in states. */
float *nb_lstm_outputs(const struct nb_lstm *l, float *states);

void nb_lstm_tell(const struct nb_lstm *l);
void nb_lstm_tell_gradients(const struct nb_lstm *l);
double nb_lstm_flops(const struct nb_lstm_shape *shape); /* forward and backward, products alone */
void nb_lstm_release(struct nb_lstm *l);

#endif
