// SPDX-License-Identifier: Apache-2.0
/* Gradients of the norms of rows: of each row the sums of g and g xhat, then dx; over rows the sums of dgamma and dbeta.
 *
 * Blocks take every n-th row and keep their sums over rows in registers (gradient_*_long: in their line of the partial sums); at the end they
 * store them, and add_columns adds the blocks in their order. No atomics, so that the bits repeat.
 *
 * Roundings: xhat 2, g 1 (2 with an offset), sums and means team_chain() + 1, the terms of dx 2, rstd 1, store. A column: the rows of a
 * group of threads one by one, the groups of a block, the blocks: gradient_column_chain() in gradient.h. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define ROOM 1 /* with room for two, ptxas spilled 22 registers */
#endif
#include "kernels/cuda/formula.h"
#include "kernels/cuda/team.h"

enum { ACCUMULATORS = 4 };

/* What the elements of a row share. */
struct shared_values {
    float mean, rstd, minus_g, minus_gx;
};

/* xhat and the two sums; xhat is 0 behind the last column, and so adds nothing. */
template <class E, int VEC>
DEVICE void add_vector(float (&sums)[2][ACCUMULATORS], float (&x)[VEC], const float (&dy)[VEC],
                       const float (&gamma)[VEC], const struct gradient_args &a, float mean, float rstd, int64_t left,
                       int at) {
#pragma unroll
    for (int j = 0; j < VEC; j++) {
        const int acc = (at + j) % ACCUMULATORS;
        const float g = a.formula.affine == NB_AFFINE_NONE ? dy[j] : dy[j] * weight_of<E>(gamma[j], a.formula);
        const float d = a.formula.centre ? x[j] - mean : x[j];
        x[j] = j < left ? d * rstd : 0.0f;
        if (a.formula.centre) sums[0][acc] += g;
        sums[1][acc] = fmaf(g, x[j], sums[1][acc]);
    }
}
DEVICE void finish_sums(struct shared_values &s, const float (&sums)[2][ACCUMULATORS], const struct gradient_args &a,
                        struct team &t) {
    float total[2];
#pragma unroll
    for (int k = 0; k < 2; k++) total[k] = (sums[k][0] + sums[k][1]) + (sums[k][2] + sums[k][3]);
    add_team(total, t);
    s.minus_g = -total[0] / (float)a.cols;
    s.minus_gx = -total[1] / (float)a.seen;
}
/* dx of a vector. */
template <class E, bool WIDE, int VEC>
DEVICE void write_vector(const float (&xhat)[VEC], const float (&dy)[VEC], const float (&gamma)[VEC],
                         const struct gradient_args &a, const struct shared_values &s, int64_t row, int64_t i) {
    float past[VEC] = {}, dx[VEC];
    if (!a.dx) return;
    if (a.dresidual_out) load<WIDE>(past, (const E *)a.dresidual_out + row * a.dresidual_out_stride + i, a.cols - i);
#pragma unroll
    for (int j = 0; j < VEC; j++) {
        float d = a.formula.affine == NB_AFFINE_NONE ? dy[j] : dy[j] * weight_of<E>(gamma[j], a.formula);
        if (a.formula.centre) d += s.minus_g;
        d = fmaf(xhat[j], i + j < a.seen ? s.minus_gx : 0.0f, d);
        dx[j] = a.dresidual_out ? fmaf(d, s.rstd, past[j]) : d * s.rstd;
    }
    store<WIDE>((E *)a.dx + row * a.dx_stride + i, dx, a.cols - i);
}
template <class E, bool WIDE, int VEC>
DEVICE void load_row(float (&x)[VEC], float (&dy)[VEC], const struct gradient_args &a, int64_t row, int64_t i) {
    load<WIDE>(x, (const E *)a.x + row * a.x_stride + i, a.cols - i);
    load<WIDE>(dy, (const E *)a.dy + row * a.dy_stride + i, a.cols - i);
}
DEVICE float *partial_sums(const struct gradient_args &a, const struct team &t, int which) {
    return a.partial + ((int64_t)(block_index() / t.cluster) * a.sums + which) * a.padded;
}

/* The sums of a block whose groups of threads have a row each: group after group. */
template <int N, int VEC>
DEVICE void store_sums(const float (&sum)[N][VEC], const struct gradient_args &a, const struct team &t, int which) {
    constexpr int TILE = N * VEC;
    const int64_t first = first_of(t, VEC), step = step_of(t, VEC);
    float *const out = partial_sums(a, t, which);
    if (block_size() == t.group) {
#pragma unroll
        for (int n = 0; n < N; n++)
            if (first + n * step < a.cols) store<true>(out + first + n * step, sum[n], VEC);
        return;
    }
    float *const kept = own_shared(t);
    barrier();
#pragma unroll
    for (int n = 0; n < N; n++) keep(kept + thread_index() * TILE + n * VEC, sum[n]);
    barrier();
#pragma unroll 1
    for (uint32_t at = thread_index(); at < t.group * TILE; at += block_size()) {
        const int64_t e = at % TILE, col = at / TILE * VEC + e / VEC * step + e % VEC;
        float total = kept[at];
        for (uint32_t from = t.group * TILE; from < block_size() * TILE; from += t.group * TILE)
            total += kept[from + at];
        if (col < a.cols) out[col] = total;
    }
}

