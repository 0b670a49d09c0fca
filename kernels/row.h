// SPDX-License-Identifier: Apache-2.0
/* The frame of the fused row kernels: statistics of a row, then y = (x - mean) * scale * gamma + beta in one sweep.
 * A kernel gives its statistics; this file has every formula, each compiled as a loop of its own and chosen once a call. */
#ifndef NB_ROW_H
#define NB_ROW_H

#include <stdbool.h>

#include "root.h"
#include "vec.h"

#define NB_INLINE static inline __attribute__((always_inline))

/* The formulas that norm_rows() implements. */
#define ROW_FORMULAS                                                                                                \
    {                                                                                                               \
        .roots = NB_ALL(NB_N_ROOTS), .eps_places = NB_ALL(NB_N_EPS_PLACES), .casts = NB_ALL(NB_N_CASTS),            \
        .weight_offsets = NB_ALL(2), .affines = NB_ALL(NB_N_AFFINES), .params = NB_ALL(NB_N_PARAMS)                 \
    }

struct row_stats {
    float mean;  /* 0 where the op does not centre */
    float scale; /* of row_scale() */
};
typedef struct row_stats (*row_stats_fn)(const struct nb_call *call, const elem *x);

/* A formula as the element loop sees it; a constant wherever it is used. */
struct row_form {
    bool centre, divide, cast_before, offset, param_elem;
    int affine;
};

NB_INLINE vec param_load(const void *p, int64_t i, struct row_form f) {
    return f.param_elem ? vec_load((const elem *)p + i) : vec_load_f32((const float *)p + i);
}
NB_INLINE vec param_load_tail(const void *p, int64_t i, int64_t n, struct row_form f) {
    return f.param_elem ? vec_load_tail((const elem *)p + i, n) : vec_load_f32_tail((const float *)p + i, n);
}

/* One vector from x to y, before the rounding of the store. */
NB_INLINE vec finish(vec x, vec mean, vec scale, vec gamma, vec beta, struct row_form f) {
    if (f.centre) x = x - mean;
    x = f.divide ? x / scale : x * scale;
    if (f.affine == NB_AFFINE_NONE) return x;
    if (f.offset) gamma = gamma + vec_set1(1.0f);
    if (f.cast_before) {
        if (f.offset) gamma = vec_round(gamma);
        x = vec_round(vec_round(x) * gamma);
        if (f.affine == NB_AFFINE_GAMMA_BETA) x = x + beta;
        return x;
    }
    if (f.affine == NB_AFFINE_GAMMA_BETA) return vec_fma(x, gamma, beta);
    return x * gamma;
}

NB_INLINE void finish_row(const struct nb_call *call, const elem *x, elem *y, struct row_stats s, struct row_form f) {
    const vec mean = vec_set1(s.mean), scale = vec_set1(s.scale), zero = vec_set1(0.0f);
    int64_t i = 0;
    for (; i + NB_LANES <= call->cols; i += NB_LANES) {
        vec gamma = f.affine != NB_AFFINE_NONE ? param_load(call->gamma, i, f) : zero;
        vec beta = f.affine == NB_AFFINE_GAMMA_BETA ? param_load(call->beta, i, f) : zero;
        vec_store(y + i, finish(vec_load(x + i), mean, scale, gamma, beta, f));
    }
    if (i < call->cols) {
        int64_t n = call->cols - i;
        vec gamma = f.affine != NB_AFFINE_NONE ? param_load_tail(call->gamma, i, n, f) : zero;
        vec beta = f.affine == NB_AFFINE_GAMMA_BETA ? param_load_tail(call->beta, i, n, f) : zero;
        vec_store_tail(y + i, finish(vec_load_tail(x + i, n), mean, scale, gamma, beta, f), n);
    }
}

NB_INLINE int rows_with(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats, struct row_form f) {
    for (int64_t r = begin; r < end; r++) {
        const elem *x = row_in(call->x, call->x_stride, r);
        struct row_stats s = stats(call, x);
        if (call->mean) call->mean[r] = s.mean;
        if (call->rstd) call->rstd[r] = scale_to_rstd(s.scale, &call->formula);
        finish_row(call, x, row_out(call->y, call->y_stride, r), s, f);
    }
    return 0;
}

/* The dispatch: each level fixes one field of the form. Fields that cannot matter are not multiplied out: a cast is none
 * in f32, and parameters in x's dtype are f32 there. */
NB_INLINE int rows_affine(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats, struct row_form f) {
    if (call->formula.affine == NB_AFFINE_GAMMA) {
        f.affine = NB_AFFINE_GAMMA;
        return rows_with(call, begin, end, stats, f);
    }
    f.affine = NB_AFFINE_GAMMA_BETA;
    return rows_with(call, begin, end, stats, f);
}
NB_INLINE int rows_param(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats, struct row_form f) {
#ifndef NB_DTYPE_IS_F32
    if (call->formula.param == NB_PARAM_X) {
        f.param_elem = true;
        return rows_affine(call, begin, end, stats, f);
    }
#endif
    return rows_affine(call, begin, end, stats, f);
}
NB_INLINE int rows_offset(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats, struct row_form f) {
    if (call->formula.weight_offset) {
        f.offset = true;
        return rows_param(call, begin, end, stats, f);
    }
    return rows_param(call, begin, end, stats, f);
}
NB_INLINE int rows_cast(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats, struct row_form f) {
    if (call->formula.affine == NB_AFFINE_NONE) return rows_with(call, begin, end, stats, f);
#ifndef NB_DTYPE_IS_F32
    if (call->formula.cast == NB_CAST_BEFORE) {
        f.cast_before = true;
        return rows_offset(call, begin, end, stats, f);
    }
#endif
    return rows_offset(call, begin, end, stats, f);
}

/* Rows [begin, end) of a forward call. stats should not be inlined: it stands once beside many loops. */
NB_INLINE int norm_rows(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats, bool centre) {
    struct row_form f = {.centre = centre};
    if (root_divides(&call->formula)) {
        f.divide = true;
        return rows_cast(call, begin, end, stats, f);
    }
    return rows_cast(call, begin, end, stats, f);
}

/* A row's result hangs on that row alone. */
static inline int always_row_local(const struct nb_call *call) {
    (void)call;
    return 1;
}

#endif
