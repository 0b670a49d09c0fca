// SPDX-License-Identifier: Apache-2.0
/* Every operation in every format is the exact one, rounded once. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "src/core/dtype.h"
#include "tests/support/formats.h"
#include "tests/support/numerics.h"

static double by_us(enum exact_op op, double a, double b, double c, enum nb_number number, enum nb_rounding rounding) {
    struct nb_rounder r = {.rounding = rounding};
    if (op == EXACT_ADD) return nb_rounded_add(&r, a, b, number);
    if (op == EXACT_MUL) return nb_rounded_mul(&r, a, b, number);
    if (op == EXACT_DIV) return nb_rounded_div(&r, a, b, number);
    if (op == EXACT_SQRT) return nb_rounded_sqrt(&r, a, number);
    if (op == EXACT_FMA) return nb_rounded_fma(&r, a, b, c, number);
    return nb_convert(&r, a, number);
}

static void check(enum exact_op op, double a, double b, double c, enum nb_number number) {
    for (int rounding = 0; rounding < 2; rounding++) {
        const double want = rounded_by_mpfr(op, a, b, c, number, (enum nb_rounding)rounding);
        const double got = by_us(op, a, b, c, number, (enum nb_rounding)rounding);
        cr_assert(same_number(got, want), "op %d of %a, %a, %a to %s, rounding %d: %a, not %a", (int)op, a, b, c,
                  nb_numbers[number].name, rounding, got, want);
    }
}

/* A number of the format whose exponent is anywhere, or near that of `beside`, so that sums cancel and round at ties. */
static double draw(struct random_state *r, enum nb_number number, double beside) {
    const struct nb_format *f = &nb_numbers[number];
    int e = f->emin - f->precision + (int)(random_bits(r) % (uint64_t)(f->emax - f->emin + f->precision));
    if (beside != 0 && isfinite(beside) && random_bits(r) % 2) e = ilogb(beside) + (int)(random_bits(r) % 60) - 30;
    const double v = ldexp(random_normal(r), e > 1022 ? 1022 : e);
    const double rounded = nb_number_round(v, 0, number, NB_ROUND_ZERO, 0);
    return random_bits(r) % 4 ? rounded
                              : ldexp(copysign(1, v), e > 1022 ? 1022 : e); /* powers of two, where spacings change */
}

static void check_format(enum nb_number operands, enum nb_number result, uint64_t seed) {
    struct random_state r = {seed};
    for (int i = 0; i < 6000; i++) {
        const double a = draw(&r, operands, 0), b = draw(&r, operands, a);
        const double c = draw(&r, operands, i % 2 ? a * b : b);
        if (!isfinite(a) || !isfinite(b) || !isfinite(c)) continue;
        check(EXACT_ADD, a, b, 0, result);
        check(EXACT_MUL, a, b, 0, result);
        if (b != 0) check(EXACT_DIV, a, b, 0, result);
        check(EXACT_SQRT, fabs(a), 0, 0, result);
        check(EXACT_FMA, a, b, c, result);
    }
}

Test(rounded_ops, of_a_format_are_rounded_once_to_another) {
    static const enum nb_number pairs[][2] = {
        {NB_NUM_F32, NB_NUM_F32},   {NB_NUM_F32, NB_NUM_BF16}, {NB_NUM_F32, NB_NUM_TF32}, {NB_NUM_F16, NB_NUM_F16},
        {NB_NUM_BF16, NB_NUM_BF16}, {NB_NUM_F16, NB_NUM_E4M3}, {NB_NUM_F16, NB_NUM_E5M2}, {NB_NUM_F64, NB_NUM_F32}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) check_format(pairs[i][0], pairs[i][1], i + 1);
}

/* Over the whole range of double, subnormals and overflow included: where the remainder itself is below any double only its sign is
 * kept, and that is checked. */
Test(rounded_ops, f64_operands_rounded_to_f64) {
    struct random_state r = {9};
    for (int i = 0; i < 20000; i++) {
        const double a = draw(&r, NB_NUM_F64, 0), b = draw(&r, NB_NUM_F64, i % 3 ? a : 1 / a);
        if (!isfinite(a) || !isfinite(b)) continue;
        check(EXACT_ADD, a, b, 0, NB_NUM_F64);
        check(EXACT_MUL, a, b, 0, NB_NUM_F64);
        if (b != 0) check(EXACT_DIV, a, b, 0, NB_NUM_F64);
        check(EXACT_SQRT, fabs(a), 0, 0, NB_NUM_F64);
    }
    for (int i = 0; i < 20000; i++) { /* fma: remainders that are doubles */
        const double a = ldexp(random_normal(&r), (int)(random_bits(&r) % 200) - 100);
        const double b = ldexp(random_normal(&r), (int)(random_bits(&r) % 200) - 100);
        const double c = ldexp(a * b, (int)(random_bits(&r) % 120) - 60) * (i % 3 ? random_normal(&r) : -1);
        check(EXACT_FMA, a, b, c, NB_NUM_F64);
        check(EXACT_FMA, a, b, -a * b, NB_NUM_F64);
    }
}

Test(rounded_ops, exceptional_operands_follow_ieee) {
    struct nb_rounder r = {.rounding = NB_ROUND_ZERO};
    cr_expect(isnan(nb_rounded_add(&r, INFINITY, -INFINITY, NB_NUM_F32)));
    cr_expect_eq(nb_rounded_add(&r, INFINITY, 1, NB_NUM_F32), INFINITY);
    cr_expect(isnan(nb_rounded_mul(&r, INFINITY, 0, NB_NUM_F16)));
    cr_expect_eq(nb_rounded_div(&r, -1, 0, NB_NUM_F32), -INFINITY);
    cr_expect(isnan(nb_rounded_div(&r, 0, 0, NB_NUM_F32)));
    cr_expect(isnan(nb_rounded_sqrt(&r, -1, NB_NUM_F32)));
    cr_expect_eq(nb_rounded_sqrt(&r, INFINITY, NB_NUM_F32), INFINITY);
    cr_expect(isnan(nb_rounded_fma(&r, INFINITY, 1, -INFINITY, NB_NUM_F32)));
    cr_expect_eq(nb_rounded_mul(&r, DBL_MAX, 2, NB_NUM_F64), DBL_MAX, "towards zero, a finite product is finite");
    cr_expect_eq(nb_rounded_mul(&r, DBL_MAX, 2, NB_NUM_F16), 65504);
    r.flush = true;
    cr_expect(same_number(nb_rounded_mul(&r, -0x1p-100, 0x1p-40, NB_NUM_F32), -0.0));
    cr_expect_eq(nb_rounded_mul(&r, 0x1p-86, 0x1p-40, NB_NUM_F32), 0x1p-126);
}
