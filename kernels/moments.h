// SPDX-License-Identifier: Apache-2.0
/* First and second moment of a row in one sweep, about a number that the caller chooses. */
#ifndef NB_MOMENTS_H
#define NB_MOMENTS_H

#include "reduce.h"

#define MOMENT_ACCUMULATORS 4 /* two chains each */

struct moments {
    float sum, squares; /* of d = x - shift */
};

NB_INLINE void moments_step(vec *sum, vec *squares, vec x, vec shift) {
    vec d = x - shift;
    *sum = *sum + d;
    *squares = vec_fma(d, d, *squares);
}

NB_INLINE struct moments moments_about(const elem *x, int64_t n, float shift) {
    const vec about = vec_set1(shift);
    vec sum[MOMENT_ACCUMULATORS], squares[MOMENT_ACCUMULATORS];
    NB_UNROLL
    for (int a = 0; a < MOMENT_ACCUMULATORS; a++) sum[a] = squares[a] = vec_set1(0.0f);
    int64_t i = 0;
    for (; i + MOMENT_ACCUMULATORS * NB_LANES <= n; i += MOMENT_ACCUMULATORS * NB_LANES) {
        NB_UNROLL
        for (int a = 0; a < MOMENT_ACCUMULATORS; a++)
            moments_step(&sum[a], &squares[a], vec_load(x + i + a * NB_LANES), about);
    }
    NB_UNROLL
    for (int a = 0; a < MOMENT_ACCUMULATORS - 1; a++)
        if (i + NB_LANES <= n) {
            moments_step(&sum[a], &squares[a], vec_load(x + i), about);
            i += NB_LANES;
        }
    if (i < n) {
        const int last = MOMENT_ACCUMULATORS - 1;
        vec d = vec_keep(vec_load_tail(x + i, n - i) - about, n - i);
        sum[last] = sum[last] + d;
        squares[last] = vec_fma(d, d, squares[last]);
    }
    NB_UNROLL
    for (int half = MOMENT_ACCUMULATORS / 2; half > 0; half /= 2) {
        NB_UNROLL
        for (int a = 0; a < half; a++) {
            sum[a] = sum[a] + sum[a + half];
            squares[a] = squares[a] + squares[a + half];
        }
    }
    return (struct moments){.sum = vec_sum(sum[0]), .squares = vec_sum(squares[0])};
}

/* With a shift other than 0, its subtraction is one rounding more. */
static inline int64_t moments_chain(const struct nb_call *call) {
    return reduction_chain(call->cols, MOMENT_ACCUMULATORS) + 1;
}

#endif
