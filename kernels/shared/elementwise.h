// SPDX-License-Identifier: Apache-2.0
/* Elementary operations on whole tensors, as an eager framework runs them: each reads its operands, writes its result and
 * keeps nothing. The loops are those of the fused kernels (one vector an iteration, a masked tail), so that a composed kernel
 * differs from a fused one by its traffic. Where no operand is broadcast, rows without padding are run as one long row. */
#pragma once

#include <stdbool.h>

#include "kernels/shared/reduce.h"
#include "kernels/shared/root.h"
#include "kernels/shared/vec.h"

/* A tensor of f32, or of x's dtype when narrow. Statistics are columns of one element a row (stride 1); parameters are one
 * row for all (stride 0). */
struct tensor {
    void *data;
    int64_t stride; /* elements between the starts of two rows */
    int32_t slot;   /* of a temporary, counted from 1 */
    bool narrow, full;
};

struct step;
typedef void (*step_fn)(const struct step *s, int64_t begin, int64_t end);

/* One operation: units [begin, end) of n_units, each a row of cols elements. */
struct step {
    step_fn run;
    struct tensor dst, a, b;
    int64_t n_units, cols;
    int64_t period; /* b by row: row r reads element r % period */
    float scalar;
    const struct nb_call *call;
};

enum operation { OP_COPY, OP_SQUARE, OP_SQRT, OP_RECIPROCAL, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MAX };
enum operand { B_NONE, B_SCALAR, B_FULL, B_ROW, B_COL };

/* Which loop: a constant form is a loop of its own. */
struct map_form {
    enum operation op;
    enum operand b;
    bool a_narrow, b_narrow, dst_narrow;
};

NB_INLINE float typed_get(const void *p, int64_t i, bool narrow) {
    return narrow ? elem_get((const elem *)p + i) : ((const float *)p)[i];
}
NB_INLINE void typed_set(void *p, int64_t i, float f, bool narrow) {
    if (narrow)
        elem_set((elem *)p + i, f);
    else
        ((float *)p)[i] = f;
}
NB_INLINE void *tensor_row(struct tensor t, int64_t row, bool narrow) {
    return narrow ? (void *)((elem *)t.data + row * t.stride) : (void *)((float *)t.data + row * t.stride);
}

/* A NaN in a stays one. */
NB_INLINE vec apply(enum operation op, vec a, vec b) {
    switch (op) {
    case OP_COPY:
        return a;
    case OP_SQUARE:
        return a * a;
    case OP_SQRT:
        return vec_sqrt(a);
    case OP_RECIPROCAL:
        return vec_set1(1.0f) / a;
    case OP_ADD:
        return a + b;
    case OP_SUB:
        return a - b;
    case OP_MUL:
        return a * b;
    case OP_DIV:
        return a / b;
    case OP_MAX:
        return vec_max(b, a);
    }
    return a;
}

NB_INLINE void map_row(void *dst, const void *a, const void *b, vec same, int64_t n, struct map_form f) {
    const bool tensor_b = f.b == B_FULL || f.b == B_COL;
    int64_t i = 0;
    for (; i + NB_LANES <= n; i += NB_LANES) {
        vec vb = tensor_b ? typed_load(b, i, f.b_narrow) : same;
        typed_store(dst, i, apply(f.op, typed_load(a, i, f.a_narrow), vb), f.dst_narrow);
    }
    if (i < n) {
        vec vb = tensor_b ? typed_load_tail(b, i, n - i, f.b_narrow) : same;
        typed_store_tail(dst, i, apply(f.op, typed_load_tail(a, i, n - i, f.a_narrow), vb), n - i, f.dst_narrow);
    }
}

NB_INLINE bool is_one_long_row(const struct step *s, struct map_form f) {
    if (f.b == B_ROW || f.b == B_COL) return false;
    return s->dst.stride == s->cols && s->a.stride == s->cols && (f.b != B_FULL || s->b.stride == s->cols);
}

