// SPDX-License-Identifier: Apache-2.0
/* Sums of BatchNorm's channels. NCHW: a channel's planes one by one, their sums added as a binary tree, so that the chain of
 * roundings grows with the logarithm of the batch. NHWC: by columns, ROW_GROUP rows at a time in registers, so that the
 * array of sums is read and written once a group. */
#pragma once

#include <string.h>

#include "kernels/batchnorm/batchnorm.h"

/* Sums of 1, 2, 4, ... terms, the bits of n saying which are there. */
struct sum_tree {
    uint64_t n;
    float level[48];
};
static inline void tree_add(struct sum_tree *t, float v) {
    int l = 0;
    for (; t->n >> l & 1; l++) v = t->level[l] + v;
    t->level[l] = v;
    t->n++;
}
static inline float tree_total(const struct sum_tree *t) {
    float total = 0.0f;
    for (int l = 0; t->n >> l; l++)
        if (t->n >> l & 1) total = t->level[l] + total;
    return total;
}
static inline int64_t tree_depth(int64_t n) { return 65 - __builtin_clzll((uint64_t)n); }

#ifndef NB_OPERATIONS
static inline int64_t planes_chain(const struct nb_call *call) { return sum_chain(call->hw) + tree_depth(call->n); }
#endif
/* The square, the tree within a group, groups, single rows at the end, blocks. */
static inline int64_t columns_chain(const struct nb_call *call) {
    return 1 + 3 + rows_per_block(call) / ROW_GROUP + (ROW_GROUP - 1) + n_blocks(call);
}
static inline int64_t sums_chain(const struct nb_call *call) {
    if (!is_training(call)) return 0;
    return is_nchw(call) ? planes_chain(call) : columns_chain(call);
}

/* What is added up: of d = x - shift (or of x), d and d^2. Arrays over columns; null where not wanted. */
struct column_sums {
    const void *x;
    int64_t x_stride;
    const float *shift;
    float *sum, *squares;
};
struct column_form {
    bool shift, sum, squares;
    bool wide; /* x is f32, whatever the dtype */
};

NB_INLINE void add_to(float *sums, int64_t i, int64_t lanes, vec v) {
    typed_store_lanes(sums, i, typed_load_lanes(sums, i, lanes, false) + v, lanes, false);
}
/* Columns from i on of n rows. */
NB_INLINE void add_group(const struct column_sums *c, int64_t row, const int n, int64_t i, int64_t lanes,
                         struct column_form f) {
    const vec shift = f.shift ? typed_load_lanes(c->shift, i, lanes, false) : vec_set1(0.0f);
    vec d[2 * ROW_GROUP - 1], squares[2 * ROW_GROUP - 1];
    NB_UNROLL
    for (int j = 0; j < n; j++) {
        d[j] = typed_load_lanes(c->x, (row + j) * c->x_stride + i, lanes, !f.wide);
        if (f.shift) d[j] = d[j] - shift;
        squares[j] = d[j] * d[j];
    }
    if (f.sum) add_to(c->sum, i, lanes, tree_sum(d, n));
    if (f.squares) add_to(c->squares, i, lanes, tree_sum(squares, n));
}
NB_INLINE void add_column_rows(const struct column_sums *c, int64_t row, const int n, int64_t cols,
                               struct column_form f) {
    int64_t i = 0;
    for (; i + NB_LANES <= cols; i += NB_LANES) add_group(c, row, n, i, NB_LANES, f);
    if (i < cols) add_group(c, row, n, i, cols - i, f);
}

/* Sums over n rows; the arrays are set, not added to. */
NB_INLINE void sum_columns(const struct column_sums *c, int64_t rows, int64_t cols, struct column_form f) {
    if (f.sum) memset(c->sum, 0, (size_t)cols * sizeof(float));
    if (f.squares) memset(c->squares, 0, (size_t)cols * sizeof(float));
    int64_t row = 0;
    for (; row + ROW_GROUP <= rows; row += ROW_GROUP) add_column_rows(c, row, ROW_GROUP, cols, f);
    for (; row < rows; row++) add_column_rows(c, row, 1, cols, f);
}
/* Those of a block of x. */
NB_INLINE void sum_block(const struct nb_call *call, int64_t block, struct column_sums c, struct column_form f) {
    c.x = row_in(call->x, call->x_stride, block * rows_per_block(call));
    c.x_stride = call->x_stride;
    sum_columns(&c, block_rows(call, block), call->c, f);
}

/* out[i] = sum over blocks of partial[block][which][i], divided by the number of values; columns [begin, end). */
static inline void mean_of_blocks(const struct nb_call *call, int per_block, int which, float *out, int64_t begin,
                                  int64_t end) {
    const vec n = vec_set1((float)values_per_channel(call));
    for (int64_t i = begin; i < end; i += NB_LANES) {
        const int64_t lanes = end - i < NB_LANES ? end - i : NB_LANES;
        vec sum = vec_set1(0.0f);
        for (int64_t block = 0; block < n_blocks(call); block++)
            sum = sum + typed_load_lanes(partial_array(call, block, per_block, which), i, lanes, false);
        typed_store_lanes(out, i, sum / n, lanes, false);
    }
}
