// SPDX-License-Identifier: Apache-2.0
/* All narrow formats are rounded the same way: scale by the spacing at the value (a power of two, so exact), round to an
 * integer, scale back. That is one rounding, subnormals included; what the double does not show only breaks ties, or moves a
 * value that stands on the grid to the side of it. */
#include "src/core/dtype.h"

#include <assert.h>
#include <float.h>
#include <strings.h>

#include "src/core/random.h"
#include "src/core/twofold.h"

/* 2^e for exponents of normal doubles. */
static double power_of_two(int e) { return nb_double_of((uint64_t)(e + 1023) << 52); }

static int ulp_exponent(double y, const struct nb_format *f) {
    int e = (int)(nb_double_bits(y) >> 52 & 0x7ff) - 1023; /* -1023 for zero and subnormal doubles: below every emin */
    return (e > f->emin ? e : f->emin) - f->precision + 1;
}

double nb_ulp(double y, enum nb_dtype dtype) { return nb_number_ulp(y, nb_number_of(dtype)); }

double nb_round_to(double value, enum nb_dtype dtype) {
    return nb_number_round(value, 0, nb_number_of(dtype), NB_ROUND_NEAREST, 0);
}

float nb_f16_decode(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest >= 0x7c00) return nb_float_of(sign | 0x7f800000u | (rest & 0x3ff) << 13);
    /* Moved to f32's field widths, the value is too small by 2^(127 - 15), normal or subnormal. */
    return nb_float_of(sign | nb_float_bits(nb_float_of(rest << 13) * 0x1p112f));
}

uint16_t nb_f16_encode(double v) { return (uint16_t)nb_number_encode(nb_round_to(v, NB_F16), NB_NUM_F16); }

float nb_bf16_decode(uint16_t h) { return nb_float_of((uint32_t)h << 16); }

uint16_t nb_bf16_encode(double v) { return (uint16_t)nb_number_encode(nb_round_to(v, NB_BF16), NB_NUM_BF16); }

double nb_get(const void *array, int64_t i, enum nb_dtype dtype) {
    if (dtype == NB_F32) return ((const float *)array)[i];
    const uint16_t bits = ((const uint16_t *)array)[i];
    return dtype == NB_F16 ? nb_f16_decode(bits) : nb_bf16_decode(bits);
}

void nb_set(void *array, int64_t i, enum nb_dtype dtype, double value) {
    if (dtype == NB_F32)
        ((float *)array)[i] = (float)value;
    else
        ((uint16_t *)array)[i] = dtype == NB_F16 ? nb_f16_encode(value) : nb_bf16_encode(value);
}

uint64_t nb_bits(const void *array, int64_t i, enum nb_dtype dtype) {
    if (dtype == NB_F32) return ((const uint32_t *)array)[i];
    return ((const uint16_t *)array)[i];
}

/* ---- formats of the emulator ---- */

/* e4m3: the code for 480 is the NaN, and the tie at 464 goes to 448, whose significand is even. f64: its threshold, half a
 * spacing above the largest double, is no double. */
const struct nb_format nb_numbers[NB_N_NUMBERS] = {
    [NB_NUM_F64] = {"f64", 8, 53, -1022, 1023, 0x1p-53, DBL_MAX, 0x1p-1022, 0x1p-1074, INFINITY},
    [NB_NUM_F32] = {"f32", 4, 24, -126, 127, 0x1p-24, 0x1.fffffep127, 0x1p-126, 0x1p-149, 0x1.ffffffp127},
    [NB_NUM_F16] = {"f16", 2, 11, -14, 15, 0x1p-11, 65504.0, 0x1p-14, 0x1p-24, 65520.0},
    [NB_NUM_BF16] = {"bf16", 2, 8, -126, 127, 0x1p-8, 0x1.fep127, 0x1p-126, 0x1p-133, 0x1.ffp127},
    [NB_NUM_TF32] = {"tf32", 4, 11, -126, 127, 0x1p-11, 0x1.ffcp127, 0x1p-126, 0x1p-136, 0x1.ffep127},
    [NB_NUM_E5M2] = {"e5m2", 1, 3, -14, 15, 0x1p-3, 57344.0, 0x1p-14, 0x1p-16, 61440.0},
    [NB_NUM_E4M3] = {"e4m3", 1, 4, -6, 8, 0x1p-4, 448.0, 0x1p-6, 0x1p-9, 0x1.d000000000001p8},
};

