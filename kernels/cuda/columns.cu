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

enum sums_of { OF_X, OF_SQUARES, OF_GRADIENTS };
/* A lane's rows of the block; several are loaded before the first is added. */
template <class E, bool WIDE, int OF, int N>
DEVICE void add_rows(float (&sums)[2][N], const struct column_args &a, int64_t i, int64_t row, int64_t end) {
    constexpr int AT_ONCE = (WIDE ? 8 : 4) / (OF == OF_GRADIENTS ? 2 : 1);
    const int left = a.cols - i > N ? N : (int)(a.cols - i);
    float shift[N] = {}, rstd[N] = {};
    if constexpr (OF != OF_X) load<WIDE>(shift, a.shift + i, left);
    if constexpr (OF == OF_GRADIENTS) load<WIDE>(rstd, a.rstd + i, left);
    for (; row < end; row += AT_ONCE * COLUMN_LANES) {
        struct words<E, WIDE> x[AT_ONCE], dy[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const int64_t r = row + k * COLUMN_LANES;
            load_words(x[k], (const E *)a.x + r * a.x_stride + i, r < end ? left : 0);
            if constexpr (OF == OF_GRADIENTS)
                load_words(dy[k], (const E *)a.dy + r * a.dy_stride + i, r < end ? left : 0);
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            float v[N], d[N];
            if (row + k * COLUMN_LANES >= end) break;
            unpack(x[k], v);
            if constexpr (OF == OF_GRADIENTS) unpack(dy[k], d);
#pragma unroll
            for (int j = 0; j < N; j++) {
                if constexpr (OF == OF_GRADIENTS) {
                    sums[0][j] = fmaf(d[j], (v[j] - shift[j]) * rstd[j], sums[0][j]);
                    sums[1][j] += d[j];
                } else {
                    sums[0][j] = OF == OF_X ? sums[0][j] + v[j] : fmaf(v[j] - shift[j], v[j] - shift[j], sums[0][j]);
                }
            }
        }
    }
}
template <class E, bool WIDE> DEVICE void column_sums(const struct column_args &a) {
    constexpr int N = VECTOR<E>;
    const uint32_t column = thread_index() % WARP, lane = thread_index() / WARP;
    const uint32_t tiles = (uint32_t)((a.cols + WARP * N - 1) / (WARP * N)), block = block_index() / tiles;
    const int64_t i = (int64_t)(block_index() % tiles * WARP + column) * N, begin = block * a.rows_per_block;
    const int64_t end = begin + a.rows_per_block < a.rows ? begin + a.rows_per_block : a.rows, row = begin + lane;
    const bool here = i < a.cols;
    float sums[2][N] = {};
    if (!here) {
    } else if (a.x_is_f32 && sizeof(E) < sizeof(float)) {
        for (int64_t r = row; r < end; r += COLUMN_LANES) {
            float x[N];
            load<WIDE>(x, (const float *)a.x + r * a.x_stride + i, a.cols - i);
#pragma unroll
            for (int j = 0; j < N; j++) sums[0][j] += x[j];
        }
    } else if (a.dy) {
        add_rows<E, WIDE, OF_GRADIENTS>(sums, a, i, row, end);
    } else if (a.shift) {
        add_rows<E, WIDE, OF_SQUARES>(sums, a, i, row, end);
    } else {
        add_rows<E, WIDE, OF_X>(sums, a, i, row, end);
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
