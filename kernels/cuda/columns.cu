// SPDX-License-Identifier: Apache-2.0
/* Sums over columns in two launches: column_sums adds the rows of a block of them, add_columns the blocks. In both a warp has adjacent
 * columns and COLUMN_LANES warps take rows in turn, whose sums are added as a tree: the order is that of the shape alone. */
#include "kernels/cuda/device.h"

/* The tree over the lanes, in the first of them. shared: [lane][column][N]. */
template <int N> DEVICE void add_column_lanes(float (&sum)[N], float *shared, uint32_t lane, uint32_t column) {
    barrier();
    keep(shared + (lane * WARP + column) * N, sum);
    barrier();
    if (lane > 0) return;
#pragma unroll
    for (int j = 0; j < N; j++) {
        float v[COLUMN_LANES];
#pragma unroll
        for (int k = 0; k < COLUMN_LANES; k++) v[k] = shared[(k * WARP + column) * N + j];
        sum[j] = ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
    }
}

template <class E, bool WIDE> DEVICE void column_sums(const struct column_args &a) {
    constexpr int N = VECTOR<E>;
    const uint32_t column = thread_index() % WARP, lane = thread_index() / WARP;
    const int64_t tiles = (a.cols + WARP * N - 1) / (WARP * N), block = block_index() / tiles;
    const int64_t i = (block_index() % tiles * WARP + column) * N, left = a.cols - i, begin = block * a.rows_per_block;
    const int64_t end = begin + a.rows_per_block < a.rows ? begin + a.rows_per_block : a.rows;
    const bool here = left > 0;
    float sums[2][N] = {}, shift[N] = {}, rstd[N] = {};
    if (here && a.shift) load<WIDE>(shift, a.shift + i, left);
    if (here && a.rstd) load<WIDE>(rstd, a.rstd + i, left);
    for (int64_t row = begin + lane; here && row < end; row += COLUMN_LANES) {
        float x[N], dy[N];
        load_any<WIDE, E>(x, a.x, row * a.x_stride + i, left, !a.x_is_f32);
        if (a.dy) load<WIDE>(dy, (const E *)a.dy + row * a.dy_stride + i, left);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float d = x[j] - shift[j];
            if (a.dy) {
                sums[0][j] = fmaf(dy[j], d * rstd[j], sums[0][j]);
                sums[1][j] += dy[j];
            } else {
                sums[0][j] = a.shift ? fmaf(d, d, sums[0][j]) : sums[0][j] + x[j];
            }
        }
    }
    float *const out = a.partial + block * (a.dy ? 2 : 1) * a.padded + i;
    add_column_lanes(sums[0], (float *)shared_buffer(), lane, column);
    if (here && lane == 0) store<true>(out, sums[0], N);
    if (!a.dy) return;
    add_column_lanes(sums[1], (float *)shared_buffer(), lane, column);
    if (here && lane == 0) store<true>(out + a.padded, sums[1], N);
}

/* All loads of a lane come before it adds them; a sum that there is not adds 0. */
DEVICE void add_columns(const struct add_args &a) {
    constexpr uint32_t MOST = GRID / COLUMN_LANES;
    const uint32_t column = thread_index() % WARP, lane = thread_index() / WARP, n = (uint32_t)a.n;
    const uint32_t tiles = (uint32_t)((a.cols + WARP - 1) / WARP), which = block_index() / tiles;
    const uint32_t i = block_index() % tiles * WARP + column, blocks = i < a.cols ? (uint32_t)a.blocks : 0;
    const uint32_t line = COLUMN_LANES * n * (uint32_t)a.padded;
    const float *p = a.partial + (uint64_t)(lane * n + which) * (uint32_t)a.padded + i;
    float sum[1] = {}, of_block[MOST];
#pragma unroll
    for (uint32_t k = 0; k < MOST; k++, p += line) of_block[k] = lane + k * COLUMN_LANES < blocks ? *p : 0.0f;
#pragma unroll
    for (uint32_t k = 0; k < MOST; k++) sum[0] += of_block[k];
    add_column_lanes(sum, (float *)shared_buffer(), lane, column);
    if (i < a.cols && lane == 0 && a.out[which]) put(a.out[which] + i, sum[0] / a.divisor[which]);
}

#define COLUMNS(name, E, WIDE) ENTRY(columns_##name##_sums, column_args, column_sums<E, WIDE>)
EACH_ACCESS(COLUMNS)
ENTRY(columns_add, add_args, add_columns)
