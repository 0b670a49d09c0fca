// SPDX-License-Identifier: Apache-2.0
/* The output of the fast row kernels: y = (x - mean) * scale * weight + beta, while the sums of a later row are made in the same loop.
 * Where the mean is small beside the spread, the first part is x * scale - mean * scale, one operation less (folds_mean).
 * Each form is compiled apart; what costs no more than a branch that goes the same way all along the row is no part of it. */
#pragma once

#include "kernels/rows/fast_stats.h"

/* The affine part of a call, in f32. Constants in the usual forms, else branches along the row. */
struct fast_params {
    const float *gamma, *beta;
    bool weighs, adds; /* is there a gamma, a beta? */
};
/* What is compiled apart; constants wherever they are used. */
struct fast_form {
    bool usual;    /* all of a row is summed (in f32, or some of it), the op's usual parameters; else anything */
    bool native;   /* a usual form: elements in order, rounded by one instruction (pair_native.h) */
    bool stream;   /* stored non-temporally, rows begin with a line; a form for anything may, whatever this says */
    bool prepared; /* the op's usual parameters, laid out once a range as elements lie in pairs */
};
struct affine_pair {
    struct pair gamma, beta;
};

/* What each op usually has: gamma, and beta where it centres. */
#define USUAL_AFFINE (FAST_CENTRE ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA)

/* Whole pairs, and a line more, so that gamma and beta do not have the low bits of their addresses in common. */
NB_INLINE int64_t prepared_columns(const struct nb_call *call) {
    return (call->cols + PAIR - 1) / PAIR * PAIR + CACHE_LINE / (int64_t)sizeof(float);
}
/* prepared: gamma and beta, if the form has them so. */
NB_INLINE struct fast_params params_of(const struct nb_call *call, const float *prepared, struct fast_form f) {
    const int affine = f.usual || f.prepared ? USUAL_AFFINE : (int)call->formula.affine;
    return (struct fast_params){
        .gamma = f.prepared ? prepared : call->gamma,
        .beta = f.prepared ? prepared + prepared_columns(call) : call->beta,
        .weighs = affine != NB_AFFINE_NONE,
        .adds = affine == NB_AFFINE_GAMMA_BETA,
    };
}
NB_INLINE struct fast_params params_from(struct fast_params p, int64_t n) {
    if (p.weighs) p.gamma += n;
    if (p.adds) p.beta += n;
    return p;
}
NB_INLINE struct pair param_pair(const float *p, int64_t i, struct fast_form f) {
    return f.native || f.prepared ? floats_load(p + i) : pair_load_f32(p + i);
}
NB_INLINE struct pair param_pair_tail(const float *p, int64_t i, int64_t n, bool native) {
    return native ? floats_load_tail(p + i, n) : pair_load_f32_tail(p + i, n);
}
NB_INLINE struct affine_pair affine_at(struct fast_params p, int64_t i, struct fast_form f) {
    struct affine_pair w = {{vec_set1(0.0f), vec_set1(0.0f)}, {vec_set1(0.0f), vec_set1(0.0f)}};
    if (p.weighs) w.gamma = param_pair(p.gamma, i, f);
    if (p.adds) w.beta = param_pair(p.beta, i, f);
    return w;
}
NB_INLINE struct affine_pair affine_tail(struct fast_params p, int64_t i, int64_t n, struct fast_form f) {
    if (f.prepared) return affine_at(p, i, f);
    struct affine_pair w = {{vec_set1(0.0f), vec_set1(0.0f)}, {vec_set1(0.0f), vec_set1(0.0f)}};
    if (p.weighs) w.gamma = param_pair_tail(p.gamma, i, n, f.native);
    if (p.adds) w.beta = param_pair_tail(p.beta, i, n, f.native);
    return w;
}

