// SPDX-License-Identifier: Apache-2.0
/* What the kernels' own vocabulary makes of every float: conversions to 16 bits, against one rounding in double, and 1/sqrt(x), against what IEEE
 * 754 and the instructions promise. One float in so many; all with NORMBENCH_TEST_ALL=1. */
#include <criterion/criterion.h>
#include <math.h>

#include "src/core/bits.h"
#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/lab/roots/root_variants.h"
#include "tests/support/sparsely.h"

typedef void (*convert_fn)(const float *x, uint16_t *y); /* NB_BATCH of them */

static void f16_by_dtype(const float *x, uint16_t *y) {
    for (int i = 0; i < NB_BATCH; i++) y[i] = nb_f16_encode((double)x[i]);
}
static void bf16_by_dtype(const float *x, uint16_t *y) {
    for (int i = 0; i < NB_BATCH; i++) y[i] = nb_bf16_encode((double)x[i]);
}

static void expect_converted(convert_fn convert, const char *name, const float *x, const uint16_t *want,
                             enum nb_dtype dtype) {
    uint16_t got[NB_BATCH];
    convert(x, got);
    for (int i = 0; i < NB_BATCH; i++)
        if (got[i] != want[i])
            cr_expect(isnan(nb_get(got, i, dtype)) && isnan(nb_get(want, i, dtype)), "%s: %a becomes %04x, not %04x",
                      name, (double)x[i], got[i], want[i]);
}

static void check_conversions(enum nb_dtype dtype, convert_fn by_dtype) {
    const enum nb_number number = nb_number_of(dtype);
    const bool half = dtype == NB_F16;
    const uint64_t stride = (uint64_t)one_in(20011);
    float x[NB_BATCH];
    uint16_t want[NB_BATCH];
    for (uint64_t at = 0; at < 1ull << 32; at += NB_BATCH * stride) {
        for (uint64_t i = 0; i < NB_BATCH; i++) {
            x[i] = nb_float_of((uint32_t)(at + i * stride));
            want[i] = (uint16_t)nb_number_encode(nb_number_round((double)x[i], 0, number, NB_ROUND_NEAREST, 0), number);
        }
        expect_converted(by_dtype, "dtype.c", x, want, dtype);
        for (size_t w = 0; w < nb_n_simd_functions; w++) {
            const struct nb_simd_functions *f = nb_simd_functions[w];
            if (nb_cpu_refuses(f->needs, NB_NATIVE)) continue;
            expect_converted(half ? f->to_f16 : f->to_bf16, f->width, x, want, dtype);
            expect_converted(half ? f->to_f16_single : f->to_bf16_single, f->width, x, want, dtype);
        }
    }
}
Test(every_float, is_rounded_to_f16) { check_conversions(NB_F16, f16_by_dtype); }
Test(every_float, is_rounded_to_bf16) { check_conversions(NB_BF16, bf16_by_dtype); }

/* [1, 4) has every significand with either parity of the exponent. (float)(1 / sqrt((double)x)) is the rounded root of all of them, and 1 / sqrtf(x)
 * differs from it for 4362792. */
Test(every_float, has_a_root_as_near_as_is_promised) {
    const uint32_t first = 0x3f800000, end = 0x40800000, stride = (uint32_t)one_in(997);
    for (size_t k = 0; k < nb_n_root_variants; k++) {
        const struct nb_root_variant *v = &nb_root_variants[k];
        double worst = 0;
        int n_misrounded = 0;
        if (nb_root_variant_refuses(v) || v->relative_limit == 0) continue;
        for (uint32_t at = first; at < end; at += NB_BATCH * stride) {
            float x[NB_BATCH], r[NB_BATCH];
            for (uint32_t i = 0; i < NB_BATCH; i++) x[i] = nb_float_of(at + i * stride);
            v->fill(x, r);
            for (int i = 0; i < NB_BATCH; i++) {
                const double root = sqrt((double)x[i]);
                worst = fmax(worst, fabs(((double)r[i] - 1 / root) * root));
                n_misrounded += r[i] != (float)(1 / root);
            }
        }
        cr_expect(worst <= v->relative_limit, "%s: off by %g, promised are %g", v->name, worst, v->relative_limit);
        if (v->relative_limit == 0x1.8p-23 && stride == 1) cr_expect_eq(n_misrounded, 4362792, "%s", v->name);
    }
}
