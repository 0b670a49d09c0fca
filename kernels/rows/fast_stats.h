// SPDX-License-Identifier: Apache-2.0
/* Statistics of a row for the fast row kernels: sums over the row, or a segment of one, then its mean and scale. */
#pragma once

#include "kernels/shared/pair_native.h"
#include "kernels/shared/root.h"

/* Sums over a row, or a segment of one, whose shape depends on the row's length alone, so that a row has the same bits whether it is
 * summed by itself, while another row is stored, or in segments by several threads.
 *
 * Of rows that are not centred: sum x^2, in 8 chains. Of rows that are: sum d and sum d^2 of d = x - shift, in 4 chains each; about a
 * shift of 0 nothing is subtracted. */
/* What a kernel is: its file defines those that hold before it includes any of these headers. */
#ifndef FAST_CENTRE
#define FAST_CENTRE false /* LayerNorm: statistics about the mean */
#endif
#ifndef FAST_PARTIAL
#define FAST_PARTIAL false /* pRMSNorm: of the first k elements */
#endif
#ifndef FAST_TOTAL
#define FAST_TOTAL false /* L2: the sum of squares, not their mean */
#endif
#ifndef FAST_ADD
#define FAST_ADD false /* x + residual, which is stored on its way */
#endif

#define BLOCK_PAIRS 4 /* pairs an iteration of the loop */
#define BLOCK (BLOCK_PAIRS * PAIR)
#define CACHE_LINE 64
#define SUM_CHAINS (FAST_CENTRE ? BLOCK_PAIRS : 2 * BLOCK_PAIRS)
/* Are squares summed by the dot product of bf16 where the call is native? A pair takes one chain then, the first of its two. */
#define FAST_DOT (PAIR_NATIVE && !FAST_CENTRE && !FAST_ADD)

/* Where the elements of a row come from: x, or x + residual, in f32 or rounded to the dtype, stored on the way or not. Only kernels that
 * add read the flags, each a constant or a branch that goes the same way all along the row. */
struct fast_source {
    const elem *x, *residual;
    elem *sum_out;
    bool add, round, store, stream;
    const elem *prefetch; /* what lines are fetched into the cache beside the sums; or null */
};

/* How far it is to the next row, in elements. */
struct source_stride {
    int64_t x, residual, sum_out;
};
NB_INLINE struct fast_source source_moved(struct fast_source s, struct source_stride by) {
    s.x += by.x;
    if (!FAST_ADD) return s;
    if (s.add) s.residual += by.residual;
    if (s.store) s.sum_out += by.sum_out;
    return s;
}
NB_INLINE struct fast_source source_from(struct fast_source s, int64_t n) {
    return source_moved(s, (struct source_stride){n, n, n});
}

NB_INLINE struct pair sum_rounded(struct fast_source s, struct pair v) {
#ifndef NB_DTYPE_IS_F32
    if (s.round) return pair_round(v);
#endif
    return v;
}
/* A register that is taken apart is loaded once: compilers would rather load it for either half. */
NB_INLINE struct pair element_pair(const elem *p) {
#if PAIR_IN_ORDER
    return pair_load(p);
#else
    return pair_split(raw_opaque(bits_load(p)));
#endif
}
NB_INLINE struct pair source_pair(struct fast_source s, int64_t i) {
    struct pair v = element_pair(s.x + i);
    if (!FAST_ADD || !s.add) return v;
    const struct pair r = element_pair(s.residual + i);
    v = (struct pair){v.a + r.a, v.b + r.b};
    if (s.store) {
        if (s.stream)
            pair_stream(s.sum_out + i, v);
        else
            pair_store(s.sum_out + i, v);
    }
    return sum_rounded(s, v);
}
/* One vector, for the output: nothing is stored on the way. */
NB_INLINE vec source_vec(struct fast_source s, int64_t i) {
    const vec v = vec_load(s.x + i);
    if (!FAST_ADD || !s.add) return v;
    const vec sum = v + vec_load(s.residual + i);
    return s.round ? vec_round(sum) : sum;
}
#if PAIR_NATIVE
/* The same in order. */
NB_INLINE struct pair source_ordered(struct fast_source s, int64_t i) {
    const struct pair v = ordered_load(s.x + i);
    if (!FAST_ADD || !s.add) return v;
    const struct pair r = ordered_load(s.residual + i);
    return sum_rounded(s, (struct pair){v.a + r.a, v.b + r.b});
}
NB_INLINE struct pair source_ordered_tail(struct fast_source s, int64_t i, int64_t n) {
    const struct pair v = ordered_load_tail(s.x + i, n);
    if (!FAST_ADD || !s.add) return v;
    const struct pair r = ordered_load_tail(s.residual + i, n);
    return sum_rounded(s, (struct pair){v.a + r.a, v.b + r.b});
}
#endif
NB_INLINE struct pair source_pair_tail(struct fast_source s, int64_t i, int64_t n) {
    struct pair v = pair_load_tail(s.x + i, n);
    if (!FAST_ADD || !s.add) return v;
    const struct pair r = pair_load_tail(s.residual + i, n);
    v = (struct pair){v.a + r.a, v.b + r.b};
    if (s.store) pair_store_tail(s.sum_out + i, v, n);
    return sum_rounded(s, v);
}

