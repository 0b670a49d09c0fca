// SPDX-License-Identifier: Apache-2.0
/* A correct RMSNorm of f32 rows, for plugins that do one thing otherwise. */
#pragma once

#include <math.h>

#include "kernels/kernel.h"

#define ROWS const struct nb_call *call, int phase __attribute__((unused)), int64_t begin, int64_t end

static inline const float *row_x(const struct nb_call *call, int64_t row) {
    return (const float *)call->x + row * call->x_stride;
}
static inline float *row_y(const struct nb_call *call, int64_t row) { return (float *)call->y + row * call->y_stride; }

static inline double mean_square(const struct nb_call *call, int64_t row) {
    double sum = 0;
    for (int64_t i = 0; i < call->cols; i++) sum += (double)row_x(call, row)[i] * row_x(call, row)[i];
    return sum / (double)call->cols;
}
/* Element i of y, in double; m: the mean square of its row. */
static inline double element(const struct nb_call *call, int64_t row, int64_t i, double m) {
    double y = row_x(call, row)[i] / sqrt(m + call->eps);
    if (call->gamma) y *= ((const float *)call->gamma)[i];
    if (call->beta) y += ((const float *)call->beta)[i];
    return y;
}
static inline void correct_row(const struct nb_call *call, int64_t row) {
    const double m = mean_square(call, row);
    for (int64_t i = 0; i < call->cols; i++) row_y(call, row)[i] = (float)element(call, row, i, m);
}
static inline int correct_rows(const struct nb_call *call, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) correct_row(call, row);
    return 0;
}

/* What such a kernel declares besides its names. */
#define OF_ROWS                                                                                                        \
    .struct_size = sizeof(struct nb_kernel), .op = NB_OP_RMSNORM, .dtype = NB_F32, .width = NB_NATIVE,                 \
    .formulas = {.roots = 1u << NB_ROOT_DIV_SQRT | 1u << NB_ROOT_MUL_RECIP,                                            \
                 .affines = 1u << NB_AFFINE_NONE | 1u << NB_AFFINE_GAMMA | 1u << NB_AFFINE_GAMMA_BETA,                 \
                 .params = 1u << NB_PARAM_F32 | 1u << NB_PARAM_X},                                                     \
    .loads = 2, .stores = 1, .flops = 4
