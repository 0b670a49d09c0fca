// SPDX-License-Identifier: Apache-2.0
/* Forward norms of rows: statistics, then y = (x - mean) * scale * gamma + beta. Every formula and access; the usual ones are kept.cu's.
 *
 * A thread has every step-th vector of its row: TILE elements, kept in registers, or, in rows_*_long, as many as there are, kept in shared
 * memory where they fit and loaded again where not. All loads of a tile come before their first use, those of gamma before the barrier.
 *
 * The mean is summed first, then the squares about it. Each thread adds to four accumulators in turn,
 * then the tree over them, over lanes, warps and blocks: team_chain() in host.h. */
#include "kernels/cuda/formula.h"
#include "kernels/cuda/team.h"

template <bool WIDE, class E, int VEC>
DEVICE void load_element(float (&v)[VEC], const struct row_args &a, int64_t row, int64_t i, int64_t left) {
    load<WIDE>(v, (const E *)a.x + row * a.x_stride + i, left);
    if (!a.residual) return;
    float r[VEC];
    load<WIDE>(r, (const E *)a.residual + row * a.residual_stride + i, left);
#pragma unroll
    for (int j = 0; j < VEC; j++) v[j] += r[j];
}
/* What the statistics and y see of a sum that is stored in the dtype. */
template <bool WIDE, class E, int VEC>
DEVICE void take_sum(float (&v)[VEC], const struct row_args &a, int64_t row, int64_t i) {
    if (!a.residual) return;
    if (a.residual_out) store<WIDE>((E *)a.residual_out + row * a.residual_out_stride + i, v, a.cols - i);
    if (!a.round_sum) return;
#pragma unroll
    for (int j = 0; j < VEC; j++) v[j] = rounded<E>(v[j]);
}

template <bool WIDE, class E, int VEC>
DEVICE void finish(const float (&v)[VEC], const float (&gamma)[VEC], const struct row_args &a, int64_t row, int64_t i,
                   float mean, float scale) {
    float beta[VEC] = {}, y[VEC];
    if (a.full_scale) {
        float same[VEC];
#pragma unroll
        for (int j = 0; j < VEC; j++) same[j] = scale, y[j] = mean;
        store<WIDE>(a.full_scale + row * a.full_stride + i, same, a.cols - i);
        if (a.full_mean) store<WIDE>(a.full_mean + row * a.full_stride + i, y, a.cols - i);
    }
    if (!a.y) return;
    if (a.formula.affine == NB_AFFINE_GAMMA_BETA)
        load_any<WIDE, E>(beta, a.beta, i, a.cols - i, a.formula.narrow_params);
#pragma unroll
    for (int j = 0; j < VEC; j++)
        y[j] = with_affine<E>(normalized(v[j], mean, scale, a.formula), gamma[j], beta[j], a.formula);
    store<WIDE>((E *)a.y + row * a.y_stride + i, y, a.cols - i);
}

DEVICE void write_stats(const struct row_args &a, const struct team &t, int64_t row, float mean, float scale) {
    if (!is_first(t)) return;
    if (a.mean) put(&a.mean[row], mean);
    if (a.rstd) put(&a.rstd[row], scale_to_rstd(scale, a.formula));
    if (a.scale) put(&a.scale[row], scale);
    if (a.scale_mean) put(&a.scale_mean[row], mean);
}

/* Rows whose vectors a thread keeps in registers. */
template <class E, bool WIDE, int TILE> DEVICE void rows_kept(const struct row_args &a) {
    constexpr int VEC = VECTOR<E>, N = TILE / VEC;
    struct team t = team_of(a.team);
    const int64_t row = (int64_t)(block_index() / t.cluster) * (block_size() / t.group) + thread_index() / t.group;
    const int64_t first = first_of(t, VEC), step = step_of(t, VEC);
    if (row >= a.rows) return; /* whole groups; a block that shares a row has a row */
    const int64_t cols = PLANTED == FAR_VECTOR ? a.cols + VEC : a.cols;
    float v[N][VEC], gamma[N][VEC] = {}, mean = 0.0f, acc[ACCUMULATORS] = {};
#pragma unroll
    for (int n = 0; n < N; n++) {
#pragma unroll
        for (int j = 0; j < VEC; j++) v[n][j] = 0.0f;
        if (first + n * step < cols) load_element<WIDE, E>(v[n], a, row, first + n * step, cols - first - n * step);
    }
    if (a.formula.affine != NB_AFFINE_NONE && a.y)
#pragma unroll
        for (int n = 0; n < N; n++)
            if (first + n * step < a.cols)
                load_any<WIDE, E>(gamma[n], a.gamma, first + n * step, a.cols - first - n * step,
                                  a.formula.narrow_params);
#pragma unroll
    for (int n = 0; n < N; n++)
        if (first + n * step < a.cols) take_sum<WIDE, E>(v[n], a, row, first + n * step);
    if (a.formula.centre) {
#pragma unroll
        for (int e = 0; e < TILE; e++) acc[e % ACCUMULATORS] += v[e / VEC][e % VEC];
        mean = add_accumulators(acc, t) / (float)a.seen;
#pragma unroll
        for (int i = 0; i < ACCUMULATORS; i++) acc[i] = 0.0f;
    }
#pragma unroll
    for (int e = 0; e < TILE; e++) {
        const float d = v[e / VEC][e % VEC] - mean;
        if (first + e / VEC * step + e % VEC < a.seen) acc[e % ACCUMULATORS] = fmaf(d, d, acc[e % ACCUMULATORS]);
    }
    const float scale = row_scale(add_accumulators(acc, t) / (float)a.seen, a.formula);
    write_stats(a, t, row, mean, scale);
#pragma unroll
    for (int n = 0; n < N; n++)
        if (first + n * step < a.cols) finish<WIDE, E>(v[n], gamma[n], a, row, first + n * step, mean, scale);
    leave_team(t);
}