struct fast_sums {
    vec square[2 * BLOCK_PAIRS], sum[BLOCK_PAIRS]; /* sum: of centred rows; then only half of square */
};
struct lanes {
    vec square, sum;
};

NB_INLINE void sums_clear(struct fast_sums *s) {
    NB_UNROLL
    for (int i = 0; i < 2 * BLOCK_PAIRS; i++) s->square[i] = vec_set1(0.0f);
    NB_UNROLL
    for (int i = 0; i < BLOCK_PAIRS; i++) s->sum[i] = vec_set1(0.0f);
}

NB_INLINE void sums_add(struct fast_sums *s, int place, struct pair x) {
    const int chain = 2 * place % SUM_CHAINS;
    s->square[chain] = vec_fma(x.a, x.a, s->square[chain]);
    s->square[chain + 1] = vec_fma(x.b, x.b, s->square[chain + 1]);
    if (!FAST_CENTRE) return;
    s->sum[chain] = s->sum[chain] + x.a;
    s->sum[chain + 1] = s->sum[chain + 1] + x.b;
}

/* The pair at i, in its place of the block. dot: see FAST_DOT. */
NB_INLINE void sums_take(struct fast_sums *s, int place, struct fast_source from, vec shift, int64_t i, bool dot) {
#if FAST_DOT
    if (dot) {
        s->square[2 * place] = bits_squares(s->square[2 * place], bits_load(from.x + i));
        return;
    }
#endif
    struct pair x = source_pair(from, i);
    if (FAST_CENTRE) x = (struct pair){x.a - shift, x.b - shift};
    sums_add(s, place, x);
}

/* From i to n, less than a block. */
NB_INLINE void sums_take_rest(struct fast_sums *s, struct fast_source from, vec shift, int64_t i, int64_t n, bool dot) {
    NB_UNROLL
    for (int place = 0; place < BLOCK_PAIRS - 1; place++)
        if (i + PAIR <= n) {
            sums_take(s, place, from, shift, i, dot);
            i += PAIR;
        }
    if (i >= n) return;
#if FAST_DOT
    if (dot) {
        const int last = 2 * (BLOCK_PAIRS - 1);
        s->square[last] = bits_squares(s->square[last], bits_load_tail(from.x + i, n - i));
        return;
    }
#endif
    struct pair x = source_pair_tail(from, i, n - i);
    if (FAST_CENTRE) x = pair_keep((struct pair){x.a - shift, x.b - shift}, n - i);
    sums_add(s, BLOCK_PAIRS - 1, x);
}

/* The lines of n elements from p on. */
NB_INLINE void prefetch_lines(const elem *p, int n) {
    NB_UNROLL
    for (int byte = 0; byte < n * (int)sizeof(elem); byte += CACHE_LINE)
        __builtin_prefetch((const char *)p + byte, 0, 3);
}
NB_INLINE void sums_take_blocks(struct fast_sums *s, struct fast_source from, vec shift, int64_t i, int64_t n,
                                bool dot) {
    for (; i + BLOCK <= n; i += BLOCK) {
        NB_UNROLL
        for (int place = 0; place < BLOCK_PAIRS; place++) sums_take(s, place, from, shift, i + place * PAIR, dot);
        if (from.prefetch) prefetch_lines(from.prefetch + i, BLOCK);
    }
    if (i < n) sums_take_rest(s, from, shift, i, n, dot);
}

