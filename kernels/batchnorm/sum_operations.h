// SPDX-License-Identifier: Apache-2.0
/* Operations of composed kernels that add up over rows: BatchNorm's statistics of channels, and the gradients of parameters. */
#pragma once

#include "kernels/batchnorm/batchnorm_sums.h"
#include "kernels/shared/elementwise.h"

#ifndef NB_OPERATIONS
static __attribute__((noinline, unused)) float long_sum(const void *x, int64_t n) {
    return typed_sum(x, n, COMPOSED_LOWP);
}

/* NCHW: unit = channel. */
NB_OPERATION(op_mean_planes, const struct step *s, int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; channel++) {
        struct sum_tree sum = {.n = 0};
        for (int64_t r = channel; r < s->call->rows; r += s->call->c)
            tree_add(&sum, long_sum(tensor_row(s->a, r, COMPOSED_LOWP), s->cols));
        typed_set(s->dst.data, channel, tree_total(&sum) / s->scalar, s->dst.narrow);
    }
}
/* Unit = block of rows -> a row of partial sums. */
NB_OPERATION(op_sum_blocks, const struct step *s, int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block++) {
        const struct column_sums c = {.x = tensor_row(s->a, block * rows_per_block(s->call), COMPOSED_LOWP),
                                      .x_stride = s->a.stride,
                                      .sum = tensor_row(s->dst, block, false)};
        const int64_t rows = block_rows(s->call, block);
        sum_columns(&c, rows, s->cols, (struct column_form){.sum = true, .wide = !COMPOSED_LOWP});
    }
}
/* Unit = channel, or column. */
NB_OPERATION(op_mean_blocks, const struct step *s, int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; channel++) {
        float sum = 0.0f;
        for (int64_t block = 0; block < n_blocks(s->call); block++)
            sum += ((const float *)tensor_row(s->a, block, false))[channel];
        typed_set(s->dst.data, channel, sum / s->scalar, s->dst.narrow);
    }
}
NB_OPERATION(op_running_mean, const struct step *s, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
        s->call->running_mean_out[i] = running_mean(s->call, i, typed_get(s->a.data, i, s->a.narrow));
}
NB_OPERATION(op_running_var, const struct step *s, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
        s->call->running_var_out[i] = running_var(s->call, i, typed_get(s->a.data, i, s->a.narrow));
}
#endif
