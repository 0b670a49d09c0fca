// SPDX-License-Identifier: Apache-2.0
/* First and second moment of a row in one sweep, about a number that the caller chooses. */
#pragma once

#include "kernels/shared/reduce.h"

#define MOMENT_ACCUMULATORS 4 /* two chains each */

struct moments {
    float sum, squares; /* of d = x - shift */
};

struct moment_lanes {
    vec sum, squares;
};

NB_INLINE void moments_step(struct moment_lanes *m, vec x, vec shift) {
    vec d = x - shift;
    m->sum = m->sum + d;
    m->squares = vec_fma(d, d, m->squares);
}

NB_INLINE struct moments moments_about(const elem *x, int64_t n, float shift) {
    const vec about = vec_set1(shift), zero = vec_set1(0.0f);
    struct moment_lanes m[2 * MOMENT_ACCUMULATORS - 1]; /* behind the accumulators, the tree over them */
    NB_UNROLL
    for (int a = 0; a < MOMENT_ACCUMULATORS; a++) m[a] = (struct moment_lanes){zero, zero};
    int64_t i = 0;
    for (; i + MOMENT_ACCUMULATORS * NB_LANES <= n; i += MOMENT_ACCUMULATORS * NB_LANES) {
        NB_UNROLL
        for (int a = 0; a < MOMENT_ACCUMULATORS; a++) moments_step(&m[a], vec_load(x + i + a * NB_LANES), about);
    }
    NB_UNROLL
    for (int a = 0; a < MOMENT_ACCUMULATORS - 1; a++)
        if (i + NB_LANES <= n) {
            moments_step(&m[a], vec_load(x + i), about);
            i += NB_LANES;
        }
    if (i < n) /* absent lanes are given the shift itself */
        moments_step(&m[MOMENT_ACCUMULATORS - 1], vec_blend(vec_load_tail(x + i, n - i), about, n - i), about);
    NB_UNROLL
    for (int a = 0; a < MOMENT_ACCUMULATORS - 1; a++) {
        m[MOMENT_ACCUMULATORS + a].sum = m[2 * a].sum + m[2 * a + 1].sum;
        m[MOMENT_ACCUMULATORS + a].squares = m[2 * a].squares + m[2 * a + 1].squares;
    }
    const struct moment_lanes total = m[2 * MOMENT_ACCUMULATORS - 2];
    return (struct moments){.sum = vec_sum(total.sum), .squares = vec_sum(total.squares)};
}

/* With a shift other than 0, its subtraction is one rounding more. */
static inline int64_t moments_chain(const struct nb_call *call) {
    return reduction_chain(call->cols, MOMENT_ACCUMULATORS) + 1;
}
