// SPDX-License-Identifier: Apache-2.0
/* Sums over a row, or a segment of one, whose shape hangs on the row's length alone, so that a row has the same bits whether it is
 * summed by itself, while another row is put out, or in segments by several threads.
 *
 * Of rows that are not centred: sum x^2, in 8 chains. Of rows that are: sum d and sum d^2 of d = x - shift, in 4 chains each. */
#ifndef NB_FAST_SUMS_H
#define NB_FAST_SUMS_H

#include "kernels/shared/pair_native.h"

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
#define CACHE_LINE 64
#define SUM_CHAINS (FAST_CENTRE ? BLOCK_PAIRS : 2 * BLOCK_PAIRS)
/* Are squares summed by the dot product of bf16 where the call is native? A pair takes one chain then, the first of its two. */
#define FAST_DOT (PAIR_NATIVE && !FAST_CENTRE && !FAST_ADD)

/* Where the elements of a row come from: x, or x + residual, in f32 or rounded to the dtype, stored on its way or not. Only in
 * kernels that add are the flags looked at, each a branch that goes the same way all along the row. */
struct fast_source {
    const elem *x, *residual;
    elem *sum_out;
    bool add, round, stream;
    const elem *ask; /* what lines are fetched into the cache beside the sums; or null */
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
#if PAIR_NATIVE
/* The same of an output sweep, in order. */
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

/* The pair at i, in its place of the block. dot: see FAST_DOT. */
NB_INLINE void sums_take(struct sums *s, int place, struct fast_source from, vec shift, int64_t i, bool dot) {
#if FAST_DOT
    if (dot) {
        s->square[2 * place] = bits_squares(s->square[2 * place], bits_load(from.x + i));
        return;
    }
#endif
    (void)dot;
    struct pair x = source_pair(from, i);
    if (FAST_CENTRE) x = (struct pair){x.a - shift, x.b - shift};
    sums_add(s, place, x);
}

/* From i to n, less than a block. */
NB_INLINE void sums_take_rest(struct sums *s, struct fast_source from, vec shift, int64_t i, int64_t n, bool dot) {
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
NB_INLINE void ask_for_lines(const elem *p, int n) {
    NB_UNROLL
    for (int byte = 0; byte < n * (int)sizeof(elem); byte += CACHE_LINE)
        __builtin_prefetch((const char *)p + byte, 0, 3);
}
NB_INLINE void sums_take_blocks(struct sums *s, struct fast_source from, vec shift, int64_t i, int64_t n, bool dot) {
    for (; i + BLOCK <= n; i += BLOCK) {
        NB_UNROLL
        for (int place = 0; place < BLOCK_PAIRS; place++) sums_take(s, place, from, shift, i + place * PAIR, dot);
        if (from.ask) ask_for_lines(from.ask + i, BLOCK);
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
NB_INLINE struct lanes sums_lanes(const struct sums *s) {
    return (struct lanes){.square = chains_sum(s->square), .sum = FAST_CENTRE ? chains_sum(s->sum) : vec_set1(0.0f)};
}

/* Elements [begin, end). */
NB_INLINE struct lanes sums_of(struct fast_source from, vec shift, int64_t begin, int64_t end, bool dot) {
    struct sums s;
    sums_clear(&s);
    sums_take_blocks(&s, from, shift, begin, end, dot);
    return sums_lanes(&s);
}

#endif
