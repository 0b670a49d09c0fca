// SPDX-License-Identifier: Apache-2.0
/* The frame of the fused residual-add kernels: the first sweep adds and stores the sum, the later ones take it from there.
 * When the statistics and the output are to see the f32 sum (round_sum = 0) of 16-bit elements, they add again instead. When
 * the sum is not wanted, y holds it until the last pass. */
#pragma once

#include "kernels/rows/row.h"

NB_INLINE elem *sum_row(const struct nb_call *call, int64_t row) {
    if (call->residual_out) return row_out(call->residual_out, call->residual_out_stride, row);
    return row_out(call->y, call->y_stride, row);
}

/* x + residual, stored on its way. */
NB_INLINE struct row_source adding_source(const struct nb_call *call, int64_t row, bool round) {
    return (struct row_source){.x = row_in(call->x, call->x_stride, row),
                               .residual = row_in(call->residual, call->residual_stride, row),
                               .sum_out = sum_row(call, row),
                               .add = true,
                               .round = round,
                               .store = true};
}
/* The same values once more, after the first sweep. */
NB_INLINE struct row_source sum_source(const struct nb_call *call, int64_t row, bool round) {
    if (round) return plain_source(sum_row(call, row));
    struct row_source s = adding_source(call, row, round);
    s.store = false;
    return s;
}

NB_INLINE int rows_of_sum(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats, struct row_form f,
                          bool round) {
    for (int64_t r = begin; r < end; r++) {
        struct row_stats s = stats(call, r);
        store_stats(call, r, s);
        finish_row(call, sum_source(call, r, round), row_out(call->y, call->y_stride, r), s, 0.0f, f);
    }
    return 0;
}
NB_INLINE int rows_of_rounded_sum(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats,
                                  struct row_form f) {
    return rows_of_sum(call, begin, end, stats, f, true);
}
NB_INLINE int rows_of_f32_sum(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats,
                              struct row_form f) {
    return rows_of_sum(call, begin, end, stats, f, false);
}

/* Of the kernel that includes this file: the statistics of a row's sum, and ADD_CENTRE. */
NB_INLINE struct row_stats stats(const struct nb_call *call, int64_t row, bool round);
static __attribute__((noinline)) struct row_stats stats_rounded(const struct nb_call *call, int64_t row) {
    return stats(call, row, true);
}
static __attribute__((noinline)) struct row_stats stats_unrounded(const struct nb_call *call, int64_t row) {
    return stats(call, row, false);
}

/* In f32 the two sums are the same. */
NB_INLINE int norm_rows_of_sum(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn rounded,
                               row_stats_fn unrounded, bool centre) {
    const struct row_form f = norm_form(centre);
#ifndef NB_DTYPE_IS_F32
    if (!call->formula.round_sum) return rows_of_form(call, begin, end, unrounded, f, rows_of_f32_sum);
#endif
    return rows_of_form(call, begin, end, rounded, f, rows_of_rounded_sum);
}
static int add_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return norm_rows_of_sum(call, begin, end, stats_rounded, stats_unrounded, ADD_CENTRE);
}

/* Loads are those for a rounded sum; one more for each later sweep that adds again. */
#define ADD_KERNEL                                                                                                     \
    .formulas = {NB_EVERY_FORMULA, .round_sums = NB_ALL(2)}, .stores = 2, .run = add_run,                              \
    .row_local = always_row_local, .chain = row_chain
