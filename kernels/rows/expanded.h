// SPDX-License-Identifier: Apache-2.0
/* Statistics materialised to the size of x before they are used, as stat.expand(x.shape).contiguous() does: phase 0 prepares
 * gamma and beta in f32, phase 1 writes the statistics out, phase 2 combines tensors of one size. In scratch: gamma, beta, the
 * scales, the means. */
#ifndef NB_EXPANDED_H
#define NB_EXPANDED_H

#include "kernels/shared/normalize.h"

#define EXPANDED_FORMULAS                                                                                              \
    {                                                                                                                  \
        .roots = NB_ALL(NB_N_ROOTS), .eps_places = NB_ALL(NB_N_EPS_PLACES), .casts = NB_ALL(NB_N_CASTS),               \
        .weight_offsets = NB_ALL(2), .affines = NB_ALL(NB_N_AFFINES), .params = NB_ALL(NB_N_PARAMS)                    \
    }

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
static inline int expanded_phases(const struct nb_call *call) {
    (void)call;
    return 3;
}
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
    struct sweep_form f = {.centre = centre, .affine = NB_AFFINE_NONE};
    if (call->formula.affine == NB_AFFINE_NONE) {
        sweep_root(&s, &call->formula, f);
        return 0;
    }
    f.affine = NB_AFFINE_GAMMA;
    if (call->formula.affine == NB_AFFINE_GAMMA) {
        sweep_root(&s, &call->formula, f);
        return 0;
    }
    f.affine = NB_AFFINE_GAMMA_BETA;
    sweep_root(&s, &call->formula, f);
    return 0;
}

#endif
