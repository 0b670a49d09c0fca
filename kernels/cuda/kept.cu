// SPDX-License-Identifier: Apache-2.0
/* Forward norms of rows at the speed of a copy: the usual formulas, known when compiled, in accesses of 16 bytes. rows.h says which calls they
 * take; rows.cu takes all others, and has the same bits.
 *
 *   short    rows of up to 32 * 8 columns: a thread has its elements of several, so that as much is in flight as of a long row
 *   warp     a row a warp
 *   block    a row a block
 *   pair     a row as over a cluster of two, in one block of twice the threads; rows one after another
 *   ring     a row over the blocks of a cluster; rows one after another
 *   cluster  a row a cluster; _64, _128: elements of a thread, else 32
 *
 * All loads of a row come first, and no branch between them: what is not there is zero. A row stays packed as it was loaded, since registers
 * are what limits the rows in flight; each pass unpacks it anew, which forget() sees to. */
#include "kernels/cuda/formula.h"
#include "kernels/cuda/team.h"

/* A formula. K: of what a row is kept, f32 where the statistics are those of an unrounded sum, else E. ADDS a residual; PREFIX: the statistics
 * see the first elements alone. */
enum kind { PLAIN, ADDS, PREFIX };
template <class E_, class K_, bool CENTRE_, uint32_t AFFINE_, bool NARROW_ = false, bool BEFORE_ = false,
          enum kind KIND = PLAIN>
struct usual {
    using E = E_;
    using K = K_;
    static constexpr bool CENTRE = CENTRE_, NARROW = NARROW_, BEFORE = BEFORE_, ADD = KIND == ADDS,
                          PART = KIND == PREFIX;
    static constexpr uint32_t AFFINE = AFFINE_;
    static constexpr int VEC = VECTOR<E>, WORDS = sizeof(K) / sizeof(E);
};
/* The elements of 16 bytes of the tensor, and what is had of a row: N times VEC elements from `first` on, `step` apart. */
template <class F> struct packed { uint4 word[F::WORDS]; };
struct span {
    uint32_t row, first, step, cols;
};

template <class F> DEVICE void unpack(const struct packed<F> &p, float (&v)[F::VEC]) {
#pragma unroll
    for (int k = 0; k < F::WORDS; k++) unpack(p.word[k], v + k * (F::VEC / F::WORDS), typename F::K{});
}
template <class F, int N> DEVICE void forget(struct packed<F> (&row)[N]) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int k = 0; k < F::WORDS; k++) forget(row[n].word[k]);
}

/* Of a row as it lies in memory. */
template <class F, int N> struct loaded { uint4 x[N], residual[F::ADD ? N : 1]; };
template <class E, int N> DEVICE void load_words(uint4 (&w)[N], const void *x, int64_t stride, const struct span &s) {
    const E *const p = (const E *)x + s.row * stride + s.first;
#pragma unroll
    for (int n = 0; n < N; n++) {
        w[n] = uint4{0, 0, 0, 0};
        if (s.first + n * s.step < s.cols) w[n] = load16_once(p + n * s.step);
    }
}
template <class F, int N> DEVICE void load_row(struct loaded<F, N> &l, const struct row_args &a, const struct span &s) {
    load_words<typename F::E>(l.x, a.x, a.x_stride, s);
    if constexpr (F::ADD) load_words<typename F::E>(l.residual, a.residual, a.residual_stride, s);
}
/* A sum is stored in the dtype, and kept as the statistics see it. */
template <class F, int N>
DEVICE void take_sum(struct packed<F> (&v)[N], const struct loaded<F, N> &l, const struct row_args &a,
                     const struct span &s) {
    using E = typename F::E;
    E *const out = (E *)a.residual_out + s.row * a.residual_out_stride + s.first;
#pragma unroll
    for (int n = 0; n < N; n++) {
        float sum[F::VEC], r[F::VEC];
        unpack(l.x[n], sum, E{});
        unpack(l.residual[n], r, E{});
#pragma unroll
        for (int j = 0; j < F::VEC; j++) sum[j] += r[j];
        const uint4 rounded = pack(sum, E{});
#pragma unroll
        for (int k = 0; k < F::WORDS; k++) v[n].word[k] = F::WORDS == 1 ? rounded : pack(sum + 4 * k, 0.0f);
        if (a.residual_out && s.first + n * s.step < s.cols) store16(out + n * s.step, rounded);
    }
}
template <class F, int N>
DEVICE void take_row(struct packed<F> (&v)[N], const struct loaded<F, N> &l, const struct row_args &a,
                     const struct span &s) {
    if constexpr (F::ADD)
        take_sum<F>(v, l, a, s);
    else
#pragma unroll
        for (int n = 0; n < N; n++) v[n].word[0] = l.x[n];
}

