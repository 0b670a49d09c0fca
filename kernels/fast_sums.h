// SPDX-License-Identifier: Apache-2.0
/* Sums over a row, or a segment of one, whose shape hangs on the row's length alone, so that a row has the same bits whether it is
 * summed by itself, while another row is put out, or in segments by several threads.
 *
 * Of rows that are not centred: sum x^2, in 8 chains. Of rows that are: sum d and sum d^2 of d = x - shift, in 4 chains each. */
#ifndef NB_FAST_SUMS_H
#define NB_FAST_SUMS_H

#include "stream.h"

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

#define BLOCK_PAIRS 4 /* pairs a turn of the loop */
#define BLOCK (BLOCK_PAIRS * PAIR)
#define SUM_CHAINS (FAST_CENTRE ? BLOCK_PAIRS : 2 * BLOCK_PAIRS)

/* Where the elements of a row come from: x, or x + residual, in f32 or rounded to the dtype, stored on its way or not. Only in
 * kernels that add are the flags looked at, each a branch that goes the same way all along the row. */
struct fast_source {
    const elem *x, *residual;
    elem *sum_out;
    bool add, round, stream;
};

/* How far it is to the next row, in elements. */
struct source_stride {
    int64_t x, residual, sum_out;
};
NB_INLINE struct fast_source source_moved(struct fast_source s, struct source_stride by) {
    s.x += by.x;
    if (!FAST_ADD) return s;
    if (s.add) s.residual += by.residual;
    if (s.sum_out) s.sum_out += by.sum_out;
    return s;
}
NB_INLINE struct fast_source source_from(struct fast_source s, int64_t n) {
    return source_moved(s, (struct source_stride){n, n, n});
}

NB_INLINE struct pair sum_rounded(struct fast_source s, struct pair v) {
#ifndef NB_DTYPE_IS_F32
    if (s.round) return pair_round(v);
#else
    (void)s;
#endif
    return v;
}
NB_INLINE struct pair source_pair(struct fast_source s, int64_t i) {
    struct pair v = pair_load(s.x + i);
    if (!FAST_ADD || !s.add) return v;
    const struct pair r = pair_load(s.residual + i);
    v = (struct pair){v.a + r.a, v.b + r.b};
    if (s.sum_out) {
        if (s.stream)
            pair_stream(s.sum_out + i, v);
        else
            pair_store(s.sum_out + i, v);
    }
    return sum_rounded(s, v);
}
/* One vector, of an output sweep: nothing is stored on the way. */
NB_INLINE vec source_vec(struct fast_source s, int64_t i) {
    const vec v = vec_load(s.x + i);
    if (!FAST_ADD || !s.add) return v;
    const vec sum = v + vec_load(s.residual + i);
    return s.round ? vec_round(sum) : sum;
}
NB_INLINE struct pair source_pair_tail(struct fast_source s, int64_t i, int64_t n) {
    struct pair v = pair_load_tail(s.x + i, n);
    if (!FAST_ADD || !s.add) return v;
    const struct pair r = pair_load_tail(s.residual + i, n);
    v = (struct pair){v.a + r.a, v.b + r.b};
    if (s.sum_out) pair_store_tail(s.sum_out + i, v, n);
    return sum_rounded(s, v);
}

struct sums {
    vec square[2 * BLOCK_PAIRS], sum[BLOCK_PAIRS]; /* sum: of centred rows; then only half of square */
};
struct lanes {
    vec square, sum;
};

NB_INLINE void sums_clear(struct sums *s) {
    NB_UNROLL
    for (int i = 0; i < 2 * BLOCK_PAIRS; i++) s->square[i] = vec_set1(0.0f);
    NB_UNROLL
    for (int i = 0; i < BLOCK_PAIRS; i++) s->sum[i] = vec_set1(0.0f);
}

NB_INLINE void sums_add(struct sums *s, int place, struct pair x) {
    const int chain = 2 * place % SUM_CHAINS;
    s->square[chain] = vec_fma(x.a, x.a, s->square[chain]);
    s->square[chain + 1] = vec_fma(x.b, x.b, s->square[chain + 1]);
    if (!FAST_CENTRE) return;
    s->sum[chain] = s->sum[chain] + x.a;
    s->sum[chain + 1] = s->sum[chain + 1] + x.b;
}

/* The pair at i, in its place of the block. */
NB_INLINE void sums_take(struct sums *s, int place, struct fast_source from, vec shift, int64_t i) {
    struct pair x = source_pair(from, i);
    if (FAST_CENTRE) x = (struct pair){x.a - shift, x.b - shift};
    sums_add(s, place, x);
}

/* From i to n, less than a block. */
NB_INLINE void sums_take_rest(struct sums *s, struct fast_source from, vec shift, int64_t i, int64_t n) {
    NB_UNROLL
    for (int place = 0; place < BLOCK_PAIRS - 1; place++)
        if (i + PAIR <= n) {
            sums_take(s, place, from, shift, i);
            i += PAIR;
        }
    if (i >= n) return;
    struct pair x = source_pair_tail(from, i, n - i);
    if (FAST_CENTRE) x = pair_keep((struct pair){x.a - shift, x.b - shift}, n - i);
    sums_add(s, BLOCK_PAIRS - 1, x);
}

NB_INLINE void sums_take_blocks(struct sums *s, struct fast_source from, vec shift, int64_t i, int64_t n) {
    for (; i + BLOCK <= n; i += BLOCK) {
        NB_UNROLL
        for (int place = 0; place < BLOCK_PAIRS; place++) sums_take(s, place, from, shift, i + place * PAIR);
    }
    if (i < n) sums_take_rest(s, from, shift, i, n);
}

NB_INLINE vec chains_sum(const vec *chain) {
    vec tree[4 * BLOCK_PAIRS - 1];
    NB_UNROLL
    for (int i = 0; i < SUM_CHAINS; i++) tree[i] = chain[i];
    NB_UNROLL
    for (int i = 0; i < SUM_CHAINS - 1; i++) tree[SUM_CHAINS + i] = tree[2 * i] + tree[2 * i + 1];
    return tree[2 * SUM_CHAINS - 2];
}
NB_INLINE struct lanes sums_lanes(const struct sums *s) {
    return (struct lanes){.square = chains_sum(s->square), .sum = FAST_CENTRE ? chains_sum(s->sum) : vec_set1(0.0f)};
}

/* Elements [begin, end). */
NB_INLINE struct lanes sums_of(struct fast_source from, vec shift, int64_t begin, int64_t end) {
    struct sums s;
    sums_clear(&s);
    sums_take_blocks(&s, from, shift, begin, end);
    return sums_lanes(&s);
}

#endif
