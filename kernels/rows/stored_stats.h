// SPDX-License-Identifier: Apache-2.0
/* Statistics that go through memory before they are used. */
#pragma once

#include "kernels/rows/row.h"
#include "kernels/shared/normalize.h"

/* Statistics that go through memory as [rows, 1] tensors: one phase writes them, the next reads them back, one value for all
 * elements of a row (stride 0), as mean(-1, keepdim=True) and a broadcast do. In scratch: means, then scales. */
static inline float *stored_means(const struct nb_call *call) { return call->scratch; }
static inline float *stored_scales(const struct nb_call *call) { return (float *)call->scratch + call->rows; }

static inline void store_row_stats(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats) {
    for (int64_t r = begin; r < end; r++) {
        const struct row_stats s = stats(call, r);
        stored_means(call)[r] = s.mean;
        stored_scales(call)[r] = s.scale;
    }
}

NB_ONCE struct row_stats stored_stats(const struct nb_call *call, int64_t r) {
    return (struct row_stats){.mean = stored_means(call)[r], .scale = stored_scales(call)[r]};
}

static inline int keepdim_phases(const struct nb_call *call) { return 2; }
static inline size_t keepdim_scratch(const struct nb_call *call) { return (size_t)(2 * call->rows) * sizeof(float); }

/* Statistics materialised to the size of x before they are used, as stat.expand(x.shape).contiguous() does: phase 0 prepares
 * gamma and beta in f32, phase 1 writes the statistics out, phase 2 combines tensors of one size. In scratch: gamma, beta, the
 * scales, the means. */

/* Rows of tensors in scratch start on a cache line. */
static inline int64_t expanded_stride(const struct nb_call *call) { return (call->cols + 15) / 16 * 16; }
static inline float *expanded_gamma(const struct nb_call *call) { return call->scratch; }
static inline float *expanded_beta(const struct nb_call *call) { return expanded_gamma(call) + expanded_stride(call); }
static inline float *expanded_scale(const struct nb_call *call) { return expanded_beta(call) + expanded_stride(call); }
static inline float *expanded_mean(const struct nb_call *call) {
    return expanded_scale(call) + call->rows * expanded_stride(call);
}

static inline size_t expanded_scratch(const struct nb_call *call, int64_t n_tensors) {
    return (size_t)((2 + n_tensors * call->rows) * expanded_stride(call)) * sizeof(float);
}
static inline int expanded_phases(const struct nb_call *call) { return 3; }
static inline int64_t expanded_units(const struct nb_call *call, int phase) { return phase == 0 ? 1 : call->rows; }

static inline void prepare_parameters(const struct nb_call *call) {
    store_gamma(call, expanded_gamma(call), 0, call->cols);
    store_beta(call, expanded_beta(call), 0, call->cols);
}

static inline void fill_row(float *tensor, const struct nb_call *call, int64_t row, float value) {
    float *p = tensor + row * expanded_stride(call);
    const vec v = vec_set1(value);
    int64_t i = 0;
    for (; i + NB_LANES <= call->cols; i += NB_LANES) vec_store_f32(p + i, v);
    if (i < call->cols) vec_store_f32_tail(p + i, v, call->cols - i);
}

NB_INLINE int expanded_rows(const struct nb_call *call, int64_t begin, int64_t end, bool centre) {
    const int64_t first = begin * expanded_stride(call);
    const struct sweep s = {.x = row_in(call->x, call->x_stride, begin),
                            .y = row_out(call->y, call->y_stride, begin),
                            .x_stride = call->x_stride,
                            .y_stride = call->y_stride,
                            .n_rows = end - begin,
                            .n_cols = call->cols,
                            .mean = centre ? expanded_mean(call) + first : NULL,
                            .scale = expanded_scale(call) + first,
                            .stats_stride = expanded_stride(call),
                            .gamma = expanded_gamma(call),
                            .beta = expanded_beta(call)};
    const struct sweep_form usual = {.centre = centre, .affine = centre ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA};
    sweep_of_formula(&s, &call->formula, usual, (int)call->formula.affine);
    return 0;
}

/* run() of a kernel of these statistics. */
NB_INLINE int expanded_run(const struct nb_call *call, int phase, int64_t begin, int64_t end, row_stats_fn stats,
                           bool centre) {
    if (phase == 0) prepare_parameters(call);
    if (phase == 2) return expanded_rows(call, begin, end, centre);
    for (int64_t r = begin; phase == 1 && r < end; r++) {
        const struct row_stats s = stats(call, r);
        if (centre && call->mean) call->mean[r] = s.mean;
        if (call->rstd) call->rstd[r] = scale_to_rstd(s.scale, &call->formula);
        if (centre) fill_row(expanded_mean(call), call, r, s.mean);
        fill_row(expanded_scale(call), call, r, s.scale);
    }
    return 0;
}
