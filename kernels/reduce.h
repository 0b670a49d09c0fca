// SPDX-License-Identifier: Apache-2.0
/* Reductions over a row, with ROW_ACCUMULATORS independent vector accumulators: enough to hide the latency of the add
 * (4 cycles on 2 ports) on every CPU at hand. */
#ifndef NB_REDUCE_H
#define NB_REDUCE_H

#include "vec.h"

#define ROW_ACCUMULATORS 8

/* Before a loop over accumulators: an array that is indexed by a variable would live in memory. */
#if defined(__clang__)
#define NB_UNROLL _Pragma("unroll")
#else
#define NB_UNROLL _Pragma("GCC unroll 16")
#endif

/* The longest chain of dependent roundings in a sum over n elements: per accumulator, then the tree over them. */
static inline int64_t sum_chain(int64_t n) {
    int64_t per_accumulator = (n + ROW_ACCUMULATORS * NB_LANES - 1) / (ROW_ACCUMULATORS * NB_LANES);
    int64_t tree = 0;
    for (int64_t leaves = ROW_ACCUMULATORS * NB_LANES; leaves > 1; leaves /= 2) tree++;
    return per_accumulator + tree + 1;
}
static inline int64_t row_chain(const struct nb_call *call) { return sum_chain(call->cols); }

static inline float sum_accumulators(vec acc[ROW_ACCUMULATORS]) {
    NB_UNROLL for (int step = ROW_ACCUMULATORS / 2; step > 0; step /= 2)
        NB_UNROLL for (int a = 0; a < step; a++) acc[a] = acc[a] + acc[a + step];
    return vec_sum(acc[0]);
}

/* sum of (x_i - shift)^2 */
static inline float sum_squares_about(const elem *x, int64_t n, float shift) {
    const vec s = vec_set1(shift);
    vec acc[ROW_ACCUMULATORS];
    NB_UNROLL for (int a = 0; a < ROW_ACCUMULATORS; a++) acc[a] = vec_set1(0.0f);
    int64_t i = 0;
    for (; i + ROW_ACCUMULATORS * NB_LANES <= n; i += ROW_ACCUMULATORS * NB_LANES)
        NB_UNROLL for (int a = 0; a < ROW_ACCUMULATORS; a++) {
            vec d = vec_load(x + i + a * NB_LANES) - s;
            acc[a] = vec_fma(d, d, acc[a]);
        }
    NB_UNROLL for (int a = 0; a < ROW_ACCUMULATORS - 1; a++)
        if (i + NB_LANES <= n) {
            vec d = vec_load(x + i) - s;
            acc[a] = vec_fma(d, d, acc[a]);
            i += NB_LANES;
        }
    if (i < n) {
        vec d = vec_keep(vec_load_tail(x + i, n - i) - s, n - i);
        acc[ROW_ACCUMULATORS - 1] = vec_fma(d, d, acc[ROW_ACCUMULATORS - 1]);
    }
    return sum_accumulators(acc);
}

/* sum of x_i^2 */
static inline float sum_squares(const elem *x, int64_t n) {
    vec acc[ROW_ACCUMULATORS];
    NB_UNROLL for (int a = 0; a < ROW_ACCUMULATORS; a++) acc[a] = vec_set1(0.0f);
    int64_t i = 0;
    for (; i + ROW_ACCUMULATORS * NB_LANES <= n; i += ROW_ACCUMULATORS * NB_LANES)
        NB_UNROLL for (int a = 0; a < ROW_ACCUMULATORS; a++) {
            vec v = vec_load(x + i + a * NB_LANES);
            acc[a] = vec_fma(v, v, acc[a]);
        }
    NB_UNROLL for (int a = 0; a < ROW_ACCUMULATORS - 1; a++)
        if (i + NB_LANES <= n) {
            vec v = vec_load(x + i);
            acc[a] = vec_fma(v, v, acc[a]);
            i += NB_LANES;
        }
    if (i < n) {
        vec v = vec_load_tail(x + i, n - i);
        acc[ROW_ACCUMULATORS - 1] = vec_fma(v, v, acc[ROW_ACCUMULATORS - 1]);
    }
    return sum_accumulators(acc);
}

/* sum of x_i */
static inline float sum_elements(const elem *x, int64_t n) {
    vec acc[ROW_ACCUMULATORS];
    NB_UNROLL for (int a = 0; a < ROW_ACCUMULATORS; a++) acc[a] = vec_set1(0.0f);
    int64_t i = 0;
    for (; i + ROW_ACCUMULATORS * NB_LANES <= n; i += ROW_ACCUMULATORS * NB_LANES)
        NB_UNROLL for (int a = 0; a < ROW_ACCUMULATORS; a++) acc[a] = acc[a] + vec_load(x + i + a * NB_LANES);
    NB_UNROLL for (int a = 0; a < ROW_ACCUMULATORS - 1; a++)
        if (i + NB_LANES <= n) {
            acc[a] = acc[a] + vec_load(x + i);
            i += NB_LANES;
        }
    if (i < n) acc[ROW_ACCUMULATORS - 1] = acc[ROW_ACCUMULATORS - 1] + vec_load_tail(x + i, n - i);
    return sum_accumulators(acc);
}

#endif