NB_INLINE void map(const struct step *s, int64_t begin, int64_t end, struct map_form f) {
    const bool joined = is_one_long_row(s, f);
    const int64_t cols = joined ? (end - begin) * s->cols : s->cols;
    const int64_t last = joined ? begin + 1 : end;
    int64_t at = f.b == B_ROW ? begin % s->period : 0;
    vec same = vec_set1(s->scalar);
    for (int64_t r = begin; r < last; r++) {
        const void *b = s->b.data;
        if (f.b == B_FULL) b = tensor_row(s->b, r, f.b_narrow);
        if (f.b == B_ROW) {
            same = vec_set1(typed_get(b, at, f.b_narrow));
            at = at + 1 == s->period ? 0 : at + 1;
        }
        map_row(tensor_row(s->dst, r, f.dst_narrow), tensor_row(s->a, r, f.a_narrow), b, same, cols, f);
    }
}
/* Any operation on any types, by branches: for columns of statistics, parameters, and rare casts. */
NB_ONCE void map_any(const struct step *s, int64_t begin, int64_t end, enum operation op, enum operand b) {
    const bool narrow = sizeof(elem) < sizeof(float);
    map(s, begin, end, (struct map_form){op, b, narrow && s->a.narrow, narrow && s->b.narrow, narrow && s->dst.narrow});
}

/* v[0] + ... + v[n - 1] as a tree, which is stored behind them: v has room for 2 n - 1. */
NB_INLINE vec tree_sum(vec *v, const int n) {
    NB_UNROLL
    for (int i = 0; i < n - 1; i++) v[n + i] = v[2 * i] + v[2 * i + 1];
    return v[2 * n - 2];
}

/* Sum of a row in f32, as sum_elements() of reduce.h; over f32 or narrow elements. */
NB_INLINE float typed_sum(const void *x, int64_t n, bool narrow) {
    const int n_acc = ROW_ACCUMULATORS;
    vec acc[2 * ROW_ACCUMULATORS - 1];
    NB_UNROLL
    for (int a = 0; a < n_acc; a++) acc[a] = vec_set1(0.0f);
    int64_t i = 0;
    for (; i + n_acc * NB_LANES <= n; i += n_acc * NB_LANES) {
        NB_UNROLL
        for (int a = 0; a < n_acc; a++) acc[a] = acc[a] + typed_load(x, i + a * NB_LANES, narrow);
    }
    NB_UNROLL
    for (int a = 0; a < n_acc - 1; a++)
        if (i + NB_LANES <= n) {
            acc[a] = acc[a] + typed_load(x, i, narrow);
            i += NB_LANES;
        }
    if (i < n) acc[n_acc - 1] = acc[n_acc - 1] + typed_load_tail(x, i, n - i, narrow);
    return vec_sum(tree_sum(acc, n_acc));
}

/* ---- operations ---- */

/* Does the recipe keep every tensor in x's dtype? Its file says so before it includes any of these headers. */
#ifndef COMPOSED_LOWP
#define COMPOSED_LOWP false
#endif

/* Another backend's operations (kernels/cuda/operations.h), by which the same recipes run there. */
#ifdef NB_OPERATIONS
#include NB_OPERATIONS
#else

/* An operation is compiled once for each width and dtype, of recipes that stay in x's dtype apart (kernels/operations.c), under a name that says
 * for which. A kernel's object has its name alone; what the kernel reads has the loops, by which the gate sees what changed.
 * NB_OWN_OPERATIONS: a kernel that is faster with operations that are compiled with it. */
#if COMPOSED_LOWP
#define NB_OPERATION_SYMBOL(name) #name "_lowp_" NB_TEXT(NB_JOIN4(of, NB_VARIANT, NB_DTYPE_NAME))
#else
#define NB_OPERATION_SYMBOL(name) #name "_" NB_TEXT(NB_JOIN4(of, NB_VARIANT, NB_DTYPE_NAME))
#endif
#define NB_OPERATION_HEAD(name, ...)                                                                                   \
    void name(__VA_ARGS__) __asm__(NB_OPERATION_SYMBOL(name)) __attribute__((visibility("hidden")))
#if defined(NB_OWN_OPERATIONS)
#define NB_OPERATION(name, ...) static inline void name(__VA_ARGS__)
#elif defined(NB_DEFINES_OPERATIONS)
#define NB_OPERATION(name, ...)                                                                                        \
    NB_OPERATION_HEAD(name, __VA_ARGS__);                                                                              \
    void name(__VA_ARGS__)
#else
#define NB_OPERATION(name, ...)                                                                                        \
    NB_OPERATION_HEAD(name, __VA_ARGS__);                                                                              \
    static inline void name##_elsewhere(__VA_ARGS__)
#endif

