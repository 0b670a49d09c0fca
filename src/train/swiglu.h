// SPDX-License-Identifier: Apache-2.0
/* What stands between the matrices of a feed-forward sublayer: silu(gate) * up (Shazeer 2020), silu(v) = v / (1 + exp(-v)); or ReLU. */
#ifndef NB_TRAIN_SWIGLU_H
#define NB_TRAIN_SWIGLU_H

#include <stdint.h>

void nb_swiglu_forward(float *y, const float *gate, const float *up, int64_t n);
/* Outputs lie apart from inputs. */
void nb_swiglu_backward(float *dgate, float *dup, const float *dy, const float *gate, const float *up, int64_t n);
void nb_relu_forward(float *y, const float *x, int64_t n);
/* The slope at 0 is 0. dx may be dy. */
void nb_relu_backward(float *dx, const float *dy, const float *x, int64_t n);

#endif
