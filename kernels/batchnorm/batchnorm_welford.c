// SPDX-License-Identifier: Apache-2.0
/* BatchNorm, Welford's update with groups instead of single values (Chan, Golub & LeVeque 1983): a group's mean and sum of
 * squares about it, merged into those of all before it by
 *     mean += delta * n_b / n,  m2 += m2_b + delta^2 * n_a * n_b / n,  delta = mean_b - mean_a,
 * which adds positive terms only and reads x from memory once. NCHW: groups are pieces of planes, merged as a binary
 * tree; NHWC: ROW_GROUP rows, by columns. Training only. */
#include "kernels/batchnorm/batchnorm_sums.h"

#define PIECE 2048 /* elements of a plane that stay in the first cache between their mean and their squares */

/* Of n values: mean, and sum of squares about it. */
struct group {
    float n, mean, m2;
};

static struct group merge(struct group a, struct group b) {
    const float n = a.n + b.n, share = b.n / n, delta = b.mean - a.mean;
    return (struct group){n, __builtin_fmaf(delta, share, a.mean),
                          a.m2 + __builtin_fmaf(delta * delta, a.n * share, b.m2)};
}

static __attribute__((noinline)) struct group group_of(const elem *x, int64_t n) {
    const float mean = sum_elements(x, n) / (float)n;
    return (struct group){(float)n, mean, sum_squares_about(x, n, mean)};
}

/* As struct sum_tree. */
struct group_tree {
    uint64_t n;
    struct group level[48];
};
static void group_tree_add(struct group_tree *t, struct group g) {
    int l = 0;
    for (; t->n >> l & 1; l++) g = merge(t->level[l], g);
    t->level[l] = g;
    t->n++;
}
static struct group group_tree_total(const struct group_tree *t) {
    int l = __builtin_ctzll(t->n);
    struct group total = t->level[l];
    for (l++; t->n >> l; l++)
        if (t->n >> l & 1) total = merge(t->level[l], total);
    return total;
}

static struct channel_stats stats_of(const struct nb_call *call, int64_t channel) {
    struct group_tree tree;
    tree.n = 0;
    for (int64_t r = channel; r < call->rows; r += call->c) {
        const elem *x = row_in(call->x, call->x_stride, r);
        for (int64_t i = 0; i < call->cols; i += PIECE)
            group_tree_add(&tree, group_of(x + i, call->cols - i < PIECE ? call->cols - i : PIECE));
    }
    const struct group all = group_tree_total(&tree);
    return (struct channel_stats){all.mean, all.m2 / all.n};
}

/* n rows of a block, after n_before: columns from i on. share and weight are n / (n_before + n) and n_before * share. */
NB_INLINE void merge_rows(const struct column_sums *c, int64_t row, const int n, int64_t i, int64_t lanes, vec share,
                          vec weight) {
    vec v[2 * ROW_GROUP - 1], d[2 * ROW_GROUP - 1];
    NB_UNROLL
    for (int j = 0; j < n; j++) v[j] = typed_load_lanes(c->x, (row + j) * c->x_stride + i, lanes, true);
    const vec mean_b = tree_sum(v, n) * vec_set1(1.0f / (float)n); /* n is a power of two */
    NB_UNROLL
    for (int j = 0; j < n; j++) d[j] = (v[j] - mean_b) * (v[j] - mean_b);
    const vec m2_b = tree_sum(d, n);
    const vec mean_a = typed_load_lanes(c->sum, i, lanes, false), delta = mean_b - mean_a;
    const vec m2 = typed_load_lanes(c->squares, i, lanes, false);
    typed_store_lanes(c->sum, i, vec_fma(delta, share, mean_a), lanes, false);
    typed_store_lanes(c->squares, i, m2 + vec_fma(delta * delta, weight, m2_b), lanes, false);
}
NB_INLINE void merge_row_group(const struct column_sums *c, int64_t row, const int n, int64_t cols) {
    const float share = (float)n / (float)(row + n);
    const vec share_all = vec_set1(share), weight_all = vec_set1((float)row * share);
    int64_t i = 0;
    for (; i + NB_LANES <= cols; i += NB_LANES) merge_rows(c, row, n, i, NB_LANES, share_all, weight_all);
    if (i < cols) merge_rows(c, row, n, i, cols - i, share_all, weight_all);
}

