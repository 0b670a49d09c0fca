// SPDX-License-Identifier: Apache-2.0
/* What the loops of the fused row backwards have at hand: the form of a call, rows, and the columns that one turn takes from memory and
 * puts back. */
#ifndef NB_GRADIENT_TURN_H
#define NB_GRADIENT_TURN_H

#include "kernels/shared/pack.h"

#define GRADIENT_ACCUMULATORS 2 /* vectors of each sum */
#define TURN_COLUMNS (GRADIENT_ACCUMULATORS * NB_LANES)
#define ROWS_TOGETHER 2

/* What is computed; a constant wherever it is used. */
struct gradient_form {
    bool centre;
    bool leading; /* the statistics saw the first k columns alone */
    bool weight, gamma_sum, beta_sum;
    bool residual; /* a gradient that is added to dx */
    bool ordered;  /* weights and sums over rows lie in the order of columns, not of packs */
    bool far;      /* rows come from memory: they are asked for ahead of their turn */
    bool stream;   /* dx past the caches */
    bool native;   /* dx rounded by the instruction of pair_native.h */
    bool reduce, finish;
    int rows; /* that share what is loaded and stored by columns: 1, or ROWS_TOGETHER, of whole turns */
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

/* A row that is finished and one that is reduced beside it; of a pair both are the same. */
struct row_at_hand {
    const elem *x, *dy, *residual;
    elem *dx;
    vec mean, rstd, slope, shift;
    const elem *next_x, *next_dy;
    vec next_mean;
    vec g[GRADIENT_ACCUMULATORS], gd[GRADIENT_ACCUMULATORS];
    struct row_sums total; /* over pieces */
};
struct rows_at_hand {
    struct row_at_hand row[ROWS_TOGETHER];
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

/* What is done to each of the rows at hand, and what they share. */
struct session {
    const struct sweep *s;
    struct turn t;
    struct pack w, gamma, beta;
    int64_t row, step; /* of the next session, and from a row to what comes after it */
};
typedef void (*row_visit)(struct session *v, struct row_at_hand *r, struct gradient_form f);

/* Written out: an array whose index is no constant from the start would live in memory. */
NB_INLINE void each_row(struct session *v, struct rows_at_hand *m, row_visit session, struct gradient_form f) {
    session(v, &m->row[0], f);
    if (f.rows > 1) session(v, &m->row[1], f);
}

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
NB_INLINE void store_elements(elem *p, struct pack a, struct turn t, struct gradient_form f) {
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

#endif
