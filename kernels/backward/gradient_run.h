// SPDX-License-Identifier: Apache-2.0
/* Rows one after the other, which are finished and which are reduced beside them, and what becomes of their sums; or rows in
 * pairs. */
#ifndef NB_GRADIENT_RUN_H
#define NB_GRADIENT_RUN_H

#include "kernels/backward/gradient_row.h"

/* n rows to finish from `row` on, and how; as many to reduce from next_row on, and what becomes of their sums: added to totals, and at
 * the end of the row turned into what finishing takes. Columns [from, to). */
struct assignment {
    int64_t row, next_row, n, from, to;
    int64_t place, mask; /* row j of them has place (place + j) & mask in k, next_k and next */
    const struct row_gradient *k;
    struct row_gradient *next_k; /* null: not at the end of the row */
    struct row_sums *next;
    bool first; /* totals begin here */
    bool fresh; /* so do the sums over rows */
};

NB_INLINE struct row_gradient gradient_of(const struct sweep *s, int64_t row, struct row_sums sums,
                                          struct gradient_form f) {
    const float rstd = s->call->rstd[row];
    struct row_gradient k = {.rstd = quiet(rstd), .mean = f.centre ? quiet(s->call->mean[row]) : 0.0f};
    k.slope = quiet(-(rstd * (rstd * (vec_sum(sums.gd) * s->inverse))) * rstd);
    if (f.centre) k.shift = quiet(-rstd * (vec_sum(sums.g) * s->inverse));
    return k;
}

/* ---- sessions ---- */

NB_INLINE void begin_finish(struct session *v, struct row_at_hand *r, struct gradient_form f) {
    const struct nb_call *call = v->s->call;
    const int64_t row = v->row++;
    r->x = row_in(call->x, call->x_stride, row);
    r->dy = row_in(call->dy, call->dy_stride, row);
    r->dx = v->s->dx + row * v->s->dx_stride;
    r->slope = vec_set1(0.0f);
    r->residual = NULL;
    if (f.residual && call->dresidual_out) r->residual = row_in(call->dresidual_out, call->dresidual_out_stride, row);
}
NB_INLINE void next_finish(struct session *v, struct row_at_hand *r, struct gradient_form f) {
    const struct nb_call *call = v->s->call;
    r->x += v->step * call->x_stride;
    r->dy += v->step * call->dy_stride;
    r->dx += v->step * v->s->dx_stride;
    if (f.residual && call->dresidual_out) r->residual += v->step * call->dresidual_out_stride;
}
NB_INLINE void begin_totals(struct session *v, struct row_at_hand *r, struct gradient_form f) {
    if (f.centre) r->next_mean = vec_set1(v->s->call->mean[v->row++]);
    r->total = (struct row_sums){vec_set1(0.0f), vec_set1(0.0f)};
}
NB_INLINE void begin_piece(struct session *v, struct row_at_hand *r, struct gradient_form f) {
    (void)v;
    (void)f;
    NB_UNROLL
    for (int acc = 0; acc < GRADIENT_ACCUMULATORS; acc++) r->g[acc] = r->gd[acc] = vec_set1(0.0f);
}
NB_INLINE void end_piece(struct session *v, struct row_at_hand *r, struct gradient_form f) {
    (void)v;
    (void)f;
    r->total.g = r->total.g + (r->g[0] + r->g[1]);
    r->total.gd = r->total.gd + (r->gd[0] + r->gd[1]);
}
NB_INLINE void set_numbers(struct row_at_hand *r, struct row_gradient k) {
    r->mean = vec_set1(k.mean);
    r->rstd = vec_set1(k.rstd);
    r->slope = vec_set1(k.slope);
    r->shift = vec_set1(k.shift);
}
NB_INLINE void take_numbers(struct session *v, struct row_at_hand *r, struct gradient_form f) {
    set_numbers(r, gradient_of(v->s, v->row++, r->total, f));
}

/* ---- rows ---- */

NB_INLINE void begin_rows(const struct sweep *s, struct rows_at_hand *m, const struct assignment *a,
                          struct gradient_form f) {
    static const float none[PACK_COLUMNS];
    const struct nb_call *call = s->call;
    struct session v = {.s = s, .row = a->row};
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
NB_INLINE void next_rows(const struct sweep *s, struct rows_at_hand *m, struct gradient_form f) {
    const struct nb_call *call = s->call;
    struct session v = {.s = s, .step = f.rows};
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

/* Columns of the rows at hand, piece by piece. */
NB_INLINE void run_pieces(const struct sweep *s, struct rows_at_hand *m, const struct assignment *a,
                          struct gradient_form f) {
    const int64_t in_piece = s->piece - 1, to = a->to;
    struct session v = {.s = s};
    int64_t end;
    for (int64_t i = a->from; i < to; i = end) {
        end = (i | in_piece) + 1;
        if (end > to) end = to;
        each_row(&v, m, begin_piece, f);
        take_turns(s, m, i, end, f);
        if (f.reduce) each_row(&v, m, end_piece, f);
    }
}

/* An assignment; what is reduced and finished is up to f. */
NB_INLINE void run_rows(const struct sweep *s, const struct assignment *a, struct gradient_form f) {
    struct rows_at_hand m;
    begin_rows(s, &m, a, f);
    for (int64_t j = 0; j < a->n; j++) {
        const int64_t place = (a->place + j) & a->mask;
        struct session v = {.s = s, .row = a->next_row + j};
        if (f.finish) set_numbers(&m.row[0], a->k[place]);
        if (f.reduce) begin_totals(&v, &m.row[0], f);
        if (f.reduce && !a->first) m.row[0].total = a->next[place];
        run_pieces(s, &m, a, f);
        if (f.reduce && a->next_k)
            a->next_k[place] = gradient_of(s, a->next_row + j, m.row[0].total, f);
        else if (f.reduce)
            a->next[place] = m.row[0].total;
        next_rows(s, &m, f);
    }
}

/* Whole rows, n in all, f.rows at a time reduced, then finished. Only dx waits for their sums: the sums over rows go on. */
NB_INLINE void run_pairs(const struct sweep *s, const struct assignment *a, struct gradient_form f) {
    struct gradient_form reduce = f, finish = f;
    struct rows_at_hand m;
    reduce.reduce = finish.finish = true;
    reduce.finish = finish.reduce = false;
    begin_rows(s, &m, a, finish);
    for (int64_t j = 0; j < a->n; j += f.rows) {
        struct session v = {.s = s, .row = a->row + j};
        each_row(&v, &m, begin_totals, f);
        run_pieces(s, &m, a, reduce);
        v.row = a->row + j;
        each_row(&v, &m, take_numbers, f);
        take_turns(s, &m, a->from, a->to, finish);
        next_rows(s, &m, finish);
    }
}

#endif
