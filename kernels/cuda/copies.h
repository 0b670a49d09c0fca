// SPDX-License-Identifier: Apache-2.0
/* The host part of the baseline copies (copies.cu). */
#pragma once

#include "kernels/cuda/host.h"

enum { COPY_GRID = 8 * GRID }; /* blocks, at most, where each moves several units of rows */

/* Tensors without gaps: n vectors of each a thread, or fewer, and smaller blocks, where processors would have none. */
static inline int copy_pieces(const struct nb_call *call, const struct copy_args *a, int loads, int stores, int n) {
    char function[40];
    const int64_t units = a->bytes / 16;
    uint32_t block = BLOCK;
    while (n > 1 && divided(units, n * block) < GRID) n /= 2;
    while (block > 2 * WARP && divided(units, n * block) < GRID) block /= 2;
    snprintf(function, sizeof function, "copies_wide_%d_%d_by_%d", loads, stores, n);
    return launch_function(call, function, divided(units, n * block), block, 1, 0, a);
}
/* The tensors that are loaded, then those that are stored. */
struct copied {
    const void *p;
    int64_t stride;
};
#define COPIED(tensor)                                                                                                 \
    { call->tensor, call->tensor##_stride }
static inline int copy_tensors(const struct nb_call *call, const struct copied *t, int loads, int stores, int n) {
    char function[32];
    struct copy_args a = {.rows = call->rows, .bytes = call->cols * (int64_t)sizeof(elem)};
    bool wide = true, joined = true;
    for (int i = 0; i < loads + stores; i++) {
        const int64_t stride = t[i].stride * (int64_t)sizeof(elem);
        *(i < loads ? &a.in_stride[i] : &a.out_stride[i - loads]) = stride;
        if (i < loads)
            a.in[i] = t[i].p;
        else
            a.out[i - loads] = (void *)(uintptr_t)t[i].p;
        wide = wide && is_wide(t[i].p, t[i].stride);
        joined = joined && stride == a.bytes;
    }
    if (joined) a.bytes *= a.rows, a.rows = 1;
    wide = wide && a.bytes % 16 == 0;
    if (joined && wide) return copy_pieces(call, &a, loads, stores, n);
    const int64_t blocks = divided(a.rows * a.bytes / (wide ? 16 : 2), BLOCK);
    snprintf(function, sizeof function, "copies_%s_%d_%d", wide ? "wide" : "narrow", loads, stores);
    return launch_function(call, function, blocks < COPY_GRID ? blocks : COPY_GRID, BLOCK, 1, 0, &a);
}
static inline int64_t nothing_chained(const struct nb_call *call) { return 0; }

#define CUDA_COPY                                                                                                      \
    .op = NB_OP_COPY, .row_local = always_row_local, .chain = nothing_chained, .n_units = one_unit, CUDA_KERNEL
