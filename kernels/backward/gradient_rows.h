// SPDX-License-Identifier: Apache-2.0
/* The arithmetic of the fast row backwards and the loop over rows. */
#pragma once

#include "kernels/shared/pack.h"

/* What the loops of the fused row backwards work on: the form of a call, rows, and the columns that one iteration loads and stores. */
#define GRADIENT_ACCUMULATORS 2 /* vectors of each sum */
#define ITERATION_COLUMNS (GRADIENT_ACCUMULATORS * NB_LANES)
#define ROWS_TOGETHER 2
#define ELEM_IS_F32 (sizeof(elem) == sizeof(float)) /* no conversions: loads and stores are the limit */
/* Pairs of rows pay nowhere where conversions are the limit, as those of f16 by 256 bits are. */
#define GRADIENT_PAIRS (!GRADIENT_LEADING && NB_LANES >= 8 && (NB_LANES > 8 || ELEM_IS_F32 || PACK > 1))

/* What a kernel is, whatever the call: its file defines those that hold before it includes any of these headers. */
#ifndef GRADIENT_CENTRE
#define GRADIENT_CENTRE false /* LayerNorm */
#endif
#ifndef GRADIENT_LEADING
#define GRADIENT_LEADING false /* pRMSNorm: the statistics saw the first k columns alone */
#endif
#ifndef GRADIENT_RESIDUAL
#define GRADIENT_RESIDUAL false /* a gradient that is added to dx */
#endif

/* What is computed. */
struct gradient_form {
    bool weight, gamma_sum, beta_sum;
    bool ordered; /* weights and sums over rows lie in the order of columns, not of packs */
    bool far;     /* rows come from memory: they are prefetched */
    bool stream;  /* dx by non-temporal stores */
    bool native;  /* dx rounded by the instruction of pair_native.h */
    bool reduce, finish;
    bool branches; /* the fields above are no constants */
    int rows;      /* that share what is loaded and stored by columns: 1, or ROWS_TOGETHER, of whole iterations */
};

/* Of one row: what finishing it takes. */
struct row_gradient {
    float mean, rstd, slope, shift;
};
/* Of one row: what reducing it makes, lane by lane. */
struct gradient_sums {
    vec g, gd;
};

/* A sweep over rows. */
struct gradient_work {
    const struct nb_call *call;
    elem *dx;
    int64_t dx_stride;
    const float *weight;
    float *gamma_sum, *beta_sum;
    int64_t reach; /* columns that the statistics saw, and 1 / reach */
    float inverse;
    int64_t piece; /* columns that are summed apart; a power of two */
    bool stream;   /* dx by non-temporal stores */
};

/* A row that is finished and one that is reduced beside it; of a pair both are the same. */
struct row_at_hand {
    const elem *x, *dy, *residual;
    int64_t residual_mask; /* 0: residual is of zeros, whatever the column */
    elem *dx;
    vec mean, rstd, slope, shift;
    const elem *next_x, *next_dy;
    vec next_mean;
    vec g[GRADIENT_ACCUMULATORS], gd[GRADIENT_ACCUMULATORS];
    struct gradient_sums total; /* over pieces */
};
struct rows_at_hand {
    struct row_at_hand row[ROWS_TOGETHER];
    const float *gamma_from, *beta_from; /* sums over rows to add to, */
    int64_t from_mask;                   /* or 0: none yet */
    const float *weight;                 /* of the work, in a register */
    float *gamma_sum, *beta_sum;
};

/* The columns of an iteration: a whole pack from column i on, or the first `count` of one; with slopes for the first `sloped` of them,
 * which is a constant where all have. acc: the first accumulator. */
struct iteration {
    int64_t i, count, sloped;
    int acc;
    bool whole;
};

/* What the rows of an iteration share. */
struct row_context {
    const struct gradient_work *s;
    struct iteration t;
    struct pack w, gamma, beta;
    int64_t row, step; /* of the next session, and from a row to what comes after it */
};
typedef void (*row_action)(struct row_context *v, struct row_at_hand *r, struct gradient_form f);

/* Written out: an array whose index is no constant from the start would live in memory. */
NB_INLINE void each_row(struct row_context *v, struct rows_at_hand *m, row_action act, struct gradient_form f) {
    act(v, &m->row[0], f);
    if (GRADIENT_PAIRS && f.rows > 1) act(v, &m->row[1], f);
}

