// SPDX-License-Identifier: Apache-2.0
/* Seven formats, three roundings: against the definition and MPFR; what is stored in three of them; every operation in each is the exact one,
 * rounded once. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <string.h>

#include "src/core/dtype.h"
#include "tests/support/numerics.h"

enum exact_op { EXACT_SET, EXACT_ADD, EXACT_MUL, EXACT_DIV, EXACT_SQRT, EXACT_FMA };

static int evaluate(mpfr_t result, enum exact_op op, mpfr_t a, mpfr_t b, mpfr_t c, mpfr_rnd_t round) {
    if (op == EXACT_ADD) return mpfr_add(result, a, b, round);
    if (op == EXACT_MUL) return mpfr_mul(result, a, b, round);
    if (op == EXACT_DIV) return mpfr_div(result, a, b, round);
    if (op == EXACT_SQRT) return mpfr_sqrt(result, a, round);
    if (op == EXACT_FMA) return mpfr_fma(result, a, b, c, round);
    return mpfr_set(result, a, round);
}

/* a, a + b, a * b, a / b, sqrt(a), a * b + c, rounded once: to nearest or to zero. MPFR emulates a format with subnormals by its precision, its
 * exponent range and mpfr_subnormalize(), which undoes the double rounding by the ternary value. */
static double rounded_by_mpfr(enum exact_op op, double a, double b, double c, enum nb_number number,
                              enum nb_rounding rounding) {
    const struct nb_format *f = &nb_numbers[number];
    const mpfr_rnd_t round = rounding == NB_ROUND_ZERO ? MPFR_RNDZ : MPFR_RNDN;
    const mpfr_exp_t emin = mpfr_get_emin(), emax = mpfr_get_emax();
    mpfr_t x, y, z, result;
    mpfr_inits2(53, x, y, z, (mpfr_ptr)0);
    mpfr_init2(result, f->precision);
    mpfr_set_d(x, a, MPFR_RNDN);
    mpfr_set_d(y, b, MPFR_RNDN);
    mpfr_set_d(z, c, MPFR_RNDN);
    int ternary = evaluate(result, op, x, y, z, round);
    mpfr_set_emin(f->emin - f->precision + 2); /* MPFR's significands lie in [1/2, 1) */
    mpfr_set_emax(f->emax + 1);
    ternary = mpfr_check_range(result, ternary, round);
    mpfr_subnormalize(result, ternary, round);
    double v = mpfr_get_d(result, MPFR_RNDN);
    mpfr_set_emin(emin);
    mpfr_set_emax(emax);
    mpfr_clears(x, y, z, result, (mpfr_ptr)0);
    if (number != NB_NUM_E4M3 || fabs(v) <= 448 || isnan(v)) return v;
    if (round == MPFR_RNDZ && !isinf(a)) return copysign(448, v); /* 480 is e4m3's NaN */
    return NAN;
}

/* Equal, NaN to NaN, signs of zeros too. */
static int same_number(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b && !signbit(a) == !signbit(b);
}

/* ---- codes ------------------------------------------------------------------------------------------------------------- */

static const enum nb_number narrow[] = {NB_NUM_F16, NB_NUM_BF16, NB_NUM_E5M2, NB_NUM_E4M3};

/* Value of the bits, from the definition of the formats; top: of an 8- or 16-bit code. */
static double value_of(uint32_t bits, enum nb_number number) {
    const struct nb_format *f = &nb_numbers[number];
    const int width = (int)f->bytes * 8, fraction_bits = f->precision - 1, exponent_bits = width - 1 - fraction_bits;
    const uint32_t biased = bits >> fraction_bits & ((1u << exponent_bits) - 1);
    const uint32_t field = bits & ((1u << fraction_bits) - 1);
    const double sign = bits >> (width - 1) & 1 ? -1 : 1, fraction = ldexp(field, -fraction_bits);
    const bool last = biased == (1u << exponent_bits) - 1;
    if (number == NB_NUM_E4M3 && last && field == 7) return NAN;
    if (number != NB_NUM_E4M3 && last) return field == 0 ? sign * INFINITY : NAN;
    return sign * (biased == 0 ? ldexp(fraction, f->emin) : ldexp(1 + fraction, (int)biased + f->emin - 1));
}

static void check_all_codes(enum nb_number number) {
    for (uint32_t bits = 0; bits < 1u << nb_numbers[number].bytes * 8; bits++) {
        const double want = value_of(bits, number), got = nb_number_decode(bits, number);
        cr_assert(same_number(got, want), "%s %x: %a, not %a", nb_numbers[number].name, bits, got, want);
        if (isnan(want))
            cr_assert(isnan(nb_number_decode(nb_number_encode(got, number), number)));
        else
            cr_assert_eq(nb_number_encode(got, number), bits, "%s %x", nb_numbers[number].name, bits);
    }
}
Test(formats, every_code_is_its_value_and_survives_the_round_trip) {
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++) check_all_codes(narrow[i]);
}

