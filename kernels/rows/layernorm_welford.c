// SPDX-License-Identifier: Apache-2.0
/* LayerNorm with Welford's updating mean and variance in every lane of 4 accumulators, merged by Chan's formula for groups:
 *     M2 = sum M2_l + sum n_l (mean_l - mean)^2.
 * One sweep, no cancellation: the variance is off by up to about h u sqrt(1 + rho^2), rho = |mean| / sigma, h = chain, against
 * (1 + rho^2) of E[x^2] - mean^2; the price is 4 dependent operations an element where a sum has one. */
#define ROW_CENTRE true
#include "kernels/rows/row.h"

#define STATES 4

struct welford {
    vec mean, m2, count;
};

NB_INLINE void update(struct welford *w, vec x, vec reciprocal) {
    vec d = x - w->mean;
    w->mean = vec_fma(d, reciprocal, w->mean);
    w->m2 = vec_fma(d, x - w->mean, w->m2);
}

/* The first n_lanes of x are the next elements of their lanes. */
NB_INLINE void update_lanes(struct welford *w, vec x, int64_t step, int64_t n_lanes) {
    struct welford old = *w;
    update(w, x, vec_set1(1.0f / (float)step));
    w->mean = vec_blend(w->mean, old.mean, n_lanes);
    w->m2 = vec_blend(w->m2, old.m2, n_lanes);
    w->count = vec_blend(vec_set1((float)step), old.count, n_lanes);
}

/* About the mean of the first lane, so that the merged mean is as exact as the lanes'. A lane of count 0 has weight 0. */
NB_INLINE void merge(struct welford w[STATES], float n, float *mean, float *m2) {
    const float first = vec_first(w[0].mean);
    vec sum = vec_set1(0.0f), squares = vec_set1(0.0f);
    NB_UNROLL
    for (int a = 0; a < STATES; a++) sum = vec_fma(w[a].count, w[a].mean - vec_set1(first), sum);
    *mean = first + vec_sum(sum) / n;
    NB_UNROLL
    for (int a = 0; a < STATES; a++) {
        vec d = w[a].mean - vec_set1(*mean);
        squares = vec_fma(w[a].count * d, d, squares + w[a].m2);
    }
    *m2 = vec_sum(squares);
}

static __attribute__((noinline)) struct row_stats stats(const struct nb_call *call, int64_t row) {
    const elem *x = row_in(call->x, call->x_stride, row);
    const int64_t n = call->cols, steps = n / (STATES * NB_LANES);
    struct welford w[STATES];
    NB_UNROLL
    for (int a = 0; a < STATES; a++) {
        w[a].mean = w[a].m2 = vec_set1(0.0f);
        w[a].count = vec_set1((float)steps);
    }
    int64_t i = 0;
    for (int64_t step = 1; step <= steps; step++, i += STATES * NB_LANES) {
        const vec reciprocal = vec_set1(1.0f / (float)step);
        NB_UNROLL
        for (int a = 0; a < STATES; a++) update(&w[a], vec_load(x + i + a * NB_LANES), reciprocal);
    }
    NB_UNROLL
    for (int a = 0; a < STATES - 1; a++)
        if (i + NB_LANES <= n) {
            update_lanes(&w[a], vec_load(x + i), steps + 1, NB_LANES);
            i += NB_LANES;
        }
    if (i < n) update_lanes(&w[STATES - 1], vec_load_tail(x + i, n - i), steps + 1, n - i);
    float mean, m2;
    merge(w, (float)n, &mean, &m2);
    return (struct row_stats){.mean = mean, .scale = row_scale(m2 / (float)n, call)};
}

/* The steps of a lane, two more into M2, and the merge: 3 for each state, and the lanes' tree. */
static int64_t layernorm_welford_chain(const struct nb_call *call) {
    const int64_t lanes = STATES * NB_LANES;
    return (call->cols + lanes - 1) / lanes + 2 + 3 * STATES + reduction_chain(0, 1);
}

NB_KERNEL(layernorm_welford, .summary = "LayerNorm, Welford in each lane, merged by Chan's formula",
          .op = NB_OP_LAYERNORM, .variance = NB_VAR_WELFORD, .loads = 2, .stores = 1, .flops = 10, .run = row_run,
          .chain = layernorm_welford_chain, .range = mean_range, ROW_KERNEL);
