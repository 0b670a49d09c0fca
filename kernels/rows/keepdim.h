// SPDX-License-Identifier: Apache-2.0
/* Statistics that go through memory as [rows, 1] tensors: one phase writes them, the next reads them back, one value for all
 * elements of a row (stride 0), as mean(-1, keepdim=True) and a broadcast do. In scratch: means, then scales. */
#ifndef NB_KEEPDIM_H
#define NB_KEEPDIM_H

#include "kernels/rows/row.h"

static inline float *stored_means(const struct nb_call *call) { return call->scratch; }
static inline float *stored_scales(const struct nb_call *call) { return (float *)call->scratch + call->rows; }

static inline void store_row_stats(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats) {
    for (int64_t r = begin; r < end; r++) {
        const struct row_stats s = stats(call, r);
        stored_means(call)[r] = s.mean;
        stored_scales(call)[r] = s.scale;
    }
}

static __attribute__((noinline)) struct row_stats stored_stats(const struct nb_call *call, int64_t r) {
    return (struct row_stats){.mean = stored_means(call)[r], .scale = stored_scales(call)[r]};
}

static inline int keepdim_phases(const struct nb_call *call) {
    (void)call;
    return 2;
}
static inline size_t keepdim_scratch(const struct nb_call *call) { return (size_t)(2 * call->rows) * sizeof(float); }

#endif