NB_INLINE vec chains_sum(const vec *chain) {
    vec tree[4 * BLOCK_PAIRS - 1];
    NB_UNROLL
    for (int i = 0; i < SUM_CHAINS; i++) tree[i] = chain[i];
    NB_UNROLL
    for (int i = 0; i < SUM_CHAINS - 1; i++) tree[SUM_CHAINS + i] = tree[2 * i] + tree[2 * i + 1];
    return tree[2 * SUM_CHAINS - 2];
}
NB_INLINE struct lanes sums_lanes(const struct fast_sums *s) {
    return (struct lanes){.square = chains_sum(s->square), .sum = FAST_CENTRE ? chains_sum(s->sum) : vec_set1(0.0f)};
}

/* Elements [begin, end). */
NB_INLINE struct lanes sums_of(struct fast_source from, vec shift, int64_t begin, int64_t end, bool dot) {
    struct fast_sums s;
    sums_clear(&s);
    sums_take_blocks(&s, from, shift, begin, end, dot);
    return sums_lanes(&s);
}

/* Mean and scale of a row.
 *
 * A row that is centred is swept once, about a shift near its mean: with d = x - shift and k = E[d]^2 / var, var = E[d^2] - E[d]^2 is off
 * by (sqrt(k) + sqrt(1 + k))^2 times what two passes would be, to first order. The shift is good enough where k <= 1/4 (factor 2.62), that
 * is E[d]^2 <= E[d^2] / 5. Else, or where a sum of squares overflows, the row is swept once more, about the mean that came out.
 *
 * The shift is 0 where at least 23 of the first 64 elements are negative and 23 are not: such a row needs no difference. Of normal rows
 * with mean 0 this holds for 0.986, and no more than 0.1 of rows with any mean pass and are swept twice. Elsewhere it is the mean of the
 * first 32, with which random rows are swept once with probability 0.995.
 *
 * The second shift will do: it is off the mean by no more than the rounding of the first sums, which are about a number that is not far
 * off either. The 32 elements are part of the row, so that (shift - mean)^2 <= var n / 32; about 0 at least 23 elements lie on the other
 * side than the mean, so that mean^2 <= var n / 23. */
#define SHIFT_ELEMENTS 32
#define SIGN_ELEMENTS 64
#define SIGN_EACH 23     /* of these, at least, for a shift of 0 */
#define SHIFT_GUARD 0.2f /* largest E[d]^2 / E[d^2] */
#define SHIFT_FACTOR 2.62