template <class F, int N> DEVICE float sum_of(const struct packed<F> (&row)[N]) {
    float acc[ACCUMULATORS] = {}, v[F::VEC];
#pragma unroll
    for (int n = 0; n < N; n++) {
        unpack(row[n], v);
#pragma unroll
        for (int j = 0; j < F::VEC; j++) acc[j % ACCUMULATORS] += v[j];
    }
    return add_accumulators(acc);
}
/* What is not there is zero, which is not the mean. */
template <class F, int N>
DEVICE float squares_of(const struct packed<F> (&row)[N], float mean, const struct row_args &a, const struct span &s) {
    float acc[ACCUMULATORS] = {}, v[F::VEC];
#pragma unroll
    for (int n = 0; n < N; n++) {
        if (F::CENTRE && s.first + n * s.step >= s.cols) continue;
        unpack(row[n], v);
#pragma unroll
        for (int j = 0; j < F::VEC; j++) {
            const bool sees = !F::PART || s.first + n * s.step + j < (uint32_t)a.seen;
            const float d = F::CENTRE ? v[j] - mean : sees ? v[j] : 0.0f;
            acc[j % ACCUMULATORS] = fmaf(d, d, acc[j % ACCUMULATORS]);
        }
    }
    return add_accumulators(acc);
}

/* gamma and beta of a vector, as they are loaded. */
template <class F> struct parameters {
    static constexpr int WORDS = F::NARROW ? 1 : F::VEC / 4;
    uint4 gamma[WORDS], beta[WORDS];
};
template <class F> DEVICE void load_parameters(struct parameters<F> &p, const struct row_args &a, uint32_t i) {
    const uint32_t at = i * (F::NARROW ? (uint32_t)sizeof(typename F::E) : 4);
#pragma unroll
    for (int k = 0; k < p.WORDS; k++) {
        if constexpr (F::AFFINE != NB_AFFINE_NONE) p.gamma[k] = load16((const char *)a.gamma + at + 16 * k);
        if constexpr (F::AFFINE == NB_AFFINE_GAMMA_BETA) p.beta[k] = load16((const char *)a.beta + at + 16 * k);
    }
}
template <class F, int WORDS> DEVICE void unpack_parameter(const uint4 (&p)[WORDS], float (&v)[F::VEC]) {
    if constexpr (F::NARROW)
        unpack(p[0], v, typename F::E{});
    else
#pragma unroll
        for (int k = 0; k < WORDS; k++) unpack(p[k], v + 4 * k, 0.0f);
}
/* Of all vectors of a row; where there is none, those of the first. */
template <class F, int N>
DEVICE void load_all_parameters(struct parameters<F> (&p)[N], const struct row_args &a, const struct span &s) {
#pragma unroll
    for (int n = 0; n < N; n++) load_parameters<F>(p[n], a, s.first + n * s.step < s.cols ? s.first + n * s.step : 0);
}
/* As with_affine() of formula.h. */
template <class F> DEVICE float finished(float v, float gamma, float beta) {
    using E = typename F::E;
    if constexpr (F::AFFINE == NB_AFFINE_NONE) return v;
    if constexpr (F::BEFORE) return rounded<E>(v) * gamma;
    return F::AFFINE == NB_AFFINE_GAMMA_BETA ? fmaf(v, gamma, beta) : v * gamma;
}
template <class F>
DEVICE uint4 finish(const struct packed<F> &row, const struct parameters<F> &p, float mean, float scale) {
    float v[F::VEC], gamma[F::VEC] = {}, beta[F::VEC] = {};
    unpack(row, v);
    if constexpr (F::AFFINE != NB_AFFINE_NONE) unpack_parameter<F>(p.gamma, gamma);
    if constexpr (F::AFFINE == NB_AFFINE_GAMMA_BETA) unpack_parameter<F>(p.beta, beta);
#pragma unroll
    for (int j = 0; j < F::VEC; j++) v[j] = finished<F>((F::CENTRE ? v[j] - mean : v[j]) * scale, gamma[j], beta[j]);
    return pack(v, typename F::E{});
}
DEVICE void write_stats(const struct row_args &a, uint32_t row, float mean, float scale) {
    if (a.mean) put(&a.mean[row], mean);
    if (a.rstd) put(&a.rstd[row], scale);
}

