// SPDX-License-Identifier: Apache-2.0
/* The vocabulary a kernel is written in, once for every width and dtype. The build sets NB_SIMD_HEADER (which of simd/),
 * NB_DTYPE (NB_F32, NB_F16 or NB_BF16), NB_VARIANT and NB_DTYPE_NAME (the two suffixes of the variant's name).
 *
 *   vec                 NB_LANES f32 values; + - * / are the C operators
 *   elem                one stored element: float, or uint16_t for f16 and bf16
 *   vec_load, vec_store NB_LANES elements, any alignment, converted (round to nearest even)
 *   ..._tail(.., n)     the first n lanes only, 0 <= n < NB_LANES; absent lanes load as 0 and memory behind them is untouched
 *   vec_keep(v, n)      lanes from n on set to 0
 *   vec_round           to the dtype and back
 *   vec_sum             all lanes, in an order fixed for each width
 *   vec_fma(a, b, c)    a * b + c, rounded once; nothing else is ever fused (-ffp-contract=off)
 *   elem_get, elem_set  one element
 *   nb_rsqrt_estimate   the width's own hardware estimate of 1/sqrt */
#ifndef NB_VEC_H
#define NB_VEC_H

#include "kernel.h"

#ifndef NB_SIMD_HEADER /* for editors */
#define NB_SIMD_HEADER "simd/scalar.h"
#define NB_VARIANT scalar
#define NB_DTYPE NB_F32
#define NB_DTYPE_NAME f32
#define NB_DTYPE_IS_F32
#endif
#include NB_SIMD_HEADER

#ifndef NB_HAVE_MASKED_16
#include <string.h>

/* 16-bit tails through a small buffer: AVX2 has no masked load of 16-bit elements. */
static inline vec vec_load_f16_tail(const uint16_t *p, int64_t n) {
    uint16_t lanes[NB_LANES] = {0};
    for (int64_t i = 0; i < n; i++) lanes[i] = p[i];
    return vec_load_f16(lanes);
}
static inline void vec_store_f16_tail(uint16_t *p, vec v, int64_t n) {
    uint16_t lanes[NB_LANES];
    vec_store_f16(lanes, v);
    for (int64_t i = 0; i < n; i++) p[i] = lanes[i];
}
static inline vec vec_load_bf16_tail(const uint16_t *p, int64_t n) {
    uint16_t lanes[NB_LANES] = {0};
    for (int64_t i = 0; i < n; i++) lanes[i] = p[i];
    return vec_load_bf16(lanes);
}
static inline void vec_store_bf16_tail(uint16_t *p, vec v, int64_t n) {
    uint16_t lanes[NB_LANES];
    vec_store_bf16(lanes, v);
    for (int64_t i = 0; i < n; i++) p[i] = lanes[i];
}
#endif

#if defined(NB_DTYPE_IS_F32)
typedef float elem;
static inline vec vec_load(const elem *p) { return vec_load_f32(p); }
static inline void vec_store(elem *p, vec v) { vec_store_f32(p, v); }
static inline vec vec_load_tail(const elem *p, int64_t n) { return vec_load_f32_tail(p, n); }
static inline void vec_store_tail(elem *p, vec v, int64_t n) { vec_store_f32_tail(p, v, n); }
static inline vec vec_round(vec v) { return v; }
static inline float elem_get(const elem *p) { return *p; }
static inline void elem_set(elem *p, float f) { *p = f; }
static inline float elem_round(float f) { return f; }
#elif defined(NB_DTYPE_IS_F16)
typedef uint16_t elem;
static inline vec vec_load(const elem *p) { return vec_load_f16(p); }
static inline void vec_store(elem *p, vec v) { vec_store_f16(p, v); }
static inline vec vec_load_tail(const elem *p, int64_t n) { return vec_load_f16_tail(p, n); }
static inline void vec_store_tail(elem *p, vec v, int64_t n) { vec_store_f16_tail(p, v, n); }
static inline vec vec_round(vec v) { return vec_round_f16(v); }
static inline float elem_get(const elem *p) { return nb_f16_to_f32(*p); }
static inline void elem_set(elem *p, float f) { *p = nb_f32_to_f16(f); }
static inline float elem_round(float f) { return nb_f16_to_f32(nb_f32_to_f16(f)); }
#elif defined(NB_DTYPE_IS_BF16)
typedef uint16_t elem;
static inline vec vec_load(const elem *p) { return vec_load_bf16(p); }
static inline void vec_store(elem *p, vec v) { vec_store_bf16(p, v); }
static inline vec vec_load_tail(const elem *p, int64_t n) { return vec_load_bf16_tail(p, n); }
static inline void vec_store_tail(elem *p, vec v, int64_t n) { vec_store_bf16_tail(p, v, n); }
static inline vec vec_round(vec v) { return vec_round_bf16(v); }
static inline float elem_get(const elem *p) { return nb_bf16_to_f32(*p); }
static inline void elem_set(elem *p, float f) { *p = nb_f32_to_bf16(f); }
static inline float elem_round(float f) { return nb_bf16_to_f32(nb_f32_to_bf16(f)); }
#else
#error "NB_DTYPE_IS_F32, NB_DTYPE_IS_F16 or NB_DTYPE_IS_BF16 must be defined"
#endif

/* Row r of a tensor. */
static inline const elem *row_in(const void *tensor, int64_t stride, int64_t r) { return (const elem *)tensor + r * stride; }
static inline elem *row_out(void *tensor, int64_t stride, int64_t r) { return (elem *)tensor + r * stride; }

#define NB_JOIN4_(a, b, c) a##_##b##_##c
#define NB_JOIN4(a, b, c) NB_JOIN4_(a, b, c)
#define NB_TEXT_(s) #s
#define NB_TEXT(s) NB_TEXT_(s)
#define NB_VARIANT_SYMBOL(kernel) NB_JOIN4(kernel, NB_VARIANT, NB_DTYPE_NAME)

#if NB_LANES == 1 && defined(__aarch64__)
#define NB_CPU_NEEDED 0
#elif defined(__aarch64__)
#define NB_CPU_NEEDED NB_CPU_NEON
#elif defined(NB_HAVE_RSQRT14) || defined(NB_HAVE_MASKED_16)
#define NB_CPU_NEEDED (NB_CPU_AVX2 | NB_CPU_AVX512)
#else
#define NB_CPU_NEEDED NB_CPU_AVX2
#endif

/* Ends a kernel's file: its contract, as designated initialisers of struct nb_kernel. The file is named as the kernel. */
#define NB_KERNEL(kernel, ...)                                                                                      \
    extern const struct nb_kernel NB_VARIANT_SYMBOL(kernel);                                                        \
    const struct nb_kernel NB_VARIANT_SYMBOL(kernel) = {.struct_size = sizeof(struct nb_kernel),                    \
                                                        .dtype = NB_DTYPE,                                          \
                                                        .width = NB_WIDTH,                                          \
                                                        .cpu_features = NB_CPU_NEEDED,                              \
                                                        .name = #kernel,                                            \
                                                        .variant = NB_TEXT(NB_VARIANT_SYMBOL(kernel)),              \
                                                        __VA_ARGS__}

#define NB_ALL(n) ((1u << (n)) - 1u) /* the mask of all n values of an enum */
#define NB_BIT(value) (1u << (value))

#endif
