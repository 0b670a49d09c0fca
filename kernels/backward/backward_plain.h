// SPDX-License-Identifier: Apache-2.0
/* The frame of the plain backward kernels: of each row the two sums that its gradients share, then dx and the row's share of the parameters'
 * gradients. Rows are cut into at most 16 blocks by their number alone; each block has f32 sums of its own in scratch, a second phase adds
 * the blocks of each column in their order. So no result depends on threads or ranges.
 *
 * Roundings: xhat 2, g = dy w 1 (2 with an offset), sum and mean row_sums_chain() + 1, the two terms of dx 2, rstd 1, store. dgamma: xhat 2
 * and the fma of each row, one row after another in its block, block after block: backward_column_chain(). */
#pragma once

#include <stdbool.h>

#include "kernels/shared/reduce.h"

enum { BACKWARD_BLOCKS = 16, BACKWARD_ACCUMULATORS = 4, SUMS_ALIGN = 16 /* floats */ };

/* prefix: the statistics saw the first k elements (pRMSNorm); sum: no mean is taken (L2); add: dresidual_out may be given, in a loop: is
 * given. What a kernel fixes is constant in its loops, and so are all fields in those of usual formulas. */
struct backward_form {
    bool centre, prefix, sum, add, offset, param_elem;
    int affine;
};
typedef int (*backward_loop)(const struct nb_call *call, int64_t begin, int64_t end, struct backward_form f);

/* ---- one element ---- */

struct backward_row {
    const elem *x, *dy, *residual; /* residual: dresidual_out of add_*, or null */
    elem *dx;                      /* null: not wanted */
    const void *gamma;
    vec mean, rstd;
};

/* dy w; 0 in absent lanes, whose dy is 0. */
NB_INLINE vec weighted(vec dy, const void *gamma, int64_t i, int64_t lanes, struct backward_form f) {
    if (f.affine == NB_AFFINE_NONE) return dy;
    vec w = typed_load_lanes(gamma, i, lanes, f.param_elem);
    if (f.offset) w = w + vec_set1(1.0f);
    return dy * w;
}

/* (x - mean) rstd; 0 in absent lanes, so that whatever mean and rstd are, they add nothing. */
NB_INLINE vec xhat_at(const struct backward_row *r, int64_t i, int64_t lanes, struct backward_form f) {
    vec x = typed_load_lanes(r->x, i, lanes, true);
    if (f.centre) x = x - r->mean;
    x = x * r->rstd;
    return lanes == NB_LANES ? x : vec_keep(x, lanes);
}

/* ---- sums along a row ---- */

struct plain_sums {
    float g;              /* sum of g */
    _Alignas(8) float gx; /* sum of g xhat */
};

NB_INLINE void add_to_row_sums(vec *g, vec *gx, const struct backward_row *r, int64_t i, int64_t lanes,
                               struct backward_form f) {
    const vec v = weighted(typed_load_lanes(r->dy, i, lanes, true), r->gamma, i, lanes, f);
    if (f.centre) *g = *g + v;
    *gx = vec_fma(v, xhat_at(r, i, lanes, f), *gx);
}

NB_INLINE struct plain_sums sums_of_row(const struct backward_row *r, int64_t n, struct backward_form f) {
    enum { N = BACKWARD_ACCUMULATORS };
    vec g[2 * N - 1], gx[2 * N - 1]; /* behind the accumulators, the tree over them */
    NB_UNROLL
    for (int a = 0; a < N; a++) g[a] = gx[a] = vec_set1(0.0f);
    int64_t i = 0;
    for (; i + N * NB_LANES <= n; i += N * NB_LANES) {
        NB_UNROLL
        for (int a = 0; a < N; a++) add_to_row_sums(&g[a], &gx[a], r, i + a * NB_LANES, NB_LANES, f);
    }
    for (; i + NB_LANES <= n; i += NB_LANES) add_to_row_sums(&g[0], &gx[0], r, i, NB_LANES, f);
    if (i < n) add_to_row_sums(&g[1], &gx[1], r, i, n - i, f);
    NB_UNROLL
    for (int a = 0; a < N - 1; a++) {
        g[N + a] = g[2 * a] + g[2 * a + 1];
        gx[N + a] = gx[2 * a] + gx[2 * a + 1];
    }
    return (struct plain_sums){.g = f.centre ? vec_sum(g[2 * N - 2]) : 0.0f, .gx = vec_sum(gx[2 * N - 2])};
}