/* y of the row. Parameters that are not in p yet are loaded now. */
template <class F, int N>
DEVICE void finish_row(const struct packed<F> (&v)[N], struct parameters<F> (&p)[N], bool loaded,
                       const struct row_args &a, const struct span &s, float mean, float scale) {
    typename F::E *const y = (typename F::E *)a.y + s.row * a.y_stride + s.first;
#pragma unroll
    for (int n = 0; n < N; n++) {
        if (s.first + n * s.step >= s.cols) continue;
        if (!loaded) load_parameters<F>(p[n], a, s.first + n * s.step);
        store16(y + n * s.step, finish<F>(v[n], p[n], mean, scale));
    }
}

template <class F> constexpr int SHORT_ROWS = SHORT_ROWS_OF(F::CENTRE);
/* ROWS rows a group of lanes; every lane takes part in the sums. */
template <class F, int TILE, int ROWS> DEVICE void rows_of_lanes(const struct row_args &a) {
    constexpr int N = TILE / F::VEC;
    const uint32_t lanes = ROWS > 1 ? a.team.group : (uint32_t)WARP;
    const uint32_t shift = log2_of(lanes), lane = thread_index() & (lanes - 1);
    const uint32_t groups = block_size() >> shift, row = block_index() * groups * ROWS + (thread_index() >> shift);
    const uint32_t cols = (uint32_t)a.cols + (PLANTED == FAR_VECTOR ? F::VEC : 0);
    const float seen = (float)(int32_t)a.seen;
    struct loaded<F, N> l[ROWS];
    struct packed<F> v[ROWS][N];
    struct span s[ROWS];
    float sum[ROWS], mean[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        s[r] = {row + r * groups, lane * F::VEC, lanes * F::VEC, row + r * groups < (uint32_t)a.rows ? cols : 0};
        load_row<F>(l[r], a, s[r]);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) take_row<F>(v[r], l[r], a, s[r]);
    if constexpr (F::CENTRE) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) sum[r] = sum_of<F>(v[r]);
        add_lanes_of(sum, lanes);
#pragma unroll
        for (int r = 0; r < ROWS; r++) mean[r] = sum[r] / seen, forget<F>(v[r]);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) sum[r] = squares_of<F>(v[r], mean[r], a, s[r]);
    add_lanes_of(sum, lanes);
    struct parameters<F> p[N];
    if (ROWS > 1) load_all_parameters<F>(p, a, span{row, s[0].first, s[0].step, cols});
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const float scale = row_scale(sum[r] / seen, a.formula);
        if (s[r].row >= (uint32_t)a.rows) return;
        if (lane == 0) write_stats(a, s[r].row, mean[r], scale);
        forget<F>(v[r]);
        finish_row<F>(v[r], p, ROWS > 1, a, s[r], mean[r], scale);
    }
}

