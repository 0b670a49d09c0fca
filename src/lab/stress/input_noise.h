// SPDX-License-Identifier: Apache-2.0
/* What storing the inputs costs already: how far the exact y moves when each x is moved by half a unit in its last place. No
 * kernel can be asked for less, since it never saw the numbers before they were stored.
 *
 * To first order, with c_j = x_j - mean (x_j where the op does not centre), h_j = ulp(x_j) / 2 and N the count that the
 * statistics divide by, dy_i = gamma_i (scale (d_i - mean d) - c_i q / N sum_j c_j d_j), with q = scale^3 for eps inside the root,
 * scale^2 / sqrt(var) outside. The element's own d_i is taken at its largest, h_i; the others as independent and uniform in
 * [-h_j, h_j]. DyT: gamma_i alpha (1 - tanh^2) h_i.
 * src/accuracy/noise.h has a row's largest change by trying eight perturbations; searches need each element's, and fast. */
#ifndef NB_INPUT_NOISE_H
#define NB_INPUT_NOISE_H

#include <stdint.h>

#include "src/accuracy/oracle.h"

/* noise[i] for each column of a row: |change of y_i|. */
void nb_input_noise(const struct nb_oracle *o, int64_t row, double *noise);
/* magnitude[i]: of y_i, or of what cancels in it: beta, and where the op centres the root mean square of gamma_i times the
 * normalized row, since an error of the mean is shared by all elements. */
void nb_row_magnitude(const struct nb_oracle *o, int64_t row, const double *y, double *magnitude);

#endif