NB_INLINE struct pack load_columns(const float *p, struct iteration t, struct gradient_form f) {
    if (PACK > 1 && f.ordered) return t.whole ? pack_gather(p) : pack_gather_tail(p, t.count);
    return t.whole ? pack_load_f32(p) : pack_load_f32_tail(p, t.count);
}
NB_INLINE void store_columns(float *p, struct pack a, struct iteration t, struct gradient_form f) {
    if (PACK > 1 && t.whole && f.ordered)
        pack_scatter(p, a);
    else if (t.whole)
        pack_store_f32(p, a);
    else if (PACK > 1 && f.ordered)
        pack_scatter_tail(p, a, t.count);
    else
        pack_store_f32_tail(p, a, t.count);
}
NB_INLINE struct pack load_elements(const elem *p, struct iteration t) {
    if (t.whole) return pack_load(p);
    return pack_load_tail(p, t.count);
}
NB_INLINE void store_elements(elem *p, struct pack a, struct iteration t, struct gradient_form f) {
#if PAIR_NATIVE
    if (f.native) {
        const bf16_bits bits = bits_narrow_split((struct pair){a.v[0], a.v[1]});
        if (!t.whole)
            bits_store_tail(p, bits, t.count);
        else if (f.stream)
            raw_stream((char *)p, bits);
        else
            bits_store(p, bits);
        return;
    }
#endif
    if (!t.whole)
        pack_store_tail(p, a, t.count);
    else if (f.stream)
        pack_stream(p, a);
    else
        pack_store(p, a);
}

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
/* What is read by one pass through memory while another goes through the cache leaves the core's own prefetchers behind. */
#define FAR_BYTES 2048

/* Absent lanes of a tail add 0. */
NB_INLINE void reduce_vector(struct row_at_hand *r, int acc, vec x, vec dy, vec weight, struct gradient_form f) {
    if (f.weight) dy = dy * weight;
    if (GRADIENT_CENTRE) {
        r->g[acc] = r->g[acc] + dy;
        x = x - r->next_mean;
    }
    r->gd[acc] = vec_fma(dy, x, r->gd[acc]);
}
NB_INLINE vec finish_vector(const struct row_at_hand *r, vec x, vec dy, vec weight, vec slope, vec *gamma, vec *beta,
                            struct gradient_form f) {
    const vec q = dy * r->rstd;
    if (GRADIENT_CENTRE) x = x - r->mean;
    if (f.gamma_sum) *gamma = vec_fma(q, x, *gamma);
    if (f.beta_sum) *beta = *beta + dy;
    if (GRADIENT_CENTRE)
        x = vec_fma(x, slope, r->shift);
    else
        x = x * slope;
    if (f.weight) return vec_fma(q, weight, x);
    return q + x;
}

/* Visits. */
NB_INLINE void reduce_pack(struct row_context *v, struct row_at_hand *r, struct gradient_form f) {
    const bool pair = GRADIENT_PAIRS && f.rows > 1;
    const elem *const x_row = pair ? r->x : r->next_x, *const dy_row = pair ? r->dy : r->next_dy;
    const struct iteration t = v->t;
    const struct pack x = load_elements(x_row + t.i, t), dy = load_elements(dy_row + t.i, t);
    NB_UNROLL
    for (int p = 0; p < PACK; p++) reduce_vector(r, t.acc + p, x.v[p], dy.v[p], v->w.v[p], f);
}
NB_INLINE void finish_pack(struct row_context *v, struct row_at_hand *r, struct gradient_form f) {
    const struct iteration t = v->t;
    const struct pack dy = pack_once(load_elements(r->dy + t.i, t));
    struct pack x = load_elements(r->x + t.i, t);
    if (ELEM_IS_F32) x = pack_once(x);
    struct pack past = {{vec_set1(0.0f)}}, dx;
    if (GRADIENT_RESIDUAL) past = load_elements(r->residual + (t.i & r->residual_mask), t);
    NB_UNROLL
    for (int p = 0; p < PACK; p++) {
        vec slope = r->slope;
        if (t.sloped < PACK_COLUMNS) slope = pack_keep(slope, p, t.sloped);
        dx.v[p] = finish_vector(r, x.v[p], dy.v[p], v->w.v[p], slope, &v->gamma.v[p], &v->beta.v[p], f);
        if (GRADIENT_RESIDUAL) dx.v[p] = dx.v[p] + past.v[p];
    }
    store_elements(r->dx + t.i, dx, t, f);
}