static void group_of_block(const struct nb_call *call, int64_t block) {
    const int64_t rows = block_rows(call, block);
    struct column_sums c = {.x = row_in(call->x, call->x_stride, block * rows_per_block(call)),
                            .x_stride = call->x_stride,
                            .sum = partial_array(call, block, 2, 0),
                            .squares = partial_array(call, block, 2, 1)};
    memset(c.sum, 0, (size_t)call->c * sizeof(float));
    memset(c.squares, 0, (size_t)call->c * sizeof(float));
    int64_t row = 0;
    for (; row + ROW_GROUP <= rows; row += ROW_GROUP) merge_row_group(&c, row, ROW_GROUP, call->c);
    for (; row < rows; row++) merge_row_group(&c, row, 1, call->c);
}

/* merge() of all blocks, columns from i on. */
NB_INLINE void combine_lanes(const struct nb_call *call, int64_t i, int64_t lanes) {
    float n = (float)block_rows(call, 0);
    vec mean = typed_load_lanes(partial_array(call, 0, 2, 0), i, lanes, false);
    vec m2 = typed_load_lanes(partial_array(call, 0, 2, 1), i, lanes, false);
    for (int64_t block = 1; block < n_blocks(call); block++) {
        const float n_a = n, n_b = (float)block_rows(call, block);
        n = n_a + n_b;
        const vec delta = typed_load_lanes(partial_array(call, block, 2, 0), i, lanes, false) - mean;
        const vec m2_b = typed_load_lanes(partial_array(call, block, 2, 1), i, lanes, false);
        mean = vec_fma(delta, vec_set1(n_b / n), mean);
        m2 = m2 + vec_fma(delta * delta, vec_set1(n_a * (n_b / n)), m2_b);
    }
    typed_store_lanes(channel_array(call, A_MEAN), i, mean, lanes, false);
    typed_store_lanes(channel_array(call, A_SCALE), i, m2 / vec_set1(n), lanes, false);
}
static void combine(const struct nb_call *call, int64_t begin, int64_t end) {
    int64_t i = begin;
    for (; i + NB_LANES <= end; i += NB_LANES) combine_lanes(call, i, NB_LANES);
    if (i < end) combine_lanes(call, i, end - i);
    finish_channel_columns(call, begin, end);
}

static int batchnorm_welford_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (is_nchw(call))
        train_planes(call, begin, end, stats_of);
    else if (phase == 1)
        combine(call, begin, end);
    else if (phase == 2)
        train_rows(call, begin, end);
    else
        for (int64_t block = begin; block < end; block++) group_of_block(call, block);
    return 0;
}

/* A merge is two dependent roundings of the mean, or two of m2 behind those of delta^2. */
static int64_t batchnorm_welford_chain(const struct nb_call *call) {
    const int64_t merge_chain = 4, pieces = call->n * ((call->hw + PIECE - 1) / PIECE);
    if (is_nchw(call)) return sum_chain(call->hw < PIECE ? call->hw : PIECE) + 1 + merge_chain * tree_depth(pieces);
    const int64_t merges = rows_per_block(call) / ROW_GROUP + (ROW_GROUP - 1);
    return 5 + 2 * merges + merge_chain * n_blocks(call);
}

/* NCHW reads a piece twice, but once from memory. */
NB_KERNEL(batchnorm_welford, .summary = "BatchNorm, Welford by groups, merged by Chan's formula", .op = NB_OP_BATCHNORM,
          .variance = NB_VAR_WELFORD, .formulas = {NB_EVERY_FORMULA}, .loads = 2, .stores = 1, .flops = 9,
          .run = batchnorm_welford_run, .applicable = training_applicable, .chain = batchnorm_welford_chain,
          .scratch_bytes = one_pass_scratch, .n_phases = one_pass_phases, .n_units = one_pass_units,
          .range = mean_range);