/* Rows of any length, each by a block or a cluster. */
struct long_row {
    struct team team;
    int64_t row, first, step;
};
/* Where a thread keeps its vector at i. */
DEVICE float *kept_at(const struct long_row &r, int64_t i, int vec) {
    return own_shared(r.team) + (uint32_t)(i - r.first) / r.team.cluster + thread_index() * vec;
}
/* The vector at i, after it was loaded once. */
template <bool WIDE, class E, int VEC>
DEVICE void load_again(float (&v)[VEC], const struct row_args &a, const struct long_row &r, int64_t i) {
    if (a.kept) {
        load<true>(v, (const float *)kept_at(r, i, VEC), VEC);
        return;
    }
    load_element<WIDE, E>(v, a, r.row, i, a.cols - i);
    if (a.residual && a.round_sum)
#pragma unroll
        for (int j = 0; j < VEC; j++) v[j] = rounded<E>(v[j]);
}

template <class E, bool WIDE> DEVICE void rows_long(const struct row_args &a) {
    constexpr int VEC = VECTOR<E>;
    struct team t = team_of(a.team);
    const struct long_row r = {t, (int64_t)(block_index() / t.cluster), first_of(t, VEC), step_of(t, VEC)};
    float v[VEC], gamma[VEC] = {}, mean = 0.0f, acc[ACCUMULATORS] = {};
    for (int64_t i = r.first; i < a.cols; i += r.step) {
        load_element<WIDE, E>(v, a, r.row, i, a.cols - i);
        take_sum<WIDE, E>(v, a, r.row, i);
        if (a.kept) keep(kept_at(r, i, VEC), v);
#pragma unroll
        for (int j = 0; j < VEC; j++) {
            float &sum = acc[j % ACCUMULATORS];
            if (a.formula.centre)
                sum += v[j];
            else if (i + j < a.seen)
                sum = fmaf(v[j], v[j], sum);
        }
    }
    float sum = add_accumulators(acc, t);
    if (a.formula.centre) {
        mean = sum / (float)a.seen;
#pragma unroll
        for (int i = 0; i < ACCUMULATORS; i++) acc[i] = 0.0f;
        for (int64_t i = r.first; i < a.cols; i += r.step) {
            load_again<WIDE, E>(v, a, r, i);
#pragma unroll
            for (int j = 0; j < VEC; j++)
                if (i + j < a.seen) acc[j % ACCUMULATORS] = fmaf(v[j] - mean, v[j] - mean, acc[j % ACCUMULATORS]);
        }
        sum = add_accumulators(acc, t);
    }
    const float scale = row_scale(sum / (float)a.seen, a.formula);
    write_stats(a, t, r.row, mean, scale);
    for (int64_t i = r.first; i < a.cols; i += r.step) {
        load_again<WIDE, E>(v, a, r, i);
        if (a.formula.affine != NB_AFFINE_NONE && a.y)
            load_any<WIDE, E>(gamma, a.gamma, i, a.cols - i, a.formula.narrow_params);
        finish<WIDE, E>(v, gamma, a, r.row, i, mean, scale);
    }
    leave_team(t);
}

#define ROWS(name, E, WIDE)                                                                                            \
    ENTRY(rows_##name##_32, row_args, rows_kept<E, WIDE, 32>)                                                          \
    ENTRY(rows_##name##_long, row_args, rows_long<E, WIDE>)
EACH_ACCESS(ROWS)
