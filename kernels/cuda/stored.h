// SPDX-License-Identifier: Apache-2.0
/* Norms of rows whose statistics go through memory: a launch writes them, as a [rows, 1] tensor or at the size of x, the next reads them. */
#pragma once

#include "kernels/cuda/apply.h"
#include "kernels/cuda/rows.h"

static inline int64_t stored_stride(const struct nb_call *call, bool expanded) {
    return expanded ? padded_to(call->cols, SUMS_ALIGN) : 1;
}
/* In scratch: scales, then means. */
static inline int stored_run(const struct nb_call *call, bool centre, bool expanded) {
    const int64_t stride = stored_stride(call, expanded), length = padded_to(call->rows * stride, SUMS_ALIGN);
    float *const scale = call->scratch, *const mean = scale + length;
    struct row_args a = row_args_of(call, 0, call->rows, centre);
    a.y = NULL;
    if (expanded) {
        a.full_scale = scale;
        a.full_mean = centre ? mean : NULL;
        a.full_stride = stride;
    } else {
        a.scale = scale;
        a.scale_mean = centre ? mean : NULL;
    }
    const int code = launch_rows(call, &a);
    const struct place at = {call->rows, stride, expanded}, by_col = {1, 0, 1};
    const struct apply_args apply = {
        .formula = a.formula,
        .stats = at,
        .params = by_col,
        .x = call->x,
        .gamma = a.formula.affine == NB_AFFINE_NONE ? NULL : call->gamma,
        .beta = a.formula.affine == NB_AFFINE_GAMMA_BETA ? call->beta : NULL,
        .y = call->y,
        .mean = centre ? mean : NULL,
        .scale = scale,
        .x_stride = call->x_stride,
        .y_stride = call->y_stride,
        .rows = call->rows,
        .cols = call->cols,
    };
    return code ? code : launch_apply(call, &apply, "_stats");
}
static inline size_t stored_bytes(const struct nb_call *call, bool expanded) {
    return (size_t)(2 * padded_to(call->rows * stored_stride(call, expanded), SUMS_ALIGN)) * sizeof(float);
}

#define STORED_KERNEL(kernel, centred, expanded, ...)                                                                  \
    static int kernel##_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {                       \
        return stored_run(call, centred, expanded);                                                                    \
    }                                                                                                                  \
    static size_t kernel##_bytes(const struct nb_call *call) { return stored_bytes(call, expanded); }                  \
    NB_KERNEL(kernel, .run = kernel##_run, .scratch_bytes = kernel##_bytes,                                            \
              .stats = expanded ? NB_STATS_EXPANDED : NB_STATS_KEEPDIM, .formulas = {NB_EVERY_FORMULA},                \
              .chain = rows_chain, .row_local = always_row_local, .n_units = one_unit, CUDA_KERNEL, __VA_ARGS__)