/* Before the rounding of the store. */
NB_INLINE struct pair weighed_pair(struct pair x, struct affine_pair w, struct fast_params p) {
    if (!p.weighs) return x;
    if (!p.adds) return (struct pair){x.a * w.gamma.a, x.b * w.gamma.b};
    return (struct pair){vec_fma(x.a, w.gamma.a, w.beta.a), vec_fma(x.b, w.gamma.b, w.beta.b)};
}
/* A normalized value is (x - minus) * scale + plus: minus is the mean and plus is -0, which changes no bit of the product; or, where the
 * mean is folded into plus, minus is 0 and plus is -mean * scale. */
struct normalizer {
    vec minus, scale, plus;
};
NB_INLINE vec normalized(vec x, struct normalizer n) {
    if (FAST_CENTRE) return vec_fma(x - n.minus, n.scale, n.plus);
    return x * n.scale;
}
NB_INLINE struct pair normalized_pair(struct pair x, struct normalizer n) {
    return (struct pair){normalized(x.a, n), normalized(x.b, n)};
}
/* May the mean be folded? Where both it and the square root of eps (which is in units of the variance) are at most half of 1 / scale, so
 * that |mean| is at most the standard deviation. The product mean * scale is then rounded by u / 2 at most, u = 2^-24; there is no rounding
 * of x - mean any more. With an eps that outweighs the variance, mean * scale could be small, and its rounding large beside the spread.
 * No, with a NaN. */
NB_INLINE bool folds_mean(float mean, float scale, float eps) {
    return __builtin_fabsf(mean * scale) <= 0.5f && eps * scale * scale <= 0.25f;
}

/* One row's way from x to y: n elements. */
struct fast_output {
    struct fast_source x;
    elem *y;
    int64_t n;
    struct normalizer normalizer;
    struct fast_params params;
    bool stream, native;
    bool folded;       /* normalizer.minus is 0 */
    const elem *later; /* a row of x to prefetch meanwhile; or null */
};
/* What is summed meanwhile: the first n elements of another row. */
struct fast_input {
    struct fast_source x;
    int64_t n;
    vec shift;
    bool dot;          /* FAST_DOT */
    const elem *later; /* a row of x to prefetch meanwhile; or null */
};

NB_INLINE struct pair output_pair(const struct fast_output *o, int64_t i, struct fast_form f) {
#if PAIR_NATIVE
    if (f.native) return source_ordered(o->x, i);
#endif
    return source_pair(o->x, i);
}
NB_INLINE struct pair output_pair_tail(const struct fast_output *o, int64_t i, int64_t n, struct fast_form f) {
#if PAIR_NATIVE
    if (f.native) return source_ordered_tail(o->x, i, n);
#endif
    return source_pair_tail(o->x, i, n);
}
/* Of all but kernels that add, whose sums need the registers of the other rounding. */
#define FAST_ROUNDS_UP (PAIR_ROUNDS_UP && !FAST_ADD)
/* Whether a native call streams may not show: there the other forms round as the native ones do. ties: null where they are rounded to even
 * at once. */
NB_INLINE void store_pair(const struct fast_output *o, int64_t i, struct pair y, struct ties *ties,
                          struct fast_form f) {
#if PAIR_NATIVE
    if (f.native && f.stream) {
        raw_stream((char *)(o->y + i), bits_narrow(y.a, y.b));
        return;
    }
    if (f.native) {
        ordered_store(o->y + i, y);
        return;
    }
    if (!f.usual && o->native) {
        const bf16_bits bits = bits_narrow_split(y);
        if (o->stream)
            raw_stream((char *)(o->y + i), bits);
        else
            bits_store(o->y + i, bits);
        return;
    }
#endif
    const bool streams = f.stream || (!f.usual && o->stream);
    if (FAST_ROUNDS_UP && ties && streams)
        pair_stream_up(o->y + i, y, ties);
    else if (FAST_ROUNDS_UP && ties)
        pair_store_up(o->y + i, y, ties);
    else if (streams)
        pair_stream(o->y + i, y);
    else
        pair_store(o->y + i, y);
}
NB_INLINE void store_pair_tail(const struct fast_output *o, int64_t i, struct pair y, int64_t n, struct fast_form f) {
#if PAIR_NATIVE
    if (f.native) {
        ordered_store_tail(o->y + i, y, n);
        return;
    }
    if (!f.usual && o->native) {
        bits_store_tail(o->y + i, bits_narrow_split(y), n);
        return;
    }
#endif
    pair_store_tail(o->y + i, y, n);
}

