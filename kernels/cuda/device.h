// SPDX-License-Identifier: Apache-2.0
/* The vocabulary that the device functions are written in: compiled by nvcc for GPUs, and by g++ with emulated.h for the CPU.
 *
 *   DEVICE                   before a function
 *   ENTRY(name, args, body)  a device function that the host launches by name; its parameters are one struct args
 *   thread_index, ...        of the launch, one dimension
 *   barrier, cluster_barrier every thread of the block, of the cluster
 *   shuffle_xor(mask, v, d)  v of the lane whose number differs by the bit d; mask: the lanes of the warp that take part
 *   shared_buffer            the block's shared memory, aligned to 16 bytes; its contents are undefined
 *   cluster_arrive, _wait    the latter in two halves
 *   on_rank(p, rank)         where p, in shared memory, is in another block of the cluster
 *   load16, store16          16 aligned bytes at once; load16_once: not kept in L1; store16_shared: to shared memory
 *   forget(w)                the compiler is to keep the word w, and not what it has made of it; forget(): what it has read of shared memory
 *   log2_of(n)               of a power of two
 *   post(p, box, rank, v)    v to where p, in shared memory, is in another block of the cluster, whose box counts its 4 bytes; box_init:
 *                            one thread, once; box_expect: one thread a round, of how many bytes; box_wait: until they have come in the
 *                            round whose number has this parity. Cheap, where a barrier of the cluster waits for all stores to memory,
 *                            and empties L1
 *   copy16_later, copy4_later  from global to shared memory while the thread goes on; copies_end closes a group of them,
 *                            copies_wait<N> waits for all groups of this thread but its newest N
 *   rsqrt_estimate           approximate, to 2 ulp: the one function whose bits differ between a GPU and the emulation
 *   rsqrt_rounded            1 / sqrt(v), rounded once
 *
 * a * b + c is two roundings (-fmad=false, -ffp-contract=off); what is to be rounded once is written fmaf. Division and sqrtf are
 * rounded correctly. canonical(v): a NaN as a GPU's arithmetic makes it, whose bits do not depend on its operands. */
#pragma once

#include <stdint.h>

#include "kernels/cuda/args.h"
#include "kernels/kernel.h"

struct f16 {
    uint16_t bits;
};
struct bf16 {
    uint16_t bits;
};

/* Mistakes that the tests build in, to see that they are found. */
enum planted { NONE, NO_BARRIER, SHORT_SHUFFLE, BRANCHED_BARRIER, WIDE_MASK, FAR_VECTOR, UNWRITTEN_SHARED, NO_WAIT };
#ifndef PLANTED
#define PLANTED NONE
#endif

#if defined(__CUDACC__)

#define DEVICE static __device__ __forceinline__
/* ROOM: blocks that a processor must have room for, else 2. Told nothing, ptxas 13.0 spilled registers of two of the rows kernels for room
 * for five. */
#ifndef ROOM
#define ROOM 2
#endif
#define ENTRY_FOR(name, args, threads, room, ...)                                                                      \
    extern "C" __global__ void __launch_bounds__(threads, room) name(const __grid_constant__ struct args a) {          \
        __VA_ARGS__(a);                                                                                                \
    }
#define ENTRY(name, args, ...) ENTRY_FOR(name, args, BLOCK, ROOM, __VA_ARGS__)

DEVICE uint32_t thread_index() { return threadIdx.x; }
DEVICE uint32_t block_index() { return blockIdx.x; }
DEVICE uint32_t block_size() { return blockDim.x; }
DEVICE uint32_t grid_size() { return gridDim.x; }
DEVICE void barrier() { __syncthreads(); }
DEVICE float shuffle_xor(uint32_t mask, float v, uint32_t d) { return __shfl_xor_sync(mask, v, (int)d); }
extern __shared__ uint4 shared_words[];
DEVICE char *shared_buffer() { return (char *)shared_words; }
DEVICE uint32_t in_shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