int nb_number_parse(const char *text) {
    static const struct {
        const char *name;
        enum nb_number number;
    } names[] = {
        {"f32", NB_NUM_F32},          {"fp32", NB_NUM_F32},        {"float32", NB_NUM_F32},
        {"float", NB_NUM_F32},        {"single", NB_NUM_F32},      {"binary32", NB_NUM_F32},
        {"f16", NB_NUM_F16},          {"fp16", NB_NUM_F16},        {"float16", NB_NUM_F16},
        {"half", NB_NUM_F16},         {"binary16", NB_NUM_F16},    {"bf16", NB_NUM_BF16},
        {"bfloat16", NB_NUM_BF16},    {"bfloat", NB_NUM_BF16},     {"brain16", NB_NUM_BF16},
        {"f64", NB_NUM_F64},          {"fp64", NB_NUM_F64},        {"float64", NB_NUM_F64},
        {"double", NB_NUM_F64},       {"binary64", NB_NUM_F64},    {"tf32", NB_NUM_TF32},
        {"tfloat32", NB_NUM_TF32},    {"e5m2", NB_NUM_E5M2},       {"fp8_e5m2", NB_NUM_E5M2},
        {"float8_e5m2", NB_NUM_E5M2}, {"e4m3", NB_NUM_E4M3},       {"e4m3fn", NB_NUM_E4M3},
        {"fp8_e4m3", NB_NUM_E4M3},    {"fp8_e4m3fn", NB_NUM_E4M3}, {"float8_e4m3fn", NB_NUM_E4M3},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(text, names[i].name) == 0) return (int)names[i].number;
    return -1;
}

int nb_dtype_parse(const char *text) {
    const int dtype = nb_number_parse(text) - NB_NUM_F32;
    return dtype >= 0 && dtype < NB_N_DTYPES ? dtype : -1;
}

bool nb_number_has_inf(enum nb_number number) { return number != NB_NUM_E4M3; }

/* ---- rounding ---------------------------------------------------------------------------------------------------------- */

double nb_number_ulp(double y, enum nb_number number) {
    if (!isfinite(y)) return NAN;
    const int e = ulp_exponent(y, &nb_numbers[number]);
    return e < -1022 ? ldexp(1, e) : power_of_two(e);
}

/* The multiple of the spacing nearest to magnitude + rest, ties to even; may be beyond the largest number. */
static double nearest(double magnitude, double rest, const struct nb_format *f) {
    const double to_integer = 0x1p52; /* from here on doubles are integers: adding it rounds to nearest even */
    const int e = ulp_exponent(magnitude, f);
    const double steps = magnitude * power_of_two(-e);
    double rounded = (steps + to_integer) - to_integer;
    if (rest != 0 && fabs(rounded - steps) == 0.5) rounded = rest > 0 ? steps + 0.5 : steps - 0.5;
    return rounded * power_of_two(e);
}

/* The largest number of the format that is not above magnitude + rest. */
static double towards_zero(double magnitude, double rest, const struct nb_format *f) {
    if (magnitude > f->max_finite) return f->max_finite;
    if (f->precision == DBL_MANT_DIG) return rest < 0 ? nextafter(magnitude, 0) : magnitude;
    const int e = ulp_exponent(magnitude, f);
    const double steps = magnitude * power_of_two(-e), whole = floor(steps);
    if (!(rest < 0) || whole != steps || steps == 0) return whole * power_of_two(e);
    const bool at_power_of_two = steps == power_of_two(f->precision - 1) && magnitude > f->min_normal;
    return (steps - (at_power_of_two ? 0.5 : 1)) * power_of_two(e);
}

/* Up with the probability that the distance from the number below has in the gap: unbiased. Above the largest number the next one
 * would be the end of the gap, which is out of range. */
static double stochastic(double magnitude, double rest, const struct nb_format *f, enum nb_number number,
                         uint64_t random) {
    const double low = towards_zero(magnitude, rest, f), gap = nb_number_ulp(low, number);
    const double share = ((magnitude - low) + rest) / gap;
    return (double)(random >> 11) * 0x1p-53 < share ? low + gap : low;
}

