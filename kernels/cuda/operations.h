// SPDX-License-Identifier: Apache-2.0
/* The operations of kernels/shared/elementwise.h as launches: with them the CPU's recipes of composed kernels run on a GPU, a launch each.
 * Part of elementwise.h, which has struct step. Every tensor is f32 but x, y and their like: no recipe here stays in x's dtype. */
#pragma once

#include "kernels/cuda/columns.h"

/* A composed kernel's contract is the CPU's: as NB_KERNEL() of vec.h, but whether it is applicable is first the driver's to say. */
static const struct nb_kernel declared;
static const char *composed_applicable(const struct nb_call *call) {
    const char *const reason = cuda_applicable(call);
    return reason || !declared.applicable ? reason : declared.applicable(call);
}
#undef NB_KERNEL
#define NB_KERNEL(kernel, ...)                                                                                         \
    static const struct nb_kernel declared = {__VA_ARGS__};                                                            \
    extern const struct nb_kernel NB_VARIANT_SYMBOL(kernel);                                                           \
    const struct nb_kernel NB_VARIANT_SYMBOL(kernel) = {__VA_ARGS__, NB_KERNEL_BUILT(kernel),                          \
                                                        .applicable = composed_applicable}

/* Of the steps since it was asked last. */
static inline int step_error(void) { return nb_launch_error(); }

static inline bool is_wide_tensor(struct tensor t) {
    return (uintptr_t)t.data % 16 == 0 && t.stride * (int64_t)(t.narrow ? sizeof(elem) : sizeof(float)) % 16 == 0;
}
static inline void *row_of_tensor(struct tensor t, int64_t row) {
    return tensor_row(t, row, sizeof(elem) < sizeof(float) && t.narrow);
}

/* Units [begin, end) of an operation whose operand b is placed as the kind says. A column of single elements is one row of them. */
static inline void launch_map(const struct step *s, int64_t begin, int64_t end, uint32_t operation, enum operand kind) {
    const bool narrow = sizeof(elem) < sizeof(float),
               column = s->cols == 1 && kind < B_FULL && s->a.stride == 1 && s->dst.stride == 1;
    struct element_args a = {
        .formula = formula_args_of(s->call, false),
        .dst = row_of_tensor(s->dst, begin),
        .a = row_of_tensor(s->a, begin),
        .b = kind >= B_FULL ? s->b.data : NULL,
        .dst_stride = s->dst.stride,
        .a_stride = s->a.stride,
        .rows = column ? 1 : end - begin,
        .cols = column ? end - begin : s->cols,
        .operation = operation,
        .dst_narrow = narrow && s->dst.narrow,
        .a_narrow = narrow && s->a.narrow,
        .b_narrow = narrow && s->b.narrow,
        .scalar = s->scalar,
    };
    bool wide = a.cols % VECTOR == 0 && is_wide_tensor(s->dst) && is_wide_tensor(s->a);
    if (column) wide = a.cols % VECTOR == 0 && (uintptr_t)a.dst % 16 == 0 && (uintptr_t)a.a % 16 == 0;
    a.at_b = (struct place){1, 0, 0};
    if (kind == B_FULL) {
        a.b = row_of_tensor(s->b, begin);
        a.at_b = (struct place){a.rows, s->b.stride, 1};
        wide = wide && is_wide_tensor(s->b);
    } else if (kind == B_COL) {
        a.at_b = (struct place){1, 0, 1};
        wide = wide && (uintptr_t)a.b % 16 == 0;
    } else if (kind == B_ROW) {
        a.at_b = (struct place){s->period, 1, 0};
        a.first_row = begin % s->period;
    }
    if (operation == DEVICE_ROOT) a.formula.eps = a.formula.eps_place == NB_EPS_INSIDE ? 0.0f : s->scalar;
    launch_part(s->call, "operations", wide, "_map", divided(a.rows * divided(a.cols, VECTOR), BLOCK), BLOCK, 1, 0, &a);
}

#define OPERATION(name, operation, kind)                                                                               \
    static inline void name(const struct step *s, int64_t begin, int64_t end) {                                        \
        launch_map(s, begin, end, operation, kind);                                                                    \
    }
