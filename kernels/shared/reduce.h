// SPDX-License-Identifier: Apache-2.0
/* Reductions over a row: one loop; inlined functions say where an element comes from and what is done with it, so
 * that each use is compiled as if written by hand. The accumulators are independent vectors; ROW_ACCUMULATORS of them hide
 * the latency of an add (4 cycles on 2 ports) on every CPU that was measured.
 *
 * Error of a sum of terms t: |computed - exact| <= gamma_h sum |t|, gamma_h = h u / (1 - h u), u = 2^-24, with h =
 * reduction_chain(); of a sum of squares by fma the same, since each square enters unrounded. */
#pragma once

#include <stdbool.h>

#include "kernels/shared/vec.h"

#define ROW_ACCUMULATORS 8

/* Inlined whatever it costs, so that what is constant where it is called is no branch in it. Where nothing is optimized, in the kernels that
 * sanitizers look at, no constant would be seen, and the copies alone would take minutes to compile. */
#ifdef __OPTIMIZE__
#define NB_INLINE static inline __attribute__((always_inline))
#else
#define NB_INLINE static inline __attribute__((unused))
#endif
/* A function that has branches for what is constant elsewhere: compiled once. */
#if defined(__clang__)
#define NB_ONCE static __attribute__((noinline, unused))
#else
#define NB_ONCE static __attribute__((noinline, noclone, unused))
#endif

/* Before a loop over accumulators: an array that is indexed by a variable would live in memory. */
#if defined(__clang__)
#define NB_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NB_UNROLL _Pragma("GCC unroll 16")
#endif

/* Vectors of f32, or of elements where they are narrow. */
NB_INLINE vec typed_load(const void *p, int64_t i, bool narrow) {
    return narrow ? vec_load((const elem *)p + i) : vec_load_f32((const float *)p + i);
}
NB_INLINE vec typed_load_tail(const void *p, int64_t i, int64_t n, bool narrow) {
    return narrow ? vec_load_tail((const elem *)p + i, n) : vec_load_f32_tail((const float *)p + i, n);
}
NB_INLINE void typed_store(void *p, int64_t i, vec v, bool narrow) {
    if (narrow)
        vec_store((elem *)p + i, v);
    else
        vec_store_f32((float *)p + i, v);
}
NB_INLINE void typed_store_tail(void *p, int64_t i, vec v, int64_t n, bool narrow) {
    if (narrow)
        vec_store_tail((elem *)p + i, v, n);
    else
        vec_store_f32_tail((float *)p + i, v, n);
}
/* A vector, or the first lanes < NB_LANES of one. */
NB_INLINE vec typed_load_lanes(const void *p, int64_t i, int64_t lanes, bool narrow) {
    return lanes == NB_LANES ? typed_load(p, i, narrow) : typed_load_tail(p, i, lanes, narrow);
}
NB_INLINE void typed_store_lanes(void *p, int64_t i, vec v, int64_t lanes, bool narrow) {
    if (lanes == NB_LANES)
        typed_store(p, i, v, narrow);
    else
        typed_store_tail(p, i, v, lanes, narrow);
}
/* The longest chain of dependent roundings in a sum over n elements: through one lane of one accumulator, then through
 * the tree over accumulators and lanes. */
static inline int64_t reduction_chain(int64_t n, int accumulators) {
    const int64_t lanes = (int64_t)accumulators * NB_LANES;
    int64_t tree = 0;
    for (int64_t leaves = lanes; leaves > 1; leaves /= 2) tree++;
    return (n + lanes - 1) / lanes + tree;
}
static inline int64_t sum_chain(int64_t n) { return reduction_chain(n, ROW_ACCUMULATORS); }
static inline int64_t row_chain(const struct nb_call *call) { return sum_chain(call->cols); }

/* Where the elements of a row come from: x, or x + residual, in f32 or rounded to the dtype. The flags are constants
 * wherever a source is used. A sum may be stored on its way. */
struct row_source {
    const elem *x, *residual;
    elem *sum_out;
    bool add, round, store;
};

NB_INLINE struct row_source plain_source(const elem *x) { return (struct row_source){.x = x}; }

