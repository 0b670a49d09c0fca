// SPDX-License-Identifier: Apache-2.0
/* Every way to form 1/sqrt(x): plain C, AVX2, AVX-512, the kernels' own; and the table of them. */
#include "src/lab/roots/root_variants.h"

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "src/core/cpu.h"

static void by_double(const float *x, float *r) {
    for (int i = 0; i < NB_BATCH; i++) r[i] = (float)(1.0 / sqrt((double)x[i]));
}
static void recip_sqrt(const float *x, float *r) {
    for (int i = 0; i < NB_BATCH; i++) r[i] = 1.0f / sqrtf(x[i]);
}
static void recip_sqrt_newton(const float *x, float *r) {
    recip_sqrt(x, r);
    for (int i = 0; i < NB_BATCH; i++) r[i] = fmaf(0.5f * r[i], fmaf(-x[i] * r[i], r[i], 1.0f), r[i]);
}

/* The estimate of Quake III Arena (1999): the logarithm that a float's bits nearly are, halved and negated. */
static void quake(const float *x, float *r, int steps) {
    for (int i = 0; i < NB_BATCH; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits = 0x5f3759dfu - (bits >> 1);
        memcpy(&r[i], &bits, sizeof bits);
    }
    for (int s = 0; s < steps; s++)
        for (int i = 0; i < NB_BATCH; i++) r[i] = r[i] * (1.5f - 0.5f * x[i] * r[i] * r[i]);
}
static void quake1(const float *x, float *r) { quake(x, r, 1); }
static void quake2(const float *x, float *r) { quake(x, r, 2); }
static void quake3(const float *x, float *r) { quake(x, r, 3); }

#if defined(__x86_64__)
/* void name(floats, r), with the root of each vector x of so many bits. */
#define FILL(name, bits, root)                                                                                         \
    static void name(const float *floats, float *r) {                                                                  \
        for (int i = 0; i < NB_BATCH; i += bits / 32) {                                                                \
            const __m##bits x = _mm##bits##_loadu_ps(floats + i);                                                      \
            _mm##bits##_storeu_ps(r + i, root);                                                                        \
        }                                                                                                              \
    }

/* ---- AVX2 and FMA: rsqrtps with its Newton steps ---- */

NB_TARGET_BEGIN(NB_TARGET_V3)

/* r (1.5 - (x / 2) r^2), as it stands in textbooks. */
static inline __m256 step_textbook(__m256 x, __m256 r) {
    const __m256 half = _mm256_mul_ps(_mm256_set1_ps(0.5f), x);
    return _mm256_mul_ps(r, _mm256_sub_ps(_mm256_set1_ps(1.5f), _mm256_mul_ps(half, _mm256_mul_ps(r, r))));
}
/* r (1.5 - ((x / 2) r) r): no r^2, which overflows and underflows before r does. */
static inline __m256 step_eigen(__m256 x, __m256 r) {
    const __m256 half = _mm256_mul_ps(_mm256_set1_ps(0.5f), x);
    return _mm256_mul_ps(r, _mm256_sub_ps(_mm256_set1_ps(1.5f), _mm256_mul_ps(_mm256_mul_ps(half, r), r)));
}
/* r + (r / 2) (1 - (x r) r), the residual fused: rsqrt_newton() of kernels/shared/root.h. */
static inline __m256 step_fma(__m256 x, __m256 r) {
    const __m256 residual = _mm256_fnmadd_ps(_mm256_mul_ps(x, r), r, _mm256_set1_ps(1.0f));
    return _mm256_fmadd_ps(_mm256_mul_ps(_mm256_set1_ps(0.5f), r), residual, r);
}

FILL(rsqrtps, 256, _mm256_rsqrt_ps(x))
FILL(rsqrtps_textbook, 256, step_textbook(x, _mm256_rsqrt_ps(x)))
FILL(rsqrtps_eigen, 256, step_eigen(x, _mm256_rsqrt_ps(x)))
FILL(rsqrtps_newton, 256, step_fma(x, _mm256_rsqrt_ps(x)))
FILL(rsqrtps_newton2, 256, step_fma(x, step_fma(x, _mm256_rsqrt_ps(x))))