double nb_number_round(double v, double below, enum nb_number number, enum nb_rounding rounding, uint64_t random) {
    const struct nb_format *f = &nb_numbers[number];
    if (isnan(v)) return v;
    const double magnitude = fabs(v), rest = signbit(v) ? -below : below;
    const double beyond = nb_number_has_inf(number) ? INFINITY : NAN;
    if (isinf(v) && !(rest < 0)) return copysign(beyond, v);
    double rounded;
    if (rounding == NB_ROUND_ZERO)
        rounded = towards_zero(magnitude, rest, f);
    else if (rounding == NB_ROUND_STOCHASTIC)
        rounded = isinf(v) ? INFINITY : stochastic(magnitude, rest, f, number, random);
    else
        rounded = number == NB_NUM_F64 || isinf(v) ? magnitude : nearest(magnitude, rest, f);
    return copysign(rounded > f->max_finite ? beyond : rounded, v);
}

/* ---- stored bits ------------------------------------------------------------------------------------------------------- */

/* Sign, exponent and significand fields; tf32 lies in the upper bits of an f32 word. */
struct layout {
    int sign_shift, field_bits, pad;
};

static struct layout layout_of(enum nb_number number) {
    assert(number != NB_NUM_F64);
    const struct nb_format *f = &nb_numbers[number];
    const int width = (int)f->bytes * 8, pad = number == NB_NUM_TF32 ? 13 : 0;
    return (struct layout){width - 1, f->precision - 1, pad};
}

uint32_t nb_number_encode(double v, enum nb_number number) {
    const struct nb_format *f = &nb_numbers[number];
    const struct layout l = layout_of(number);
    const uint32_t sign = (uint32_t)(signbit(v) != 0) << l.sign_shift, hidden = 1u << l.field_bits;
    const uint32_t infinity = (uint32_t)(f->emax - f->emin + 2) << (l.field_bits + l.pad);
    if (!nb_number_has_inf(number) && !isfinite(v)) return sign | 0x7f;
    if (isnan(v)) return sign | infinity | hidden >> 1 << l.pad;
    if (isinf(v)) return sign | infinity;
    const int e = ulp_exponent(v, f);
    const double multiple = fabs(v) * power_of_two(-e);
    const uint32_t steps = (uint32_t)multiple;
    assert(multiple == (double)steps && fabs(v) <= f->max_finite);
    const uint32_t exponent = steps < hidden ? 0 : (uint32_t)(e + f->precision - f->emin); /* 0: subnormal */
    return sign | (exponent << l.field_bits | (steps & (hidden - 1))) << l.pad;
}

double nb_number_decode(uint32_t bits, enum nb_number number) {
    const struct nb_format *f = &nb_numbers[number];
    const struct layout l = layout_of(number);
    const double sign = bits >> l.sign_shift & 1 ? -1 : 1;
    const uint32_t hidden = 1u << l.field_bits, rest = (bits & ((1u << l.sign_shift) - 1)) >> l.pad;
    const uint32_t field = rest & (hidden - 1), exponent = rest >> l.field_bits;
    if (!nb_number_has_inf(number)) {
        if (rest == 0x7f) return copysign(NAN, sign);
    } else if ((int)exponent == f->emax - f->emin + 2) {
        return field ? copysign(NAN, sign) : sign * INFINITY;
    }
    if (exponent == 0) return sign * (double)field * f->min_subnormal;
    return sign * (double)(hidden | field) * power_of_two((int)exponent - 1 + f->emin - f->precision + 1);
}

/* ---- neighbours ---- */

/* The stored bits of positive numbers are in the order of their values. */

/* tf32 has bits to spare behind its significand. */
static uint32_t step_of(enum nb_number number) { return nb_number_encode(nb_numbers[number].min_subnormal, number); }

static uint32_t position(double v, enum nb_number number) { return nb_number_encode(v, number) / step_of(number); }

static double at(uint32_t i, enum nb_number number) { return nb_number_decode(i * step_of(number), number); }

double nb_next_below(double v, enum nb_number number) {
    if (isinf(v)) return nb_numbers[number].max_finite;
    return v > 0 ? at(position(v, number) - 1, number) : 0;
}

double nb_first_representable(enum nb_number number, bool (*holds)(double v, const void *arg), const void *arg) {
    uint32_t below = 0, from = position(nb_numbers[number].max_finite, number);
    if (!holds(at(from, number), arg)) return (double)INFINITY;
    while (from - below > 1) {
        const uint32_t middle = below + (from - below) / 2;
        if (holds(at(middle, number), arg))
            from = middle;
        else
            below = middle;
    }
    return at(from, number);
}

/* ---- Where an operand is so large or small that the remainder could leave the range of double, the operation is done on scaled
 * significands, whose remainder has the same sign. ---- */

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
