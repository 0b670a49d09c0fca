// SPDX-License-Identifier: Apache-2.0
/* The counter of ulps (nb_ulp, and the error of src/accuracy/accuracy.h) against MPFR, and at every edge of a format: test_formats.c and
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
        cr_expect(isnan(nb_ulp(INFINITY, (enum nb_dtype)d)) && isnan(nb_ulp(NAN, (enum nb_dtype)d)));
    }
}
