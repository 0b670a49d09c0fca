// SPDX-License-Identifier: Apache-2.0
/* The parts that the recipes of composed row kernels share: casts, mean, eps and root, scaling, the affine step. */
#pragma once

#include "kernels/shared/composed.h"

/* All formulas are implemented. Where everything is in x's dtype, both cast orders are one. */
#define COMPOSED_NORM .formulas = {NB_EVERY_FORMULA}, COMPOSED_KERNEL, .scratch_bytes = composed_scratch

/* Temporaries in f32, in units of x's elements, and the casts beside them: what they count in the byte model. It is that of
 * the formula whose fields are 0, with gamma, and beta where the op has one by custom. */
#ifdef NB_DTYPE_IS_F32
static const bool x_is_narrow = false;
#define F32_TENSOR 1
#define CAST_LOADS 0
#define CAST_STORES 0
#define ADD_CAST_LOADS 0
#define ADD_CAST_STORES 0
#else
static const bool x_is_narrow = true;
#define F32_TENSOR 2
#define CAST_LOADS 3 /* x up, y down */
#define CAST_STORES 3
#define ADD_CAST_LOADS 6 /* x and residual up, their sum and y down */
#define ADD_CAST_STORES 6
#endif

static inline struct tensor tensor_of(const void *data, int64_t stride) {
    return (struct tensor){.data = (void *)data, .stride = stride, .narrow = x_is_narrow, .full = true};
}
static inline struct tensor tensor_x(const struct program *p) { return tensor_of(p->call->x, p->call->x_stride); }
static inline struct tensor tensor_param(const struct program *p, const void *data) {
    return (struct tensor){.data = (void *)data, .narrow = x_is_narrow && p->call->formula.param == NB_PARAM_X};
}

/* To f32, unless the recipe stays in x's dtype. */
static inline struct tensor widen(struct program *p, struct tensor t) {
    if (!t.narrow || COMPOSED_LOWP) return t;
    return emit_full(p, op_cast, t, nothing, false);
}
/* To x's dtype; an f32 tensor is no longer needed. */
static inline struct tensor narrowed(struct program *p, struct tensor t) {
    if (x_is_narrow == t.narrow) return t;
    const struct tensor result = emit_full(p, op_cast, t, nothing, true);
    drop(p, t);
    return result;
}
static inline struct tensor square(struct program *p, struct tensor t) {
    return emit_full(p, op_square, t, nothing, t.narrow);
}

/* Sum over the first cols elements of each row, divided by divisor. */
static inline struct tensor row_sum(struct program *p, struct tensor t, int64_t cols, float divisor) {
    const int64_t rows = p->call->rows;
    const struct tensor dst = new_small(p, t.narrow, 1);
    if (append(p, dst))
        p->step = (struct step){op_sum_rows, .dst = dst, .a = t, .n_units = rows, .cols = cols, .scalar = divisor};
    return dst;
}
static inline struct tensor row_mean(struct program *p, struct tensor t) {
    return row_sum(p, t, p->call->cols, (float)p->call->cols);
}

/* The square root, eps and the reciprocal, one operation each; the same as row_scale() of root.h. v is dropped. */
static inline struct tensor scale_of(struct program *p, struct tensor v, int64_t n) {
    const struct nb_formula *f = &p->call->formula;
    const float eps = (float)p->call->eps;
    if (f->eps_place == NB_EPS_INSIDE) v = replace_column(p, op_add_scalar, v, n, eps);
    if (f->root == NB_ROOT_DIV_SQRT || f->root == NB_ROOT_MUL_RECIP) {
        v = replace_column(p, op_sqrt, v, n, 0.0f);
        if (f->eps_place == NB_EPS_OUTSIDE) v = replace_column(p, op_add_scalar, v, n, eps);
        if (f->eps_place == NB_EPS_CLAMP) v = replace_column(p, op_max_scalar, v, n, eps);
        return f->root == NB_ROOT_DIV_SQRT ? v : replace_column(p, op_reciprocal, v, n, 0.0f);
    }
    return replace_column(p, op_rsqrt, v, n, eps);
}

/* Outputs that the caller may want, beside the tensors that the recipe needs. */
static inline void write_column(struct program *p, step_fn run, struct tensor from, float *to, int64_t n) {
    emit_column(p, run, from, (struct tensor){.data = to, .stride = 1}, n, 0.0f);
}
static inline void write_mean(struct program *p, struct tensor mean, int64_t n) {
    if (p->call->mean) write_column(p, op_cast, mean, p->call->mean, n);
}
static inline void write_rstd(struct program *p, struct tensor scale, int64_t n) {
    if (!p->call->rstd) return;
    write_column(p, root_divides(&p->call->formula) ? op_reciprocal : op_cast, scale, p->call->rstd, n);
}

/* Both are no longer needed. */
static inline struct tensor scale_rows(struct program *p, struct tensor t, struct tensor scale) {
    const struct tensor scaled = then(p, root_divides(&p->call->formula) ? op_div_row : op_mul_row, t, scale);
    drop(p, scale);
    return scaled;
}