NB_INLINE vec source_load(struct row_source s, int64_t i) {
    vec v = vec_load(s.x + i);
    if (s.add) v = v + vec_load(s.residual + i);
    if (s.store) vec_store(s.sum_out + i, v);
    if (s.add && s.round) v = vec_round(v);
    return v;
}
NB_INLINE vec source_load_tail(struct row_source s, int64_t i, int64_t n) {
    vec v = vec_load_tail(s.x + i, n);
    if (s.add) v = v + vec_load_tail(s.residual + i, n);
    if (s.store) vec_store_tail(s.sum_out + i, v, n);
    if (s.add && s.round) v = vec_round(v);
    return v;
}

/* What an element does to an accumulator; shift is the number that the elements are taken about. */
typedef vec (*reduce_step)(vec acc, vec x, vec shift);

NB_INLINE vec step_sum(vec acc, vec x, vec shift) { return acc + x; }
NB_INLINE vec step_square(vec acc, vec x, vec shift) { return vec_fma(x, x, acc); }
NB_INLINE vec step_square_about(vec acc, vec x, vec shift) {
    vec d = x - shift;
    return vec_fma(d, d, acc);
}

/* n_acc, a power of two up to ROW_ACCUMULATORS, is a constant wherever this is used. */
NB_INLINE vec reduce_lanes(struct row_source s, int64_t n, float shift, reduce_step fold, const int n_acc) {
    const vec about = vec_set1(shift);
    vec acc[2 * ROW_ACCUMULATORS - 1]; /* behind the accumulators, the tree over them */
    NB_UNROLL
    for (int a = 0; a < n_acc; a++) acc[a] = vec_set1(0.0f);
    int64_t i = 0;
    for (; i + n_acc * NB_LANES <= n; i += n_acc * NB_LANES) {
        NB_UNROLL
        for (int a = 0; a < n_acc; a++) acc[a] = fold(acc[a], source_load(s, i + a * NB_LANES), about);
    }
    NB_UNROLL
    for (int a = 0; a < n_acc - 1; a++)
        if (i + NB_LANES <= n) {
            acc[a] = fold(acc[a], source_load(s, i), about);
            i += NB_LANES;
        }
    if (i < n) {
        vec with_tail = fold(acc[n_acc - 1], source_load_tail(s, i, n - i), about);
        acc[n_acc - 1] = vec_blend(with_tail, acc[n_acc - 1], n - i);
    }
    NB_UNROLL
    for (int a = 0; a < n_acc - 1; a++) acc[n_acc + a] = acc[2 * a] + acc[2 * a + 1];
    return acc[2 * n_acc - 2];
}

/* sum of x_i */
static inline float sum_elements(const elem *x, int64_t n) {
    return vec_sum(reduce_lanes(plain_source(x), n, 0.0f, step_sum, ROW_ACCUMULATORS));
}
/* sum of x_i^2 */
static inline float sum_squares(const elem *x, int64_t n) {
    return vec_sum(reduce_lanes(plain_source(x), n, 0.0f, step_square, ROW_ACCUMULATORS));
}
/* sum of (x_i - shift)^2 */
static inline float sum_squares_about(const elem *x, int64_t n, float shift) {
    return vec_sum(reduce_lanes(plain_source(x), n, shift, step_square_about, ROW_ACCUMULATORS));
}

/* ---- the rows for which kernels claim their accuracy ----------------------------------------------------------------- */

/* Squares keep their 24 bits down to |x| = 2^-62; below, only an eps that outweighs what they lose will do. */
static inline void square_range(const struct nb_call *call, struct nb_range *range) {
    if (call->eps < 0x1p-100) range->min_rms = 0x1p-62;
}

/* A mean summed in f32 is off by a few u |mean|, which is a few u rho of the spread, rho = |mean| / sigma: beyond 1024 it shows
 * in 16-bit results too. Constant rows have no spread at all. */
static inline void mean_range(const struct nb_call *call, struct nb_range *range) {
    square_range(call, range);
    range->max_rho = 1024;
}

/* With the mean residual taken away, or about an element of the row, errors of the mean enter squared, or not at all. */
static inline void corrected_range(const struct nb_call *call, struct nb_range *range) {
    square_range(call, range);
    range->max_rho = 4096;
}

/* E[x^2] - mean^2, and a x + b with the mean inside b, lose log2(1 + rho^2) resp. log2(2 rho) bits: beyond 64 more than half of
 * f32's digits of the variance. */
static inline void one_pass_range(const struct nb_call *call, struct nb_range *range) {
    square_range(call, range);
    range->max_rho = 64;
}