/* Gamma and beta are asked for before the sums where registers leave room for 1024 threads: 1 to 2 % faster on an H100 at 8192x2048. */
template <class F> constexpr bool EARLY = F::NARROW || (!F::CENTRE && sizeof(typename F::E) < 4 && !F::ADD);
/* A row a block. */
template <class F, int TILE> DEVICE void row_of_block(const struct row_args &a) {
    constexpr int N = TILE / F::VEC;
    const uint32_t cols = (uint32_t)a.cols + (PLANTED == FAR_VECTOR ? F::VEC : 0);
    const struct span s = {block_index(), thread_index() * F::VEC, block_size() * F::VEC, cols};
    const float seen = (float)(int32_t)a.seen;
    float *const shared = (float *)shared_buffer(), mean = 0.0f;
    struct loaded<F, N> l;
    struct packed<F> v[N];
    struct parameters<F> p[N];
    load_row<F>(l, a, s);
    if (EARLY<F>) load_all_parameters<F>(p, a, s);
    take_row<F>(v, l, a, s);
    if constexpr (F::CENTRE) {
        mean = add_block(sum_of<F>(v), shared) / seen;
        forget<F>(v);
    }
    const float scale = row_scale(add_block(squares_of<F>(v, mean, a, s), shared + 8) / seen, a.formula);
    if (thread_index() == 0) write_stats(a, s.row, mean, scale);
    forget<F>(v);
    finish_row<F>(v, p, EARLY<F>, a, s, mean, scale);
}

/* gamma and beta stay in registers while rows pass, where they are as short as x; gamma alone is asked for before the sums of each row. */
template <class F> constexpr bool HELD = F::NARROW || F::AFFINE == NB_AFFINE_NONE;
template <class F> constexpr bool EARLY_IN_RING = HELD<F> || F::AFFINE == NB_AFFINE_GAMMA;
template <class F, int N> DEVICE void forget(struct parameters<F> (&p)[N]) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int k = 0; k < p[n].WORDS; k++) {
            if constexpr (F::AFFINE != NB_AFFINE_NONE) forget(p[n].gamma[k]);
            if constexpr (F::AFFINE == NB_AFFINE_GAMMA_BETA) forget(p[n].beta[k]);
        }
}
/* A row of RANKS ranks in one block, or of a rank in each block of a cluster (RANKS 1). */
template <class F, int RANKS> DEVICE float add_ranks(float v, struct cluster_sums &sums) {
    if constexpr (RANKS == 1) return add_cluster(v, sums);
    return add_block<RANKS>(v, (float *)shared_buffer() + sums.n++ % 2 * 8 * RANKS);
}
/* Rows one after another, RING_ROWS of them on their way to shared memory, each thread's own vectors, so that no thread waits for another's. */
template <class F, int TILE, int RANKS> DEVICE void rows_of_ring(const struct row_args &a) {
    constexpr int N = TILE / F::VEC;
    if (RANKS == 1 && !CLUSTERS) return;
    const uint32_t blocks = RANKS == 1 ? a.team.cluster : 1, shift = log2_of(blocks),
                   rank = block_index() & (blocks - 1);
    const uint32_t rows = (uint32_t)a.rows, by = grid_size() >> shift, threads = block_size() * F::VEC;
    const uint32_t cols = (uint32_t)a.cols + (PLANTED == FAR_VECTOR ? F::VEC : 0);
    struct span s = {block_index() >> shift, rank * threads + thread_index() * F::VEC, blocks * threads, cols};
    const float seen = (float)(int32_t)a.seen;
    uint4 *const ring = (uint4 *)((float *)shared_buffer() + TEAM_FLOATS) + thread_index();
    const auto send = [&](uint32_t row, uint32_t stage) {
        const typename F::E *const x = (const typename F::E *)a.x + row * a.x_stride + s.first;
#pragma unroll
        for (int n = 0; n < N; n++)
            if (row < rows && s.first + n * s.step < cols)
                copy16_later(ring + (stage * N + n) * block_size(), x + n * s.step);
        copies_end();
    };
#pragma unroll
    for (int stage = 0; stage < RING_ROWS; stage++) send(s.row + stage * by, stage);
    struct cluster_sums sums = {blocks, rank, 0};
    if (RANKS == 1) sums = cluster_sums_of(blocks, rank);
    struct packed<F> v[N];
    struct parameters<F> p[N];
    if (HELD<F>) load_all_parameters<F>(p, a, s);
    if (RANKS == 1) cluster_wait();
    for (uint32_t stage = 0; s.row < rows; s.row += by, stage = stage + 1 == RING_ROWS ? 0 : stage + 1) {
        float mean = 0.0f, sum;
        copies_wait<RING_ROWS - 1>();
#pragma unroll
        for (int n = 0; n < N; n++)
            v[n].word[0] = s.first + n * s.step < cols ? ring[(stage * N + n) * block_size()] : uint4{0, 0, 0, 0};
        if (EARLY_IN_RING<F> && !HELD<F>) load_all_parameters<F>(p, a, s);
        sum = F::CENTRE ? sum_of<F>(v) : squares_of<F>(v, 0.0f, a, s);
        send(s.row + RING_ROWS * by, stage); /* what was there is in registers */
        sum = add_ranks<F, RANKS>(sum, sums) / seen;
        if constexpr (F::CENTRE) {
            mean = sum;
            forget<F>(v);
            sum = add_ranks<F, RANKS>(squares_of<F>(v, mean, a, s), sums) / seen;
        }
        const float scale = row_scale(sum, a.formula);
        if (rank == 0 && thread_index() == 0) write_stats(a, s.row, mean, scale);
        forget<F>(v);
        if constexpr (HELD<F>) forget<F>(p);
        finish_row<F>(v, p, EARLY_IN_RING<F>, a, s, mean, scale);
    }
}