/* Once a line of the cache. */
NB_INLINE void prefetch_ahead(const struct row_at_hand *r, int64_t i, struct gradient_form f) {
    NB_UNROLL
    for (int64_t at = 0; at < ITERATION_COLUMNS * (int64_t)sizeof(elem); at += 64) {
        __builtin_prefetch((const char *)(r->next_x + i) + at + FAR_BYTES);
        __builtin_prefetch((const char *)(r->next_dy + i) + at + FAR_BYTES);
        if (!f.stream) __builtin_prefetch((const char *)(r->dx + i) + at + FAR_BYTES, 1);
    }
}
/* In f32 the row to finish comes first: lines that are read for the last time are then older than what comes in for the next row. In 16 bits
 * arithmetic is the limit, and a compiler keeps more in registers the other way round. */
NB_INLINE void one_iteration(const struct gradient_work *s, struct rows_at_hand *m, struct iteration t,
                             struct gradient_form f) {
    const struct pack nothing = {{vec_set1(0.0f)}};
    const int64_t from = t.i & m->from_mask;
    struct row_context v = {.s = s, .t = t, .w = nothing, .gamma = nothing, .beta = nothing};
    if (f.weight) v.w = pack_once(load_columns(m->weight + t.i, t, f));
    if (f.weight && f.ordered) v.w = pack_quiet(v.w);
    if (f.reduce && !(f.finish && ELEM_IS_F32)) each_row(&v, m, reduce_pack, f);
    if (!f.finish) return;
    if (f.gamma_sum) v.gamma = load_columns(m->gamma_from + from, t, f);
    if (f.beta_sum) v.beta = load_columns(m->beta_from + from, t, f);
    each_row(&v, m, finish_pack, f);
    if (f.gamma_sum) store_columns(m->gamma_sum + t.i, v.gamma, t, f);
    if (f.beta_sum) store_columns(m->beta_sum + t.i, v.beta, t, f);
    if (f.reduce && ELEM_IS_F32) each_row(&v, m, reduce_pack, f);
}

/* partly: slopes end among the columns of the turn. */
NB_INLINE struct iteration iteration_at(const struct gradient_work *s, int64_t i, int64_t count, int acc, bool whole,
                                        bool partly) {
    const int64_t left = s->reach - i;
    return (struct iteration){i, count, !partly ? PACK_COLUMNS : left < 0 ? 0 : left, acc, whole};
}

NB_INLINE int64_t whole_iterations(const struct gradient_work *s, struct rows_at_hand *m, int64_t i, int64_t to,
                                   struct gradient_form f) {
    for (; i + ITERATION_COLUMNS <= to; i += ITERATION_COLUMNS) {
        if (f.far)
            prefetch_ahead(&m->row[0], i, f);
        else if (f.finish && f.rows == 1)
            fetch_for_stores(m->row[0].dx + i + STORE_AHEAD_BYTES / (int64_t)sizeof(elem), ITERATION_COLUMNS);
        NB_UNROLL
        for (int a = 0; a < GRADIENT_ACCUMULATORS; a += PACK)
            one_iteration(s, m, iteration_at(s, i + a * NB_LANES, PACK_COLUMNS, a, true, false), f);
    }
    return i;
}
/* Columns with slopes, the turn among which they end, and those without. */
NB_INLINE int64_t leading_iterations(const struct gradient_work *s, struct rows_at_hand *m, int64_t i, int64_t to,
                                     struct gradient_form f) {
    const vec slope = m->row[0].slope;
    i = whole_iterations(s, m, i, s->reach < to ? s->reach : to, f);
    if (i < s->reach && i + ITERATION_COLUMNS <= to) {
        NB_UNROLL
        for (int a = 0; a < GRADIENT_ACCUMULATORS; a += PACK)
            one_iteration(s, m, iteration_at(s, i + a * NB_LANES, PACK_COLUMNS, a, true, true), f);
        i += ITERATION_COLUMNS;
    }
    m->row[0].slope = vec_set1(0.0f);
    if (i >= s->reach) i = whole_iterations(s, m, i, to, f);
    m->row[0].slope = slope;
    return i;
}

