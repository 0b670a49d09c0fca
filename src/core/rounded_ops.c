// SPDX-License-Identifier: Apache-2.0
/* Where an operand is so large or small that the remainder could leave the range of double, the operation is done on scaled
 * significands, whose remainder has the same sign. */
#include "src/core/rounded_ops.h"

#include <math.h>

#include "src/core/random.h"
#include "src/core/twofold.h"

double nb_rounder_round(struct nb_rounder *r, double v, double below, enum nb_number to) {
    const uint64_t random = r->rounding == NB_ROUND_STOCHASTIC ? nb_random_next(&r->random) : 0;
    const double rounded = nb_number_round(v, below, to, r->rounding, random);
    return r->flush && fabs(rounded) < nb_numbers[to].min_normal ? copysign(0.0, v) : rounded;
}

/* The remainder of an infinite v, all operands being finite: it lies below. */
static double from_infinity(double v) { return -copysign(1.0, v); }

double nb_rounded_add(struct nb_rounder *r, double a, double b, enum nb_number to) {
    const struct nb_twofold s = nb_two_sum(a, b);
    if (isfinite(s.hi)) return nb_rounder_round(r, s.hi, isnan(s.lo) ? 0 : s.lo, to);
    return nb_rounder_round(r, s.hi, isfinite(a) && isfinite(b) ? from_infinity(s.hi) : 0, to);
}

/* Magnitudes whose products and quotients, with their remainders, stay within the range of double. */
static bool is_ordinary(double a) { return fabs(a) > 0x1p-450 && fabs(a) < 0x1p450; }

/* exact - v for a tiny or huge v, exact being (hi + lo) 2^e; the least double where its size is below that. */
static double scaled_remainder(double hi, double lo, int e, double v) {
    const double rest = (hi - ldexp(v, -e)) + lo, below = ldexp(rest, e);
    return below == 0 && rest != 0 ? copysign(0x1p-1074, rest) : below;
}

double nb_rounded_mul(struct nb_rounder *r, double a, double b, enum nb_number to) {
    const double p = a * b;
    if (is_ordinary(a) && is_ordinary(b)) return nb_rounder_round(r, p, fma(a, b, -p), to);
    if (!isfinite(a) || !isfinite(b) || a == 0 || b == 0) return nb_rounder_round(r, p, 0, to);
    if (isinf(p)) return nb_rounder_round(r, p, from_infinity(p), to);
    int ea, eb;
    const double fa = frexp(a, &ea), fb = frexp(b, &eb), fp = fa * fb;
    return nb_rounder_round(r, p, scaled_remainder(fp, fma(fa, fb, -fp), ea + eb, p), to);
}

double nb_rounded_div(struct nb_rounder *r, double a, double b, enum nb_number to) {
    const double q = a / b;
    if (is_ordinary(a) && is_ordinary(b)) return nb_rounder_round(r, q, fma(-q, b, a) / b, to);
    if (!isfinite(a) || !isfinite(b) || a == 0 || b == 0) return nb_rounder_round(r, q, 0, to);
    if (isinf(q)) return nb_rounder_round(r, q, from_infinity(q), to);
    int ea, eb;
    const double fa = frexp(a, &ea), fb = frexp(b, &eb), fq = fa / fb;
    return nb_rounder_round(r, q, scaled_remainder(fq, fma(-fq, fb, fa) / fb, ea - eb, q), to);
}

double nb_rounded_sqrt(struct nb_rounder *r, double a, enum nb_number to) {
    const double s = sqrt(a);
    if (!(a > 0) || isinf(a)) return nb_rounder_round(r, s, 0, to);
    if (is_ordinary(a)) return nb_rounder_round(r, s, fma(-s, s, a) / (2 * s), to);
    const double up = a < 1 ? 0x1p300 : 0x1p-300, ts = s * up; /* the root of a is far from either end: exact */
    return nb_rounder_round(r, s, fma(-ts, ts, a * up * up) / (2 * ts) / up, to);
}

/* Exact rest of v = fma(a, b, c), as two doubles, of which the first has the sign of both (Boldo & Muller). */
static double fma_remainder(double a, double b, double c, double v) {
    const struct nb_twofold product = nb_two_product(a, b), low = nb_two_sum(c, product.lo);
    const struct nb_twofold high = nb_two_sum(product.hi, low.hi);
    const double gamma = (high.hi - v) + high.lo;
    return gamma + low.lo;
}

/* The same where a * b is so small that its own remainder may be below the range of double; c != 0. */
static double tiny_fma_remainder(double a, double b, double c, double v) {
    const int up = 600;
    int ea, eb;
    const double fa = frexp(a, &ea), fb = frexp(b, &eb), scaled = ldexp(fa, ea + eb + up);
    const double sign = copysign(0x1p-1074, fa * fb);
    if (fabs(c) > 0x1p-400 || ea + eb + up < -800) return sign; /* far apart: v is c */
    const double rest = fma_remainder(scaled, fb, ldexp(c, up), ldexp(v, up)), below = ldexp(rest, -up);
    return below == 0 && rest != 0 ? copysign(0x1p-1074, rest) : below;
}

double nb_rounded_fma(struct nb_rounder *r, double a, double b, double c, enum nb_number to) {
    const double v = fma(a, b, c);
    const bool finite = isfinite(a) && isfinite(b) && isfinite(c);
    if (!finite || a == 0 || b == 0) return nb_rounded_add(r, a * b, c, to);
    if (isinf(v)) return nb_rounder_round(r, v, from_infinity(v), to);
    if (c == 0) return nb_rounded_mul(r, a, b, to);
    const bool tiny = fabs(a * b) < 0x1p-900;
    const double below = tiny ? tiny_fma_remainder(a, b, c, v) : fma_remainder(a, b, c, v);
    return nb_rounder_round(r, v, isnan(below) ? 0 : below, to);
}