/* Of a stored dtype: every code, and the ties between neighbours, where a conversion by way of f32 would round twice. */
static void check_all_stored(enum nb_dtype dtype) {
    const enum nb_number number = nb_number_of(dtype);
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint16_t stored = (uint16_t)bits, again;
        const double v = nb_get(&stored, 0, dtype), tie = v + nb_ulp(v, dtype) / 2 * (v < 0 ? -1 : 1);
        cr_assert(same_number(v, nb_number_decode(bits, number)) && nb_bits(&stored, 0, dtype) == bits, "%04x", bits);
        nb_set(&again, 0, dtype, v);
        cr_assert(again == stored || isnan(nb_get(&again, 0, dtype)), "%04x came back as %04x", bits, again);
        for (int i = -1; i <= 1 && isfinite(v); i++) {
            const double beside = i ? nextafter(tie, i * (double)INFINITY) : tie;
            nb_set(&again, 0, dtype, beside);
            cr_assert_eq(again, nb_number_encode(nb_number_round(beside, 0, number, NB_ROUND_NEAREST, 0), number), "%a",
                         beside);
            cr_assert_eq(nb_round_to(beside, dtype), nb_get(&again, 0, dtype), "%a", beside);
        }
    }
}
Test(formats, stored_f16_and_bf16_are_these_codes_and_roundings) {
    check_all_stored(NB_F16);
    check_all_stored(NB_BF16);
}

Test(formats, f32_and_tf32_codes_are_those_of_the_machines_floats) {
    uint64_t r = 11;
    for (int i = 0; i < 200000; i++) {
        const uint32_t bits = (uint32_t)nb_random_next(&r), tf32_bits = bits & ~0x1fffu;
        float f, tf32;
        memcpy(&f, &bits, sizeof f);
        memcpy(&tf32, &tf32_bits, sizeof tf32);
        cr_assert(same_number(nb_number_decode(bits, NB_NUM_F32), (double)f));
        if (!isnan(f)) cr_assert(same_number(nb_number_decode(bits, NB_NUM_TF32), (double)tf32));
        if (!isnan(f)) cr_assert_eq(nb_number_encode((double)f, NB_NUM_F32), bits);
        if (!isnan(tf32)) cr_assert_eq(nb_number_encode((double)tf32, NB_NUM_TF32), tf32_bits);
    }
}

/* ---- rounding ---------------------------------------------------------------------------------------------------------- */

/* Between each pair of neighbours of a narrow format: at the tie, beside it, beside the numbers themselves, each with a remainder
 * below, none, and above. exact + remainder is given to MPFR as a sum, 2^-60 of v standing for what no double shows. */
static void check_all_intervals(enum nb_number number) {
    const uint32_t codes = (1u << (nb_numbers[number].bytes * 8 - 1));
    for (uint32_t bits = 0; bits < codes; bits++) {
        const double low = value_of(bits, number), high = value_of(bits + 1, number);
        if (!isfinite(low)) break;
        const double top = isfinite(high) ? high : low + nb_number_ulp(low, number), tie = low + (top - low) / 2;
        const double tries[] = {low, nextafter(low, INFINITY), nextafter(tie, 0),
                                tie, nextafter(tie, INFINITY), nextafter(top, 0)};
        for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++)
            for (int side = -1; side <= 1; side++) {
                const double below = side * fmax(tries[i], nb_numbers[number].min_subnormal) * 0x1p-60;
                for (int rounding = 0; rounding < 2; rounding++) {
                    if (tries[i] <= fabs(below) && side < 0) continue; /* the sign of the result would be another */
                    const double want =
                        rounded_by_mpfr(EXACT_ADD, tries[i], below, 0, number, (enum nb_rounding)rounding);
                    const double got = nb_number_round(tries[i], below, number, (enum nb_rounding)rounding, 0);
                    const double minus = nb_number_round(-tries[i], -below, number, (enum nb_rounding)rounding, 0);
                    cr_assert(same_number(got, want), "%s, rounding %d: %a %+d: %a, not %a", nb_numbers[number].name,
                              rounding, tries[i], side, got, want);
                    cr_assert(same_number(minus, -want));
                }
            }
    }
}
Test(formats, narrow_ones_round_as_mpfr_beside_every_number_and_every_tie) {
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++) check_all_intervals(narrow[i]);
}