/* A row a cluster. */
template <class F, int TILE> DEVICE void row_of_cluster(const struct row_args &a) {
    constexpr int N = TILE / F::VEC;
    constexpr bool EARLY_HERE = F::NARROW && TILE > 64;
    if (!CLUSTERS) return;
    const uint32_t cluster = a.team.cluster, rank = block_index() & (cluster - 1), threads = block_size() * F::VEC;
    const uint32_t cols = (uint32_t)a.cols + (PLANTED == FAR_VECTOR ? F::VEC : 0);
    const struct span s = {block_index() / cluster, rank * threads + thread_index() * F::VEC, cluster * threads, cols};
    const float seen = (float)(int32_t)a.seen;
    struct loaded<F, N> l;
    struct packed<F> v[N];
    struct parameters<F> p[N];
    float mean = 0.0f;
    load_row<F>(l, a, s);
    struct cluster_sums sums = cluster_sums_of(cluster, rank);
    if (EARLY_HERE) load_all_parameters<F>(p, a, s);
    take_row<F>(v, l, a, s);
    cluster_wait();
    if constexpr (F::CENTRE) {
        mean = add_cluster(sum_of<F>(v), sums) / seen;
        forget<F>(v);
    }
    const float scale = row_scale(add_cluster(squares_of<F>(v, mean, a, s), sums) / seen, a.formula);
    if (rank == 0 && thread_index() == 0) write_stats(a, s.row, mean, scale);
    forget<F>(v);
    finish_row<F>(v, p, EARLY_HERE, a, s, mean, scale);
}