/* Types of a, b and the result of an operation that have a loop of their own: all f32 in a recipe in f32, all x's dtype in one that
 * stays in that, and for the affine part also parameters in f32. */
NB_INLINE void map_typed(const struct step *s, int64_t begin, int64_t end, enum operation op, enum operand b,
                         bool is_affine) {
    const bool tensor_b = b >= B_FULL, lowp = COMPOSED_LOWP;
    const bool same = s->a.narrow == lowp && s->dst.narrow == lowp;
    if (same && (!tensor_b || s->b.narrow == lowp))
        map(s, begin, end, (struct map_form){op, b, lowp, lowp, lowp});
    else if (lowp && is_affine && same)
        map(s, begin, end, (struct map_form){op, b, true, false, true});
    else
        map_any(s, begin, end, op, b);
}

/* Full tensors up or down. */
NB_OPERATION(op_cast, const struct step *s, int64_t begin, int64_t end) {
#ifndef NB_DTYPE_IS_F32
    if (!COMPOSED_LOWP && s->a.full && s->a.narrow != s->dst.narrow) {
        if (s->a.narrow)
            map(s, begin, end, (struct map_form){OP_COPY, B_NONE, true, false, false});
        else
            map(s, begin, end, (struct map_form){OP_COPY, B_NONE, false, false, true});
        return;
    }
#endif
    map_any(s, begin, end, OP_COPY, B_NONE);
}
NB_OPERATION(op_square, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_SQUARE, B_NONE, false);
}
NB_OPERATION(op_sqrt, const struct step *s, int64_t begin, int64_t end) { map_any(s, begin, end, OP_SQRT, B_NONE); }
NB_OPERATION(op_reciprocal, const struct step *s, int64_t begin, int64_t end) {
    map_any(s, begin, end, OP_RECIPROCAL, B_NONE);
}
NB_OPERATION(op_add_scalar, const struct step *s, int64_t begin, int64_t end) {
    map_any(s, begin, end, OP_ADD, B_SCALAR);
}
NB_OPERATION(op_mul_scalar, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_MUL, B_SCALAR, false);
}
NB_OPERATION(op_max_scalar, const struct step *s, int64_t begin, int64_t end) {
    map_any(s, begin, end, OP_MAX, B_SCALAR);
}
NB_OPERATION(op_add_full, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_ADD, B_FULL, false);
}
NB_OPERATION(op_sub_full, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_SUB, B_FULL, false);
}
NB_OPERATION(op_mul_full, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_MUL, B_FULL, false);
}
/* one value a row */
NB_OPERATION(op_sub_row, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_SUB, B_ROW, false);
}
NB_OPERATION(op_mul_row, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_MUL, B_ROW, true);
}
NB_OPERATION(op_div_row, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_DIV, B_ROW, false);
}
NB_OPERATION(op_add_row, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_ADD, B_ROW, true);
}
/* one value a column */
NB_OPERATION(op_sub_col, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_SUB, B_COL, false);
}
NB_OPERATION(op_mul_col, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_MUL, B_COL, true);
}
NB_OPERATION(op_div_col, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_DIV, B_COL, false);
}
NB_OPERATION(op_add_col, const struct step *s, int64_t begin, int64_t end) {
    map_typed(s, begin, end, OP_ADD, B_COL, true);
}

/* The roots that begin with a hardware estimate, one operation with their clamp; eps inside was added before. A column of one
 * element a row. */
NB_OPERATION(op_rsqrt, const struct step *s, int64_t begin, int64_t end) {
    struct nb_call root = {.eps = s->scalar, .formula = s->call->formula};
    if (root.formula.eps_place == NB_EPS_INSIDE) root.eps = 0.0;
    for (int64_t r = begin; r < end; r++)
        typed_set(s->dst.data, r, row_scale(typed_get(s->a.data, r, s->a.narrow), &root), s->dst.narrow);
}

/* One value a row: the sum of its elements in f32, divided by the scalar. Rounded to x's dtype at the end where the result
 * is narrow, as PyTorch's mean of a half tensor. */
NB_OPERATION(op_sum_rows, const struct step *s, int64_t begin, int64_t end) {
    const bool lowp = COMPOSED_LOWP;
    for (int64_t r = begin; r < end; r++) {
        const float sum = typed_sum(tensor_row(s->a, r, lowp), s->cols, lowp);
        typed_set(s->dst.data, r, sum / s->scalar, lowp);
    }
}

#endif