#if __CUDA_ARCH__ >= 900
constexpr bool CLUSTERS = true;
DEVICE void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
DEVICE const float *on_rank(const float *p, uint32_t rank) {
    uint64_t there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(p), "r"(rank));
    return (const float *)there;
}
DEVICE void box_init(uint64_t *box) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(in_shared(box))
                 : "memory");
}
DEVICE void box_expect(uint64_t *box, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(in_shared(box)), "r"(bytes) : "memory");
}
DEVICE void post(float *p, uint64_t *box, uint32_t rank, float v) {
    asm volatile("{\n\t.reg .b32 there, counted;\n\t"
                 "mapa.shared::cluster.u32 there, %0, %2;\n\t"
                 "mapa.shared::cluster.u32 counted, %1, %2;\n\t"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [there], %3, [counted];\n\t}" ::"r"(
                     in_shared(p)),
                 "r"(in_shared(box)), "r"(rank), "r"(__float_as_uint(v))
                 : "memory");
}
DEVICE void box_wait(uint64_t *box, uint32_t parity) {
    uint32_t come;
    do {
        asm volatile("{\n\t.reg .pred come;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 come, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, come;\n\t}"
                     : "=r"(come)
                     : "r"(in_shared(box)), "r"(parity)
                     : "memory");
    } while (!come);
}
#else /* the host makes no clusters */
constexpr bool CLUSTERS = false;
DEVICE void cluster_barrier() { __syncthreads(); }
DEVICE void cluster_arrive() {}
DEVICE void cluster_wait() {}
DEVICE void box_init(uint64_t *) {}
DEVICE void box_expect(uint64_t *, uint32_t) {}
DEVICE void post(float *, uint64_t *, uint32_t, float) {}
DEVICE void box_wait(uint64_t *, uint32_t) {}
DEVICE const float *on_rank(const float *p, uint32_t) { return p; }
#endif

/* The compiler is not to keep what it has loaded from memory. */
DEVICE void forget() { asm volatile("" ::: "memory"); }
DEVICE uint4 load16(const void *p) { return *(const uint4 *)p; }
DEVICE uint4 load16_once(const void *p) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(__cvta_generic_to_global(p)));
    return v;
}
/* Not *(uint4 *)p = v, which nvcc 13.0 takes apart into four stores of 4 bytes wherever the words are f32. */
DEVICE void store16(void *p, uint4 v) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
}
DEVICE void store16_shared(float *p, uint4 v) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_shared(p)), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
}
DEVICE void copy16_later(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(in_shared(to)),
                 "l"(__cvta_generic_to_global(from))
                 : "memory");
}
DEVICE void copy4_later(void *to, const void *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(in_shared(to)), "l"(__cvta_generic_to_global(from))
                 : "memory");
}
DEVICE void copies_end() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
DEVICE float float_of(uint32_t bits) { return __uint_as_float(bits); }
DEVICE uint32_t bits_of(float v) { return __float_as_uint(v); }
DEVICE float f16_to_f32(uint16_t h) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
    return v;
}
DEVICE uint16_t f32_to_f16(float v) {
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}
DEVICE uint16_t f32_to_bf16(float v) {
    uint16_t h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}
DEVICE uint32_t log2_of(uint32_t n) { return 31 - (uint32_t)__clz((int)n); }
DEVICE float canonical(float v) { return v; }
DEVICE float rsqrt_estimate(float v) { return rsqrtf(v); }
DEVICE float rsqrt_rounded(float v) { return __frsqrt_rn(v); }

#else
#include "kernels/cuda/emulated.h"
#endif

DEVICE void forget(uint32_t &w) { asm volatile("" : "+r"(w)); }
DEVICE void forget(uint4 &w) { asm volatile("" : "+r"(w.x), "+r"(w.y), "+r"(w.z), "+r"(w.w)); }

/* ---- elements ---- */

DEVICE float get(float v) { return v; }
DEVICE float get(struct f16 v) { return f16_to_f32(v.bits); }
DEVICE float get(struct bf16 v) { return float_of((uint32_t)v.bits << 16); }
DEVICE void put(float *p, float v) { *p = canonical(v); }
DEVICE void put(struct f16 *p, float v) { p->bits = f32_to_f16(v); }
DEVICE void put(struct bf16 *p, float v) { p->bits = f32_to_bf16(v); }
template <class E> DEVICE float rounded(float v) {
    E e;
    put(&e, v);
    return get(e);
}
template <class E> DEVICE float get_any(const void *p, int64_t i, bool narrow) {
    return narrow ? get(((const E *)p)[i]) : ((const float *)p)[i];
}

/* ---- vectors: N elements, in accesses of 16 bytes (WIDE) or one by one, in which case only the first `left` are there; the others load as
 * 0. Which thread has which element does not depend on it, so that no bit depends on the alignment of a tensor. ---- */

/* Elements of 16 bytes. */
template <class E> constexpr int VECTOR = 16 / sizeof(E);
DEVICE void unpack(uint4 w, float *v, float) {
    v[0] = float_of(w.x), v[1] = float_of(w.y), v[2] = float_of(w.z), v[3] = float_of(w.w);
}
template <class E> DEVICE void unpack(uint4 w, float *v, E) {
    const uint32_t words[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        v[2 * i] = get(E{(uint16_t)words[i]});
        v[2 * i + 1] = get(E{(uint16_t)(words[i] >> 16)});
    }
}
DEVICE uint4 pack(const float *v, float) {
    return uint4{bits_of(canonical(v[0])), bits_of(canonical(v[1])), bits_of(canonical(v[2])),
                 bits_of(canonical(v[3]))};
}
template <class E> DEVICE uint4 pack(const float *v, E) {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        E low, high;
        put(&low, v[2 * i]);
        put(&high, v[2 * i + 1]);
        words[i] = low.bits | (uint32_t)high.bits << 16;
    }
    return uint4{words[0], words[1], words[2], words[3]};
}