#define KEPT(name, ...)                                                                                                \
    ENTRY_FOR(kept_##name##_short, row_args, 128, 1, rows_of_lanes<__VA_ARGS__, 8, SHORT_ROWS<__VA_ARGS__>>)           \
    ENTRY_FOR(kept_##name##_warp, row_args, 128, 1, rows_of_lanes<__VA_ARGS__, 32, 1>)                                 \
    ENTRY_FOR(kept_##name##_block, row_args, BLOCK, (__VA_ARGS__::ADD ? 3 : 4), row_of_block<__VA_ARGS__, 32>)
#define KEPT_RING(name, ...)                                                                                           \
    KEPT(name, __VA_ARGS__)                                                                                            \
    ENTRY_FOR(kept_##name##_pair, row_args, 2 * BLOCK, RING_ROOM(2, sizeof(__VA_ARGS__::E)),                           \
              rows_of_ring<__VA_ARGS__, 32, 2>)                                                                        \
    ENTRY_FOR(kept_##name##_ring, row_args, BLOCK, RING_ROOM(1, sizeof(__VA_ARGS__::E)),                               \
              rows_of_ring<__VA_ARGS__, 32, 1>)
#define KEPT_CLUSTER(name, TILE, ROOM, ...)                                                                            \
    ENTRY_FOR(kept_##name, row_args, BLOCK, ROOM, row_of_cluster<__VA_ARGS__, TILE>)
/* Names: what is computed, then the parameters: none, in f32, of the dtype, of the dtype after a cast. */
#define KEPT_F32(M, name, E)                                                                                           \
    M(name##_rms_f32, usual<E, E, false, NB_AFFINE_GAMMA>)                                                             \
    M(name##_ln_f32, usual<E, E, true, NB_AFFINE_GAMMA_BETA>)
#define KEPT_BARE(M, name, E)                                                                                          \
    M(name##_rms, usual<E, E, false, NB_AFFINE_NONE>)                                                                  \
    M(name##_ln, usual<E, E, true, NB_AFFINE_NONE>)
#define KEPT_OWN(M, name, E)                                                                                           \
    M(name##_rms_own, usual<E, E, false, NB_AFFINE_GAMMA, true>)                                                       \
    M(name##_rms_cast, usual<E, E, false, NB_AFFINE_GAMMA, true, true>)                                                \
    M(name##_ln_own, usual<E, E, true, NB_AFFINE_GAMMA_BETA, true>)
#define KEPT_PREFIX(M, name, E)                                                                                        \
    M(name##_prms_f32, usual<E, E, false, NB_AFFINE_GAMMA, false, false, PREFIX>)                                      \
    M(name##_prms_own, usual<E, E, false, NB_AFFINE_GAMMA, true, false, PREFIX>)
#define KEPT_ADD(M, name, E)                                                                                           \
    M(name##_add_own, usual<E, E, false, NB_AFFINE_GAMMA, true, false, ADDS>)                                          \
    M(name##_add_cast, usual<E, E, false, NB_AFFINE_GAMMA, true, true, ADDS>)
#define KEPT_32(name, ...) KEPT(name, __VA_ARGS__) KEPT_CLUSTER(name##_cluster, 32, 2, __VA_ARGS__)
#define KEPT_64(name, ...) KEPT_RING(name, __VA_ARGS__) KEPT_CLUSTER(name##_cluster_64, 64, 2, __VA_ARGS__)
#define KEPT_128(name, ...) KEPT_64(name, __VA_ARGS__) KEPT_CLUSTER(name##_cluster_128, 128, 1, __VA_ARGS__)

#if defined(ONE_A_FAMILY)
KEPT(bf16_wide_ln_f32, usual<struct bf16, struct bf16, true, NB_AFFINE_GAMMA_BETA>)
#elif !defined(F32_ALONE)
KEPT_F32(KEPT_128, bf16_wide, struct bf16)
KEPT_32(bf16_wide_add_f32, usual<struct bf16, float, false, NB_AFFINE_GAMMA, false, false, ADDS>)
#endif
#if !defined(ONE_OF_EACH)
KEPT_F32(KEPT_64, f32_wide, float)
KEPT_RING(f32_wide_prms_f32, usual<float, float, false, NB_AFFINE_GAMMA, false, false, PREFIX>)
KEPT_BARE(KEPT_64, f32_wide, float)
KEPT_32(f32_wide_add_f32, usual<float, float, false, NB_AFFINE_GAMMA, false, false, ADDS>)
#endif
#if !defined(F32_ALONE) && !defined(ONE_OF_EACH)
KEPT_BARE(KEPT_128, bf16_wide, struct bf16)
KEPT_OWN(KEPT_128, bf16_wide, struct bf16)
KEPT_ADD(KEPT_32, bf16_wide, struct bf16)
KEPT_PREFIX(KEPT_RING, bf16_wide, struct bf16)
KEPT_F32(KEPT_128, f16_wide, struct f16)
KEPT_BARE(KEPT_128, f16_wide, struct f16)
KEPT_OWN(KEPT_128, f16_wide, struct f16)
KEPT_ADD(KEPT_32, f16_wide, struct f16)
KEPT_PREFIX(KEPT_RING, f16_wide, struct f16)
KEPT_32(f16_wide_add_f32, usual<struct f16, float, false, NB_AFFINE_GAMMA, false, false, ADDS>)
#endif