NB_INLINE void store_weighed(const struct fast_output *o, int64_t i, struct affine_pair w, struct ties *ties,
                             struct fast_form f) {
    const struct pair v = normalized_pair(output_pair(o, i, f), o->normalizer);
    store_pair(o, i, weighed_pair(v, w, o->params), ties, f);
}
NB_INLINE void store_normalized(const struct fast_output *o, int64_t i, struct ties *ties, struct fast_form f) {
    store_weighed(o, i, affine_at(o->params, i, f), ties, f);
}
/* Two pairs where one is half a line or less: past the caches the halves of a line best leave together. */
#define PAIR_IS_HALF (PAIR * (int)sizeof(elem) < CACHE_LINE)
_Static_assert(BLOCK_PAIRS % 2 == 0, "a block is made of two pairs at a time");
NB_INLINE void store_two_pairs(const struct fast_output *o, int64_t i, struct ties *ties, struct fast_form f) {
    struct affine_pair w = affine_at(o->params, i, f);
    const struct pair a = weighed_pair(normalized_pair(output_pair(o, i, f), o->normalizer), w, o->params);
    w = affine_at(o->params, i + PAIR, f);
    const struct pair b = weighed_pair(normalized_pair(output_pair(o, i + PAIR, f), o->normalizer), w, o->params);
    store_pair(o, i, a, ties, f);
    store_pair(o, i + PAIR, b, ties, f);
}
/* n elements at i, which are whole pairs, to nearest even. */
static __attribute__((noinline, unused)) void store_again(const struct fast_output *o, int64_t i, int64_t n,
                                                          bool prepared) {
    for (int64_t end = i + n; i < end; i += PAIR)
        store_normalized(o, i, NULL, (struct fast_form){.prepared = prepared});
}
/* After stores of n elements at i. The row itself would best stay in registers. */
NB_INLINE void settle_ties(const struct fast_output *o, int64_t i, int64_t n, struct ties ties, struct fast_form f) {
    if (__builtin_expect(!ties_met(ties), 1)) return;
    const struct fast_output row = *o;
    store_again(&row, i, n, f.prepared);
}
/* n elements at i, fewer than a pair. */
NB_INLINE void store_tail(const struct fast_output *o, int64_t i, int64_t n, struct fast_form f) {
    const struct affine_pair w = affine_tail(o->params, i, n, f);
    const struct pair v = normalized_pair(output_pair_tail(o, i, n, f), o->normalizer);
    store_pair_tail(o, i, weighed_pair(v, w, o->params), n, f);
}
#if PAIR_IN_ORDER
/* A single vector, of the usual forms: where a row is read from the second cache, loads and stores in strict order are faster. */
NB_INLINE void store_vec(const struct fast_output *o, int64_t i) {
    const struct fast_params p = o->params;
    vec x = normalized(source_vec(o->x, i), o->normalizer);
    if (p.weighs) {
        const vec gamma = vec_load_f32(p.gamma + i);
        if (p.adds)
            x = vec_fma(x, gamma, vec_load_f32(p.beta + i));
        else
            x = x * gamma;
    }
    vec_store(o->y + i, x);
}
#endif
NB_INLINE struct fast_output output_from(struct fast_output o, int64_t n) {
    o.x = source_from(o.x, n);
    if (o.later) o.later += n;
    o.params = params_from(o.params, n);
    o.y += n;
    o.n -= n;
    return o;
}
/* Up to the first element that may be streamed; what is left. */
NB_INLINE struct fast_output store_head(struct fast_output o, struct fast_form f) {
    int64_t n = unaligned_elements(o.y);
    if (n > o.n) n = o.n;
    if (n > 0) store_tail(&o, 0, n, f);
    return output_from(o, n);
}
/* By blocks where they are for something: ties are looked for once a block. */
NB_INLINE bool stores_blocks(struct fast_form f) { return FAST_ROUNDS_UP || (PAIR_IN_ORDER && f.usual && !f.stream); }
NB_INLINE void store_block(const struct fast_output *o, int64_t i, struct fast_form f) {
#if PAIR_IN_ORDER
    NB_UNROLL
    for (int k = 0; k < 2 * BLOCK_PAIRS; k++) store_vec(o, i + k * NB_LANES);
#else
    struct ties ties = ties_none();
    if ((!f.usual || f.stream) && o->later) prefetch_lines(o->later + i, BLOCK);
    NB_UNROLL
    for (int place = 0; place < BLOCK_PAIRS; place += 2) store_two_pairs(o, i + place * PAIR, &ties, f);
    settle_ties(o, i, BLOCK, ties, f);
#endif
}
NB_INLINE void store_elements(struct fast_output o, struct fast_form f) {
    if (!f.usual && o.stream) o = store_head(o, f);
    int64_t i = 0;
    for (; stores_blocks(f) && i + BLOCK <= o.n; i += BLOCK) store_block(&o, i, f);
    for (; PAIR_IS_HALF && i + 2 * PAIR <= o.n; i += 2 * PAIR) {
        if ((!f.usual || f.stream) && o.later) prefetch_lines(o.later + i, 2 * PAIR);
        store_two_pairs(&o, i, NULL, f);
    }
    for (; i + PAIR <= o.n; i += PAIR) {
        if ((!f.usual || f.stream) && o.later) prefetch_lines(o.later + i, PAIR);
        store_normalized(&o, i, NULL, f);
    }
    if (i < o.n) store_tail(&o, i, o.n - i, f);
}