NB_TARGET_END

/* ---- AVX-512: rsqrt14 with its Newton steps, and the estimate of AVX512-FP16 ---- */

NB_TARGET_BEGIN(NB_TARGET_V4)

static inline __m512 textbook_16(__m512 x) {
    const __m512 r = _mm512_rsqrt14_ps(x), half = _mm512_mul_ps(_mm512_set1_ps(0.5f), x);
    return _mm512_mul_ps(r, _mm512_sub_ps(_mm512_set1_ps(1.5f), _mm512_mul_ps(half, _mm512_mul_ps(r, r))));
}
static inline __m512 newton_16(__m512 x) {
    const __m512 r = _mm512_rsqrt14_ps(x);
    const __m512 residual = _mm512_fnmadd_ps(_mm512_mul_ps(x, r), r, _mm512_set1_ps(1.0f));
    return _mm512_fmadd_ps(_mm512_mul_ps(_mm512_set1_ps(0.5f), r), residual, r);
}

FILL(rsqrt14, 512, _mm512_rsqrt14_ps(x))
FILL(rsqrt14_textbook, 512, textbook_16(x))
FILL(rsqrt14_newton, 512, newton_16(x))

NB_TARGET_END

/* x is rounded to f16 first, so what it does not hold is lost: from 65520 on Inf. By assembler: clang 14 offers the intrinsic only
 * to files compiled for AVX512-FP16 as a whole. */
static __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512fp16"))) void rsqrtph(const float *x, float *r) {
    for (int i = 0; i < NB_BATCH; i += 16) {
        __m256i h = _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
        __asm__("vrsqrtph %1, %0" : "=v"(h) : "v"(h));
        _mm512_storeu_ps(r + i, _mm512_cvtph_ps(h));
    }
}
#endif

/* ---- the table ---- */

/* What the kernels do, by their own code. */
static void scalar_div_sqrt(const float *x, float *r) { nb_simd_scalar.rstd(x, r, NB_ROOT_DIV_SQRT); }
static void scalar_mul_recip(const float *x, float *r) { nb_simd_scalar.rstd(x, r, NB_ROOT_MUL_RECIP); }
static void scalar_newton(const float *x, float *r) { nb_simd_scalar.rstd(x, r, NB_ROOT_RSQRT_NR); }
static void scalar_raw(const float *x, float *r) { nb_simd_scalar.rstd(x, r, NB_ROOT_RSQRT_RAW); }
#if defined(__x86_64__)
#define SCALAR_NEEDS NB_CPU_AVX2
#define V3(f) f
#define V4(f) f
#define ON_X86 NULL
static void wide_newton(const float *x, float *r) { nb_simd_512.rstd(x, r, NB_ROOT_RSQRT_NR); }
static void wide_raw(const float *x, float *r) { nb_simd_512.rstd(x, r, NB_ROOT_RSQRT_RAW); }
#else
#define SCALAR_NEEDS 0
#define V3(f) NULL
#define V4(f) NULL
#define ON_X86 "an instruction of x86"
#endif

/* Intel SDM and AMD APM, RSQRTPS: |relative error| <= 1.5 * 2^-12; VRSQRT14PS: below 2^-14. Arm ARM, FRSQRTE: 8 bits. */
#define RSQRTPS_LIMIT 0x1.8p-12
#define RSQRT14_LIMIT 0x1p-14
#if defined(__aarch64__)
#define KERNEL_LIMIT 0x1p-8
#else
#define KERNEL_LIMIT RSQRTPS_LIMIT
#endif

