// SPDX-License-Identifier: Apache-2.0
/* MPFR emulates a format with subnormals by its precision, its exponent range and mpfr_subnormalize(), which undoes the double
 * rounding by the ternary value. */
#include "tests/support/formats.h"

#include <math.h>
#include <mpfr.h>

static int evaluate(mpfr_t result, enum exact_op op, mpfr_t a, mpfr_t b, mpfr_t c, mpfr_rnd_t round) {
    if (op == EXACT_ADD) return mpfr_add(result, a, b, round);
    if (op == EXACT_MUL) return mpfr_mul(result, a, b, round);
    if (op == EXACT_DIV) return mpfr_div(result, a, b, round);
    if (op == EXACT_SQRT) return mpfr_sqrt(result, a, round);
    if (op == EXACT_FMA) return mpfr_fma(result, a, b, c, round);
    return mpfr_set(result, a, round);
}

double rounded_by_mpfr(enum exact_op op, double a, double b, double c, enum nb_number number,
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

int same_number(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b && !signbit(a) == !signbit(b);
}