/* Long rows are summed in segments, whose number depends on the length alone. */
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
struct fast_totals {
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
/* The first pass over a row: the sum is stored, if it is wanted. */
NB_INLINE struct fast_source first_source(const struct nb_call *call, int64_t row, bool stream) {
    struct fast_source s = row_source_at(call, row);
    if (!FAST_ADD || !call->residual_out) return s;
    s.store = true;
    s.sum_out = row_out(call->residual_out, call->residual_out_stride, row);
    s.stream = stream && rows_stream(call->residual_out, call->residual_out_stride);
    return s;
}
/* A later pass: where the sum was stored as it is wanted, and has not left the caches, it is taken from there. */
NB_INLINE struct fast_source later_source(const struct nb_call *call, int64_t row, bool stream) {
    const bool stored =
        FAST_ADD && call->residual_out && !stream && (sizeof(elem) == sizeof(float) || call->formula.round_sum);
    if (!stored) return row_source_at(call, row);
    return (struct fast_source){.x = row_in(call->residual_out, call->residual_out_stride, row)};
}

/* ---- the shift ---- */

/* Of one lane the loops over a row's head would be 64 times written out. */
#if NB_LANES > 1
#define UNROLL_HEAD NB_UNROLL
#else
#define UNROLL_HEAD
#endif
NB_INLINE vec head_lanes(struct fast_source s, int64_t n) {
    vec sum = vec_set1(0.0f);
    if (n >= SHIFT_ELEMENTS) {
        UNROLL_HEAD
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
/* By the sign bit, so that all widths agree about -0 and NaN. The bounds are symmetric: -x has the same shift, negated. */
NB_INLINE bool head_has_both_signs(struct fast_source s) {
    int negatives = 0;
    UNROLL_HEAD
    for (int i = 0; i < SIGN_ELEMENTS; i += 2 * PAIR) {
        const struct pair x = source_pair(s, i), z = source_pair(s, i + PAIR);
        negatives += vec_negatives(x.a, x.b, z.a, z.b);
    }
    return negatives >= SIGN_EACH && negatives <= SIGN_ELEMENTS - SIGN_EACH;
}
/* Of a source without a store. A head whose sum overflows, or is NaN, leaves the first element. A shift of -0 gives the bits of 0, since
 * no sum tells one zero from the other. */
NB_INLINE float head_shift(struct fast_source s, int64_t n) {
    if (n >= SIGN_ELEMENTS && head_has_both_signs(s)) return 0.0f;
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
static inline struct fast_totals segment_totals(const float *square, const float *sum, int n) {
    if (n == 1) return (struct fast_totals){.square = square[0], .sum = sum[0]};
    return (struct fast_totals){.square = sum_tree(square, n), .sum = sum_tree(sum, n)};
}
NB_INLINE struct fast_totals lanes_totals(struct lanes l) {
    return (struct fast_totals){.square = vec_sum(l.square), .sum = FAST_CENTRE ? vec_sum(l.sum) : 0.0f};
}
/* See FAST_DOT. Of a call, not of a range or a form, so that a row's bits are the same wherever it is summed. */
static inline bool call_dots(const struct nb_call *call) { return FAST_DOT && call_is_native(call); }

static __attribute__((noinline)) struct fast_totals segment_sums(struct fast_source from, float shift, int64_t begin,
                                                                 int64_t end, bool dot) {
    if (FAST_DOT && dot) return lanes_totals(sums_of(from, vec_set1(shift), begin, end, true));
    if (FAST_CENTRE && shift == 0.0f) return lanes_totals(sums_of(from, vec_set1(0.0f), begin, end, false));
    return lanes_totals(sums_of(from, vec_set1(shift), begin, end, false));
}
static __attribute__((noinline)) struct fast_totals row_totals(struct fast_source from, int64_t n, float shift,
                                                               bool dot) {
    const int64_t length = segment_length(n);
    float square[MAX_SEGMENTS], sum[MAX_SEGMENTS];
    int count = 0;
    for (int64_t at = 0; at < n; at += length, count++) {
        const struct fast_totals t = segment_sums(from, shift, at, at + length < n ? at + length : n, dot);
        square[count] = t.square;
        sum[count] = t.sum;
    }
    return segment_totals(square, sum, count);
}

/* ---- from sums to mean and scale ---- */

/* No, with a NaN. Squares that overflow may not do so about the mean. */
static inline bool shift_is_good(struct fast_totals t, float inverse) {
    return t.sum * (t.sum * inverse) <= SHIFT_GUARD * t.square && t.square < __builtin_inff();
}
static inline float centred_variance(struct fast_totals t, float inverse) {
    const float v = __builtin_fmaf(-t.sum, t.sum * inverse, t.square) * inverse;
    return vec_first(vec_max(vec_set1(0.0f), vec_set1(v))); /* below 0 in constant rows, by a rounding */
}

/* 1 / n, or 1 where the sum itself is wanted. */
static inline float stats_inverse(const struct nb_call *call) {
    return FAST_TOTAL ? 1.0f : 1.0f / (float)stats_length(call);
}
/* eps in units of the variance; where the op does not centre, what it is inside the root. */
static inline float eps_beside_variance(const struct nb_call *call) {
    const float eps = (float)call->eps;
    return FAST_CENTRE && call->formula.eps_place != NB_EPS_INSIDE ? eps * eps : eps;
}
static inline float second_shift(struct fast_totals t, float shift, float inverse) { return shift + t.sum * inverse; }
/* From sums about a shift that will do; mean and rstd are stored where they are wanted. */
static inline struct row_numbers numbers_of(const struct nb_call *call, int64_t row, struct fast_totals t,
                                            float shift) {
    const float inverse = stats_inverse(call);
    const float v = FAST_CENTRE ? centred_variance(t, inverse) : t.square * inverse;
    const struct row_numbers r = {.mean = FAST_CENTRE ? shift + t.sum * inverse : 0.0f, .scale = row_scale(v, call)};
    if (call->mean) call->mean[row] = r.mean;
    if (call->rstd) call->rstd[row] = scale_to_rstd(r.scale, &call->formula);
    return r;
}
/* t: of the first sweep. */
static __attribute__((noinline)) struct row_numbers row_finish(const struct nb_call *call, int64_t row,
                                                               struct fast_totals t, float shift, bool stream) {
    const float inverse = stats_inverse(call);
    if (FAST_CENTRE && !shift_is_good(t, inverse)) {
        shift = second_shift(t, shift, inverse);
        t = row_totals(later_source(call, row, stream), stats_length(call), shift, call_dots(call));
    }
    return numbers_of(call, row, t, shift);
}
/* Of a row that is stored next, the lines of y may be prefetched meanwhile. */
static __attribute__((noinline)) struct row_numbers row_statistics(const struct nb_call *call, int64_t row, bool stream,
                                                                   bool prefetch_y) {
    const float shift = row_shift(call, row);
    struct fast_source from = first_source(call, row, stream);
    if (prefetch_y) from.prefetch = row_out(call->y, call->y_stride, row);
    const struct fast_totals t = row_totals(from, stats_length(call), shift, call_dots(call));
    return row_finish(call, row, t, shift, stream);
}

/* The same for the formula that nearly all calls have, without reading memory: a load right behind a row of stores may have
 * the low bits of its address in common with one of them, and waits for it. */
struct quick_finish {
    float inverse, eps;
    bool applies;       /* 1 / sqrt(v + eps) */
    bool stores;        /* is mean or rstd wanted? */
    float *mean, *rstd; /* or null */
};
static inline struct quick_finish quick_finish_of(const struct nb_call *call) {
    return (struct quick_finish){
        .inverse = stats_inverse(call),
        .eps = eps_beside_variance(call),
        .applies = call->formula.root == NB_ROOT_MUL_RECIP && call->formula.eps_place == NB_EPS_INSIDE,
        .stores = call->mean || call->rstd,
        .mean = call->mean,
        .rstd = call->rstd,
    };
}
/* A row that was summed. Its root is still to be taken, unless it went the slow way: a few rows of LayerNorm, or all of a call with another
 * formula. */
struct summed_row {
    float mean;               /* 0 where the op does not centre */
    _Alignas(8) float spread; /* what the root is of, without eps; finished: the scale */
    _Alignas(8) bool finished;
};
NB_INLINE struct summed_row row_summed(const struct nb_call *call, int64_t row, struct fast_totals t, float shift,
                                       struct quick_finish q, bool stream) {
    const bool quick = q.applies && (!FAST_CENTRE || shift_is_good(t, q.inverse));
    if (__builtin_expect(!quick, 0)) {
        const struct row_numbers r = row_finish(call, row, t, shift, stream);
        return (struct summed_row){.mean = r.mean, .spread = r.scale, .finished = true};
    }
    return (struct summed_row){.mean = FAST_CENTRE ? shift + t.sum * q.inverse : 0.0f,
                               .spread = FAST_CENTRE ? centred_variance(t, q.inverse) : t.square * q.inverse};
}
NB_INLINE struct row_numbers row_finished(int64_t row, struct summed_row s, struct quick_finish q) {
    const bool finished = FAST_CENTRE ? s.finished : !q.applies;
    if (__builtin_expect(finished, 0)) return (struct row_numbers){.mean = s.mean, .scale = s.spread};
    const struct row_numbers r = {.mean = s.mean, .scale = 1.0f / __builtin_sqrtf(s.spread + q.eps)};
    if (__builtin_expect(q.stores, 0)) {
        if (q.mean) q.mean[row] = r.mean;
        if (q.rstd) q.rstd[row] = r.scale;
    }
    return r;
}
