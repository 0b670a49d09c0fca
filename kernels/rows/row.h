// SPDX-License-Identifier: Apache-2.0
/* The frame of the fused row kernels: statistics of a row, then y = (x - mean) * scale * gamma + beta in one sweep.
 * A kernel gives its statistics; this file has every formula, each compiled as a loop of its own and chosen once a call. */
#pragma once

#include <stdbool.h>

#include "kernels/shared/reduce.h"
#include "kernels/shared/root.h"
#include "kernels/shared/vec.h"

/* Each returned in a register of its own: two floats in one register are packed through memory, and the load of both waits
 * until both stores have left the store buffer, once a row. */
struct row_stats {
    float mean;              /* 0 where the op does not centre */
    _Alignas(8) float scale; /* of row_scale() */
};
typedef struct row_stats (*row_stats_fn)(const struct nb_call *call, int64_t row);
/* x -> its normalized value, before the affine part. */
struct row_form;
typedef vec (*row_map_fn)(vec x, vec mean, vec residual, vec scale, struct row_form f);

/* A formula as the element loop sees it. */
struct row_form {
    bool centre, correct, divide, cast_before, offset, param_elem;
    int affine;
    row_map_fn map;
};

/* (x - mean) * scale or / scale. */
NB_INLINE vec map_normalize(vec x, vec mean, vec residual, vec scale, struct row_form f) {
    if (f.centre) x = x - mean;
    if (f.correct) x = x - residual;
    if (f.divide) return x / scale;
    return x * scale;
}

/* The affine part, before the rounding of the store. Parameters that are wider than the dtype stay so; 1 + gamma is a
 * tensor of the dtype where the weight is applied in it. */
NB_INLINE vec apply_affine(vec v, vec gamma, vec beta, struct row_form f) {
    if (f.affine == NB_AFFINE_NONE) return v;
    if (f.offset) gamma = gamma + vec_set1(1.0f);
    if (f.cast_before) {
        if (f.offset) gamma = vec_round(gamma);
        v = vec_round(v) * gamma;
        if (f.affine == NB_AFFINE_GAMMA_BETA) v = vec_round(v) + beta;
        return v;
    }
    if (f.affine == NB_AFFINE_GAMMA_BETA) return vec_fma(v, gamma, beta);
    return v * gamma;
}

/* residual: what is left of the mean after x - mean (row_form.correct). */
NB_INLINE void finish_row(const struct nb_call *call, struct row_source x, elem *y, struct row_stats s,
                          float mean_residual, struct row_form f) {
    const vec mean = vec_set1(s.mean), residual = vec_set1(mean_residual), scale = vec_set1(s.scale);
    const vec zero = vec_set1(0.0f);
    const void *const gammas = call->gamma, *const betas = call->beta;
    const int64_t cols = call->cols;
    int64_t i = 0;
    for (; i + NB_LANES <= cols; i += NB_LANES) {
        vec gamma = f.affine != NB_AFFINE_NONE ? typed_load(gammas, i, f.param_elem) : zero;
        vec beta = f.affine == NB_AFFINE_GAMMA_BETA ? typed_load(betas, i, f.param_elem) : zero;
        vec v = f.map(source_load(x, i), mean, residual, scale, f);
        vec_store(y + i, apply_affine(v, gamma, beta, f));
    }
    if (i < cols) {
        const int64_t n = cols - i;
        vec gamma = f.affine != NB_AFFINE_NONE ? typed_load_tail(gammas, i, n, f.param_elem) : zero;
        vec beta = f.affine == NB_AFFINE_GAMMA_BETA ? typed_load_tail(betas, i, n, f.param_elem) : zero;
        vec v = f.map(source_load_tail(x, i, n), mean, residual, scale, f);
        vec_store_tail(y + i, apply_affine(v, gamma, beta, f), n);
    }
}

static inline void store_stats(const struct nb_call *call, int64_t r, struct row_stats s) {
    if (call->mean) call->mean[r] = s.mean;
    if (call->rstd) call->rstd[r] = scale_to_rstd(s.scale, &call->formula);
}

/* The loop over rows that the dispatch below ends in, one for each kind of kernel. */
typedef int (*row_loop_fn)(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats,
                           struct row_form f);

NB_INLINE int plain_rows(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats,
                         struct row_form f) {
    for (int64_t r = begin; r < end; r++) {
        struct row_stats s = stats(call, r);
        store_stats(call, r, s);
        finish_row(call, plain_source(row_in(call->x, call->x_stride, r)), row_out(call->y, call->y_stride, r), s, 0.0f,
                   f);
    }
    return 0;
}

/* The form of the call's formula in the fields that the kernel leaves open. */
NB_INLINE struct row_form form_of_formula(const struct nb_formula *formula, struct row_form f) {
    f.affine = (int)formula->affine;
    f.offset = formula->weight_offset != 0;
#ifndef NB_DTYPE_IS_F32 /* where a cast is none, and parameters of x's dtype are f32 */
    f.cast_before = f.cast_before || formula->cast == NB_CAST_BEFORE;
    f.param_elem = formula->param == NB_PARAM_X;
#endif
    if (!f.map) f.divide = root_divides(formula);
    return f;
}

/* Rows [begin, end) of a forward call. f holds what the kernel fixes, and in affine what its op usually has; the rest comes from the
 * call's formula. The usual formulas (the usual affine part, in f32, applied before the rounding) have loops in which the form is
 * constant, one for each way to scale; all others share a loop that branches on it. stats should not be inlined: it is beside
 * every loop. */
NB_INLINE int rows_of_form(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats,
                           struct row_form f, row_loop_fn loop) {
    struct row_form wanted = form_of_formula(&call->formula, f);
    const bool scales = !f.map;
    if (scales) wanted.map = f.map = map_normalize;
    if (wanted.affine != f.affine || wanted.offset || wanted.param_elem || wanted.cast_before != f.cast_before)
        return loop(call, begin, end, stats, wanted);
    f.divide = true;
    if (scales && wanted.divide) return loop(call, begin, end, stats, f);
    f.divide = false;
    return loop(call, begin, end, stats, f);
}
NB_INLINE struct row_form norm_form(bool centre) {
    return (struct row_form){.centre = centre, .affine = centre ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA};
}
NB_INLINE int norm_rows(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats, bool centre) {
    return rows_of_form(call, begin, end, stats, norm_form(centre), plain_rows);
}

/* ---- statistics in two passes ---- */

static __attribute__((noinline, unused)) struct row_stats stats_of_squares(const struct nb_call *call, int64_t row) {
    const elem *x = row_in(call->x, call->x_stride, row);
    return (struct row_stats){.scale = row_scale(sum_squares(x, call->cols) / (float)call->cols, call)};
}
static __attribute__((noinline, unused)) struct row_stats stats_about_mean(const struct nb_call *call, int64_t row) {
    const elem *x = row_in(call->x, call->x_stride, row);
    const float n = (float)call->cols, mean = sum_elements(x, call->cols) / n;
    return (struct row_stats){.mean = mean, .scale = row_scale(sum_squares_about(x, call->cols, mean) / n, call)};
}

#ifdef ROW_CENTRE /* defined, with the statistics of a row, by a kernel that is no more than these */
static struct row_stats stats(const struct nb_call *call, int64_t row);
static int row_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return norm_rows(call, begin, end, stats, ROW_CENTRE);
}
#endif

/* What the kernels of this frame declare. */
#define ROW_KERNEL .formulas = {NB_EVERY_FORMULA}, .row_local = always_row_local
