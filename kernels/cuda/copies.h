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
static inline int copy_tensors(const struct nb_call *call, struct copy_args a, int loads, int stores, int n) {
    char function[32];
    const int64_t item = sizeof(elem), bytes = call->cols * item;
    bool wide = true, joined = true;
    for (int i = 0; i < loads + stores; i++) {
        const void *p = i < loads ? a.in[i] : a.out[i - loads];
        int64_t *stride = i < loads ? &a.in_stride[i] : &a.out_stride[i - loads];
        *stride *= item;
        wide = wide && (uintptr_t)p % 16 == 0 && *stride % 16 == 0;
        joined = joined && *stride == bytes;
    }
    a.rows = joined ? 1 : call->rows;
    a.bytes = joined ? call->rows * bytes : bytes;
    wide = wide && a.bytes % 16 == 0;
    if (joined && wide) return copy_pieces(call, &a, loads, stores, n);
    const int64_t blocks = divided(a.rows * a.bytes / (wide ? 16 : 2), BLOCK);
    snprintf(function, sizeof function, "copies_%s_%d_%d", wide ? "wide" : "narrow", loads, stores);
    return launch_function(call, function, blocks < COPY_GRID ? blocks : COPY_GRID, BLOCK, 1, 0, &a);
}
static inline int64_t nothing_chained(const struct nb_call *call) { return 0; }

#define CUDA_COPY                                                                                                      \
    .op = NB_OP_COPY, .row_local = always_row_local, .chain = nothing_chained, .n_units = one_unit, CUDA_KERNEL