OPERATION(op_cast, DEVICE_COPY, B_NONE)
OPERATION(op_square, DEVICE_SQUARE, B_NONE)
OPERATION(op_sqrt, DEVICE_SQRT, B_NONE)
OPERATION(op_reciprocal, DEVICE_RECIPROCAL, B_NONE)
OPERATION(op_rsqrt, DEVICE_ROOT, B_SCALAR)
OPERATION(op_add_scalar, DEVICE_ADD, B_SCALAR)
OPERATION(op_max_scalar, DEVICE_MAX, B_SCALAR)
OPERATION(op_add_full, DEVICE_ADD, B_FULL)
OPERATION(op_sub_full, DEVICE_SUB, B_FULL)
OPERATION(op_mul_full, DEVICE_MUL, B_FULL)
OPERATION(op_sub_row, DEVICE_SUB, B_ROW)
OPERATION(op_mul_row, DEVICE_MUL, B_ROW)
OPERATION(op_div_row, DEVICE_DIV, B_ROW)
OPERATION(op_add_row, DEVICE_ADD, B_ROW)
OPERATION(op_sub_col, DEVICE_SUB, B_COL)
OPERATION(op_mul_col, DEVICE_MUL, B_COL)
OPERATION(op_div_col, DEVICE_DIV, B_COL)
OPERATION(op_add_col, DEVICE_ADD, B_COL)
#undef OPERATION

/* Sums of rows, or of channels' planes, which are `apart` rows of each other. */
static inline void launch_sums(const struct step *s, int64_t begin, int64_t end, int64_t planes, int64_t apart) {
    const struct sum_args a = {.team = {BLOCK, 1},
                               .dst = (float *)s->dst.data + begin,
                               .a = (const float *)s->a.data + begin * s->a.stride,
                               .stride = s->a.stride,
                               .cols = s->cols,
                               .planes = planes,
                               .apart = apart,
                               .divisor = s->scalar};
    const bool wide = s->cols % VECTOR == 0 && (uintptr_t)a.a % 16 == 0 && a.stride % 4 == 0;
    launch_part(s->call, "operations", wide, "_sum", end - begin, BLOCK, 1, TEAM_FLOATS * sizeof(float), &a);
}
static inline void op_sum_rows(const struct step *s, int64_t begin, int64_t end) { launch_sums(s, begin, end, 1, 0); }
static inline void op_mean_planes(const struct step *s, int64_t begin, int64_t end) {
    launch_sums(s, begin, end, s->call->rows / s->call->c, s->call->c);
}
/* Of a channel: the vectors of a thread in four accumulators, these, the threads of a block. */
static inline int64_t planes_chain(const struct nb_call *call) {
    return divided(divided(call->n * divided(call->hw, VECTOR), BLOCK) * VECTOR, 4) + 2 + log2_of(BLOCK);
}

/* Units are blocks of rows, whose sums go to rows of dst. */
static inline void op_sum_blocks(const struct step *s, int64_t begin, int64_t end) {
    const int64_t each = rows_of_block(s->call->rows), first = begin * each;
    const int64_t last = end * each < s->call->rows ? end * each : s->call->rows;
    const struct column_args a = {.x = (const float *)s->a.data + first * s->a.stride,
                                  .partial = (float *)s->dst.data + begin * s->dst.stride,
                                  .x_stride = s->a.stride,
                                  .padded = s->dst.stride,
                                  .rows = last - first,
                                  .cols = s->cols,
                                  .rows_per_block = each,
                                  .x_is_f32 = 1};
    launch_column_sums(s->call, &a, s->cols % VECTOR == 0 && (uintptr_t)a.x % 16 == 0 && a.x_stride % 4 == 0);
}
/* Units are columns. */
static inline void op_mean_blocks(const struct step *s, int64_t begin, int64_t end) {
    const struct add_args a = {.partial = (const float *)s->a.data + begin,
                               .out = {(float *)s->dst.data + begin},
                               .padded = s->a.stride,
                               .cols = end - begin,
                               .blocks = divided(s->call->rows, rows_of_block(s->call->rows)),
                               .n = 1,
                               .divisor = {s->scalar}};
    launch_add_columns(s->call, &a);
}

/* Running statistics of channels [begin, end) from those of the batch. */
static inline void update_channels(const struct step *s, struct channel_args a, int64_t begin, int64_t end) {
    const struct nb_call *call = s->call;
    a.formula = formula_args_of(call, true);
    a.given_mean = a.var = (const float *)s->a.data + begin;
    a.n = call->n;
    a.c = end - begin;
    a.hw = call->hw;
    a.momentum = call->momentum;
    launch_function(call, "batchnorm_stats", divided(a.c, BLOCK), BLOCK, 1, 0, &a);
}
static inline void op_running_mean(const struct step *s, int64_t begin, int64_t end) {
    const struct channel_args a = {.running_mean_in = s->call->running_mean_in + begin,
                                   .running_mean_out = s->call->running_mean_out + begin};
    update_channels(s, a, begin, end);
}
static inline void op_running_var(const struct step *s, int64_t begin, int64_t end) {
    const struct channel_args a = {.running_var_in = s->call->running_var_in + begin,
                                   .running_var_out = s->call->running_var_out + begin};
    update_channels(s, a, begin, end);
}
