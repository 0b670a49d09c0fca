// SPDX-License-Identifier: Apache-2.0
/* What is left of numbers when they are stored in 8 bits: e4m3, e5m2, or int8 (symmetric, -127 to 127), after division by a scale
 * that takes the largest magnitude to the format's largest number: of the whole tensor, of each row, or none. */
#pragma once

#include <stdint.h>

#include "src/core/dtype.h"
#include "src/core/json.h"

enum nb_quantum { NB_QUANTUM_E4M3, NB_QUANTUM_E5M2, NB_QUANTUM_INT8, NB_N_QUANTA };
enum nb_scaling { NB_SCALING_NONE, NB_SCALING_TENSOR, NB_SCALING_ROW, NB_N_SCALINGS };
extern const char *const nb_quantum_names[]; /* null-terminated: "e4m3", "e5m2", "int8" */
extern const char *const nb_scaling_names[]; /* "none", "tensor", "row" */

/* What becomes NaN or Inf has an infinite error: -Infinity dB, and Infinity in the other figures. */
struct nb_quantized {
    int64_t n, n_not_finite; /* elements; of them left out, NaN or Inf before the quantization */
    double sqnr_db;          /* 10 log10(sum v^2 / sum error^2) */
    double max_error;        /* largest |error| over the rms of its row */
    double max_relative;     /* largest |error / v| of elements that do not become 0 */
    double mean_relative;    /* mean of |error / v| over elements other than 0; what becomes 0 counts 1 */
    double rms_error;        /* rms of error over the rms of its row */
    double lost;             /* share of elements other than 0 that become 0 */
    double beyond;           /* share beyond the range: NaN or Inf, in int8 cut off */
    double largest_scale, smallest_scale;
};

/* The scale itself is rounded to f32, as it is stored. */
void nb_quantize(struct nb_quantized *q, const double *values, int64_t rows, int64_t cols, enum nb_quantum quantum,
                 enum nb_scaling scaling);
extern const struct nb_member nb_quantized_members[];
