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
 * One loop reduces rows while it finishes those before them: the first is bound by the second cache, the second by the core. Where the
 * core alone is the limit, two rows are reduced, then finished together, and share the loads and stores of the sums over rows. */
#ifndef NB_GRADIENT_ROW_H
#define NB_GRADIENT_ROW_H

#include "kernels/backward/gradient_turn.h"

/* What is read by one pass through memory while another goes through the cache leaves the core's own prefetchers behind. */
#define FAR_BYTES 2048

/* Absent lanes of a tail add 0. */
NB_INLINE void reduce_vector(struct row_at_hand *r, int acc, vec x, vec dy, vec weight, struct gradient_form f) {
    if (f.weight) dy = dy * weight;
    if (f.centre) {
        r->g[acc] = r->g[acc] + dy;
        x = x - r->next_mean;
    }
    r->gd[acc] = vec_fma(dy, x, r->gd[acc]);
}
NB_INLINE vec finish_vector(const struct row_at_hand *r, vec x, vec dy, vec weight, vec slope, vec *gamma, vec *beta,
                            struct gradient_form f) {
    const vec q = dy * r->rstd;
    if (f.centre) x = x - r->mean;
    if (f.gamma_sum) *gamma = vec_fma(q, x, *gamma);
    if (f.beta_sum) *beta = *beta + dy;
    if (f.centre)
        x = vec_fma(x, slope, r->shift);
    else
        x = x * slope;
    if (f.weight) return vec_fma(q, weight, x);
    return q + x;
}

/* Visits. */
NB_INLINE void reduce_pack(struct session *v, struct row_at_hand *r, struct gradient_form f) {
    const elem *const x_row = f.rows > 1 ? r->x : r->next_x, *const dy_row = f.rows > 1 ? r->dy : r->next_dy;
    const struct turn t = v->t;
    const struct pack x = load_elements(x_row + t.i, t), dy = load_elements(dy_row + t.i, t);
    NB_UNROLL
    for (int p = 0; p < PACK; p++) reduce_vector(r, t.acc + p, x.v[p], dy.v[p], v->w.v[p], f);
}
NB_INLINE void finish_pack(struct session *v, struct row_at_hand *r, struct gradient_form f) {
    static const elem no_past[PACK_COLUMNS];
    const struct turn t = v->t;
    const struct pack x = load_elements(r->x + t.i, t), dy = pack_once(load_elements(r->dy + t.i, t));
    struct pack past = {{vec_set1(0.0f)}}, dx;
    if (f.residual) past = load_elements(v->s->call->dresidual_out ? r->residual + t.i : no_past, t);
    NB_UNROLL
    for (int p = 0; p < PACK; p++) {
        vec slope = r->slope;
        if (t.sloped < PACK_COLUMNS) slope = pack_keep(slope, p, t.sloped);
        dx.v[p] = finish_vector(r, x.v[p], dy.v[p], v->w.v[p], slope, &v->gamma.v[p], &v->beta.v[p], f);
        if (f.residual) dx.v[p] = dx.v[p] + past.v[p];
    }
    store_elements(r->dx + t.i, dx, t, f);
}

/* Once a line of the cache. */
NB_INLINE void ask_ahead(const struct row_at_hand *r, int64_t i, struct gradient_form f) {
    NB_UNROLL
    for (int64_t at = 0; at < TURN_COLUMNS * (int64_t)sizeof(elem); at += 64) {
        __builtin_prefetch((const char *)(r->next_x + i) + at + FAR_BYTES);
        __builtin_prefetch((const char *)(r->next_dy + i) + at + FAR_BYTES);
        if (!f.stream) __builtin_prefetch((const char *)(r->dx + i) + at + FAR_BYTES, 1);
    }
}
NB_INLINE void take_turn(const struct sweep *s, struct rows_at_hand *m, struct turn t, struct gradient_form f) {
    const struct pack nothing = {{vec_set1(0.0f)}};
    const int64_t from = t.i & m->from_mask;
    struct session v = {.s = s, .t = t, .w = nothing, .gamma = nothing, .beta = nothing};
    if (f.weight) v.w = pack_once(load_columns(m->weight + t.i, t, f));
    if (f.weight && f.ordered) v.w = pack_quiet(v.w);
    if (f.reduce) each_row(&v, m, reduce_pack, f);
    if (!f.finish) return;
    if (f.gamma_sum) v.gamma = load_columns(m->gamma_from + from, t, f);
    if (f.beta_sum) v.beta = load_columns(m->beta_from + from, t, f);
    each_row(&v, m, finish_pack, f);
    if (f.gamma_sum) store_columns(m->gamma_sum + t.i, v.gamma, t, f);
    if (f.beta_sum) store_columns(m->beta_sum + t.i, v.beta, t, f);
}

/* partly: slopes end among the columns of the turn. */
NB_INLINE struct turn turn_at(const struct sweep *s, int64_t i, int64_t count, int acc, bool whole, bool partly) {
    const int64_t left = s->reach - i;
    return (struct turn){i, count, !partly ? PACK_COLUMNS : left < 0 ? 0 : left, acc, whole};
}

NB_INLINE int64_t whole_turns(const struct sweep *s, struct rows_at_hand *m, int64_t i, int64_t to,
                              struct gradient_form f) {
    for (; i + TURN_COLUMNS <= to; i += TURN_COLUMNS) {
        if (f.far) ask_ahead(&m->row[0], i, f);
        NB_UNROLL
        for (int a = 0; a < GRADIENT_ACCUMULATORS; a += PACK)
            take_turn(s, m, turn_at(s, i + a * NB_LANES, PACK_COLUMNS, a, true, false), f);
    }
    return i;
}
/* Columns with slopes, the turn among which they end, and those without. */
NB_INLINE int64_t leading_turns(const struct sweep *s, struct rows_at_hand *m, int64_t i, int64_t to,
                                struct gradient_form f) {
    const vec slope = m->row[0].slope;
    i = whole_turns(s, m, i, s->reach < to ? s->reach : to, f);
    if (i < s->reach && i + TURN_COLUMNS <= to) {
        NB_UNROLL
        for (int a = 0; a < GRADIENT_ACCUMULATORS; a += PACK)
            take_turn(s, m, turn_at(s, i + a * NB_LANES, PACK_COLUMNS, a, true, true), f);
        i += TURN_COLUMNS;
    }
    m->row[0].slope = vec_set1(0.0f);
    if (i >= s->reach) i = whole_turns(s, m, i, to, f);
    m->row[0].slope = slope;
    return i;
}

/* Columns [from, to), within a piece, from a multiple of TURN_COLUMNS on. */
NB_INLINE void take_turns(const struct sweep *s, struct rows_at_hand *m, int64_t from, int64_t to,
                          struct gradient_form f) {
    int64_t i = f.leading ? leading_turns(s, m, from, to, f) : whole_turns(s, m, from, to, f);
    if (f.rows > 1) return;
    if (PACK == 1 && i + PACK_COLUMNS <= to) {
        take_turn(s, m, turn_at(s, i, PACK_COLUMNS, 0, true, f.leading), f);
        i += PACK_COLUMNS;
    }
    if (i < to) take_turn(s, m, turn_at(s, i, to - i, GRADIENT_ACCUMULATORS - PACK, false, f.leading), f);
}

#endif
