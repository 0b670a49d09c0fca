// SPDX-License-Identifier: Apache-2.0
/* Tables of RMSNorm kernels for the gate: two plugins that name the same kernels and differ in what those do. */
#ifndef GATED_H
#define GATED_H

#include <math.h>
#include <stddef.h>

#include "kernel.h"

#define GATED(kernel_name, ...)                                                                                        \
    {                                                                                                                  \
        .struct_size = sizeof(struct nb_kernel), .op = NB_OP_RMSNORM, .dtype = NB_F32, .width = NB_NATIVE,             \
        .name = "gated_" #kernel_name, .variant = "gated_" #kernel_name "_f32", .summary = "for the gate's tests",     \
        .formulas = {.roots = 1u << NB_ROOT_DIV_SQRT | 1u << NB_ROOT_MUL_RECIP,                                        \
                     .affines = 1u << NB_AFFINE_NONE | 1u << NB_AFFINE_GAMMA | 1u << NB_AFFINE_GAMMA_BETA,             \
                     .params = 1u << NB_PARAM_F32 | 1u << NB_PARAM_X},                                                 \
        .loads = 2, .stores = 1, .flops = 4, .run = kernel_name, __VA_ARGS__                                           \
    }

static inline const float *row_x(const struct nb_call *call, int64_t row) {
    return (const float *)call->x + row * call->x_stride;
}
static inline float *row_y(const struct nb_call *call, int64_t row) { return (float *)call->y + row * call->y_stride; }

/* In double, rounded once. */
static inline void correct_row(const struct nb_call *call, int64_t row) {
    const float *x = row_x(call, row), *gamma = call->gamma, *beta = call->beta;
    double sum = 0;
    for (int64_t i = 0; i < call->cols; i++) sum += (double)x[i] * x[i];
    const double rstd = 1 / sqrt(sum / (double)call->cols + call->eps);
    for (int64_t i = 0; i < call->cols; i++)
        row_y(call, row)[i] = (float)(x[i] * rstd * (gamma ? gamma[i] : 1) + (beta ? beta[i] : 0));
}
static inline int correct_rows(const struct nb_call *call, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) correct_row(call, row);
    return 0;
}

/* What an instruction does to t, sixteen times, each after the one before. */
#define FOUR_TIMES(instruction) instruction instruction instruction instruction
#define SIXTEEN_TIMES(instruction) FOUR_TIMES(FOUR_TIMES(instruction))

#endif
