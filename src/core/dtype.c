// SPDX-License-Identifier: Apache-2.0
/* All three formats are rounded the same way: scale by the spacing at the value (a power of two, so exact), let the double
 * unit round to an integer, scale back. That is one rounding, whatever the range, subnormals included. */
#include "src/core/dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <strings.h>

const struct nb_format nb_formats[NB_N_DTYPES] = {
    [NB_F32] = {"f32", 4, 24, -126, 127, 0x1p-24, 0x1.fffffep127, 0x1p-126, 0x1p-149, 0x1.ffffffp127},
    [NB_F16] = {"f16", 2, 11, -14, 15, 0x1p-11, 65504.0, 0x1p-14, 0x1p-24, 65520.0},
    [NB_BF16] = {"bf16", 2, 8, -126, 127, 0x1p-8, 0x1.fep127, 0x1p-126, 0x1p-133, 0x1.ffp127},
};

int nb_dtype_parse(const char *text) {
    static const struct {
        const char *name;
        enum nb_dtype dtype;
    } names[] = {
        {"f32", NB_F32},      {"fp32", NB_F32},  {"float32", NB_F32},   {"float", NB_F32},   {"single", NB_F32},
        {"binary32", NB_F32}, {"f16", NB_F16},   {"fp16", NB_F16},      {"float16", NB_F16}, {"half", NB_F16},
        {"binary16", NB_F16}, {"bf16", NB_BF16}, {"bfloat16", NB_BF16}, {"bfloat", NB_BF16}, {"brain16", NB_BF16},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(text, names[i].name) == 0) return (int)names[i].dtype;
    return -1;
}

static uint64_t double_bits(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static uint32_t float_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float float_from_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* 2^e for exponents of normal doubles. */
static double power_of_two(int e) {
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static int ulp_exponent(double y, const struct nb_format *f) {
    int e = (int)(double_bits(y) >> 52 & 0x7ff) - 1023; /* -1023 for zero and subnormal doubles: below every emin */
    return (e > f->emin ? e : f->emin) - f->precision + 1;
}

double nb_ulp(double y, enum nb_dtype dtype) {
    if (!isfinite(y)) return NAN;
    return power_of_two(ulp_exponent(y, &nb_formats[dtype]));
}

double nb_round_to(double value, enum nb_dtype dtype) {
    const struct nb_format *f = &nb_formats[dtype];
    double magnitude = fabs(value);
    if (isnan(value)) return value;
    if (magnitude >= f->overflow) return copysign(INFINITY, value);
    int e = ulp_exponent(value, f);
    const double to_integer = 0x1p52; /* from here on doubles are integers: adding it rounds to nearest even */
    double steps = (magnitude * power_of_two(-e) + to_integer) - to_integer;
    return copysign(steps * power_of_two(e), value);
}

float nb_f16_decode(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest >= 0x7c00) return float_from_bits(sign | 0x7f800000u | (rest & 0x3ff) << 13);
    /* Moved to f32's field widths, the value is too small by 2^(127 - 15), normal or subnormal. */
    return float_from_bits(sign | float_bits(float_from_bits(rest << 13) * 0x1p112f));
}

uint16_t nb_f16_encode(double v) {
    uint16_t sign = (uint16_t)(double_bits(v) >> 48 & 0x8000);
    if (isnan(v)) return sign | 0x7e00;
    double r = fabs(nb_round_to(v, NB_F16));
    if (isinf(r)) return sign | 0x7c00;
    return (uint16_t)(sign | float_bits((float)r * 0x1p-112f) >> 13);
}

float nb_bf16_decode(uint16_t h) { return float_from_bits((uint32_t)h << 16); }

uint16_t nb_bf16_encode(double v) {
    if (isnan(v)) return (uint16_t)((double_bits(v) >> 48 & 0x8000) | 0x7fc0);
    return (uint16_t)(float_bits((float)nb_round_to(v, NB_BF16)) >> 16);
}

double nb_get(const void *array, int64_t i, enum nb_dtype dtype) {
    switch (dtype) {
    case NB_F32:
        return ((const float *)array)[i];
    case NB_F16:
        return nb_f16_decode(((const uint16_t *)array)[i]);
    case NB_BF16:
        return nb_bf16_decode(((const uint16_t *)array)[i]);
    default:
        assert(!"dtype");
        return NAN;
    }
}

void nb_set(void *array, int64_t i, enum nb_dtype dtype, double value) {
    switch (dtype) {
    case NB_F32:
        ((float *)array)[i] = (float)value;
        break;
    case NB_F16:
        ((uint16_t *)array)[i] = nb_f16_encode(value);
        break;
    case NB_BF16:
        ((uint16_t *)array)[i] = nb_bf16_encode(value);
        break;
    default:
        assert(!"dtype");
    }
}

uint64_t nb_bits(const void *array, int64_t i, enum nb_dtype dtype) {
    if (dtype == NB_F32) return ((const uint32_t *)array)[i];
    return ((const uint16_t *)array)[i];
}
