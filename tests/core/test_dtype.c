// SPDX-License-Identifier: Apache-2.0
/* The formats, against what IEEE 754 says; test_ulp.c has their spacing. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "src/core/dtype.h"
#include "tests/support/numerics.h"

Test(dtype, names_and_their_aliases_are_recognised_and_nothing_else) {
    static const char *const names[][NB_N_DTYPES] = {{"f32", "f16", "bf16"},
                                                     {"fp32", "fp16", "BF16"},
                                                     {"float32", "float16", "bfloat16"},
                                                     {"float", "half", "bfloat"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int d = 0; d < NB_N_DTYPES; d++) cr_expect_eq(nb_dtype_parse(names[i][d]), d, "%s", names[i][d]);
    cr_expect_eq(nb_dtype_parse("f64"), -1);
    cr_expect_eq(nb_dtype_parse(""), -1);
    cr_expect_eq(nb_dtype_parse("f320"), -1);
}

/* Value of the bits, from the definition of the format. */
static double value_of(uint32_t bits, const struct nb_format *f) {
    const int fraction_bits = f->precision - 1, exponent_bits = 15 - fraction_bits;
    const int biased = (int)(bits >> fraction_bits & ((1u << exponent_bits) - 1));
    const double fraction = ldexp((double)(bits & ((1u << fraction_bits) - 1)), -fraction_bits);
    const double sign = bits >> 15 & 1 ? -1 : 1;
    if (biased == (1 << exponent_bits) - 1) return fraction == 0 ? sign * INFINITY : NAN;
    return sign * (biased == 0 ? ldexp(fraction, f->emin) : ldexp(1 + fraction, biased - f->emax));
}

static void check_all_encodings(enum nb_dtype dtype) {
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint16_t stored = (uint16_t)bits, again;
        double want = value_of(bits, &nb_formats[dtype]), got = nb_get(&stored, 0, dtype);
        if (isnan(want)) {
            nb_set(&again, 0, dtype, got);
            cr_assert(isnan(got) && isnan(nb_get(&again, 0, dtype)), "%04x", bits);
            continue;
        }
        cr_assert(got == want && !signbit(got) == !signbit(want), "%04x is %g, not %g", bits, want, got);
        nb_set(&again, 0, dtype, got);
        cr_assert_eq(again, stored, "%04x came back as %04x", bits, again);
        cr_assert_eq(nb_bits(&stored, 0, dtype), bits);
    }
}
Test(dtype, every_f16_encoding_survives_the_round_trip) { check_all_encodings(NB_F16); }
Test(dtype, every_bf16_encoding_survives_the_round_trip) { check_all_encodings(NB_BF16); }

/* Between each pair of neighbours: the tie goes to the even one, and what is beside the tie by the last bit of a double to the
 * nearer one. A conversion by way of f32 gets the latter wrong. */
static void check_all_ties(enum nb_dtype dtype) {
    const uint32_t infinity = dtype == NB_F16 ? 0x7c00 : 0x7f80;
    for (uint32_t bits = 0; bits < infinity; bits++) {
        const double below = value_of(bits, &nb_formats[dtype]);
        const double above =
            bits + 1 == infinity ? 2 * nb_formats[dtype].overflow - below : value_of(bits + 1, &nb_formats[dtype]);
        const double tie = (below + above) / 2, tries[] = {tie, nextafter(tie, 0), nextafter(tie, INFINITY)};
        const uint32_t want[] = {bits % 2 ? bits + 1 : bits, bits, bits + 1};
        for (int i = 0; i < 3; i++)
            for (int sign = 0; sign < 2; sign++) {
                uint16_t got;
                nb_set(&got, 0, dtype, sign ? -tries[i] : tries[i]);
                cr_assert_eq(got, want[i] | (uint32_t)sign << 15, "%a to %04x, not %04x", tries[i], want[i], got);
                double rounded = nb_round_to(tries[i], dtype);
                cr_assert_eq(rounded, nb_get(&(uint16_t){(uint16_t)want[i]}, 0, dtype), "%a", tries[i]);
            }
    }
}
Test(dtype, ties_between_f16_neighbours_go_to_even_and_no_value_is_rounded_twice) { check_all_ties(NB_F16); }
Test(dtype, ties_between_bf16_neighbours_go_to_even_and_no_value_is_rounded_twice) { check_all_ties(NB_BF16); }

Test(dtype, rounding_to_f32_is_the_conversion_of_the_machine) {
    struct random_state r = {1};
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = random_bits(&r);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (i % 2) v = ldexp(random_normal(&r), (int)(random_bits(&r) % 320) - 170);
        if (isnan(v)) continue;
        double want = (float)v, got = nb_round_to(v, NB_F32);
        cr_assert(got == want && !signbit(got) == !signbit(want), "%a: %a, not %a", v, want, got);
    }
}

Test(dtype, rounding_keeps_zero_signs_infinities_and_nan) {
    for (int d = 0; d < NB_N_DTYPES; d++) {
        uint32_t stored = 0;
        cr_expect(signbit(nb_round_to(-0.0, (enum nb_dtype)d)));
        cr_expect(!signbit(nb_round_to(0.0, (enum nb_dtype)d)));
        cr_expect(signbit(nb_round_to(-1e-300, (enum nb_dtype)d)));
        cr_expect_eq(nb_round_to(-INFINITY, (enum nb_dtype)d), -INFINITY);
        cr_expect(isnan(nb_round_to(NAN, (enum nb_dtype)d)));
        nb_set(&stored, 0, (enum nb_dtype)d, -NAN);
        cr_expect(isnan(nb_get(&stored, 0, (enum nb_dtype)d)));
        cr_expect_eq(nb_round_to(nb_formats[d].overflow, (enum nb_dtype)d), INFINITY);
        cr_expect_eq(nb_round_to(nextafter(nb_formats[d].overflow, 0), (enum nb_dtype)d), nb_formats[d].max_finite);
    }
}
