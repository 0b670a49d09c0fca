// SPDX-License-Identifier: Apache-2.0
/* Mean and scale of a row.
 *
 * A row that is centred is swept once, about a shift near its mean (the mean of its first 32 elements): with d = x - shift and
 * k = E[d]^2 / var, var = E[d^2] - E[d]^2 is off by (sqrt(k) + sqrt(1 + k))^2 times what two passes would be, to first order. The shift
 * is good enough where k <= 1/4 (factor 2.62), that is E[d]^2 <= E[d^2] / 5; random rows are with probability 0.995. Else the row is
 * swept once more, about the mean that came out. That one will do: the 32 elements are part of the row, so that
 * (shift - mean)^2 <= var n / 32, and the second shift is off the mean by no more than the rounding of the first sums. */
#ifndef NB_FAST_STATS_H
#define NB_FAST_STATS_H

#include "kernels/rows/fast_sums.h"
#include "kernels/shared/root.h"

#define SHIFT_ELEMENTS 32
#define SHIFT_GUARD 0.2f /* largest E[d]^2 / E[d^2] */
#define SHIFT_FACTOR 2.62

/* Long rows are summed in segments, whose number hangs on the length alone. */
#define LONG_ROW 16384
#define MAX_SEGMENTS 16
#define SEGMENT_GRAIN 256

static inline int64_t segment_length(int64_t n) {
    if (n < LONG_ROW) return n;
    const int64_t share = (n + MAX_SEGMENTS - 1) / MAX_SEGMENTS;
    return (share + SEGMENT_GRAIN - 1) / SEGMENT_GRAIN * SEGMENT_GRAIN;
}
static inline int64_t count_segments(int64_t n) { return (n + segment_length(n) - 1) / segment_length(n); }

/* Of a row or a segment: each in a register of its own (row.h says why). */
struct totals {
    float square; /* sum of d^2 */
    _Alignas(8) float sum;
};
/* What the output needs of a row. */
struct row_numbers {
    float mean; /* 0 where the op does not centre */
    _Alignas(8) float scale;
};

static inline int64_t stats_length(const struct nb_call *call) { return FAST_PARTIAL ? call->k : call->cols; }

/* ---- where elements come from ---- */

/* The sum may come rounded; f32 needs none. */
static inline bool sum_is_rounded(const struct nb_call *call) {
    return sizeof(elem) < sizeof(float) && call->formula.round_sum;
}
/* x + residual, without a store. */
NB_INLINE struct fast_source row_source_at(const struct nb_call *call, int64_t row) {
    struct fast_source s = {.x = row_in(call->x, call->x_stride, row)};
    if (!FAST_ADD) return s;
    s.residual = row_in(call->residual, call->residual_stride, row);
    s.add = true;
    s.round = sum_is_rounded(call);
    return s;
}
/* The first look at a row: the sum is stored, if anybody wants it. */
NB_INLINE struct fast_source first_source(const struct nb_call *call, int64_t row, bool stream) {
    struct fast_source s = row_source_at(call, row);
    if (!FAST_ADD || !call->residual_out) return s;
    s.sum_out = row_out(call->residual_out, call->residual_out_stride, row);
    s.stream = stream && rows_stream(call->residual_out, call->residual_out_stride);
    return s;
}
/* A later look: where the sum was stored as it is wanted, and has not left the caches, it is taken from there. */
NB_INLINE struct fast_source later_source(const struct nb_call *call, int64_t row, bool stream) {
    const bool stored =
        FAST_ADD && call->residual_out && !stream && (sizeof(elem) == sizeof(float) || call->formula.round_sum);
    if (!stored) return row_source_at(call, row);
    return (struct fast_source){.x = row_in(call->residual_out, call->residual_out_stride, row)};
}

/* ---- the shift ---- */

NB_INLINE vec head_lanes(struct fast_source s, int64_t n) {
    vec sum = vec_set1(0.0f);
    if (n >= SHIFT_ELEMENTS) {
        NB_UNROLL
        for (int i = 0; i < SHIFT_ELEMENTS; i += PAIR) {
            const struct pair x = source_pair(s, i);
            sum = sum + (x.a + x.b);
        }
        return sum;
    }
    for (int64_t i = 0; i < n; i += PAIR) {
        const struct pair x = i + PAIR <= n ? source_pair(s, i) : source_pair_tail(s, i, n - i);
        sum = sum + (x.a + x.b);
    }
    return sum;
}
/* Of a source without a store. A head whose sum overflows, or is NaN, leaves the first element. */
NB_INLINE float head_shift(struct fast_source s, int64_t n) {
    const float inverse = n >= SHIFT_ELEMENTS ? 1.0f / SHIFT_ELEMENTS : 1.0f / (float)n;
    const float shift = vec_sum(head_lanes(s, n)) * inverse;
    return shift - shift == 0.0f ? shift : vec_first(source_pair_tail(s, 0, 1).a);
}
static __attribute__((noinline)) float row_shift(const struct nb_call *call, int64_t row) {
    return FAST_CENTRE ? head_shift(row_source_at(call, row), stats_length(call)) : 0.0f;
}

/* ---- sums ---- */

