// SPDX-License-Identifier: Apache-2.0
/* What the machine may run: held against the compiler's own detection and the operating system's. */
#include <criterion/criterion.h>
#include <string.h>

#include "src/core/cpu.h"

#if defined(__x86_64__)
Test(cpu, features_agree_with_the_compilers_detection) {
    uint32_t features = nb_cpu_light()->features;
    __builtin_cpu_init();
    if (features & NB_CPU_AVX2) {
        cr_expect(__builtin_cpu_supports("avx2"));
        cr_expect(__builtin_cpu_supports("fma"));
        cr_expect(__builtin_cpu_supports("bmi2"));
    }
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    cr_expect_eq((features & NB_CPU_AVX512) != 0, avx512);
    if (features & (NB_CPU_AVX512BF16 | NB_CPU_AVX512FP16)) cr_expect(features & NB_CPU_AVX512);
    cr_expect_eq(features & NB_CPU_NEON, 0);
}

Test(cpu, what_is_missing_is_refused_with_a_reason) {
    uint32_t features = nb_cpu_light()->features;
    for (int bit = 0; bit < 32; bit++) {
        uint32_t feature = 1u << bit;
        const char *why = nb_cpu_refuses(feature, NB_NATIVE);
        cr_expect_eq(why == NULL, (features & feature) != 0, "feature %x", feature);
        if (why) cr_expect_gt(strlen(why), 10);
    }
    cr_expect_null(nb_cpu_refuses(features, NB_NATIVE));
    cr_expect_null(nb_cpu_refuses(0, NB_SCALAR));
}
#endif

Test(cpu, a_width_limit_hides_what_is_wider) {
    nb_cpu_limit_width(NB_256);
    cr_expect_null(nb_cpu_refuses(0, NB_SCALAR));
    cr_expect_null(nb_cpu_refuses(0, NB_256));
    cr_expect_str_eq(nb_cpu_refuses(0, NB_256X), "wider than --max-width");
    cr_expect_str_eq(nb_cpu_refuses(0, NB_512), "wider than --max-width");
    cr_expect_null(nb_cpu_refuses(0, NB_NATIVE), "no width of ours");
    nb_cpu_limit_width(NB_512);
    cr_expect_null(nb_cpu_refuses(0, NB_512));
}
