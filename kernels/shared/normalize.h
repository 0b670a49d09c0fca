// SPDX-License-Identifier: Apache-2.0
/* y = (x - mean) * scale * gamma + beta with statistics and parameters that come from memory in f32: one for each element of
 * a row (BatchNorm by columns, statistics expanded to full size) or one for a whole row (BatchNorm by planes). */
#pragma once

#include "kernels/shared/elementwise.h"

struct sweep {
    const elem *x;
    elem *y;
    int64_t x_stride, y_stride, n_rows, n_cols;
    const float *mean, *scale; /* scale is row_scale()'s */
    int64_t stats_stride;      /* between the statistics of two rows; 0: the same for all */
    const float *gamma, *beta; /* offset and rounded already, see store_gamma() */
};

struct sweep_form {
    bool centre, divide, cast_before, per_row;
    int affine;
};

NB_INLINE vec sweep_value(const float *p, int64_t i, int64_t lanes, struct sweep_form f) {
    if (f.per_row) return vec_set1(*p);
    return typed_load_lanes(p, i, lanes, false);
}

/* The elements from i on of a row: a vector, or the first lanes of it. */
NB_INLINE void sweep_vector(const struct sweep *s, int64_t row, int64_t i, int64_t lanes, struct sweep_form f) {
    vec v = typed_load_lanes(s->x + row * s->x_stride, i, lanes, true);
    if (f.centre) v = v - sweep_value(s->mean + row * s->stats_stride, i, lanes, f);
    vec scale = sweep_value(s->scale + row * s->stats_stride, i, lanes, f);
    v = f.divide ? v / scale : v * scale;
    if (f.affine != NB_AFFINE_NONE) {
        vec gamma = sweep_value(s->gamma, i, lanes, f);
        vec beta = f.affine == NB_AFFINE_GAMMA_BETA ? sweep_value(s->beta, i, lanes, f) : v;
        if (f.cast_before) {
            v = vec_round(vec_round(v) * gamma);
            if (f.affine == NB_AFFINE_GAMMA_BETA) v = v + beta;
        } else if (f.affine == NB_AFFINE_GAMMA_BETA) {
            v = vec_fma(v, gamma, beta);
        } else {
            v = v * gamma;
        }
    }
    typed_store_lanes(s->y + row * s->y_stride, i, v, lanes, true);
}

NB_INLINE void sweep_rows(const struct sweep *s, struct sweep_form f) {
    for (int64_t row = 0; row < s->n_rows; row++) {
        int64_t i = 0;
        for (; i + NB_LANES <= s->n_cols; i += NB_LANES) sweep_vector(s, row, i, NB_LANES, f);
        if (i < s->n_cols) sweep_vector(s, row, i, s->n_cols - i, f);
    }
}

/* The usual formulas (x * (1 / sqrt(v)), one rounding at the end) have a loop in which the form is constant, all others share one that
 * branches on it. f holds what the caller fixes; the affine part is either that, or what the formula says. */
NB_INLINE void sweep_of_formula(const struct sweep *s, const struct nb_formula *formula, struct sweep_form f,
                                int affine) {
    struct sweep_form wanted = f;
    wanted.affine = affine;
    wanted.divide = root_divides(formula);
    wanted.cast_before =
        sizeof(elem) < sizeof(float) && formula->cast == NB_CAST_BEFORE && wanted.affine != NB_AFFINE_NONE;
    if (wanted.affine == f.affine && !wanted.divide && !wanted.cast_before)
        sweep_rows(s, f);
    else
        sweep_rows(s, wanted);
}

/* Gamma and beta of one column or channel, offset and rounded: 1 and 0 where the formula has none. */
static inline float gamma_of(const struct nb_call *call, int64_t i) {
    const struct nb_formula *f = &call->formula;
    if (f->affine == NB_AFFINE_NONE) return 1.0f;
    const float gamma = typed_get(call->gamma, i, f->param == NB_PARAM_X);
    if (!f->weight_offset) return gamma;
    return f->cast == NB_CAST_BEFORE ? elem_round(gamma + 1.0f) : gamma + 1.0f;
}
static inline float beta_of(const struct nb_call *call, int64_t i) {
    const struct nb_formula *f = &call->formula;
    return f->affine == NB_AFFINE_GAMMA_BETA ? typed_get(call->beta, i, f->param == NB_PARAM_X) : 0.0f;
}

/* The same of columns [begin, end) to out[0..). */
NB_ONCE void store_gamma(const struct nb_call *call, float *out, int64_t begin, int64_t end) {
    const struct nb_formula *f = &call->formula;
    const bool narrow = f->param == NB_PARAM_X;
    int64_t i = begin;
    for (; i + NB_LANES <= end; i += NB_LANES) {
        vec v = vec_set1(1.0f);
        if (f->affine != NB_AFFINE_NONE) v = typed_load(call->gamma, i, narrow);
        if (f->affine != NB_AFFINE_NONE && f->weight_offset) v = v + vec_set1(1.0f);
        if (f->weight_offset && f->cast == NB_CAST_BEFORE) v = vec_round(v);
        vec_store_f32(out + (i - begin), v);
    }
    for (; i < end; i++) out[i - begin] = gamma_of(call, i);
}
NB_ONCE void store_beta(const struct nb_call *call, float *out, int64_t begin, int64_t end) {
    const bool narrow = call->formula.param == NB_PARAM_X;
    int64_t i = begin;
    for (; i + NB_LANES <= end; i += NB_LANES)
        vec_store_f32(out + (i - begin), call->formula.affine == NB_AFFINE_GAMMA_BETA
                                             ? typed_load(call->beta, i, narrow)
                                             : vec_set1(0.0f));
    for (; i < end; i++) out[i - begin] = beta_of(call, i);
}
