// SPDX-License-Identifier: Apache-2.0
/* 1/sqrt(x) with AVX2 and FMA: IEEE operations, and rsqrtps with its Newton steps. */
#include "src/lab/exhaustive/root_variants.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "src/core/cpu.h"

NB_TARGET_BEGIN(NB_TARGET_V3)

typedef __m256 (*root_fn)(__m256 x);
static inline __attribute__((always_inline)) void over_batch(const float *x, float *r, root_fn root) {
    for (int i = 0; i < NB_BATCH; i += 8) _mm256_storeu_ps(r + i, root(_mm256_loadu_ps(x + i)));
}

static inline __m128 double_root(__m128 x) {
    return _mm256_cvtpd_ps(_mm256_div_pd(_mm256_set1_pd(1.0), _mm256_sqrt_pd(_mm256_cvtps_pd(x))));
}
static inline __m256 by_double(__m256 x) {
    return _mm256_set_m128(double_root(_mm256_extractf128_ps(x, 1)), double_root(_mm256_castps256_ps128(x)));
}
static inline __m256 recip_sqrt(__m256 x) { return _mm256_div_ps(_mm256_set1_ps(1.0f), _mm256_sqrt_ps(x)); }

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

static inline __m256 estimate(__m256 x) { return _mm256_rsqrt_ps(x); }
static inline __m256 textbook(__m256 x) { return step_textbook(x, _mm256_rsqrt_ps(x)); }
static inline __m256 eigen(__m256 x) { return step_eigen(x, _mm256_rsqrt_ps(x)); }
static inline __m256 newton(__m256 x) { return step_fma(x, _mm256_rsqrt_ps(x)); }
static inline __m256 newton2(__m256 x) { return step_fma(x, step_fma(x, _mm256_rsqrt_ps(x))); }
static inline __m256 recip_sqrt_newton(__m256 x) { return step_fma(x, recip_sqrt(x)); }

void nb_root_double_v3(const float *x, float *r) { over_batch(x, r, by_double); }
void nb_root_recip_sqrt_v3(const float *x, float *r) { over_batch(x, r, recip_sqrt); }
void nb_root_recip_sqrt_newton_v3(const float *x, float *r) { over_batch(x, r, recip_sqrt_newton); }
void nb_root_rsqrtps(const float *x, float *r) { over_batch(x, r, estimate); }
void nb_root_rsqrtps_textbook(const float *x, float *r) { over_batch(x, r, textbook); }
void nb_root_rsqrtps_eigen(const float *x, float *r) { over_batch(x, r, eigen); }
void nb_root_rsqrtps_newton(const float *x, float *r) { over_batch(x, r, newton); }
void nb_root_rsqrtps_newton2(const float *x, float *r) { over_batch(x, r, newton2); }

NB_TARGET_END
#endif
