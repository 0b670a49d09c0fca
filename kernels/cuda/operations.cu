// SPDX-License-Identifier: Apache-2.0
/* Elementary operations on whole tensors, a launch each, for the recipes of composed kernels (kernels/shared/composed.h). */
#include "kernels/cuda/formula.h"
#include "kernels/cuda/team.h"

DEVICE float operate(float a, float b, const struct element_args &s) {
    switch (s.operation) {
    case DEVICE_SQUARE:
        return a * a;
    case DEVICE_SQRT:
        return sqrtf(a);
    case DEVICE_RECIPROCAL:
        return 1.0f / a;
    case DEVICE_ADD:
        return a + b;
    case DEVICE_SUB:
        return a - b;
    case DEVICE_MUL:
        return a * b;
    case DEVICE_DIV:
        return a / b;
    case DEVICE_MAX:
        return b > a ? b : a; /* a NaN in a stays one */
    case DEVICE_ROOT:
        return row_scale(a, s.formula);
    default:
        return a;
    }
}

/* A vector by each thread. b: a value for all, of the row, of the column, or of the element. */
template <class E, bool WIDE> DEVICE void map_elements(const struct element_args &s) {
    constexpr int N = VECTOR<E>;
    const int64_t vectors = (s.cols + N - 1) / N, at = (int64_t)block_index() * block_size() + thread_index();
    const int64_t row = at / vectors, i = at % vectors * N, left = s.cols - i;
    if (row >= s.rows) return;
    float a[N], b[N] = {};
    load_any<WIDE, E>(a, s.a, row * s.a_stride + i, left, s.a_narrow);
    const int64_t at_b = s.b ? (s.first_row + row) % s.at_b.period * s.at_b.by_row + i * s.at_b.by_col : 0;
    const float same = s.b && !s.at_b.by_col ? get_any<E>(s.b, at_b, s.b_narrow) : s.scalar;
    if (s.b && s.at_b.by_col) load_any<WIDE, E>(b, s.b, at_b, left, s.b_narrow);
#pragma unroll
    for (int j = 0; j < N; j++) a[j] = operate(a[j], s.b && s.at_b.by_col ? b[j] : same, s);
    store_any<WIDE, E>(s.dst, row * s.dst_stride + i, a, left, s.dst_narrow);
}

/* A block for each sum, in four accumulators a thread. */
template <class E, bool WIDE> DEVICE void sum_planes(const struct sum_args &s) {
    constexpr int N = VECTOR<E>;
    struct team t = team_of(s.team);
    const int64_t vectors = (s.cols + N - 1) / N;
    float v[N], acc[ACCUMULATORS] = {};
    for (int64_t at = thread_index(); at < s.planes * vectors; at += block_size()) {
        const int64_t row = block_index() + at / vectors * s.apart, i = at % vectors * N;
        load<WIDE>(v, s.a + row * s.stride + i, s.cols - i);
#pragma unroll
        for (int j = 0; j < N; j++) acc[j % ACCUMULATORS] += v[j];
    }
    const float sum = add_accumulators(acc, t);
    if (is_first(t)) put(&s.dst[block_index()], sum / s.divisor);
}

#define OPERATIONS(name, E, WIDE)                                                                                      \
    ENTRY(operations_##name##_map, element_args, map_elements<E, WIDE>)                                                \
    ENTRY(operations_##name##_sum, sum_args, sum_planes<E, WIDE>)
EACH_ACCESS(OPERATIONS)