Test(formats, any_double_rounds_as_mpfr_rounds_it) {
    uint64_t r = 12;
    for (int i = 0; i < 300000; i++) {
        const enum nb_number number = (enum nb_number)(i % NB_N_NUMBERS);
        const struct nb_format *f = &nb_numbers[number];
        uint64_t bits = nb_random_next(&r);
        double v = nb_double_of(bits);
        if (i % 16)
            v = ldexp(random_normal(&r), f->emin - 8 + (int)(nb_random_next(&r) % (uint64_t)(f->emax - f->emin + 16)));
        if (isnan(v)) continue;
        for (int rounding = 0; rounding < 2; rounding++) {
            const double want = rounded_by_mpfr(EXACT_SET, v, 0, 0, number, (enum nb_rounding)rounding);
            const double got = nb_number_round(v, 0, number, (enum nb_rounding)rounding, 0);
            cr_assert(same_number(got, want), "%s, rounding %d: %a: %a, not %a", f->name, rounding, v, got, want);
        }
    }
}

Test(formats, beyond_the_range_lie_infinities_or_the_nan_of_e4m3_and_towards_zero_the_largest_number) {
    for (int n = 0; n < NB_N_NUMBERS; n++) {
        const enum nb_number number = (enum nb_number)n;
        const double beyond = number == NB_NUM_E4M3 ? NAN : -INFINITY;
        cr_expect(same_number(nb_number_round(-INFINITY, 0, number, NB_ROUND_NEAREST, 0), beyond));
        cr_expect(same_number(nb_number_round(-INFINITY, 0, number, NB_ROUND_ZERO, 0), beyond));
        cr_expect(same_number(nb_number_round(-INFINITY, 1, number, NB_ROUND_ZERO, 0), -nb_numbers[n].max_finite));
        cr_expect(same_number(nb_number_round(-INFINITY, 1, number, NB_ROUND_NEAREST, 0), beyond));
        if (number != NB_NUM_F64)
            cr_expect(same_number(nb_number_round(-DBL_MAX, 0, number, NB_ROUND_NEAREST, 0), beyond));
        cr_expect(same_number(nb_number_round(-DBL_MAX, 0, number, NB_ROUND_ZERO, 0), -nb_numbers[n].max_finite));
        cr_expect(isnan(nb_number_round(NAN, 0, number, NB_ROUND_ZERO, 0)));
        cr_expect(signbit(nb_number_round(-0.0, 0, number, NB_ROUND_NEAREST, 0)));
    }
    cr_expect_eq(nb_number_round(464, 0, NB_NUM_E4M3, NB_ROUND_NEAREST, 0), 448); /* the tie, to even */
    cr_expect(isnan(nb_number_round(464, 1e-20, NB_NUM_E4M3, NB_ROUND_NEAREST, 0)));
    cr_expect(!nb_number_has_inf(NB_NUM_E4M3) && nb_number_has_inf(NB_NUM_E5M2));
}

/* Over n draws the mean is off by at most 5 standard deviations, gap sqrt(p (1 - p) / n); only the two neighbours appear. */
static void check_stochastic(double v, double below, enum nb_number number, uint64_t *r) {
    const int draws = 20000;
    const double low = nb_number_round(v, below, number, NB_ROUND_ZERO, 0), gap = nb_number_ulp(low, number);
    const double away = v < 0 ? -1 : 1, share = away * ((v - low) + below) / gap;
    double ups = 0;
    for (int i = 0; i < draws; i++) {
        const double got = nb_number_round(v, below, number, NB_ROUND_STOCHASTIC, nb_random_next(r));
        cr_assert(got == low || got == low + away * gap, "%s %a: %a", nb_numbers[number].name, v, got);
        ups += got != low;
    }
    const double sd = sqrt(share * (1 - share) / draws);
    cr_assert(fabs(ups / draws - share) <= 5 * sd + 1e-12, "%s %a: up in %g, not %g", nb_numbers[number].name, v,
              ups / draws, share);
}

Test(formats, stochastic_rounding_has_no_preferred_side) {
    uint64_t r = 14;
    for (int i = 0; i < 60; i++) {
        const enum nb_number number = (enum nb_number)(NB_NUM_F32 + i % (NB_N_NUMBERS - 1));
        const struct nb_format *f = &nb_numbers[number];
        const int e =
            f->emin - 3 + (int)(nb_random_next(&r) % (uint64_t)(f->emax - f->emin + 2)); /* below the last binade */
        check_stochastic(ldexp(1 + random_uniform(&r), e) * (i % 2 ? -1 : 1), 0, number, &r);
    }
    check_stochastic(1, 0.25 * 0x1p-52, NB_NUM_F64, &r); /* of f64 the remainder is all there is */
    check_stochastic(1, -0.125 * 0x1p-52, NB_NUM_F64, &r);
    check_stochastic(-3, 0.375 * 0x1p-52, NB_NUM_F64, &r);
    cr_expect_eq(nb_number_round(1.5, 0, NB_NUM_BF16, NB_ROUND_STOCHASTIC, UINT64_MAX), 1.5, "an exact number moved");
}