/* Forms in which a zero that is a constant is not subtracted at all: a loop more. Past the caches memory is the limit, but where a sum is
 * made of bf16 in vectors of 8 or less. */
NB_INLINE bool knows_zeros(struct fast_form f) {
    const bool computes = FAST_ADD && !PAIR_IN_ORDER && NB_LANES < 16;
    return FAST_CENTRE && f.usual && (!f.stream || computes);
}
NB_INLINE void store_row(struct fast_output o, struct fast_form f) {
    if (knows_zeros(f) && o.folded) {
        o.normalizer.minus = vec_set1(0.0f);
        store_elements(o, f);
        return;
    }
    store_elements(o, f);
}

/* Rows of the same length that share the loads of the parameters. */
#define SHARED_ROWS 4
NB_INLINE void store_rows(const struct fast_output *o, struct fast_form f) {
    const int64_t n = o->n;
    int64_t i = 0;
    for (; i + PAIR <= n; i += PAIR) {
        const struct affine_pair w = affine_at(o->params, i, f);
        struct ties ties = ties_none();
        NB_UNROLL
        for (int r = 0; r < SHARED_ROWS; r++) store_weighed(&o[r], i, w, &ties, f);
        NB_UNROLL
        for (int r = 0; r < SHARED_ROWS; r++) settle_ties(&o[r], i, PAIR, ties, f);
    }
    for (int r = 0; r < SHARED_ROWS && i < n; r++) store_tail(&o[r], i, n - i, f);
}

/* A block of one row is summed while one of another is stored, pair by pair; vector by vector where there are 16 registers, of which
 * LayerNorm's sums leave 5: with a pair at a time a compiler keeps a sum in memory. */
