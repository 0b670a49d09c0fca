// SPDX-License-Identifier: Apache-2.0
/* The counter of ulps (nb_ulp, and the error of src/accuracy/accuracy.h) against MPFR, and at every edge of a format: test_dtype.c and
 * test_accuracy.c have what each of them promises by itself. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <string.h>

#include "src/accuracy/accuracy.h"
#include "src/core/dtype.h"
#include "tests/support/numerics.h"

/* The neighbours of a number of the format, by its bits. */
static double neighbour(double v, enum nb_dtype dtype, int step) {
    uint32_t stored = 0;
    nb_set(&stored, 0, dtype, v);
    const int64_t bits = (int64_t)nb_bits(&stored, 0, dtype) + step;
    if (dtype == NB_F32)
        stored = (uint32_t)bits;
    else
        memcpy(&stored, &(uint16_t){(uint16_t)bits}, sizeof(uint16_t));
    return nb_get(&stored, 0, dtype);
}

static struct nb_accuracy error_of(enum nb_dtype dtype, double computed, double exact) {
    uint32_t stored = 0;
    struct nb_accuracy a;
    const double tolerance = DBL_MAX; /* Inf would mean a predicted loss */
    nb_set(&stored, 0, dtype, computed);
    struct nb_accuracy_sum *s = nb_accuracy_new(nb_number_of(dtype));
    nb_accuracy_row(s, 0, 1, &(struct nb_row_values){.stored = &stored, .exact = &exact, .tolerance = &tolerance});
    nb_accuracy_finish(s, &a);
    return a;
}

/* |computed - exact| / 2^(max(floor(log2 |exact|), emin) - p + 1), in 300 bits. */
static double error_by_mpfr(enum nb_dtype dtype, double computed, double exact) {
    const struct nb_format *f = &nb_formats[dtype];
    mpfr_t e;
    mpfr_init2(e, 300);
    mpfr_set_d(e, exact, MPFR_RNDN);
    long exponent = mpfr_zero_p(e) ? f->emin : (long)mpfr_get_exp(e) - 1;
    if (exponent < f->emin) exponent = f->emin;
    mpfr_d_sub(e, computed, e, MPFR_RNDN);
    mpfr_abs(e, e, MPFR_RNDN);
    mpfr_mul_2si(e, e, f->precision - 1 - exponent, MPFR_RNDN);
    const double ulps = mpfr_get_d(e, MPFR_RNDN);
    mpfr_clear(e);
    return ulps;
}

Test(ulp, at_every_power_of_two_the_unit_is_the_spacing_above_and_twice_that_below) {
    for (int d = 0; d < NB_N_DTYPES; d++) {
        const struct nb_format *f = &nb_formats[d];
        const enum nb_dtype dtype = (enum nb_dtype)d;
        for (int e = f->emin - f->precision + 1; e <= f->emax; e++) {
            const double power = ldexp(1, e), above = neighbour(power, dtype, 1), below = neighbour(power, dtype, -1);
            cr_assert_eq(nb_ulp(power, dtype), e == f->emax ? 2 * (power - below) : above - power, "%s 2^%d", f->name,
                         e);
            cr_assert_eq(nb_ulp(-power, dtype), nb_ulp(power, dtype));
            /* Below a normal power of two the numbers are twice as dense; subnormals are equally far apart. */
            cr_assert_eq(nb_ulp(nextafter(power, 0), dtype), e > f->emin ? nb_ulp(power, dtype) / 2 : f->min_subnormal,
                         "%s 2^%d", f->name, e);
            cr_assert_eq(error_of(dtype, below, power).max_ulp, e > f->emin ? 0.5 : 1, "%s 2^%d", f->name, e);
            cr_assert_eq(error_of(dtype, power, below).max_ulp, 1, "%s 2^%d", f->name, e);
        }
    }
}

Test(ulp, neighbours_are_one_apart_wherever_no_power_of_two_lies_between) {
    struct random_state r = {21};
    for (int d = 0; d < NB_N_DTYPES; d++) {
        const struct nb_format *f = &nb_formats[d];
        const double starts[] = {1, f->min_normal, f->min_subnormal, f->max_finite, 3 * f->min_subnormal};
        for (int i = 0; i < 4000; i++) {
            double v = starts[i % 5];
            if (i >= 5)
                v = ldexp(1 + random_uniform(&r), f->emin + (int)(random_bits(&r) % (unsigned)(f->emax - f->emin)));
            v = nb_round_to(v, (enum nb_dtype)d);
            const double below = neighbour(v, (enum nb_dtype)d, -1);
            cr_assert_eq(error_of((enum nb_dtype)d, v, below).max_ulp, 1, "%s %a", f->name, below);
            cr_assert_eq(error_of((enum nb_dtype)d, -v, -below).max_ulp, 1, "%s %a", f->name, below);
        }
    }
}

