// SPDX-License-Identifier: Apache-2.0
/* AVX512-BF16's own conversion. */
#include "src/lab/exhaustive/simd_functions.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void nb_avx512bf16_to_bf16(const float *x,
                                                                                           uint16_t *y) {
    for (int i = 0; i < NB_BATCH; i += 16) {
        const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(x + i));
        memcpy(y + i, &rounded, sizeof rounded);
    }
}
#endif
