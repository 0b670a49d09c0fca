// SPDX-License-Identifier: Apache-2.0
/* The arithmetic of a fused row backward. With d = x - mean (x where the op does not centre), g = dy * w, per row
 *     G = sum g, D = sum g * d                                             to reduce it
 *     slope = -rstd^2 * (rstd * D / n), shift = -rstd * (G / n)
 * and per element, q = dy * rstd,
 *     dx = q * w + (d * slope + shift),  dgamma += q * d,  dbeta += dy     to finish it, from the cache
 * which is rstd * (g - mean(g) - xhat * mean(g * xhat)) with a multiplication less an element than by way of xhat, and no division.
 * rstd^2 and g * d must be normal numbers: gradient_range(). dx is off by at most 4 u (|q w| + |d slope| + |shift|) and what the sums
 * are; u = 2^-24.
 *
 * One loop reduces rows while it finishes those before them: the first is bound by the second cache, the second by the core. */
#ifndef NB_GRADIENT_ROW_H
#define NB_GRADIENT_ROW_H

#include "pack.h"

#define GRADIENT_ACCUMULATORS 2 /* vectors of each sum */
/* What is read by one pass through memory while another goes through the cache leaves the core's own prefetchers behind. */
#define FAR_BYTES 2048
#define TURN_COLUMNS (GRADIENT_ACCUMULATORS * NB_LANES)

/* What is computed; a constant wherever it is used. */
struct gradient_form {
    bool centre;
    bool leading; /* the statistics saw the first k columns alone */
    bool weight, gamma_sum, beta_sum;
    bool residual; /* a gradient that is added to dx */
    bool ordered;  /* weights and sums over rows lie in the order of columns, not of packs */
    bool far;      /* rows come from memory: they are asked for FAR_BYTES ahead */
    bool stream;   /* dx past the caches */
    bool reduce, finish;
};

/* Of one row: what finishing it takes. */
struct row_gradient {
    float mean, rstd, slope, shift;
};
/* Of one row: what reducing it makes, lane by lane. */
struct row_sums {
    vec g, gd;
};

/* A sweep over rows. */
struct sweep {
    const struct nb_call *call;
    elem *dx;
    int64_t dx_stride;
    const float *weight;
    float *gamma_sum, *beta_sum;
    int64_t reach; /* columns that the statistics saw, and 1 / reach */
    float inverse;
    int64_t piece; /* columns that are summed apart; a power of two */
};

/* A row that is finished and one that is reduced, and share the loads of the weights. */
struct pair_of_rows {
    const elem *x, *dy, *residual;
    elem *dx;
    vec mean, rstd, slope, shift;
    const elem *next_x, *next_dy;
    vec next_mean;
    vec g[GRADIENT_ACCUMULATORS], gd[GRADIENT_ACCUMULATORS];
    struct row_sums total;               /* over pieces */
    const float *gamma_from, *beta_from; /* sums over rows to add to, */
    int64_t from_mask;                   /* or 0: none yet */
    const float *weight;                 /* of the sweep, at hand */
    float *gamma_sum, *beta_sum;
};

/* The columns of a turn: a whole pack from column i on, or the first `count` of one; with slopes for the first `sloped` of them,
 * which is a constant where all have. acc: the first accumulator. */
struct turn {
    int64_t i, count, sloped;
    int acc;
    bool whole;
};

NB_INLINE struct pack load_columns(const float *p, struct turn t, struct gradient_form f) {
    if (f.ordered) return t.whole ? pack_gather(p) : pack_gather_tail(p, t.count);
    return t.whole ? pack_load_f32(p) : pack_load_f32_tail(p, t.count);
}
NB_INLINE void store_columns(float *p, struct pack a, struct turn t, struct gradient_form f) {
    if (t.whole && f.ordered)
        pack_scatter(p, a);
    else if (t.whole)
        pack_store_f32(p, a);
    else if (f.ordered)
        pack_scatter_tail(p, a, t.count);
    else
        pack_store_f32_tail(p, a, t.count);
}
NB_INLINE struct pack load_elements(const elem *p, struct turn t) {
    if (t.whole) return pack_load(p);
    return pack_load_tail(p, t.count);
}

/* Absent lanes of a tail add 0. */
NB_INLINE void reduce_vector(struct pair_of_rows *m, int acc, vec x, vec dy, vec weight, struct gradient_form f) {
    if (f.weight) dy = dy * weight;
    if (f.centre) {
        m->g[acc] = m->g[acc] + dy;
        x = x - m->next_mean;
    }
    m->gd[acc] = vec_fma(dy, x, m->gd[acc]);
}
NB_INLINE vec finish_vector(const struct pair_of_rows *m, vec x, vec dy, vec weight, vec slope, vec *gamma, vec *beta,
                            struct gradient_form f) {
    const vec q = dy * m->rstd;
    if (f.centre) x = x - m->mean;
    if (f.gamma_sum) *gamma = vec_fma(q, x, *gamma);
    if (f.beta_sum) *beta = *beta + dy;
    if (f.centre)
        x = vec_fma(x, slope, m->shift);
    else
        x = x * slope;
    if (f.weight) return vec_fma(q, weight, x);
    return q + x;
}

