// SPDX-License-Identifier: Apache-2.0
/* The vocabulary a kernel is written in, once for every width and dtype. The build sets NB_SIMD_HEADER (which of simd/),
 * NB_DTYPE (NB_F32, NB_F16 or NB_BF16), NB_VARIANT and NB_DTYPE_NAME (the two suffixes of the variant's name).
 *
 *   vec                 NB_LANES f32 values; + - * / are the C operators
 *   elem                one stored element: float, or uint16_t for f16 and bf16
 *   vec_load, vec_store NB_LANES elements, any alignment, converted (round to nearest even)
 *   ..._tail(.., n)     the first n lanes only, 0 <= n < NB_LANES; absent lanes load as 0 and memory behind them is untouched
 *   vec_blend(a, b, n)  the first n lanes of a, the others of b; vec_keep(v, n): the others 0
 *   vec_min(a, b)       a < b ? a : b, and so b where either is NaN; vec_max likewise
 *   vec_select_less(a, b, yes, no)  a < b ? yes : no, and so no for NaN
 *   vec_pow2(t)         2^k for t = 1.5 * 2^23 + k, k an integer from -126 to 127
 *   vec_round           to the dtype and back
 *   vec_negatives(a, b, c, d)  how many of their lanes have the sign bit set, -0 and NaN among them
 *   vec_first           lane 0
 *   vec_sum             all lanes, in an order fixed for each width
 *   vec_fma(a, b, c)    a * b + c, rounded once; nothing else is ever fused (-ffp-contract=off)
 *   elem_get, elem_set  one element
 *   NB_CPU_NEEDED       the features that the flags of this width let the compiler use
 *   nb_rsqrt_estimate   the width's own hardware estimate of 1/sqrt
 *   raw                 a full register of bytes, moved as they are; raw_opaque keeps a load from being
 *                       dropped, or a loop of them from being taken for memcpy */
#pragma once

#include "kernels/kernel.h"

#ifndef NB_SIMD_HEADER /* for editors */
#define NB_SIMD_HEADER "kernels/simd/scalar.h"
#define NB_VARIANT scalar
#define NB_DTYPE NB_F32
#define NB_DTYPE_NAME f32
#define NB_DTYPE_IS_F32
#endif
#include NB_SIMD_HEADER
#ifndef NB_BACKEND
#define NB_BACKEND NB_BACKEND_CPU
#endif

#if defined(NB_DTYPE_IS_F32)
typedef float elem;
static inline vec vec_round_f32(vec v) { return v; }
static inline float nb_f32_to_f32(float f) { return f; }
#else
typedef uint16_t elem;
#endif

#define NB_JOIN_(a, b) a##b
#define NB_JOIN(a, b) NB_JOIN_(a, b)
/* Of a family of functions, that of the dtype. */
#define NB_TYPED(name) NB_JOIN(name, NB_DTYPE_NAME)
static inline vec vec_load(const elem *p) { return NB_TYPED(vec_load_)(p); }
static inline void vec_store(elem *p, vec v) { NB_TYPED(vec_store_)(p, v); }
static inline vec vec_load_tail(const elem *p, int64_t n) { return NB_JOIN(NB_TYPED(vec_load_), _tail)(p, n); }
static inline void vec_store_tail(elem *p, vec v, int64_t n) { NB_JOIN(NB_TYPED(vec_store_), _tail)(p, v, n); }
static inline vec vec_round(vec v) { return NB_TYPED(vec_round_)(v); }
static inline float elem_get(const elem *p) { return NB_JOIN(NB_TYPED(nb_), _to_f32)(*p); }
static inline void elem_set(elem *p, float f) { *p = NB_TYPED(nb_f32_to_)(f); }
static inline float elem_round(float f) { return NB_JOIN(NB_TYPED(nb_), _to_f32)(NB_TYPED(nb_f32_to_)(f)); }

/* Row r of a tensor. */
static inline const elem *row_in(const void *tensor, int64_t stride, int64_t r) {
    return (const elem *)tensor + r * stride;
}
static inline elem *row_out(void *tensor, int64_t stride, int64_t r) { return (elem *)tensor + r * stride; }

#define NB_JOIN4_(a, b, c) a##_##b##_##c
#define NB_JOIN4(a, b, c) NB_JOIN4_(a, b, c)
#define NB_TEXT_(s) #s
#define NB_TEXT(s) NB_TEXT_(s)
#define NB_VARIANT_SYMBOL(kernel) NB_JOIN4(kernel, NB_VARIANT, NB_DTYPE_NAME)

/* What the build says of a kernel. */
#define NB_KERNEL_BUILT(kernel)                                                                                        \
    .struct_size = sizeof(struct nb_kernel), .dtype = NB_DTYPE, .width = NB_WIDTH, .cpu_features = NB_CPU_NEEDED,      \
    .name = #kernel, .variant = NB_TEXT(NB_VARIANT_SYMBOL(kernel)), .backend = NB_BACKEND
/* Ends a kernel's file: its contract, as designated initialisers of struct nb_kernel. The file is named as the kernel. */
#define NB_KERNEL(kernel, ...)                                                                                         \
    extern const struct nb_kernel NB_VARIANT_SYMBOL(kernel);                                                           \
    const struct nb_kernel NB_VARIANT_SYMBOL(kernel) = {NB_KERNEL_BUILT(kernel), __VA_ARGS__}

#define NB_ALL(n) ((1u << (n)) - 1u) /* the mask of all n values of an enum */
#define NB_BIT(value) (1u << (value))

/* Fields of struct nb_formulas: all there is of the affine part, of a forward call, of a gradient, in which eps, its place and the cast do
 * not appear. */
#define NB_EVERY_AFFINE .weight_offsets = NB_ALL(2), .affines = NB_ALL(NB_N_AFFINES), .params = NB_ALL(NB_N_PARAMS)
#define NB_EVERY_FORMULA                                                                                               \
    .roots = NB_ALL(NB_N_ROOTS), .eps_places = NB_ALL(NB_N_EPS_PLACES), .casts = NB_ALL(NB_N_CASTS), NB_EVERY_AFFINE
#define NB_EVERY_GRADIENT .roots = NB_BIT(NB_ROOT_MUL_RECIP), NB_EVERY_AFFINE

/* A row's result depends on that row alone: of a gradient dx, since dgamma and dbeta are sums over whatever rows there are. */
static inline int always_row_local(const struct nb_call *call) { return 1; }
/* Nothing is reduced, and nothing rounded. */
static inline int64_t no_chain(const struct nb_call *call) { return 0; }
/* pRMSNorm, whose statistics see the first k elements. */
static inline const char *prefix_applicable(const struct nb_call *call) {
    return call->k >= 1 && call->k <= call->cols ? NULL : "k must be from 1 to the row's length";
}
