// SPDX-License-Identifier: Apache-2.0
/* The host part of sums over columns (columns.cu). */
#pragma once

#include "kernels/cuda/host.h"

static inline int64_t padded_columns(int64_t cols) { return padded_to(cols, SUMS_ALIGN); }
static inline int64_t rows_of_block(int64_t rows) { return divided(divided(rows, COLUMN_LANES), GRID) * COLUMN_LANES; }
static inline int64_t column_blocks(int64_t rows) { return divided(rows, rows_of_block(rows)); }
/* Of adding n partial sums, or the rows of a block: those of a lane, then the tree over the lanes. */
static inline int64_t lanes_chain(int64_t n) { return divided(n, COLUMN_LANES) + log2_of(COLUMN_LANES); }
static inline int64_t columns_sum_chain(int64_t rows) {
    return lanes_chain(rows_of_block(rows)) + lanes_chain(column_blocks(rows));
}
static inline size_t columns_scratch(int64_t rows, int64_t cols, int64_t n) {
    return (size_t)(column_blocks(rows) * n * padded_columns(cols)) * sizeof(float);
}

static inline int launch_column_sums(const struct nb_call *call, const struct column_args *a, bool wide) {
    const int64_t blocks = divided(a->rows, a->rows_per_block);
    return launch_part(call, "columns", wide, "_sums", divided(a->cols, WARP * VECTOR) * blocks, BLOCK, 1,
                       BLOCK * VECTOR * sizeof(float), a);
}
static inline int launch_add_columns(const struct nb_call *call, const struct add_args *a) {
    return launch_function(call, "columns_add", divided(a->cols, WARP) * a->n, BLOCK, 1, BLOCK * sizeof(float), a);
}