Test(ulp, errors_are_those_of_mpfr_at_every_edge) {
    struct random_state r = {22};
    for (int d = 0; d < NB_N_DTYPES; d++) {
        const struct nb_format *f = &nb_formats[d];
        const double edges[] = {0,
                                -0.0,
                                1,
                                nextafter(1, 0),
                                nextafter(1, 2),
                                2,
                                f->min_normal,
                                nextafter(f->min_normal, 0),
                                nextafter(f->min_normal, 1),
                                f->min_subnormal,
                                f->min_subnormal / 2,
                                f->min_subnormal * 1.5,
                                f->max_finite,
                                nextafter(f->max_finite, 0),
                                nextafter(f->overflow, 0)};
        enum { N = sizeof edges / sizeof edges[0] };
        for (int i = 0; i < 20000; i++) {
            double exact = edges[i % N];
            if (i >= 2 * N) exact *= 1 + ldexp(random_uniform(&r) - 0.5, -(int)(random_bits(&r) % 30));
            if (i % 2) exact = -exact;
            if (fabs(exact) >= f->overflow) continue;
            double computed = nb_round_to(exact, (enum nb_dtype)d);
            if (isinf(computed)) computed = copysign(f->max_finite, computed);
            if (fabs(computed) < f->max_finite && computed != 0)
                computed = neighbour(computed, (enum nb_dtype)d, (int)(random_bits(&r) % 2));
            if (computed == 0 && fabs(exact) >= f->min_normal) continue;
            const double want = error_by_mpfr((enum nb_dtype)d, computed, exact);
            const struct nb_accuracy a = error_of((enum nb_dtype)d, computed, exact);
            cr_assert(fabs(a.max_ulp - want) <= 1e-9 * (1 + want), "%s: %a for %a: %g, not %g", f->name, computed,
                      exact, a.max_ulp, want);
            cr_assert_eq(a.correctly_rounded == 1, computed == nb_round_to(exact, (enum nb_dtype)d), "%s: %a for %a",
                         f->name, computed, exact);
        }
    }
}

Test(ulp, an_error_of_many_binades_is_counted_in_the_unit_of_the_exact_value) {
    for (int d = 0; d < NB_N_DTYPES; d++) {
        const struct nb_format *f = &nb_formats[d];
        const double most = error_of((enum nb_dtype)d, f->max_finite, f->min_subnormal).max_ulp;
        cr_expect_eq(most, f->max_finite / f->min_subnormal - 1);
        cr_expect_eq(error_of((enum nb_dtype)d, -1, 1).max_ulp, 2 / nb_ulp(1, (enum nb_dtype)d));
        cr_expect_eq(error_of((enum nb_dtype)d, f->max_finite, -f->max_finite).max_ulp,
                     2 * f->max_finite / nb_ulp(f->max_finite, (enum nb_dtype)d));
    }
}

Test(ulp, infinity_against_the_largest_number_is_counted_and_has_no_ulps) {
    for (int d = 0; d < NB_N_DTYPES; d++) {
        const struct nb_format *f = &nb_formats[d];
        for (int sign = -1; sign <= 1; sign += 2) {
            struct nb_accuracy a = error_of((enum nb_dtype)d, sign * (double)INFINITY, sign * f->max_finite);
            cr_expect(a.inf_unexpected == 1 && a.n_exceptional == 1 && isnan(a.max_ulp), "%s", f->name);
            a = error_of((enum nb_dtype)d, sign * f->max_finite, sign * (double)INFINITY);
            cr_expect(a.inf_missing == 1 && a.n_exceptional == 1 && isnan(a.max_ulp), "%s", f->name);
            a = error_of((enum nb_dtype)d, NAN, sign * f->max_finite);
            cr_expect(a.nan_unexpected == 1 && isnan(a.max_ulp), "%s", f->name);
        }
        cr_expect(isnan(nb_ulp(-INFINITY, (enum nb_dtype)d)) && isnan(nb_ulp(-NAN, (enum nb_dtype)d)));
    }
}