/* Columns [from, to), within a piece, from a multiple of ITERATION_COLUMNS on. */
NB_INLINE void iterate(const struct gradient_work *s, struct rows_at_hand *m, int64_t from, int64_t to,
                       struct gradient_form f) {
    int64_t i = GRADIENT_LEADING ? leading_iterations(s, m, from, to, f) : whole_iterations(s, m, from, to, f);
    if (GRADIENT_PAIRS && f.rows > 1) return;
    if (PACK == 1 && i + PACK_COLUMNS <= to) {
        one_iteration(s, m, iteration_at(s, i, PACK_COLUMNS, 0, true, GRADIENT_LEADING), f);
        i += PACK_COLUMNS;
    }
    if (i < to)
        one_iteration(s, m, iteration_at(s, i, to - i, GRADIENT_ACCUMULATORS - PACK, false, GRADIENT_LEADING), f);
}

/* Rows one after the other, which are finished and which are reduced beside them, and what becomes of their sums; or rows in
 * pairs. */
/* n rows to finish from `row` on, and how; as many to reduce from next_row on, and what becomes of their sums: added to totals, and at
 * the end of the row turned into what finishing takes. Columns [from, to). */
struct assignment {
    int64_t row, next_row, n, from, to;
    int64_t place, mask; /* row j of them has place (place + j) & mask in k, next_k and next */
    const struct row_gradient *k;
    struct row_gradient *next_k; /* null: not at the end of the row */
    struct gradient_sums *next;
    bool first; /* totals begin here */
    bool fresh; /* so do the sums over rows */
};

NB_INLINE struct row_gradient gradient_of(const struct gradient_work *s, int64_t row, struct gradient_sums sums) {
    const float rstd = s->call->rstd[row];
    struct row_gradient k = {.rstd = quiet(rstd), .mean = GRADIENT_CENTRE ? quiet(s->call->mean[row]) : 0.0f};
    k.slope = quiet(-(rstd * (rstd * (vec_sum(sums.gd) * s->inverse))) * rstd);
    if (GRADIENT_CENTRE) k.shift = quiet(-rstd * (vec_sum(sums.g) * s->inverse));
    return k;
}

/* ---- what is done to a row ---- */

NB_INLINE void begin_finish(struct row_context *v, struct row_at_hand *r, struct gradient_form f) {
    static const elem no_past[PACK_COLUMNS];
    const struct nb_call *call = v->s->call;
    const int64_t row = v->row++;
    r->x = row_in(call->x, call->x_stride, row);
    r->dy = row_in(call->dy, call->dy_stride, row);
    r->dx = v->s->dx + row * v->s->dx_stride;
    r->slope = vec_set1(0.0f);
    const bool past = GRADIENT_RESIDUAL && call->dresidual_out;
    r->residual = past ? row_in(call->dresidual_out, call->dresidual_out_stride, row) : no_past;
    r->residual_mask = past ? -1 : 0;
}
NB_INLINE void next_finish(struct row_context *v, struct row_at_hand *r, struct gradient_form f) {
    const struct nb_call *call = v->s->call;
    r->x += v->step * call->x_stride;
    r->dy += v->step * call->dy_stride;
    r->dx += v->step * v->s->dx_stride;
    if (GRADIENT_RESIDUAL) r->residual += v->step * call->dresidual_out_stride & r->residual_mask;
}
NB_INLINE void begin_totals(struct row_context *v, struct row_at_hand *r, struct gradient_form f) {
    if (GRADIENT_CENTRE) r->next_mean = vec_set1(v->s->call->mean[v->row++]);
    r->total = (struct gradient_sums){vec_set1(0.0f), vec_set1(0.0f)};
}
NB_INLINE void begin_piece(struct row_context *v, struct row_at_hand *r, struct gradient_form f) {
    NB_UNROLL
    for (int acc = 0; acc < GRADIENT_ACCUMULATORS; acc++) r->g[acc] = r->gd[acc] = vec_set1(0.0f);
}
NB_INLINE void end_piece(struct row_context *v, struct row_at_hand *r, struct gradient_form f) {
    r->total.g = r->total.g + (r->g[0] + r->g[1]);
    r->total.gd = r->total.gd + (r->gd[0] + r->gd[1]);
}
NB_INLINE void set_row_numbers(struct row_at_hand *r, struct row_gradient k) {
    r->mean = vec_set1(k.mean);
    r->rstd = vec_set1(k.rstd);
    r->slope = vec_set1(k.slope);
    r->shift = vec_set1(k.shift);
}
NB_INLINE void take_numbers(struct row_context *v, struct row_at_hand *r, struct gradient_form f) {
    set_row_numbers(r, gradient_of(v->s, v->row++, r->total));
}