#define STORES_VECTORS (PAIR_IN_ORDER && NB_LANES < 16)
NB_INLINE void store_and_sum_block(const struct fast_output *o, struct fast_sums *s, const struct fast_input *in,
                                   int64_t i, struct fast_form f) {
    struct ties ties = ties_none();
    if (!FAST_PARTIAL && (!f.usual || f.stream) && in->later) prefetch_lines(in->later + i, BLOCK);
    NB_UNROLL
    for (int place = 0; place < BLOCK_PAIRS; place++) {
        sums_take(s, place, in->x, in->shift, i + place * PAIR, in->dot);
        if (PAIR_IS_HALF && (!f.usual || (f.stream && !f.native))) {
            if (place % 2) store_two_pairs(o, i + (place - 1) * PAIR, &ties, f);
            continue;
        }
#if STORES_VECTORS
        if (f.usual && !f.stream) {
            store_vec(o, i + place * PAIR);
            store_vec(o, i + place * PAIR + NB_LANES);
            continue;
        }
#endif
        store_normalized(o, i + place * PAIR, &ties, f);
    }
    settle_ties(o, i, BLOCK, ties, f);
}
/* While as many elements of another row are summed; of partial statistics, fewer. */
NB_INLINE struct lanes store_and_sum(struct fast_output o, struct fast_input in, struct fast_form f) {
    const int64_t n = FAST_PARTIAL ? in.n : o.n;
    struct fast_sums s;
    sums_clear(&s);
    int64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) store_and_sum_block(&o, &s, &in, i, f);
    if (i == o.n) return sums_lanes(&s);
    if (i < n) sums_take_rest(&s, in.x, in.shift, i, n, in.dot);
    for (; i + PAIR <= o.n; i += PAIR) store_normalized(&o, i, NULL, f);
    if (i < o.n) store_tail(&o, i, o.n - i, f);
    return sums_lanes(&s);
}

/* Neither the row that is stored nor the one that is summed needs a difference. */
NB_INLINE bool both_about_zero(const struct fast_output *o, float shift, struct fast_form f) {
    return knows_zeros(f) && o->folded && shift == 0.0f;
}
/* The same with both zeros as constants. */
NB_INLINE struct lanes store_and_sum_about_zero(struct fast_output o, struct fast_input in, struct fast_form f) {
    o.normalizer.minus = vec_set1(0.0f);
    in.shift = vec_set1(0.0f);
    return store_and_sum(o, in, f);
}

/* 0 * Inf is NaN, too: such a call goes the careful way for nothing. */
static inline bool all_finite(const float *p, int64_t n) {
    const vec zero = vec_set1(0.0f);
    vec sum[BLOCK_PAIRS];
    int64_t i = 0;
    NB_UNROLL
    for (int k = 0; k < BLOCK_PAIRS; k++) sum[k] = zero;
    for (; i + BLOCK_PAIRS * NB_LANES <= n; i += BLOCK_PAIRS * NB_LANES) {
        NB_UNROLL
        for (int k = 0; k < BLOCK_PAIRS; k++) sum[k] = vec_fma(vec_load_f32(p + i + k * NB_LANES), zero, sum[k]);
    }
    float all = vec_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (; i < n; i++) all += p[i] * 0.0f;
    return all == 0.0f;
}
/* The quick rounding to bf16 may turn a NaN that came as a parameter into a number (pair.h). */
static inline bool params_need_care(const struct nb_call *call) {
    const struct nb_formula *f = &call->formula;
    if (PAIR_IN_ORDER || f->affine == NB_AFFINE_NONE) return false;
    if (!all_finite(call->gamma, call->cols)) return true;
    return f->affine == NB_AFFINE_GAMMA_BETA && !all_finite(call->beta, call->cols);
}
/* After store_row(), where a parameter is NaN. */
static __attribute__((noinline, unused)) void store_nan(const struct fast_output *o) {
    const float *gamma = o->params.gamma, *beta = o->params.beta;
    for (int64_t i = 0; i < o->n; i++) {
        if (gamma[i] != gamma[i]) elem_set(o->y + i, gamma[i]);
        if (o->params.adds && beta[i] != beta[i]) elem_set(o->y + i, beta[i]);
    }
}
