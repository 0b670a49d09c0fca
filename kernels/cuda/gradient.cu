// SPDX-License-Identifier: Apache-2.0
/* Gradients of the norms of rows: of each row the sums of g and g xhat, then dx; over rows the sums of dgamma and dbeta.
 *
 * Blocks take every n-th row and keep their sums over rows in registers (gradient_*_long: in their line of the partial sums); at the end they
 * store them, and add_columns adds the blocks in their order. No atomics, so that the bits repeat.
 *
 *   wide_8, _16                  the usual formulas (gradient.h says which): elements of a thread; further rows are on their way to a ring in
 *   wide_past_8, wide_centred_8  shared memory while a row is computed
 *   narrow_8, _16                all others, and what is not aligned
 *   long                         rows that do not fit the registers
 *
 * Roundings: xhat 2, g 1 (2 with an offset), sums and means team_chain() + 1, the terms of dx 2, rstd 1, store. A column: the rows of a
 * group of threads one by one, the groups of a block, the blocks: gradient_column_chain() in gradient.h. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define ROOM 1 /* with room for two, ptxas spilled 22 registers */
#endif
#include "kernels/cuda/formula.h"
#include "kernels/cuda/team.h"

/* What the elements of a row share. */
struct shared_values {
    float mean, rstd, minus_g, minus_gx;
};