template <bool WIDE, int N, class E> DEVICE void load(float (&v)[N], const E *p, int64_t left) {
    if constexpr (!WIDE) {
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = j < left ? get(p[j]) : 0.0f;
    } else if constexpr (N * sizeof(E) == 16) {
        unpack(load16(p), v, E{});
    } else { /* f32 beside 16-bit elements */
#pragma unroll
        for (int j = 0; j < N; j += 4) unpack(load16(p + j), v + j, E{});
    }
}
template <bool WIDE, int N, class E> DEVICE void store(E *p, const float (&v)[N], int64_t left) {
    if constexpr (!WIDE) {
#pragma unroll
        for (int j = 0; j < N; j++)
            if (j < left) put(p + j, v[j]);
    } else if constexpr (N * sizeof(E) == 16) {
        store16(p, pack(v, E{}));
    } else {
#pragma unroll
        for (int j = 0; j < N; j += 4) store16(p + j, pack(v + j, E{}));
    }
}
/* A vector as it was loaded, so that several can be before the first is used; what there is not is zero. */
template <class E, bool WIDE> struct words { uint4 all; };
template <class E> struct words<E, false> { E each[VECTOR<E>]; };
template <class E> DEVICE void load_words(struct words<E, true> &w, const E *p, int left) {
    w.all = uint4{0, 0, 0, 0};
    if (left) w.all = load16(p);
}
template <class E> DEVICE void load_words(struct words<E, false> &w, const E *p, int left) {
#pragma unroll
    for (int j = 0; j < VECTOR<E>; j++) w.each[j] = j < left ? p[j] : E{};
}
template <class E> DEVICE void unpack(const struct words<E, true> &w, float *v) { unpack(w.all, v, E{}); }
template <class E> DEVICE void unpack(const struct words<E, false> &w, float *v) {
#pragma unroll
    for (int j = 0; j < VECTOR<E>; j++) v[j] = get(w.each[j]);
}
/* To shared memory. */
template <int N> DEVICE void keep(float *p, const float (&v)[N]) {
    if constexpr (N % 4 == 0) {
#pragma unroll
        for (int j = 0; j < N; j += 4)
            store16_shared(p + j, uint4{bits_of(v[j]), bits_of(v[j + 1]), bits_of(v[j + 2]), bits_of(v[j + 3])});
    } else {
#pragma unroll
        for (int j = 0; j < N; j++) p[j] = v[j];
    }
}
template <int N> DEVICE void load_shared(float (&v)[N], const float *p) {
#pragma unroll
    for (int j = 0; j < N; j += 4) unpack(load16(p + j), v + j, 0.0f);
}
/* Of f32, or of elements where they are narrow. */
template <bool WIDE, class E, int N>
DEVICE void load_any(float (&v)[N], const void *p, int64_t i, int64_t left, bool narrow) {
    if (narrow)
        load<WIDE>(v, (const E *)p + i, left);
    else
        load<WIDE>(v, (const float *)p + i, left);
}
template <bool WIDE, class E, int N>
DEVICE void store_any(void *p, int64_t i, const float (&v)[N], int64_t left, bool narrow) {
    if (narrow)
        store<WIDE>((E *)p + i, v, left);
    else
        store<WIDE>((float *)p + i, v, left);
}

/* A device function of every dtype and access: M(name, type of an element, is it wide). ONE_OF_EACH, with it ONE_A_FAMILY (of the fast ones
 * the one with most registers), F32_ALONE: what tests look at within seconds (tests/cli/cuda_code.sh, cuda_emulated.sh). */
#if defined(ONE_OF_EACH)
#define EACH_WIDE(M) M(bf16, struct bf16)
#define EACH_NARROW(M)
#define EACH_ACCESS(M) M(bf16_wide, struct bf16, true)
#elif defined(F32_ALONE)
#define EACH_WIDE(M) M(f32, float)
#define EACH_NARROW(M) M(f32, float)
#define EACH_ACCESS(M) M(f32_wide, float, true) M(f32_narrow, float, false)
#else
#define EACH_WIDE(M) M(f32, float) M(f16, struct f16) M(bf16, struct bf16)
#define EACH_NARROW(M) EACH_WIDE(M)
#define EACH_ACCESS(M)                                                                                                 \
    M(f32_wide, float, true)                                                                                           \
    M(f32_narrow, float, false)                                                                                        \
    M(f16_wide, struct f16, true)                                                                                      \
    M(f16_narrow, struct f16, false) M(bf16_wide, struct bf16, true) M(bf16_narrow, struct bf16, false)
#endif