/* One row of n parameters -> another, in f32 or in x's dtype. */
static inline struct tensor emit_param(struct program *p, step_fn run, struct tensor a, int64_t n, float scalar,
                                       bool narrow) {
    const struct tensor dst = new_small(p, narrow, 0);
    if (append(p, dst)) p->step = (struct step){run, .dst = dst, .a = a, .n_units = 1, .cols = n, .scalar = scalar};
    drop(p, a);
    return dst;
}

/* Gamma or beta as the multiplication by it wants them: beside an f32 tensor in f32, beside a narrow one as they are. */
static inline struct tensor parameter(struct program *p, const void *data, int64_t n, bool offset, bool beside_narrow) {
    struct tensor t = tensor_param(p, data);
    if (t.narrow && !beside_narrow) t = emit_param(p, op_cast, t, n, 0.0f, false);
    if (offset) t = emit_param(p, op_add_scalar, t, n, 1.0f, beside_narrow);
    return t;
}

/* t with a parameter, by an operation that broadcasts it; t is dropped. */
NB_INLINE struct tensor with_parameter(struct program *p, struct tensor t, step_fn run, const void *data, int64_t n,
                                       bool offset) {
    const struct tensor param = parameter(p, data, n, offset, t.narrow);
    t = then(p, run, t, param);
    drop(p, param);
    return t;
}

/* Casts and the affine step by operations that broadcast parameters along rows or columns; t is dropped. */
static inline struct tensor affine_by(struct program *p, struct tensor t, step_fn multiply, step_fn add, int64_t n) {
    const struct nb_call *call = p->call;
    const struct nb_formula *f = &call->formula;
    const bool weighted = f->affine != NB_AFFINE_NONE;
    if (weighted && f->cast == NB_CAST_BEFORE) t = narrowed(p, t);
    if (weighted) t = with_parameter(p, t, multiply, call->gamma, n, f->weight_offset);
    if (f->affine == NB_AFFINE_GAMMA_BETA) t = with_parameter(p, t, add, call->beta, n, false);
    return narrowed(p, t);
}
static inline struct tensor affine(struct program *p, struct tensor t) {
    return affine_by(p, t, op_mul_col, op_add_col, p->call->cols);
}

/* y = x / sqrt(sum(x_i^2, i < k) / divisor + eps) * gamma + beta, x in f32 (or narrow in a lowp recipe); x is dropped. */
static inline void scale_by_squares(struct program *p, struct tensor x, int64_t k, float divisor) {
    const int64_t rows = p->call->rows;
    const struct tensor squares = new_full(p, x.narrow, k);
    if (append(p, squares)) p->step = (struct step){op_square, .dst = squares, .a = x, .n_units = rows, .cols = k};
    struct tensor mean_square = row_sum(p, squares, k, divisor);
    drop(p, squares);
    struct tensor scale = scale_of(p, mean_square, rows);
    write_rstd(p, scale, rows);
    finish(p, affine(p, scale_rows(p, x, scale)), p->call->y, p->call->y_stride);
}

/* y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * gamma + beta; x as above, dropped. */
static inline void standardise(struct program *p, struct tensor x) {
    const int64_t rows = p->call->rows;
    struct tensor mean = row_mean(p, x);
    write_mean(p, mean, rows);
    struct tensor centred = then(p, op_sub_row, x, mean);
    drop(p, mean);
    struct tensor squares = square(p, centred);
    struct tensor variance = row_mean(p, squares);
    drop(p, squares);
    struct tensor scale = scale_of(p, variance, rows);
    write_rstd(p, scale, rows);
    finish(p, affine(p, scale_rows(p, centred, scale)), p->call->y, p->call->y_stride);
}

/* x + residual, for the statistics in f32: rounded to x's dtype first, as the framework's own sum of two narrow tensors is,
 * or kept. residual_out gets the rounded sum either way. */
static inline struct tensor add_residual(struct program *p) {
    const struct nb_call *call = p->call;
    const bool keep = x_is_narrow && !call->formula.round_sum;
    const struct tensor x = tensor_x(p), residual = tensor_of(call->residual, call->residual_stride),
                        out = tensor_of(call->residual_out, call->residual_out_stride);
    const int64_t rows = call->rows, cols = call->cols;
    if (!keep) {
        const struct tensor sum = out.data ? out : new_full(p, x_is_narrow, cols);
        if (append(p, sum))
            p->step = (struct step){op_add_full, .dst = sum, .a = x, .b = residual, .n_units = rows, .cols = cols};
        if (!x_is_narrow) return sum;
        const struct tensor wide = widen(p, sum);
        drop(p, sum);
        return wide;
    }
    const struct tensor wide_x = widen(p, x), wide_residual = widen(p, residual);
    const struct tensor sum = emit_full(p, op_add_full, wide_x, wide_residual, false);
    drop(p, wide_x);
    drop(p, wide_residual);
    if (out.data && append(p, out))
        p->step = (struct step){op_cast, .dst = out, .a = sum, .n_units = rows, .cols = cols};
    return sum;
}
