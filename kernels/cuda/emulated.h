// SPDX-License-Identifier: Apache-2.0
/* The vocabulary of device.h on a CPU. A block's threads are fibers: each runs until it meets a barrier or a shuffle, and goes on when all
 * that take part are there (emulated.cpp). */
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/simd/scalar.h"

#define DEVICE static inline __attribute__((unused))
#define ENTRY(name, args, ...)                                                                                         \
    static void name##_thread(const void *a) { __VA_ARGS__(*(const struct args *)a); }                                 \
    static struct emulated_entry name##_entry = {#name, name##_thread, nullptr};                                       \
    __attribute__((constructor)) static void name##_register() { emulated_register(&name##_entry); }
#define ENTRY_FOR(name, args, threads, room, ...) ENTRY(name, args, __VA_ARGS__)

struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

struct emulated_entry {
    const char *name;
    void (*thread)(const void *args);
    struct emulated_entry *next;
};
void emulated_register(struct emulated_entry *entry);

/* The thread that runs now. */
struct emulated_thread {
    uint32_t index, block, block_size, grid_size;
    char *shared;
};
extern __thread const struct emulated_thread *emulated_now;

void emulated_barrier(bool of_cluster, int line);
float emulated_shuffle(uint32_t mask, float v, uint32_t d, int line);
const float *emulated_on_rank(const float *p, uint32_t rank);
void emulated_expect(uint64_t *box, uint32_t bytes);
void emulated_posted(uint64_t *box, uint32_t bytes);
void emulated_wait(uint64_t *box, uint32_t parity, int line);
/* Done when the thread waits for it: until then there are NaNs where it goes to. */
void emulated_copy(void *to, const void *from, uint32_t bytes);
void emulated_copies_end();
void emulated_copies_wait(uint32_t but);
/* Ends the launch with an error that names block and thread. */
[[noreturn]] void emulated_fail(const char *what);

DEVICE uint32_t thread_index() { return emulated_now->index; }
DEVICE uint32_t block_index() { return emulated_now->block; }
DEVICE uint32_t block_size() { return emulated_now->block_size; }
DEVICE uint32_t grid_size() { return emulated_now->grid_size; }
DEVICE char *shared_buffer() { return emulated_now->shared; }
DEVICE void barrier(int line = __builtin_LINE()) { emulated_barrier(false, line); }
DEVICE void cluster_barrier(int line = __builtin_LINE()) { emulated_barrier(true, line); }
DEVICE float shuffle_xor(uint32_t mask, float v, uint32_t d, int line = __builtin_LINE()) {
    return emulated_shuffle(mask, v, d, line);
}
constexpr bool CLUSTERS = true;
DEVICE void cluster_arrive() {}
DEVICE void cluster_wait(int line = __builtin_LINE()) { emulated_barrier(true, line); }
DEVICE const float *on_rank(const float *p, uint32_t rank) { return emulated_on_rank(p, rank); }
DEVICE void box_init(uint64_t *box) { *box = 0; }
DEVICE void box_expect(uint64_t *box, uint32_t bytes) { emulated_expect(box, bytes); }
DEVICE void post(float *p, uint64_t *box, uint32_t rank, float v) {
    *(float *)emulated_on_rank(p, rank) = v;
    emulated_posted((uint64_t *)emulated_on_rank((float *)box, rank), sizeof v);
}
DEVICE void box_wait(uint64_t *box, uint32_t parity, int line = __builtin_LINE()) { emulated_wait(box, parity, line); }

DEVICE void forget() {}
/* A GPU traps where 16 bytes are not aligned. */
DEVICE uint4 load16(const void *p) {
    if ((uintptr_t)p % 16) emulated_fail("loads 16 bytes that are not aligned");
    uint4 v;
    memcpy(&v, p, sizeof v);
    return v;
}
DEVICE uint4 load16_once(const void *p) { return load16(p); }
DEVICE void store16(void *p, uint4 v) {
    if ((uintptr_t)p % 16) emulated_fail("stores 16 bytes that are not aligned");
    memcpy(p, &v, sizeof v);
}
DEVICE void store16_shared(float *p, uint4 v) { store16(p, v); }
DEVICE void copy16_later(void *to, const void *from) { emulated_copy(to, from, 16); }
DEVICE void copy4_later(void *to, const void *from) { emulated_copy(to, from, 4); }
DEVICE void copies_end() { emulated_copies_end(); }
template <int N> DEVICE void copies_wait() { emulated_copies_wait(N); }
DEVICE uint32_t log2_of(uint32_t n) { return 31 - (uint32_t)__builtin_clz(n); }
DEVICE float float_of(uint32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
DEVICE uint32_t bits_of(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
DEVICE float f16_to_f32(uint16_t h) { return nb_f16_to_f32(h); }
DEVICE uint16_t f32_to_f16(float v) { return v != v ? 0x7fff : nb_f32_to_f16(v); }
DEVICE uint16_t f32_to_bf16(float v) { return v != v ? 0x7fff : nb_f32_to_bf16(v); }
DEVICE float canonical(float v) { return v != v ? float_of(0x7fffffff) : v; }
/* Two roundings in double make one in f32: no 1 / sqrt(v) of an f32 lies as near to the
 * middle of two, as all of two binades show, which stand for the others. */
DEVICE float rsqrt_rounded(float v) { return (float)(1.0 / sqrt((double)v)); }
DEVICE float rsqrt_estimate(float v) { return rsqrt_rounded(v); }
