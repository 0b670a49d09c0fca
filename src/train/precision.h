// SPDX-License-Identifier: Apache-2.0
/* Where mixed precision rounds (Micikevicius et al. 2018): activations and their gradients are stored in the dtype, weights are kept
 * in f32 and rounded for use, gradients of weights leave their matrix product in the dtype; products, statistics, losses and the
 * optimizer work in f32. Here all tensors are f32 arrays, and what would be stored in the dtype is rounded in place, and the norms' kernels are
 * f32's: such a run says how training goes, not what it costs. */
#ifndef NB_TRAIN_PRECISION_H
#define NB_TRAIN_PRECISION_H

#include <stdint.h>

#include "kernels/kernel.h"

/* To nearest even, overflow to infinity; nothing happens with f32. */
void nb_round_tensor(float *values, int64_t n, enum nb_dtype dtype);

#endif