/* The vectors that fill no iteration of the loop, three at most, join the first accumulator. */
static inline int64_t row_sums_chain(const struct nb_call *call) {
    return reduction_chain(call->cols, BACKWARD_ACCUMULATORS) + BACKWARD_ACCUMULATORS - 1;
}

/* ---- sums along columns ---- */

static inline int64_t padded_cols(const struct nb_call *call) {
    return (call->cols + SUMS_ALIGN - 1) / SUMS_ALIGN * SUMS_ALIGN;
}
static inline bool sums_columns(const struct nb_call *call) { return call->formula.affine != NB_AFFINE_NONE; }
/* Floats of a block: of dgamma, then of dbeta. */
static inline int64_t block_floats(const struct nb_call *call) {
    return padded_cols(call) * (call->formula.affine == NB_AFFINE_GAMMA_BETA ? 2 : sums_columns(call) ? 1 : 0);
}
static inline int64_t backward_blocks(const struct nb_call *call) {
    return call->rows < BACKWARD_BLOCKS ? call->rows : BACKWARD_BLOCKS;
}
static inline int64_t block_begin(const struct nb_call *call, int64_t block) {
    return call->rows * block / backward_blocks(call);
}
static inline float *block_sums(const struct nb_call *call, int64_t block) {
    return (float *)call->scratch + block * block_floats(call);
}

static inline void clear_sums(float *sums, int64_t n) {
    for (int64_t i = 0; i < n; i += NB_LANES) vec_store_f32(sums + i, vec_set1(0.0f));
}

/* value is what dy is multiplied by in dgamma: xhat, or tanh. Absent lanes add 0 to what is behind the last column. */
NB_INLINE void add_to_column_sums(float *sums, int64_t padded, vec dy, vec value, int64_t i, struct backward_form f) {
    if (f.affine == NB_AFFINE_NONE) return;
    vec_store_f32(sums + i, vec_fma(dy, value, vec_load_f32(sums + i)));
    if (f.affine == NB_AFFINE_GAMMA_BETA) vec_store_f32(sums + padded + i, vec_load_f32(sums + padded + i) + dy);
}

/* Columns [begin, end) in units of SUMS_ALIGN, of the sums that begin at an offset in each block. */
static inline void add_block_sums(const struct nb_call *call, int64_t begin, int64_t end, int64_t offset, float *out) {
    const int64_t n = backward_blocks(call);
    for (int64_t i = begin * SUMS_ALIGN; i < end * SUMS_ALIGN && i < call->cols; i += NB_LANES) {
        vec sum = vec_load_f32(block_sums(call, 0) + offset + i);
        for (int64_t b = 1; b < n; b++) sum = sum + vec_load_f32(block_sums(call, b) + offset + i);
        if (i + NB_LANES <= call->cols)
            vec_store_f32(out + i, sum);
        else
            vec_store_f32_tail(out + i, sum, call->cols - i);
    }
}
static inline int finish_parameter_sums(const struct nb_call *call, int64_t begin, int64_t end) {
    if (call->dgamma) add_block_sums(call, begin, end, 0, call->dgamma);
    if (call->dbeta && call->formula.affine == NB_AFFINE_GAMMA_BETA)
        add_block_sums(call, begin, end, padded_cols(call), call->dbeta);
    return 0;
}

/* ---- rows ---- */

/* What the elements of a row share: -mean of g, -mean of g xhat; the latter for the first k alone. */
struct row_shares {
    vec minus_g, minus_gx;
    int64_t k;
};

NB_INLINE vec minus_gx_at(struct row_shares s, int64_t i, struct backward_form f) {
    if (!f.prefix || i + NB_LANES <= s.k) return s.minus_gx;
    return i < s.k ? vec_keep(s.minus_gx, s.k - i) : vec_set1(0.0f);
}

NB_INLINE void finish_element(const struct backward_row *r, struct row_shares s, float *sums, int64_t padded, int64_t i,
                              int64_t lanes, struct backward_form f) {
    const vec dy = typed_load_lanes(r->dy, i, lanes, true), xhat = xhat_at(r, i, lanes, f);
    vec d = weighted(dy, r->gamma, i, lanes, f);
    if (f.centre) d = d + s.minus_g;
    d = vec_fma(xhat, minus_gx_at(s, i, f), d);
    if (f.add)
        d = vec_fma(d, r->rstd, typed_load_lanes(r->residual, i, lanes, true));
    else
        d = d * r->rstd;
    if (r->dx) typed_store_lanes(r->dx, i, d, lanes, true);
    add_to_column_sums(sums, padded, dy, xhat, i, f);
}