static inline float sum_tree(const float *part, int n) {
    float leaf[2 * MAX_SEGMENTS - 1] = {0};
    for (int i = 0; i < n; i++) leaf[i] = part[i];
    for (int i = 0; i < MAX_SEGMENTS - 1; i++) leaf[MAX_SEGMENTS + i] = leaf[2 * i] + leaf[2 * i + 1];
    return leaf[2 * MAX_SEGMENTS - 2];
}
static inline struct totals segment_totals(const float *square, const float *sum, int n) {
    if (n == 1) return (struct totals){.square = square[0], .sum = sum[0]};
    return (struct totals){.square = sum_tree(square, n), .sum = sum_tree(sum, n)};
}
NB_INLINE struct totals lanes_totals(struct lanes l) {
    return (struct totals){.square = vec_sum(l.square), .sum = FAST_CENTRE ? vec_sum(l.sum) : 0.0f};
}
/* See FAST_DOT. Of a call, not of a range or a form, so that a row's bits are the same wherever it is summed. */
static inline bool call_dots(const struct nb_call *call) { return FAST_DOT && call_is_native(call); }

static __attribute__((noinline)) struct totals segment_sums(struct fast_source from, float shift, int64_t begin,
                                                            int64_t end, bool dot) {
    if (FAST_DOT && dot) return lanes_totals(sums_of(from, vec_set1(shift), begin, end, true));
    return lanes_totals(sums_of(from, vec_set1(shift), begin, end, false));
}
static __attribute__((noinline)) struct totals row_totals(struct fast_source from, int64_t n, float shift, bool dot) {
    const int64_t length = segment_length(n);
    float square[MAX_SEGMENTS], sum[MAX_SEGMENTS];
    int count = 0;
    for (int64_t at = 0; at < n; at += length, count++) {
        const struct totals t = segment_sums(from, shift, at, at + length < n ? at + length : n, dot);
        square[count] = t.square;
        sum[count] = t.sum;
    }
    return segment_totals(square, sum, count);
}

/* ---- from sums to mean and scale ---- */

static inline bool shift_is_good(struct totals t, float inverse) {
    return t.sum * (t.sum * inverse) <= SHIFT_GUARD * t.square; /* no, with a NaN */
}
static inline float centred_variance(struct totals t, float inverse) {
    const float v = __builtin_fmaf(-t.sum, t.sum * inverse, t.square) * inverse;
    return v < 0 ? 0 : v; /* constant rows, by a rounding */
}

/* 1 / n, or 1 where the sum itself is wanted. */
static inline float stats_inverse(const struct nb_call *call) {
    return FAST_TOTAL ? 1.0f : 1.0f / (float)stats_length(call);
}
static inline float second_shift(struct totals t, float shift, float inverse) { return shift + t.sum * inverse; }
/* From sums about a shift that will do; mean and rstd are stored where they are wanted. */
static inline struct row_numbers numbers_of(const struct nb_call *call, int64_t row, struct totals t, float shift) {
    const float inverse = stats_inverse(call);
    const float v = FAST_CENTRE ? centred_variance(t, inverse) : t.square * inverse;
    const struct row_numbers r = {.mean = FAST_CENTRE ? shift + t.sum * inverse : 0.0f, .scale = row_scale(v, call)};
    if (call->mean) call->mean[row] = r.mean;
    if (call->rstd) call->rstd[row] = scale_to_rstd(r.scale, &call->formula);
    return r;
}
/* t: of the first sweep. */
static __attribute__((noinline)) struct row_numbers row_finish(const struct nb_call *call, int64_t row, struct totals t,
                                                               float shift, bool stream) {
    const float inverse = stats_inverse(call);
    if (FAST_CENTRE && !shift_is_good(t, inverse)) {
        shift = second_shift(t, shift, inverse);
        t = row_totals(later_source(call, row, stream), stats_length(call), shift, call_dots(call));
    }
    return numbers_of(call, row, t, shift);
}
/* Of a row that is put out next, the lines of y may be asked for meanwhile. */
static __attribute__((noinline)) struct row_numbers row_statistics(const struct nb_call *call, int64_t row, bool stream,
                                                                   bool ask) {
    const float shift = row_shift(call, row);
    struct fast_source from = first_source(call, row, stream);
    if (ask) from.ask = row_out(call->y, call->y_stride, row);
    const struct totals t = row_totals(from, stats_length(call), shift, call_dots(call));
    return row_finish(call, row, t, shift, stream);
}

/* The same for the formula that nearly all calls have, without a look at memory: a load right behind a row of stores may have
 * the low bits of its address in common with one of them, and waits for it. */
struct quick_finish {
    float inverse, eps;
    bool applies; /* 1 / sqrt(v + eps), and neither mean nor rstd is wanted */
};
static inline struct quick_finish quick_finish_of(const struct nb_call *call) {
    return (struct quick_finish){
        .inverse = stats_inverse(call),
        .eps = (float)call->eps,
        .applies = call->formula.root == NB_ROOT_MUL_RECIP && call->formula.eps_place == NB_EPS_INSIDE && !call->mean &&
                   !call->rstd,
    };
}
NB_INLINE bool finishes_quickly(struct quick_finish q, struct totals t) {
    return q.applies && (!FAST_CENTRE || shift_is_good(t, q.inverse));
}
NB_INLINE struct row_numbers quickly_finished(struct quick_finish q, struct totals t, float shift) {
    const float v = FAST_CENTRE ? centred_variance(t, q.inverse) : t.square * q.inverse;
    return (struct row_numbers){.mean = FAST_CENTRE ? shift + t.sum * q.inverse : 0.0f,
                                .scale = 1.0f / __builtin_sqrtf(v + q.eps)};
}

#endif
