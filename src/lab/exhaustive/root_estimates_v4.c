// SPDX-License-Identifier: Apache-2.0
/* 1/sqrt(x) with AVX-512: rsqrt14 with its Newton steps, and AVX512-FP16's estimate. */
#include "src/lab/exhaustive/root_variants.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "src/core/cpu.h"

NB_TARGET_BEGIN(NB_TARGET_V4)

typedef __m512 (*root_fn)(__m512 x);
static inline __attribute__((always_inline)) void over_batch(const float *x, float *r, root_fn root) {
    for (int i = 0; i < NB_BATCH; i += 16) _mm512_storeu_ps(r + i, root(_mm512_loadu_ps(x + i)));
}
static inline __m512 estimate(__m512 x) { return _mm512_rsqrt14_ps(x); }
static inline __m512 textbook(__m512 x) {
    const __m512 r = _mm512_rsqrt14_ps(x), half = _mm512_mul_ps(_mm512_set1_ps(0.5f), x);
    return _mm512_mul_ps(r, _mm512_sub_ps(_mm512_set1_ps(1.5f), _mm512_mul_ps(half, _mm512_mul_ps(r, r))));
}
static inline __m512 newton(__m512 x) {
    const __m512 r = _mm512_rsqrt14_ps(x);
    const __m512 residual = _mm512_fnmadd_ps(_mm512_mul_ps(x, r), r, _mm512_set1_ps(1.0f));
    return _mm512_fmadd_ps(_mm512_mul_ps(_mm512_set1_ps(0.5f), r), residual, r);
}

void nb_root_rsqrt14(const float *x, float *r) { over_batch(x, r, estimate); }
void nb_root_rsqrt14_textbook(const float *x, float *r) { over_batch(x, r, textbook); }
void nb_root_rsqrt14_newton(const float *x, float *r) { over_batch(x, r, newton); }

NB_TARGET_END

/* x is rounded to f16 first, so what it does not hold is lost: from 65520 on Inf. By assembler: clang 14 offers the intrinsic only
 * to files compiled for AVX512-FP16 as a whole. */
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512fp16"))) void nb_root_rsqrtph(const float *x,
                                                                                              float *r) {
    for (int i = 0; i < NB_BATCH; i += 16) {
        __m256i h = _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
        __asm__("vrsqrtph %1, %0" : "=v"(h) : "v"(h));
        _mm512_storeu_ps(r + i, _mm512_cvtph_ps(h));
    }
}
#endif