/* ---- operations -------------------------------------------------------------------------------------------------------- */

static double by_us(enum exact_op op, double a, double b, double c, enum nb_number number, enum nb_rounding rounding) {
    struct nb_rounder r = {.rounding = rounding};
    if (op == EXACT_ADD) return nb_rounded_add(&r, a, b, number);
    if (op == EXACT_MUL) return nb_rounded_mul(&r, a, b, number);
    if (op == EXACT_DIV) return nb_rounded_div(&r, a, b, number);
    if (op == EXACT_SQRT) return nb_rounded_sqrt(&r, a, number);
    if (op == EXACT_FMA) return nb_rounded_fma(&r, a, b, c, number);
    return nb_convert(&r, a, number);
}

static void check_op(enum exact_op op, double a, double b, double c, enum nb_number number) {
    for (int rounding = 0; rounding < 2; rounding++) {
        const double want = rounded_by_mpfr(op, a, b, c, number, (enum nb_rounding)rounding);
        const double got = by_us(op, a, b, c, number, (enum nb_rounding)rounding);
        cr_assert(same_number(got, want), "op %d of %a, %a, %a to %s, rounding %d: %a, not %a", (int)op, a, b, c,
                  nb_numbers[number].name, rounding, got, want);
    }
}

/* A number of the format whose exponent is anywhere, or near that of `beside`, so that sums cancel and round at ties. */
static double draw(uint64_t *r, enum nb_number number, double beside) {
    const struct nb_format *f = &nb_numbers[number];
    int e = f->emin - f->precision + (int)(nb_random_next(r) % (uint64_t)(f->emax - f->emin + f->precision));
    if (beside != 0 && isfinite(beside) && nb_random_next(r) % 2)
        e = ilogb(beside) + (int)(nb_random_next(r) % 60) - 30;
    const double v = ldexp(random_normal(r), e > 1022 ? 1022 : e);
    const double rounded = nb_number_round(v, 0, number, NB_ROUND_ZERO, 0);
    return nb_random_next(r) % 4
               ? rounded
               : ldexp(copysign(1, v), e > 1022 ? 1022 : e); /* powers of two, where spacings change */
}

static void check_format(enum nb_number operands, enum nb_number result, uint64_t seed) {
    uint64_t r = seed;
    for (int i = 0; i < 6000; i++) {
        const double a = draw(&r, operands, 0), b = draw(&r, operands, a);
        const double c = draw(&r, operands, i % 2 ? a * b : b);
        if (!isfinite(a) || !isfinite(b) || !isfinite(c)) continue;
        check_op(EXACT_ADD, a, b, 0, result);
        check_op(EXACT_MUL, a, b, 0, result);
        if (b != 0) check_op(EXACT_DIV, a, b, 0, result);
        check_op(EXACT_SQRT, fabs(a), 0, 0, result);
        check_op(EXACT_FMA, a, b, c, result);
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
    uint64_t r = 9;
    for (int i = 0; i < 20000; i++) {
        const double a = draw(&r, NB_NUM_F64, 0), b = draw(&r, NB_NUM_F64, i % 3 ? a : 1 / a);
        if (!isfinite(a) || !isfinite(b)) continue;
        check_op(EXACT_ADD, a, b, 0, NB_NUM_F64);
        check_op(EXACT_MUL, a, b, 0, NB_NUM_F64);
        if (b != 0) check_op(EXACT_DIV, a, b, 0, NB_NUM_F64);
        check_op(EXACT_SQRT, fabs(a), 0, 0, NB_NUM_F64);
    }
    for (int i = 0; i < 20000; i++) { /* fma: remainders that are doubles */
        const double a = ldexp(random_normal(&r), (int)(nb_random_next(&r) % 200) - 100);
        const double b = ldexp(random_normal(&r), (int)(nb_random_next(&r) % 200) - 100);
        const double c = ldexp(a * b, (int)(nb_random_next(&r) % 120) - 60) * (i % 3 ? random_normal(&r) : -1);
        check_op(EXACT_FMA, a, b, c, NB_NUM_F64);
        check_op(EXACT_FMA, a, b, -a * b, NB_NUM_F64);
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