NB_INLINE void finish_pack(const struct sweep *s, const struct pair_of_rows *m, struct turn t, struct pack w,
                           struct pack *gamma, struct pack *beta, struct gradient_form f) {
    static const elem no_past[PACK_COLUMNS];
    const struct pack x = load_elements(m->x + t.i, t), dy = pack_once(load_elements(m->dy + t.i, t));
    struct pack past = {{vec_set1(0.0f)}}, dx;
    if (f.residual) past = load_elements(s->call->dresidual_out ? m->residual + t.i : no_past, t);
    NB_UNROLL
    for (int p = 0; p < PACK; p++) {
        vec slope = m->slope;
        if (t.sloped < PACK_COLUMNS) slope = pack_keep(slope, p, t.sloped);
        dx.v[p] = finish_vector(m, x.v[p], dy.v[p], w.v[p], slope, &gamma->v[p], &beta->v[p], f);
        if (f.residual) dx.v[p] = dx.v[p] + past.v[p];
    }
    if (!t.whole)
        pack_store_tail(m->dx + t.i, dx, t.count);
    else if (f.stream)
        pack_stream(m->dx + t.i, dx);
    else
        pack_store(m->dx + t.i, dx);
}

/* Once a line of the cache. */
NB_INLINE void ask_ahead(const struct pair_of_rows *m, int64_t i, struct gradient_form f) {
    NB_UNROLL
    for (int64_t at = 0; at < TURN_COLUMNS * (int64_t)sizeof(elem); at += 64) {
        __builtin_prefetch((const char *)(m->next_x + i) + at + FAR_BYTES);
        __builtin_prefetch((const char *)(m->next_dy + i) + at + FAR_BYTES);
        if (!f.stream) __builtin_prefetch((const char *)(m->dx + i) + at + FAR_BYTES, 1);
    }
}

NB_INLINE void take_turn(const struct sweep *s, struct pair_of_rows *m, struct turn t, struct gradient_form f) {
    const struct pack nothing = {{vec_set1(0.0f)}};
    const int64_t from = t.i & m->from_mask;
    struct pack w = nothing, gamma = nothing, beta = nothing;
    if (f.weight) w = pack_once(load_columns(m->weight + t.i, t, f));
    if (f.weight && f.ordered) w = pack_quiet(w);
    if (f.reduce) {
        const struct pack x = load_elements(m->next_x + t.i, t), dy = load_elements(m->next_dy + t.i, t);
        NB_UNROLL
        for (int p = 0; p < PACK; p++) reduce_vector(m, t.acc + p, x.v[p], dy.v[p], w.v[p], f);
    }
    if (!f.finish) return;
    if (f.gamma_sum) gamma = load_columns(m->gamma_from + from, t, f);
    if (f.beta_sum) beta = load_columns(m->beta_from + from, t, f);
    finish_pack(s, m, t, w, &gamma, &beta, f);
    if (f.gamma_sum) store_columns(m->gamma_sum + t.i, gamma, t, f);
    if (f.beta_sum) store_columns(m->beta_sum + t.i, beta, t, f);
}

/* partly: slopes end among the columns of the turn. */
NB_INLINE struct turn turn_at(const struct sweep *s, int64_t i, int64_t count, int acc, bool whole, bool partly) {
    const int64_t left = s->reach - i;
    return (struct turn){i, count, !partly ? PACK_COLUMNS : left < 0 ? 0 : left, acc, whole};
}

NB_INLINE int64_t whole_turns(const struct sweep *s, struct pair_of_rows *m, int64_t i, int64_t to,
                              struct gradient_form f) {
    for (; i + TURN_COLUMNS <= to; i += TURN_COLUMNS) {
        if (f.far) ask_ahead(m, i, f);
        NB_UNROLL
        for (int a = 0; a < GRADIENT_ACCUMULATORS; a += PACK)
            take_turn(s, m, turn_at(s, i + a * NB_LANES, PACK_COLUMNS, a, true, false), f);
    }
    return i;
}
/* Columns with slopes, the turn among which they end, and those without. */
NB_INLINE int64_t leading_turns(const struct sweep *s, struct pair_of_rows *m, int64_t i, int64_t to,
                                struct gradient_form f) {
    const vec slope = m->slope;
    i = whole_turns(s, m, i, s->reach < to ? s->reach : to, f);
    if (i < s->reach && i + TURN_COLUMNS <= to) {
        NB_UNROLL
        for (int a = 0; a < GRADIENT_ACCUMULATORS; a += PACK)
            take_turn(s, m, turn_at(s, i + a * NB_LANES, PACK_COLUMNS, a, true, true), f);
        i += TURN_COLUMNS;
    }
    m->slope = vec_set1(0.0f);
    if (i >= s->reach) i = whole_turns(s, m, i, to, f);
    m->slope = slope;
    return i;
}

/* Columns [from, to), within a piece, from a multiple of TURN_COLUMNS on. */
NB_INLINE void take_turns(const struct sweep *s, struct pair_of_rows *m, int64_t from, int64_t to,
                          struct gradient_form f) {
    int64_t i = f.leading ? leading_turns(s, m, from, to, f) : whole_turns(s, m, from, to, f);
    if (PACK == 1 && i + PACK_COLUMNS <= to) {
        take_turn(s, m, turn_at(s, i, PACK_COLUMNS, 0, true, f.leading), f);
        i += PACK_COLUMNS;
    }
    if (i < to) take_turn(s, m, turn_at(s, i, to - i, GRADIENT_ACCUMULATORS - PACK, false, f.leading), f);
}

#endif
