// SPDX-License-Identifier: Apache-2.0
/* Baseline copies: the loads and stores of an op without its arithmetic, 16 bytes at a time where pointers and rows allow, else 2. Elements
 * are moved bit by bit. The first output is what is loaded, or the or of it; the second is the second input. */
#include "kernels/cuda/device.h"

#if defined(__CUDACC__)
/* Read once: not kept in the first cache, and fetched into the second by 256 bytes. */
DEVICE uint4 load_unit(const uint4 *p) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(__cvta_generic_to_global(p)));
    return v;
}
#else
DEVICE uint4 load_unit(const uint4 *p) { return load16(p); }
#endif
DEVICE uint16_t load_unit(const uint16_t *p) { return *p; }
DEVICE void store_unit(uint4 *p, uint4 v) { store16(p, v); }
DEVICE void store_unit(uint16_t *p, uint16_t v) { *p = v; }
DEVICE uint4 either(uint4 a, uint4 b) { return uint4{a.x | b.x, a.y | b.y, a.z | b.z, a.w | b.w}; }
DEVICE uint16_t either(uint16_t a, uint16_t b) { return a | b; }

template <int LOADS, class Unit>
DEVICE void load_units(Unit (&v)[LOADS], const struct copy_args &a, int64_t row, int64_t i) {
#pragma unroll
    for (int k = 0; k < LOADS; k++) v[k] = load_unit((const Unit *)((const char *)a.in[k] + row * a.in_stride[k]) + i);
}
template <int STORES, int LOADS, class Unit>
DEVICE void store_units(const Unit (&v)[LOADS], const struct copy_args &a, int64_t row, int64_t i) {
    Unit first = v[0];
#pragma unroll
    for (int k = STORES; k < LOADS; k++) first = either(first, v[k]);
    store_unit((Unit *)((char *)a.out[0] + row * a.out_stride[0]) + i, first);
    if constexpr (STORES > 1) store_unit((Unit *)((char *)a.out[1] + row * a.out_stride[1]) + i, v[1]);
}

/* Rows that lie apart, or that are not of whole vectors. */
template <int LOADS, int STORES, class Unit> DEVICE void copy_rows(const struct copy_args &a) {
    const int64_t units = a.bytes / (int64_t)sizeof(Unit);
    for (int64_t at = (int64_t)block_index() * block_size() + thread_index(); at < a.rows * units;
         at += (int64_t)grid_size() * block_size()) {
        const int64_t row = a.rows > 1 ? at / units : 0;
        Unit v[LOADS];
        load_units(v, a, row, at - row * units);
        store_units<STORES>(v, a, row, at - row * units);
    }
}
/* Tensors without gaps. A block moves a piece, N vectors of a tensor a thread: all loads first. */
template <int LOADS, int STORES, int N> DEVICE void copy_pieces(const struct copy_args &a) {
    const uint32_t units = (uint32_t)(a.bytes / 16), by = block_size(), first = block_index() * N * by + thread_index();
    if (first + (N - 1) * by < units) {
        uint4 v[N][LOADS];
#pragma unroll
        for (int n = 0; n < N; n++) load_units(v[n], a, 0, first + n * by);
#pragma unroll
        for (int n = 0; n < N; n++) store_units<STORES>(v[n], a, 0, first + n * by);
        return;
    }
    for (uint32_t i = first; i < units; i += by) {
        uint4 v[LOADS];
        load_units(v, a, 0, i);
        store_units<STORES>(v, a, 0, i);
    }
}

/* No N above 4: on an H100 copies of 67 MB by 1, 2, 4 and 8 moved 2,703, 2,681, 2,741 and 2,653 GB/s, one by the bulk engine 2,708. */
#define COPY_PIECES(loads, stores, n)                                                                                  \
    ENTRY(copies_wide_##loads##_##stores##_by_##n, copy_args, copy_pieces<loads, stores, n>)
#define COPY(loads, stores)                                                                                            \
    ENTRY(copies_wide_##loads##_##stores, copy_args, copy_rows<loads, stores, uint4>)                                  \
    ENTRY(copies_narrow_##loads##_##stores, copy_args, copy_rows<loads, stores, uint16_t>)                             \
    COPY_PIECES(loads, stores, 1) COPY_PIECES(loads, stores, 2)
COPY(1, 1)
COPY_PIECES(1, 1, 4)
COPY(2, 1)
COPY(2, 2)
COPY(3, 1)
DEVICE void nothing(const struct copy_args &) {}
ENTRY(copies_null, copy_args, nothing)
