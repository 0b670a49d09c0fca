// SPDX-License-Identifier: Apache-2.0
/* Sums over rows, column by column: dgamma and dbeta of the row kernels. Rows are cut into blocks, as many as the shape alone says; a
 * block has an array of f32 sums of its own, to which its rows are added one after the other; blocks are added in their order. So
 * that long blocks lose no digits, every COLUMN_RUN rows of a block are summed apart. Error of a sum of terms t: at most
 * h u sum |t|, h = column_chain_of(rows, cols), u = 2^-24. */
#ifndef NB_COLUMNS_H
#define NB_COLUMNS_H

#include "kernels/shared/pack.h"

#define COLUMN_BLOCKS_MAX 16
#define COLUMN_RUN 256
#define BLOCK_ROWS 2    /* a block but the last has a multiple of these, so that pairs leave no row over */
#define COLUMN_UNIT 256 /* columns that a thread adds up at least; a multiple of a pack */

struct row_blocks {
    int64_t n, rows; /* how many, and of how many rows each but the last */
};

/* A block costs two more trips through its arrays and a place for them in the cache: none is made of less than 16 rows, or of less than
 * 16384 elements in all. */
static inline struct row_blocks row_blocks_of(int64_t rows, int64_t cols) {
    int64_t wanted = rows < 64 ? rows / 16 : rows / 32;
    if (wanted > COLUMN_BLOCKS_MAX) wanted = COLUMN_BLOCKS_MAX;
    if (rows < 32 || rows * cols < 16384) return (struct row_blocks){.n = 1, .rows = rows};
    const int64_t each = ((rows + wanted - 1) / wanted + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS;
    return (struct row_blocks){.n = (rows + each - 1) / each, .rows = each};
}
static inline int64_t column_chain_of(int64_t rows, int64_t cols) {
    const struct row_blocks b = row_blocks_of(rows, cols);
    const int64_t runs = (b.rows + COLUMN_RUN - 1) / COLUMN_RUN;
    return (b.rows < COLUMN_RUN ? b.rows : COLUMN_RUN) + (runs - 1) + (b.n - 1);
}

/* Floats from one array over columns to the next: whole packs and lines of the cache. */
static inline int64_t column_array(int64_t cols) { return (cols + 31) / 32 * 32; }

/* total += run, or total = run; both have room for whole packs. */
static inline void add_run(float *total, const float *run, int64_t cols, bool first) {
    const int64_t n = (cols + PACK_COLUMNS - 1) / PACK_COLUMNS * PACK_COLUMNS;
    for (int64_t i = 0; i < n; i += NB_LANES) {
        vec v = vec_load_f32(run + i);
        if (!first) v = v + vec_load_f32(total + i);
        vec_store_f32(total + i, v);
    }
}

/* out = sum of n arrays that lie `stride` floats apart, columns [from, to), from packs' order to the columns' own; from is a multiple of a
 * pack, and to is too, or the end of the row. */
static inline void add_blocks(float *out, const float *partial, int64_t n, int64_t stride, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i += PACK_COLUMNS) {
        const int64_t left = to - i;
        struct pack sum = pack_load_f32(partial + i);
        for (int64_t b = 1; b < n; b++) {
            const struct pack more = pack_load_f32(partial + b * stride + i);
            NB_UNROLL
            for (int p = 0; p < PACK; p++) sum.v[p] = sum.v[p] + more.v[p];
        }
        if (left >= PACK_COLUMNS)
            pack_scatter(out + i, sum);
        else
            pack_scatter_tail(out + i, sum, left);
    }
}

#endif