/* Rows whose vectors a thread keeps in registers. */
template <class E, bool WIDE, int TILE> DEVICE void gradient_kept(const struct gradient_args &a) {
    constexpr int VEC = VECTOR<E>, N = TILE / VEC;
    struct team t = team_of(a.team);
    const int64_t groups = block_size() / t.group, at_once = grid_size() / t.cluster * groups;
    const int64_t mine = block_index() / t.cluster * groups + thread_index() / t.group;
    const int64_t first = first_of(t, VEC), step = step_of(t, VEC);
    float gamma[N][VEC] = {}, dgamma[N][VEC] = {}, dbeta[N][VEC] = {};
    if (a.formula.affine != NB_AFFINE_NONE)
#pragma unroll
        for (int n = 0; n < N; n++)
            if (first + n * step < a.cols)
                load_any<WIDE, E>(gamma[n], a.gamma, first + n * step, a.cols - first - n * step,
                                  a.formula.narrow_params);
    /* All groups of a block go round equally often; one without a row adds zeros. */
    for (int64_t base = 0; base < a.rows; base += at_once) {
        const int64_t row = base + mine;
        const bool here = row < a.rows;
        float x[N][VEC] = {}, dy[N][VEC] = {}, sums[2][ACCUMULATORS] = {};
        struct shared_values s = {here && a.formula.centre ? a.mean[row] : 0.0f, here ? a.rstd[row] : 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int n = 0; n < N; n++)
            if (here && first + n * step < a.cols) load_row<E, WIDE>(x[n], dy[n], a, row, first + n * step);
#pragma unroll
        for (int n = 0; n < N; n++)
            add_vector<E>(sums, x[n], dy[n], gamma[n], a, s.mean, s.rstd, a.cols - first - n * step, n * VEC);
        finish_sums(s, sums, a, t);
#pragma unroll
        for (int n = 0; n < N; n++) {
            if (here && first + n * step < a.cols)
                write_vector<E, WIDE>(x[n], dy[n], gamma[n], a, s, row, first + n * step);
#pragma unroll
            for (int j = 0; j < VEC; j++) {
                dgamma[n][j] = fmaf(dy[n][j], x[n][j], dgamma[n][j]);
                dbeta[n][j] += dy[n][j];
            }
        }
    }
    if (a.sums > 0) store_sums(dgamma, a, t, 0);
    if (a.sums > 1) store_sums(dbeta, a, t, 1);
    leave_team(t);
}

/* Rows of any length, each by a block or a cluster. */
template <class E, bool WIDE> DEVICE void gradient_long(const struct gradient_args &a) {
    constexpr int VEC = VECTOR<E>;
    struct team t = team_of(a.team);
    const int64_t first = first_of(t, VEC), step = step_of(t, VEC), from = block_index() / t.cluster;
    float gamma[VEC] = {}, x[VEC], dy[VEC];
    for (int64_t row = from; row < a.rows; row += grid_size() / t.cluster) {
        float sums[2][ACCUMULATORS] = {}, ignored[2][ACCUMULATORS] = {};
        struct shared_values s = {a.formula.centre ? a.mean[row] : 0.0f, a.rstd[row], 0.0f, 0.0f};
        for (int64_t i = first; i < a.cols; i += step) {
            load_row<E, WIDE>(x, dy, a, row, i);
            if (a.formula.affine != NB_AFFINE_NONE)
                load_any<WIDE, E>(gamma, a.gamma, i, a.cols - i, a.formula.narrow_params);
            add_vector<E>(sums, x, dy, gamma, a, s.mean, s.rstd, a.cols - i, 0);
        }
        finish_sums(s, sums, a, t);
        for (int64_t i = first; i < a.cols; i += step) {
            load_row<E, WIDE>(x, dy, a, row, i);
            if (a.formula.affine != NB_AFFINE_NONE)
                load_any<WIDE, E>(gamma, a.gamma, i, a.cols - i, a.formula.narrow_params);
            add_vector<E>(ignored, x, dy, gamma, a, s.mean, s.rstd, a.cols - i, 0);
            write_vector<E, WIDE>(x, dy, gamma, a, s, row, i);
            for (uint32_t which = 0; which < a.sums; which++) {
                float sum[VEC] = {};
                if (row != from) load<true>(sum, (const float *)partial_sums(a, t, which) + i, VEC);
#pragma unroll
                for (int j = 0; j < VEC; j++) sum[j] = which ? sum[j] + dy[j] : fmaf(dy[j], x[j], sum[j]);
                store<true>(partial_sums(a, t, which) + i, sum, VEC);
            }
        }
    }
    leave_team(t);
}

#define GRADIENT(name, E, WIDE)                                                                                        \
    ENTRY(gradient_##name##_8, gradient_args, gradient_kept<E, WIDE, 8>)                                               \
    ENTRY(gradient_##name##_16, gradient_args, gradient_kept<E, WIDE, 16>)                                             \
    ENTRY(gradient_##name##_long, gradient_args, gradient_long<E, WIDE>)
EACH_ACCESS(GRADIENT)