NB_INLINE struct row_shares shares_of(const struct nb_call *call, struct plain_sums s, struct backward_form f) {
    const float n = (float)call->cols, seen = f.sum ? 1.0f : f.prefix ? (float)call->k : n;
    return (struct row_shares){.minus_g = vec_set1(-s.g / n), .minus_gx = vec_set1(-s.gx / seen), .k = call->k};
}

NB_INLINE void backward_row(const struct nb_call *call, int64_t row, float *sums, struct backward_form f) {
    const int64_t n = call->cols, padded = padded_cols(call);
    const struct backward_row r = {
        .x = row_in(call->x, call->x_stride, row),
        .dy = row_in(call->dy, call->dy_stride, row),
        .residual = f.add ? row_in(call->dresidual_out, call->dresidual_out_stride, row) : NULL,
        .dx = call->dx ? row_out(call->dx, call->dx_stride, row) : NULL,
        .gamma = call->gamma,
        .mean = vec_set1(f.centre ? call->mean[row] : 0.0f),
        .rstd = vec_set1(call->rstd[row]),
    };
    const struct row_shares s = shares_of(call, sums_of_row(&r, n, f), f);
    int64_t i = 0;
    for (; i + NB_LANES <= n; i += NB_LANES) finish_element(&r, s, sums, padded, i, NB_LANES, f);
    if (i < n) finish_element(&r, s, sums, padded, i, n - i, f);
}

/* Blocks [begin, end); of rows where no columns are summed. */
NB_INLINE int backward_rows(const struct nb_call *call, int64_t begin, int64_t end, struct backward_form f) {
    if (f.affine == NB_AFFINE_NONE) {
        for (int64_t row = begin; row < end; row++) backward_row(call, row, NULL, f);
        return 0;
    }
    for (int64_t b = begin; b < end; b++) {
        float *sums = block_sums(call, b);
        const int64_t last = block_begin(call, b + 1);
        clear_sums(sums, block_floats(call));
        for (int64_t row = block_begin(call, b); row < last; row++) backward_row(call, row, sums, f);
    }
    return 0;
}

/* ---- the formula, chosen once a call ---- */

/* f holds what the kernel fixes, and in affine what its op usually has. The usual formula (the usual affine part, in f32) has a loop in
 * which the form is constant; all others share a loop that branches on it. */
NB_INLINE int backward_of_form(const struct nb_call *call, int64_t begin, int64_t end, struct backward_form f,
                               backward_loop loop) {
    const struct nb_formula *formula = &call->formula;
    struct backward_form wanted = f;
    wanted.affine = (int)formula->affine;
    wanted.offset = formula->weight_offset != 0;
    wanted.param_elem = sizeof(elem) < sizeof(float) && formula->param == NB_PARAM_X;
    wanted.add = f.add && call->dresidual_out;
    if (wanted.affine == f.affine && !wanted.offset && !wanted.param_elem && wanted.add == f.add)
        return loop(call, begin, end, f);
    return loop(call, begin, end, wanted);
}

/* Of a kernel: rows, then columns. */
NB_INLINE int backward_phase(const struct nb_call *call, int phase, int64_t begin, int64_t end,
                             struct backward_form f) {
    if (phase == 1) return finish_parameter_sums(call, begin, end);
    return backward_of_form(call, begin, end, f, backward_rows);
}
#ifdef BACKWARD_FORM
static int backward_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return backward_phase(call, phase, begin, end, (struct backward_form){BACKWARD_FORM});
}
#endif

/* ---- what a kernel declares ---- */

static inline size_t backward_scratch_bytes(const struct nb_call *call) {
    return (size_t)(backward_blocks(call) * block_floats(call)) * sizeof(float);
}
static inline int backward_n_phases(const struct nb_call *call) { return sums_columns(call) ? 2 : 1; }
static inline int64_t backward_n_units(const struct nb_call *call, int phase) {
    if (phase == 1) return padded_cols(call) / SUMS_ALIGN;
    return sums_columns(call) ? backward_blocks(call) : call->rows;
}
/* Rows of the largest block, then the blocks. */
static inline int64_t backward_column_chain(const struct nb_call *call) {
    const int64_t n = backward_blocks(call);
    return (call->rows + n - 1) / n + n - 1;
}

#define BACKWARD_PLAIN                                                                                                 \
    .loads = 4, .stores = 1, .run = backward_run, .row_local = always_row_local, .chain = row_sums_chain,              \
    .scratch_bytes = backward_scratch_bytes, .n_phases = backward_n_phases, .n_units = backward_n_units,               \
    .column_chain = backward_column_chain