/* What a vector of dy is multiplied by: one where there is no gamma. */
template <bool WIDE, class E, int VEC>
DEVICE void load_weights(float (&weight)[VEC], const struct gradient_args &a, int64_t i) {
    const bool none = a.formula.affine == NB_AFFINE_NONE;
    if (!none) load_any<WIDE, E>(weight, a.gamma, i, a.cols - i, a.formula.narrow_params);
#pragma unroll
    for (int j = 0; j < VEC; j++) weight[j] = none ? 1.0f : weight_of<E>(weight[j], a.formula);
}
/* x becomes xhat; the mean is 0 where there is none. It is 0 behind the last column, and so adds nothing. */
template <int VEC> DEVICE void normalize(float (&x)[VEC], float mean, float rstd, int64_t left) {
#pragma unroll
    for (int j = 0; j < VEC; j++) x[j] = j < left ? (x[j] - mean) * rstd : 0.0f;
}
template <int VEC>
DEVICE void add_vector(float (&sums)[2][ACCUMULATORS], const float (&xhat)[VEC], const float (&dy)[VEC],
                       const float (&weight)[VEC]) {
#pragma unroll
    for (int j = 0; j < VEC; j++) {
        const float g = dy[j] * weight[j];
        sums[0][j % ACCUMULATORS] += g;
        sums[1][j % ACCUMULATORS] = fmaf(g, xhat[j], sums[1][j % ACCUMULATORS]);
    }
}
/* Of a row: total[0] that of g, which a norm that does not centre has no use for: d + -0 is d. */
DEVICE void finish_sums(struct shared_values &s, const float (&total)[2], const struct gradient_args &a) {
    s.minus_g = a.formula.centre ? -total[0] / (float)a.cols : -0.0f;
    s.minus_gx = -total[1] / (float)a.seen;
}
template <int K> DEVICE void add_accumulators(float (&total)[K], const float (&sums)[K][ACCUMULATORS]) {
#pragma unroll
    for (int k = 0; k < K; k++) total[k] = add_accumulators(sums[k]);
}
/* dx of a vector. */
template <class E, bool WIDE, int VEC>
DEVICE void write_vector(const float (&xhat)[VEC], const float (&dy)[VEC], const float (&weight)[VEC],
                         const struct gradient_args &a, const struct shared_values &s, int64_t row, int64_t i) {
    float past[VEC] = {}, dx[VEC];
    if (!a.dx) return;
    if (a.dresidual_out) load<WIDE>(past, (const E *)a.dresidual_out + row * a.dresidual_out_stride + i, a.cols - i);
#pragma unroll
    for (int j = 0; j < VEC; j++) {
        float d = dy[j] * weight[j] + s.minus_g;
        d = fmaf(xhat[j], i + j < a.seen ? s.minus_gx : 0.0f, d);
        dx[j] = a.dresidual_out ? fmaf(d, s.rstd, past[j]) : d * s.rstd;
    }
    store<WIDE>((E *)a.dx + row * a.dx_stride + i, dx, a.cols - i);
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
template <class E, int TILE> DEVICE void gradient_kept(const struct gradient_args &a) {
    constexpr int VEC = VECTOR<E>, N = TILE / VEC;
    struct team t = team_of(a.team);
    const int64_t groups = block_size() / t.group, at_once = grid_size() / t.cluster * groups;
    const int64_t mine = block_index() / t.cluster * groups + thread_index() / t.group;
    const int64_t first = first_of(t, VEC), step = step_of(t, VEC);
    float weight[N][VEC] = {}, dgamma[N][VEC] = {}, dbeta[N][VEC] = {};
#pragma unroll
    for (int n = 0; n < N; n++)
        if (first + n * step < a.cols) load_weights<false, E>(weight[n], a, first + n * step);
    /* All groups of a block go round equally often; one without a row adds zeros. */
    for (int64_t base = 0; base < a.rows; base += at_once) {
        const int64_t row = base + mine;
        const bool here = row < a.rows;
        float x[N][VEC] = {}, dy[N][VEC] = {}, sums[2][ACCUMULATORS] = {}, total[2];
        struct shared_values s = {here && a.formula.centre ? a.mean[row] : 0.0f, here ? a.rstd[row] : 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int n = 0; n < N; n++)
            if (here && first + n * step < a.cols) {
                load<false>(x[n], (const E *)a.x + row * a.x_stride + first + n * step, a.cols - first - n * step);
                load<false>(dy[n], (const E *)a.dy + row * a.dy_stride + first + n * step, a.cols - first - n * step);
            }
#pragma unroll
        for (int n = 0; n < N; n++) {
            normalize(x[n], s.mean, s.rstd, a.cols - first - n * step);
            add_vector(sums, x[n], dy[n], weight[n]);
        }
        add_accumulators(total, sums);
        add_team(total, t);
        finish_sums(s, total, a);
#pragma unroll
        for (int n = 0; n < N; n++) {
            if (here && first + n * step < a.cols)
                write_vector<E, false>(x[n], dy[n], weight[n], a, s, row, first + n * step);
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

/* ---- rows on their way ------------------------------------------------------------------------------------------------------ */

/* Over the warps of a block, then the blocks of a cluster. Two halves of the buffer take turns, as in add_team(). */
template <int K> DEVICE void add_warps(float (&v)[K], struct team &t) {
    float *const warps = t.shared + t.turn % 2 * 32;
#pragma unroll
    for (int k = 0; k < K; k++)
        if (thread_index() % WARP == 0) warps[k * 8 + thread_index() / WARP] = v[k];
    barrier();
#pragma unroll
    for (int k = 0; k < K; k++) v[k] = add_eight(warps + k * 8);
    if (t.cluster > 1) add_blocks(v, warps + 16, (uint64_t *)own_shared(t) + t.turn % 2, t.cluster, t.rank, t.turn);
    t.turn++;
}
DEVICE void begin_sums(const struct team &t) {
    if (thread_index() < TEAM_FLOATS) t.shared[thread_index()] = 0.0f;
    if (thread_index() < 2) box_init((uint64_t *)own_shared(t) + thread_index());
    barrier();
    if (t.cluster > 1) cluster_barrier();
}

/* What a thread has on its way: its words of x, dy and dresidual_out of STAGES rows, with their rstd and mean. Only itself reads what it sent
 * for, so that no barrier guards it. */
template <class E_, bool CENTRE_, bool PAST_, int TILE> struct ring {
    using E = E_;
    static constexpr bool CENTRE = CENTRE_, PAST = PAST_;
    static constexpr int VEC = VECTOR<E>, N = TILE / VEC, TENSORS = PAST ? 3 : 2, STAGES = RING / (N * TENSORS);
    static constexpr uint32_t WORDS = N * TENSORS * WARP * 16, STAGE = WORDS + RING_STATS;
    uint32_t words, stats; /* where this thread's are in shared memory */
    uint32_t first, step;
    bool here[N];
};
template <class R> DEVICE uint4 *words_of(const R &r, uint32_t stage, int tensor) {
    return (uint4 *)(shared_buffer() + r.words + stage) + tensor * R::N * WARP;
}
template <class R> DEVICE float *stats_of(const R &r, uint32_t stage) {
    return (float *)(shared_buffer() + r.stats + stage);
}
/* Sends for a row; one that there is not is zeros. */
template <class R> DEVICE void send_row(const R &r, const struct gradient_args &a, uint32_t row, uint32_t stage) {
    using E = typename R::E;
    const void *const from[] = {a.x, a.dy, a.dresidual_out};
    const int64_t strides[] = {a.x_stride, a.dy_stride, a.dresidual_out_stride};
    float *const stats = stats_of(r, stage);
    if (row < (uint32_t)a.rows) {
#pragma unroll
        for (int k = 0; k < R::TENSORS; k++) {
            const E *const p = (const E *)from[k] + (uint64_t)row * (uint32_t)strides[k] + r.first;
#pragma unroll
            for (int n = 0; n < R::N; n++)
                if (r.here[n]) copy16_later(words_of(r, stage, k) + n * WARP, p + n * r.step);
        }
        copy4_later(stats, a.rstd + row);
        if constexpr (R::CENTRE) copy4_later(stats + WARP, a.mean + row);
    } else {
#pragma unroll
        for (int n = 0; n < R::N * R::TENSORS; n++) words_of(r, stage, 0)[n * WARP] = uint4{0, 0, 0, 0};
        stats[0] = stats[WARP] = 0.0f;
    }
    copies_end();
}
/* Nothing is sent for columns that there are not: their words are zeros. */
template <class R> DEVICE R ring_of(const struct team &t, uint32_t cols) {
    const uint32_t lane = thread_index() % WARP, warp = thread_index() / WARP;
    R r;
    r.words = (TEAM_FLOATS + RING_BOXES) * sizeof(float) + warp * (R::STAGES * R::STAGE) + lane * 16;
    r.stats = r.words - lane * 12 + R::WORDS;
    forget(r.words), forget(r.stats);
    r.first = (uint32_t)first_of(t, R::VEC), r.step = (uint32_t)step_of(t, R::VEC);
#pragma unroll
    for (int n = 0; n < R::N; n++) {
        r.here[n] = r.first + n * r.step < cols;
        for (int i = 0; !r.here[n] && i < R::STAGES * R::TENSORS; i++)
            words_of(r, i / R::TENSORS * R::STAGE, i % R::TENSORS)[n * WARP] = uint4{0, 0, 0, 0};
    }
    return r;
}
/* Of a thread's columns: the sums of g xhat and, of a norm that centres, of g. */
template <class R, int K>
DEVICE void sum_row(float (&total)[K], const R &r, uint32_t stage, const float (&weight)[R::N][R::VEC], float mean,
                    float rstd) {
    float x[R::VEC], dy[R::VEC], sums[K][ACCUMULATORS] = {};
#pragma unroll
    for (int n = 0; n < R::N; n++) {
        unpack(words_of(r, stage, 0)[n * WARP], x, typename R::E{});
        unpack(words_of(r, stage, 1)[n * WARP], dy, typename R::E{});
#pragma unroll
        for (int j = 0; j < R::VEC; j++) {
            const float g = dy[j] * weight[n][j], xhat = (R::CENTRE ? x[j] - mean : x[j]) * rstd;
            float &sum = sums[0][j % ACCUMULATORS];
            if (r.here[n]) sum = fmaf(g, xhat, sum);
            if constexpr (R::CENTRE) sums[1][j % ACCUMULATORS] += g;
        }
    }
    add_accumulators(total, sums);
}
/* TILE: elements of a thread; 8 where at most a warp shares a row. */
template <class E, bool CENTRE, bool PAST, int TILE> DEVICE void gradient_ring(const struct gradient_args &a) {
    using R = ring<E, CENTRE, PAST, TILE>;
    constexpr int VEC = R::VEC, N = R::N, SUMS = CENTRE ? 2 : 1, AHEAD = R::STAGES - 1;
    struct team t = team_of(a.team);
    const R r = ring_of<R>(t, (uint32_t)a.cols);
    const uint32_t groups = block_size() / t.group, by = grid_size() / t.cluster * groups, rows = (uint32_t)a.rows;
    const uint32_t of_block = block_index() / t.cluster * groups, mine = thread_index() / t.group;
    float weight[N][VEC] = {}, dgamma[N][VEC] = {}, dbeta[N][VEC] = {};
#pragma unroll
    for (uint32_t s = 0; s < AHEAD; s++) send_row(r, a, of_block + mine + s * by, s * R::STAGE);
#pragma unroll
    for (int n = 0; n < N; n++)
        if (r.here[n]) load_weights<true, E>(weight[n], a, r.first + n * r.step);
    begin_sums(t);
    uint32_t stage = 0, to = AHEAD * R::STAGE;
    for (uint32_t base = of_block; base < rows; base += by) {
        const uint32_t row = base + mine;
        send_row(r, a, row + AHEAD * by, to);
        if (PLANTED != NO_WAIT) copies_wait<AHEAD>();
        const float rstd = stats_of(r, stage)[0], mean = CENTRE ? stats_of(r, stage)[WARP] : 0.0f;
        float x[VEC], dy[VEC], past[VEC], total[SUMS];
        sum_row(total, r, stage, weight, mean, rstd);
        add_lanes_of(total, TILE == 8 ? t.group : (uint32_t)WARP);
        if (TILE > 8 && t.group > WARP) add_warps(total, t);
        const float minus_gx = -total[0] / (float)(int32_t)a.seen,
                    minus_g = CENTRE ? -total[SUMS - 1] / (float)(int32_t)a.cols : 0.0f;
        forget();
#pragma unroll
        for (int n = 0; n < N; n++) {
            const float seen = r.first + n * r.step < (uint32_t)a.seen ? minus_gx : 0.0f;
            unpack(words_of(r, stage, 0)[n * WARP], x, E{});
            unpack(words_of(r, stage, 1)[n * WARP], dy, E{});
            if constexpr (PAST) unpack(words_of(r, stage, 2)[n * WARP], past, E{});
#pragma unroll
            for (int j = 0; j < VEC; j++) {
                const float xhat = (CENTRE ? x[j] - mean : x[j]) * rstd;
                float g = dy[j] * weight[n][j];
                if constexpr (CENTRE) g += minus_g;
                g = fmaf(xhat, seen, g);
                dgamma[n][j] = fmaf(dy[j], xhat, dgamma[n][j]);
                if constexpr (CENTRE) dbeta[n][j] += dy[j];
                x[j] = PAST ? fmaf(g, rstd, past[j]) : g * rstd;
            }
            if (r.here[n] && row < rows)
                store16((E *)a.dx + (uint64_t)row * (uint32_t)a.dx_stride + r.first + n * r.step, pack(x, E{}));
        }
        to = stage;
        stage = stage == AHEAD * R::STAGE ? 0 : stage + R::STAGE;
    }
    if (a.sums > 0) store_sums(dgamma, a, t, 0);
    if (CENTRE && a.sums > 1) store_sums(dbeta, a, t, 1);
}

/* ---- rows of any length, each by a block or a cluster ------------------------------------------------------------------------- */

/* Vectors of a row that are loaded before the first is used. */
template <class E, bool WIDE> struct batch {
    static constexpr int VEC = VECTOR<E>, N = !WIDE ? 1 : VEC == 4 ? 4 : 3;
    struct words<E, WIDE> x[N], dy[N];
    float weight[N][VEC];
};
template <class E, bool WIDE>
DEVICE void load_batch(struct batch<E, WIDE> &b, const struct gradient_args &a, int64_t row, int64_t i, int64_t step) {
    constexpr int VEC = VECTOR<E>;
#pragma unroll
    for (int k = 0; k < b.N; k++) {
        const int64_t at = i + k * step, left = a.cols - at;
        const int n = left <= 0 ? 0 : WIDE || left > VEC ? VEC : (int)left;
        load_words(b.x[k], (const E *)a.x + row * a.x_stride + at, n);
        load_words(b.dy[k], (const E *)a.dy + row * a.dy_stride + at, n);
    }
#pragma unroll
    for (int k = 0; k < b.N; k++)
        if (i + k * step < a.cols) load_weights<WIDE, E>(b.weight[k], a, i + k * step);
}
/* use(k, column, xhat, dy) of its vectors. */
template <class E, bool WIDE, class F>
DEVICE void each_of(const struct batch<E, WIDE> &b, const struct gradient_args &a, const struct shared_values &s,
                    int64_t i, int64_t step, const F &use) {
#pragma unroll
    for (int k = 0; k < b.N; k++) {
        float xhat[b.VEC], dy[b.VEC];
        if (i + k * step >= a.cols) break;
        unpack(b.x[k], xhat);
        unpack(b.dy[k], dy);
        normalize(xhat, s.mean, s.rstd, a.cols - i - k * step);
        use(k, i + k * step, xhat, dy);
    }
}
template <class E, bool WIDE> DEVICE void gradient_long(const struct gradient_args &a) {
    constexpr int VEC = VECTOR<E>, N = batch<E, WIDE>::N;
    struct team t = team_of(a.team);
    const int64_t first = first_of(t, VEC), step = step_of(t, VEC), from = block_index() / t.cluster;
    struct batch<E, WIDE> b;
    begin_sums(t);
    for (int64_t row = from; row < a.rows; row += grid_size() / t.cluster) {
        float sums[2][ACCUMULATORS] = {}, total[2];
        struct shared_values s = {a.formula.centre ? a.mean[row] : 0.0f, a.rstd[row], 0.0f, 0.0f};
        for (int64_t i = first; i < a.cols; i += N * step) {
            load_batch(b, a, row, i, step);
            each_of(b, a, s, i, step, [&](int k, int64_t, const float(&xhat)[VEC], const float(&dy)[VEC]) {
                add_vector(sums, xhat, dy, b.weight[k]);
            });
        }
        add_accumulators(total, sums);
        add_lanes_of(total, WARP);
        add_warps(total, t);
        finish_sums(s, total, a);
        for (int64_t i = first; i < a.cols; i += N * step) {
            load_batch(b, a, row, i, step);
            each_of(b, a, s, i, step, [&](int k, int64_t at, const float(&xhat)[VEC], const float(&dy)[VEC]) {
                write_vector<E, WIDE>(xhat, dy, b.weight[k], a, s, row, at);
            });
            for (uint32_t which = 0; which < a.sums; which++) {
                float sum[N][VEC] = {}, *const out = partial_sums(a, t, which);
#pragma unroll
                for (int k = 0; k < N; k++)
                    if (row != from && i + k * step < a.cols)
                        load<true>(sum[k], (const float *)out + i + k * step, VEC);
                each_of(b, a, s, i, step, [&](int k, int64_t at, const float(&xhat)[VEC], const float(&dy)[VEC]) {
#pragma unroll
                    for (int j = 0; j < VEC; j++)
                        sum[k][j] = which ? sum[k][j] + dy[j] : fmaf(dy[j], xhat[j], sum[k][j]);
                    store<true>(out + at, sum[k], VEC);
                });
            }
        }
    }
}

#define NARROW_GRADIENT(name, E)                                                                                       \
    ENTRY(gradient_##name##_narrow_8, gradient_args, gradient_kept<E, 8>)                                              \
    ENTRY(gradient_##name##_narrow_16, gradient_args, gradient_kept<E, 16>)
#define RING_GRADIENT(name, E)                                                                                         \
    ENTRY(gradient_##name##_wide_8, gradient_args, gradient_ring<E, false, false, 8>)                                  \
    ENTRY(gradient_##name##_wide_16, gradient_args, gradient_ring<E, false, false, 16>)                                \
    ENTRY(gradient_##name##_wide_past_8, gradient_args, gradient_ring<E, false, true, 8>)                              \
    ENTRY(gradient_##name##_wide_past_16, gradient_args, gradient_ring<E, false, true, 16>)                            \
    ENTRY(gradient_##name##_wide_centred_8, gradient_args, gradient_ring<E, true, false, 8>)                           \
    ENTRY(gradient_##name##_wide_centred_16, gradient_args, gradient_ring<E, true, false, 16>)
#define LONG_GRADIENT(name, E, WIDE) ENTRY(gradient_##name##_long, gradient_args, gradient_long<E, WIDE>)
EACH_ACCESS(LONG_GRADIENT)
#if defined(ONE_A_FAMILY)
ENTRY(gradient_bf16_wide_centred_16, gradient_args, gradient_ring<struct bf16, true, false, 16>)
#else
EACH_WIDE(RING_GRADIENT)
#endif
EACH_NARROW(NARROW_GRADIENT)
