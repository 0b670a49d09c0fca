// SPDX-License-Identifier: Apache-2.0
/* Rows one after the other: which are finished and which are reduced beside them, and what becomes of their sums. */
#ifndef NB_GRADIENT_RUN_H
#define NB_GRADIENT_RUN_H

#include "gradient_row.h"

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

NB_INLINE void begin_rows(const struct sweep *s, struct pair_of_rows *m, const struct assignment *a,
                          struct gradient_form f) {
    static const float none[PACK_COLUMNS];
    const struct nb_call *call = s->call;
    m->weight = s->weight;
    m->gamma_sum = s->gamma_sum;
    m->beta_sum = s->beta_sum;
    m->gamma_from = a->fresh ? none : s->gamma_sum;
    m->beta_from = a->fresh ? none : s->beta_sum;
    m->from_mask = a->fresh ? 0 : -1;
    m->slope = vec_set1(0.0f);
    if (f.finish) {
        m->x = row_in(call->x, call->x_stride, a->row);
        m->dy = row_in(call->dy, call->dy_stride, a->row);
        m->dx = s->dx + a->row * s->dx_stride;
        m->residual = NULL;
        if (f.residual && call->dresidual_out)
            m->residual = row_in(call->dresidual_out, call->dresidual_out_stride, a->row);
    }
    if (f.reduce) {
        m->next_x = row_in(call->x, call->x_stride, a->next_row);
        m->next_dy = row_in(call->dy, call->dy_stride, a->next_row);
    }
}
NB_INLINE void next_row(const struct sweep *s, struct pair_of_rows *m, struct gradient_form f) {
    const struct nb_call *call = s->call;
    if (f.finish) {
        m->x += call->x_stride;
        m->dy += call->dy_stride;
        m->dx += s->dx_stride;
        if (f.residual && call->dresidual_out) m->residual += call->dresidual_out_stride;
        m->gamma_from = m->gamma_sum;
        m->beta_from = m->beta_sum;
        m->from_mask = -1;
    }
    if (f.reduce) {
        m->next_x += call->x_stride;
        m->next_dy += call->dy_stride;
    }
}

/* Columns of one row and the next, piece by piece. */
NB_INLINE void run_pieces(const struct sweep *s, struct pair_of_rows *m, const struct assignment *a,
                          struct gradient_form f) {
    const int64_t in_piece = s->piece - 1, to = a->to;
    int64_t end;
    for (int64_t i = a->from; i < to; i = end) {
        end = (i | in_piece) + 1;
        if (end > to) end = to;
        NB_UNROLL
        for (int acc = 0; acc < GRADIENT_ACCUMULATORS; acc++) m->g[acc] = m->gd[acc] = vec_set1(0.0f);
        take_turns(s, m, i, end, f);
        if (!f.reduce) continue;
        m->total.g = m->total.g + (m->g[0] + m->g[1]);
        m->total.gd = m->total.gd + (m->gd[0] + m->gd[1]);
    }
}

/* An assignment; what is reduced and finished is up to f. */
NB_INLINE void run_rows(const struct sweep *s, const struct assignment *a, struct gradient_form f) {
    struct pair_of_rows m;
    begin_rows(s, &m, a, f);
    for (int64_t j = 0; j < a->n; j++) {
        const int64_t place = (a->place + j) & a->mask;
        if (f.finish) {
            m.mean = vec_set1(a->k[place].mean);
            m.rstd = vec_set1(a->k[place].rstd);
            m.slope = vec_set1(a->k[place].slope);
            m.shift = vec_set1(a->k[place].shift);
        }
        if (f.reduce) {
            if (f.centre) m.next_mean = vec_set1(s->call->mean[a->next_row + j]);
            m.total = (struct row_sums){vec_set1(0.0f), vec_set1(0.0f)};
            if (!a->first) m.total = a->next[place];
        }
        run_pieces(s, &m, a, f);
        if (f.reduce && a->next_k)
            a->next_k[place] = gradient_of(s, a->next_row + j, m.total, f);
        else if (f.reduce)
            a->next[place] = m.total;
        next_row(s, &m, f);
    }
}

#endif
