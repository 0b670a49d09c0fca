// SPDX-License-Identifier: Apache-2.0
/* Baseline copies: the loads and stores of an op without its arithmetic, 16 bytes at a time where pointers and rows allow, else 2. Elements
 * are moved bit by bit. The first output is what is loaded, or the or of it; the second is the second input. */
#include "kernels/cuda/device.h"

DEVICE uint4 either(uint4 a, uint4 b) { return uint4{a.x | b.x, a.y | b.y, a.z | b.z, a.w | b.w}; }

template <int LOADS, int STORES> DEVICE void copy_wide(const struct copy_args &a) {
    const int64_t units = a.bytes / 16;
    for (int64_t at = (int64_t)block_index() * block_size() + thread_index(); at < a.rows * units;
         at += (int64_t)grid_size() * block_size()) {
        const int64_t row = a.rows > 1 ? at / units : 0, i = (at - row * units) * 16;
        uint4 v[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++) v[k] = load16((const char *)a.in[k] + row * a.in_stride[k] + i);
        uint4 first = v[0];
#pragma unroll
        for (int k = STORES; k < LOADS; k++) first = either(first, v[k]);
        store16((char *)a.out[0] + row * a.out_stride[0] + i, first);
        if constexpr (STORES > 1) store16((char *)a.out[1] + row * a.out_stride[1] + i, v[1]);
    }
}
template <int LOADS, int STORES> DEVICE void copy_narrow(const struct copy_args &a) {
    const int64_t units = a.bytes / 2;
    for (int64_t at = (int64_t)block_index() * block_size() + thread_index(); at < a.rows * units;
         at += (int64_t)grid_size() * block_size()) {
        const int64_t row = a.rows > 1 ? at / units : 0, i = (at - row * units) * 2;
        uint16_t v[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++) v[k] = *(const uint16_t *)((const char *)a.in[k] + row * a.in_stride[k] + i);
        uint16_t first = v[0];
#pragma unroll
        for (int k = STORES; k < LOADS; k++) first |= v[k];
        *(uint16_t *)((char *)a.out[0] + row * a.out_stride[0] + i) = first;
        if constexpr (STORES > 1) *(uint16_t *)((char *)a.out[1] + row * a.out_stride[1] + i) = v[1];
    }
}

#define COPY(loads, stores)                                                                                            \
    ENTRY(copies_wide_##loads##_##stores, copy_args, copy_wide<loads, stores>)                                         \
    ENTRY(copies_narrow_##loads##_##stores, copy_args, copy_narrow<loads, stores>)
COPY(1, 1)
COPY(2, 1)
COPY(2, 2)
COPY(3, 1)
DEVICE void nothing(const struct copy_args &) {}
ENTRY(copies_null, copy_args, nothing)
