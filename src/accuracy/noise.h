// SPDX-License-Identifier: Apache-2.0
/* What storing the inputs has cost already: how far the exact y moves when every input moves by half a unit in its last place, up
 * or down at random, the largest of NB_PERTURBATIONS such moves. A kernel whose error is of this size is as good as its data.
 *
 * The change is computed without evaluating y twice, so that nothing cancels: with c = x - mean, d' = d - mean d,
 *   var' - var = 2/N sum c d' + 1/N sum d'^2,   1/s' - 1/s = (s^2 - s'^2) / (s s' (s + s')),
 *   y' - y = gamma (d' / s' + c (1/s' - 1/s)),
 * which for small d is the product of the Jacobian (1/s)(P - z z^T / (n s^2)) with d, and stays exact for large ones. */
#ifndef NB_NOISE_H
#define NB_NOISE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/oracle.h"

enum { NB_PERTURBATIONS = 8 };

struct nb_noise;
/* Borrows the oracle. */
struct nb_noise *nb_noise_new(const struct nb_oracle *o, uint64_t seed);
/* The largest |y' - y| of a row over its elements and all perturbations; NaN where the row has no finite exact result. */
double nb_noise_row(struct nb_noise *noise, int64_t row);
/* What element (row, col) of x (residual: of the residual) is moved by in perturbation k. */
double nb_noise_move(const struct nb_noise *noise, bool residual, int64_t row, int64_t col, int k);
void nb_noise_free(struct nb_noise *noise);

#endif