const struct nb_root_variant nb_root_variants[] = {
    {"double", "(float)(1 / sqrt((double)x))", 0, NULL, 0x1p-24, by_double},
    {"recip_sqrt", "1 / sqrtf(x)", 0, NULL, 0x1.8p-23, recip_sqrt},
    {"recip_sqrt_newton", "1 / sqrtf(x), a Newton step by FMA", 0, NULL, 0, recip_sqrt_newton},
    {"quake1", "0x5f3759df - (bits >> 1), 1 Newton step", 0, NULL, 0, quake1},
    {"quake2", "the same, 2 steps", 0, NULL, 0, quake2},
    {"quake3", "the same, 3 steps", 0, NULL, 0, quake3},
    {"rsqrtps", "rsqrtps", NB_CPU_AVX2, ON_X86, RSQRTPS_LIMIT, V3(rsqrtps)},
    {"rsqrtps_textbook", "rsqrtps, r (1.5 - x/2 r^2)", NB_CPU_AVX2, ON_X86, 0, V3(rsqrtps_textbook)},
    {"rsqrtps_eigen", "rsqrtps, r (1.5 - (x/2 r) r)", NB_CPU_AVX2, ON_X86, 0, V3(rsqrtps_eigen)},
    {"rsqrtps_newton", "rsqrtps, r + r/2 (1 - x r r) by FMA", NB_CPU_AVX2, ON_X86, 0, V3(rsqrtps_newton)},
    {"rsqrtps_newton2", "the same, 2 steps", NB_CPU_AVX2, ON_X86, 0, V3(rsqrtps_newton2)},
    {"rsqrt14", "vrsqrt14ps", NB_CPU_AVX512, ON_X86, RSQRT14_LIMIT, V4(rsqrt14)},
    {"rsqrt14_textbook", "vrsqrt14ps, r (1.5 - x/2 r^2)", NB_CPU_AVX512, ON_X86, 0, V4(rsqrt14_textbook)},
    {"rsqrt14_newton", "vrsqrt14ps, r + r/2 (1 - x r r) by FMA", NB_CPU_AVX512, ON_X86, 0, V4(rsqrt14_newton)},
    {"rsqrtph", "vrsqrtph of x rounded to f16", NB_CPU_AVX512 | NB_CPU_AVX512FP16, ON_X86, NB_RSQRTPH_LIMIT,
     V4(rsqrtph)},
    {"kernel_div_sqrt", "kernels/shared/root.h, div_sqrt: what the rstd output gets", SCALAR_NEEDS, NULL, 0x1.8p-23,
     scalar_div_sqrt},
    {"kernel_mul_recip", "kernels/shared/root.h, mul_recip", SCALAR_NEEDS, NULL, 0x1.8p-23, scalar_mul_recip},
    {"kernel_rsqrt_nr", "kernels/shared/root.h, rsqrt_nr, estimate of widths scalar to 256", SCALAR_NEEDS, NULL, 0,
     scalar_newton},
    {"kernel_rsqrt_raw", "kernels/shared/root.h, rsqrt_raw, estimate of widths scalar to 256", SCALAR_NEEDS, NULL,
     KERNEL_LIMIT, scalar_raw},
    {"kernel512_rsqrt_nr", "kernels/shared/root.h, rsqrt_nr, estimate of widths 256x and 512",
     NB_CPU_AVX2 | NB_CPU_AVX512, ON_X86, 0, V4(wide_newton)},
    {"kernel512_rsqrt_raw", "kernels/shared/root.h, rsqrt_raw, estimate of widths 256x and 512",
     NB_CPU_AVX2 | NB_CPU_AVX512, ON_X86, RSQRT14_LIMIT, V4(wide_raw)},
};
const size_t nb_n_root_variants = sizeof nb_root_variants / sizeof nb_root_variants[0];

const struct nb_root_variant *nb_root_variant_find(const char *name) {
    for (size_t i = 0; i < nb_n_root_variants; i++)
        if (strcmp(nb_root_variants[i].name, name) == 0) return &nb_root_variants[i];
    return NULL;
}

const char *nb_root_variant_refuses(const struct nb_root_variant *v) {
    return v->elsewhere ? v->elsewhere : nb_cpu_refuses(v->needs, NB_NATIVE);
}
