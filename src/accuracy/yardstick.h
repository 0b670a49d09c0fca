// SPDX-License-Identifier: Apache-2.0
/* What the error of a kernel on given rows is measured by, beside the bound: what storing the inputs has cost already
 * (noise). It depends on the mathematics and the inputs alone, so that all kernels of an oracle share it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/accuracy.h"
#include "src/accuracy/oracle.h"

/* ---- noise ----------------------------------------------------------------------------------------------------------- */

/* What storing the inputs has cost already: how far the exact y moves when every input moves by half a unit in its last place, up
 * or down at random, the largest of NB_PERTURBATIONS such moves. A kernel whose error is of this size is as good as its data.
 *
 * The change is computed without evaluating y twice, so that nothing cancels: with c = x - mean, d' = d - mean d,
 *   var' - var = 2/N sum c d' + 1/N sum d'^2,   1/s' - 1/s = (s^2 - s'^2) / (s s' (s + s')),
 *   y' - y = gamma (d' / s' + c (1/s' - 1/s)),
 * which for small d is the product of the Jacobian (1/s)(P - z z^T / (n s^2)) with d, and stays exact for large ones. */
enum { NB_PERTURBATIONS = 8 };

/* What element (row, col) of x (residual: of the residual) is moved by in perturbation k. */
double nb_noise_move(const struct nb_oracle *o, bool residual, int64_t row, int64_t col, int k);
/* The largest |y' - y| of each element of a row, where all rows are moved alike; NaN: no finite exact result. */
void nb_input_noise(const struct nb_oracle *o, int64_t row, double *of_elements);

/* ---- ratios ---------------------------------------------------------------------------------------------------------- */

struct nb_yardstick {
    const struct nb_oracle *o;
    double *noise; /* of each row, the largest |y' - y| over elements and perturbations; NaN: no finite exact result */
};
/* Borrows the oracle. */
void nb_yardstick_init(struct nb_yardstick *y, const struct nb_oracle *o);
void nb_yardstick_release(struct nb_yardstick *y);

/* A kernel's errors against it. Zero-initialise but for the yardstick. */
struct nb_ratios {
    const struct nb_yardstick *yardstick;
    double noise_ratio;
    int64_t n_rows;  /* that have a noise and a finite result */
    bool is_strange; /* NaN or Inf stands where a number belongs */
};
/* One row of elements of the dtype beside the exact ones. */
void nb_ratios_row(struct nb_ratios *r, int64_t row, const void *computed, const double *exact);
/* Sets the ratio of an accuracy. */
void nb_ratios_finish(const struct nb_ratios *r, struct nb_accuracy *out);