/* ---- rows ---- */

NB_INLINE void begin_rows(const struct gradient_work *s, struct rows_at_hand *m, const struct assignment *a,
                          struct gradient_form f) {
    static const float none[PACK_COLUMNS];
    const struct nb_call *call = s->call;
    struct row_context v = {.s = s, .row = a->row};
    m->weight = s->weight;
    m->gamma_sum = s->gamma_sum;
    m->beta_sum = s->beta_sum;
    m->gamma_from = a->fresh ? none : s->gamma_sum;
    m->beta_from = a->fresh ? none : s->beta_sum;
    m->from_mask = a->fresh ? 0 : -1;
    m->row[0].slope = vec_set1(0.0f);
    if (f.finish) each_row(&v, m, begin_finish, f);
    if (f.reduce) {
        m->row[0].next_x = row_in(call->x, call->x_stride, a->next_row);
        m->row[0].next_dy = row_in(call->dy, call->dy_stride, a->next_row);
    }
}
NB_INLINE void next_rows(const struct gradient_work *s, struct rows_at_hand *m, struct gradient_form f) {
    const struct nb_call *call = s->call;
    struct row_context v = {.s = s, .step = f.rows};
    if (f.finish) {
        each_row(&v, m, next_finish, f);
        m->gamma_from = m->gamma_sum;
        m->beta_from = m->beta_sum;
        m->from_mask = -1;
    }
    if (f.reduce) {
        m->row[0].next_x += call->x_stride;
        m->row[0].next_dy += call->dy_stride;
    }
}

/* Columns of the current rows, piece by piece. */
NB_INLINE void run_pieces(const struct gradient_work *s, struct rows_at_hand *m, const struct assignment *a,
                          struct gradient_form f) {
    const int64_t in_piece = s->piece - 1, to = a->to;
    struct row_context v = {.s = s};
    int64_t end;
    for (int64_t i = a->from; i < to; i = end) {
        end = (i | in_piece) + 1;
        if (end > to) end = to;
        each_row(&v, m, begin_piece, f);
        iterate(s, m, i, end, f);
        if (f.reduce) each_row(&v, m, end_piece, f);
    }
}

/* An assignment; what is reduced and finished is up to f. */
NB_INLINE void run_rows(const struct gradient_work *s, const struct assignment *a, struct gradient_form f) {
    struct rows_at_hand m;
    if (f.branches) m = (struct rows_at_hand){.from_mask = 0};
    begin_rows(s, &m, a, f);
    for (int64_t j = 0; j < a->n; j++) {
        const int64_t place = (a->place + j) & a->mask;
        struct row_context v = {.s = s, .row = a->next_row + j};
        if (f.finish) set_row_numbers(&m.row[0], a->k[place]);
        if (f.reduce) begin_totals(&v, &m.row[0], f);
        if (f.reduce && !a->first) m.row[0].total = a->next[place];
        run_pieces(s, &m, a, f);
        if (f.reduce && a->next_k)
            a->next_k[place] = gradient_of(s, a->next_row + j, m.row[0].total);
        else if (f.reduce)
            a->next[place] = m.row[0].total;
        next_rows(s, &m, f);
    }
}

/* Whole rows, n in all, f.rows at a time reduced, then finished. Only dx waits for their sums: the sums over rows go on. */
NB_INLINE void run_pairs(const struct gradient_work *s, const struct assignment *a, struct gradient_form f) {
    struct gradient_form reduce = f, finish = f;
    struct rows_at_hand m;
    reduce.reduce = finish.finish = true;
    reduce.finish = finish.reduce = false;
    begin_rows(s, &m, a, finish);
    for (int64_t j = 0; j < a->n; j += f.rows) {
        struct row_context v = {.s = s, .row = a->row + j};
        each_row(&v, &m, begin_totals, f);
        run_pieces(s, &m, a, reduce);
        v.row = a->row + j;
        each_row(&v, &m, take_numbers, f);
        iterate(s, &m, a->from, a->to, finish);
        next_rows(s, &m, finish);
    }
}
