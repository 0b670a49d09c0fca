// SPDX-License-Identifier: Apache-2.0
/* The output sweep of the fast row kernels: y = (x - mean) * scale * weight + beta, while the sums of a later row are made in the same
 * loop. A form is what is compiled apart; what costs no more than a branch that goes the same way all along the row is looked at
 * there. */
#ifndef NB_FAST_OUTPUT_H
#define NB_FAST_OUTPUT_H

#include "fast_stats.h"

/* Constants wherever they are used. */
struct fast_form {
    int affine;
    bool cast_before;
    bool exact;  /* whole blocks, no pRMSNorm, no streaming */
    bool offset; /* exact only; else a branch tells */
};

/* Of a call. */
struct fast_params {
    const void *gamma, *beta;
    bool elem;   /* in x's dtype */
    bool offset; /* 1 + gamma */
};
struct affine_pair {
    struct pair gamma, beta;
};

NB_INLINE struct fast_params params_of(const struct nb_call *call) {
    const bool elem_params = sizeof(elem) < sizeof(float) && call->formula.param == NB_PARAM_X;
    return (struct fast_params){call->gamma, call->beta, elem_params, call->formula.weight_offset};
}
NB_INLINE struct fast_params params_from(struct fast_params p, int64_t n) {
    const int64_t bytes = n * (int64_t)(p.elem ? sizeof(elem) : sizeof(float));
    if (p.gamma) p.gamma = (const char *)p.gamma + bytes;
    if (p.beta) p.beta = (const char *)p.beta + bytes;
    return p;
}
NB_INLINE struct pair param_pair(const void *p, bool is_elem, int64_t i) {
    if (sizeof(elem) < sizeof(float) && is_elem) return pair_load((const elem *)p + i);
    return pair_load_f32((const float *)p + i);
}
NB_INLINE struct pair param_pair_tail(const void *p, bool is_elem, int64_t i, int64_t n) {
    if (sizeof(elem) < sizeof(float) && is_elem) return pair_load_tail((const elem *)p + i, n);
    return pair_load_f32_tail((const float *)p + i, n);
}
NB_INLINE struct pair offset_weight(struct pair gamma, struct fast_form f) {
    const vec one = vec_set1(1.0f);
    gamma = (struct pair){gamma.a + one, gamma.b + one};
    return f.cast_before ? pair_round(gamma) : gamma;
}
NB_INLINE struct affine_pair affine_at(struct fast_params p, int64_t i, struct fast_form f) {
    struct affine_pair w = {{vec_set1(0.0f), vec_set1(0.0f)}, {vec_set1(0.0f), vec_set1(0.0f)}};
    if (f.affine == NB_AFFINE_NONE) return w;
    w.gamma = param_pair(p.gamma, p.elem, i);
    if (f.exact ? f.offset : p.offset) w.gamma = offset_weight(w.gamma, f);
    if (f.affine == NB_AFFINE_GAMMA_BETA) w.beta = param_pair(p.beta, p.elem, i);
    return w;
}
NB_INLINE struct affine_pair affine_tail(struct fast_params p, int64_t i, int64_t n, struct fast_form f) {
    struct affine_pair w = {{vec_set1(0.0f), vec_set1(0.0f)}, {vec_set1(0.0f), vec_set1(0.0f)}};
    if (f.affine == NB_AFFINE_NONE) return w;
    w.gamma = param_pair_tail(p.gamma, p.elem, i, n);
    if (p.offset) w.gamma = offset_weight(w.gamma, f);
    if (f.affine == NB_AFFINE_GAMMA_BETA) w.beta = param_pair_tail(p.beta, p.elem, i, n);
    return w;
}

/* Before the rounding of the store. */
NB_INLINE struct pair normalized_pair(struct pair x, vec mean, vec scale, struct affine_pair w, struct fast_form f) {
    if (FAST_CENTRE) x = (struct pair){x.a - mean, x.b - mean};
    x = (struct pair){x.a * scale, x.b * scale};
    if (f.affine == NB_AFFINE_NONE) return x;
    if (f.cast_before) {
        x = pair_round(x);
        x = (struct pair){x.a * w.gamma.a, x.b * w.gamma.b};
        if (f.affine == NB_AFFINE_GAMMA) return x;
        x = pair_round(x);
        return (struct pair){x.a + w.beta.a, x.b + w.beta.b};
    }
    if (f.affine == NB_AFFINE_GAMMA) return (struct pair){x.a * w.gamma.a, x.b * w.gamma.b};
    return (struct pair){vec_fma(x.a, w.gamma.a, w.beta.a), vec_fma(x.b, w.gamma.b, w.beta.b)};
}

/* One row's way from x to y: n elements. */
struct fast_output {
    struct fast_source x;
    elem *y;
    int64_t n;
    vec mean, scale;
    struct fast_params params;
    bool stream;
};
/* What is summed meanwhile: the first n elements of another row. */
struct fast_input {
    struct fast_source x;
    int64_t n;
    vec shift;
};

NB_INLINE void put_pair(const struct fast_output *o, int64_t i, struct fast_form f) {
    const struct affine_pair w = affine_at(o->params, i, f);
    const struct pair v = normalized_pair(source_pair(o->x, i), o->mean, o->scale, w, f);
    if (!f.exact && o->stream)
        pair_stream(o->y + i, v);
    else
        pair_store(o->y + i, v);
}
/* n elements at i, fewer than a pair. */
NB_INLINE void put_tail(const struct fast_output *o, int64_t i, int64_t n, struct fast_form f) {
    const struct affine_pair w = affine_tail(o->params, i, n, f);
    const struct pair x = source_pair_tail(o->x, i, n);
    pair_store_tail(o->y + i, normalized_pair(x, o->mean, o->scale, w, f), n);
}
/* Up to the first element that may be streamed; o goes on from there. */
NB_INLINE void put_head(struct fast_output *o, struct fast_form f) {
    int64_t n = unaligned_elements(o->y);
    if (n > o->n) n = o->n;
    if (n == 0) return;
    put_tail(o, 0, n, f);
    o->x = source_from(o->x, n);
    o->params = params_from(o->params, n);
    o->y += n;
    o->n -= n;
}
/* From element i on. */
NB_INLINE void put_blocks(const struct fast_output *o, int64_t i, struct fast_form f) {
    for (; i + BLOCK <= o->n; i += BLOCK) {
        NB_UNROLL
        for (int place = 0; place < BLOCK_PAIRS; place++) put_pair(o, i + place * PAIR, f);
    }
    if (f.exact || i == o->n) return;
    for (; i + PAIR <= o->n; i += PAIR) put_pair(o, i, f);
    if (i < o->n) put_tail(o, i, o->n - i, f);
}

NB_INLINE void put_row(struct fast_output o, struct fast_form f) {
    if (!f.exact && o.stream) put_head(&o, f);
    put_blocks(&o, 0, f);
}

NB_INLINE struct lanes put_and_sum(struct fast_output o, struct fast_input in, struct fast_form f) {
    struct sums s;
    sums_clear(&s);
    if (!f.exact && o.stream) put_head(&o, f);
    const int64_t both = f.exact ? o.n : o.n < in.n ? o.n : in.n;
    int64_t i = 0;
    for (; i + BLOCK <= both; i += BLOCK) {
        NB_UNROLL
        for (int place = 0; place < BLOCK_PAIRS; place++) {
            sums_take(&s, place, in.x, in.shift, i + place * PAIR);
            put_pair(&o, i + place * PAIR, f);
        }
    }
    if (f.exact) return sums_lanes(&s);
    put_blocks(&o, i, f);
    if (i < in.n) sums_take_blocks(&s, in.x, in.shift, i, in.n);
    return sums_lanes(&s);
}

#endif
