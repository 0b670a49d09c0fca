// SPDX-License-Identifier: Apache-2.0
/* The stages of a norm that are functions of two numbers.
 *
 * Last stage: x * rstd is rounded to f32 and then to the dtype. Both roundings are exact under scaling by powers of two while the
 * result is normal, so that significands alone decide everything. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/lab/exhaustive/exhaust.h"

/* ---- x * rstd: products that come out differently when they are rounded to f32 first and to a 16-bit dtype then ---- */

struct double_roundings {
    int64_t n;
    uint32_t first; /* bits of the first rstd */
};

/* The exact product (at most 35 bits, so a double holds it) rounded at once, against the one rounded twice. */
static struct double_roundings one_by_one(float x, uint32_t first, uint32_t stride, uint32_t n, enum nb_dtype dtype) {
    struct double_roundings found = {0};
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t bits = first + i * stride;
        const float rstd = nb_float_of(bits);
        const double exact = (double)x * (double)rstd;
        if (nb_round_to(exact, dtype) == nb_round_to((double)(float)exact, dtype)) continue;
        if (found.n++ == 0) found.first = bits;
    }
    return found;
}

/* Eight products at a time. The second rounding goes wrong only where the first one landed on a tie of the dtype without being
 * exact: p = RN(x rstd) ends in 1000..., e = x rstd - p (exact by FMA) is not 0, and the tie goes up, to even, although the exact
 * product lies below it (e < 0), or down although it lies above. */

#if defined(__x86_64__)
NB_TARGET_BEGIN(NB_TARGET_V3)

static struct double_roundings eight_at_once(float x, uint32_t first, uint32_t stride, uint32_t n,
                                             enum nb_dtype dtype) {
    struct double_roundings found = {0};
    const int dropped = 24 - nb_formats[dtype].precision; /* bits that the second rounding drops */
    const __m256i low_bits = _mm256_set1_epi32((1 << dropped) - 1), tie = _mm256_set1_epi32(1 << (dropped - 1));
    const __m128i odd_shift = _mm_cvtsi32_si128(31 - dropped); /* moves the last bit kept to the sign */
    const __m256 xs = _mm256_set1_ps(x), zero = _mm256_setzero_ps();
    const __m256i lane = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)stride));
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i bits = _mm256_add_epi32(_mm256_set1_epi32((int)(first + i * stride)), lane);
        const __m256 rstd = _mm256_castsi256_ps(bits), product = _mm256_mul_ps(xs, rstd);
        const __m256i p = _mm256_castps_si256(product);
        const __m256i on_tie = _mm256_cmpeq_epi32(_mm256_and_si256(p, low_bits), tie);
        if (_mm256_testz_si256(on_tie, on_tie)) continue;
        const __m256 e = _mm256_fmsub_ps(xs, rstd, product);
        const __m256 goes_up = _mm256_castsi256_ps(_mm256_sll_epi32(p, odd_shift));
        /* Wrong: e < 0 where it goes up, e > 0 where it goes down. */
        const __m256 wrong =
            _mm256_blendv_ps(_mm256_cmp_ps(e, zero, _CMP_GT_OQ), _mm256_cmp_ps(e, zero, _CMP_LT_OQ), goes_up);
        const unsigned mask = (unsigned)_mm256_movemask_ps(_mm256_and_ps(wrong, _mm256_castsi256_ps(on_tie)));
        if (mask && found.n == 0) found.first = first + (i + (uint32_t)__builtin_ctz(mask)) * stride;
        found.n += __builtin_popcount(mask);
    }
    const struct double_roundings rest = one_by_one(x, first + i * stride, stride, n - i, dtype);
    if (found.n == 0) found.first = rest.first;
    found.n += rest.n;
    return found;
}

NB_TARGET_END
#endif

/* x times n floats whose bits begin at `first`, a stride apart; x and all of them in [1, 2). By definition, or, where that is not asked for
 * and the CPU has AVX2, eight at a time: the same answer. */
static struct double_roundings double_roundings(float x, uint32_t first, uint32_t stride, uint32_t n,
                                                enum nb_dtype dtype, bool by_definition) {
#if defined(__x86_64__)
    if (!by_definition && !nb_cpu_refuses(NB_CPU_AVX2, NB_NATIVE)) return eight_at_once(x, first, stride, n, dtype);
#endif
    (void)by_definition;
    return one_by_one(x, first, stride, n, dtype);
}

enum { N_RSTD = 1 << 23 };

struct products {
    enum nb_dtype dtype;
    uint32_t stride;
    struct double_roundings *found; /* by x */
};

static int64_t significands(enum nb_dtype dtype) { return 1ll << (nb_formats[dtype].precision - 1); }
static float nth_x(int64_t i, enum nb_dtype dtype) { return (float)(1 + (double)i / (double)significands(dtype)); }

static void multiply_chunk(int64_t chunk, void *arg) {
    const struct products *p = arg;
    const uint32_t first = 0x3f800000u, n = (N_RSTD + p->stride - 1) / p->stride;
    p->found[chunk] = double_roundings(nth_x(chunk, p->dtype), first, p->stride, n, p->dtype, false);
}

static void add_products(const struct products *p, int64_t done, double seconds, cJSON *rows) {
    struct double_roundings sum = {0};
    char witness[96] = "";
    const double inputs = (double)done * ((N_RSTD + p->stride - 1) / p->stride);
    for (int64_t i = 0; i < done; i++) {
        float rstd;
        if (sum.n == 0 && p->found[i].n) {
            memcpy(&rstd, &p->found[i].first, sizeof rstd);
            snprintf(witness, sizeof witness, "x %a rstd %a", (double)nth_x(i, p->dtype), (double)rstd);
        }
        sum.n += p->found[i].n;
    }
    cJSON *row = nb_json_add_object(rows);
    nb_json_text(row, "format", nb_dtype_names[p->dtype]);
    nb_json_number(row, "inputs", inputs);
    nb_json_number(row, "double_rounded", (double)sum.n);
    nb_json_number(row, "share", (double)sum.n / inputs);
    nb_json_text(row, "witness", sum.n ? witness : NULL);
    cJSON_AddBoolToObject(row, "complete", p->stride == 1 && done == significands(p->dtype));
    nb_json_number(row, "seconds", seconds);
}

static int multiply(const struct nb_exhaust_options *o, cJSON *answer) {
    const int64_t n = significands(o->dtype);
    struct products p = {o->dtype, (uint32_t)o->stride, nb_alloc((uint64_t)n, sizeof *p.found)};
    struct nb_sweep sweep = {.label = "x * rstd", .n_chunks = n, .chunk = multiply_chunk, .arg = &p};
    cJSON *rows = nb_exhaust_begin(answer, "stage", "x * rstd, by significands", (double)n * N_RSTD / (double)o->stride,
                                   nb_sweep_estimate(&sweep, o->threads), o);
    const int result = nb_sweep_run(&sweep, o->threads);
    add_products(&p, sweep.done, sweep.seconds, rows);
    free(p.found);
    return result;
}

/* ---- 1 / sqrt(v + eps) ---- */

struct reached {
    double sum, root;
};
typedef struct reached (*add_root_fn)(double v, double eps, enum nb_dtype dtype);

static struct reached all_f32(double v, double eps, enum nb_dtype dtype) {
    (void)dtype;
    const float sum = (float)v + (float)eps;
    return (struct reached){(double)sum, (double)(1.0f / sqrtf(sum))};
}
static struct reached stored(double v, double eps, enum nb_dtype dtype) {
    struct reached r = all_f32(v, eps, dtype);
    r.root = nb_round_to(r.root, dtype);
    return r;
}
/* Sums of two numbers of a 16-bit dtype, their square roots and reciprocals are computed in double and rounded once more: right,
 * since a double has more than twice the bits and two (Figueroa 1995). */
static struct reached sum_in_dtype(double v, double eps, enum nb_dtype dtype) {
    const double sum = nb_round_to(v + nb_round_to(eps, dtype), dtype);
    return (struct reached){sum, (double)(1.0f / sqrtf((float)sum))};
}
static struct reached all_in_dtype(double v, double eps, enum nb_dtype dtype) {
    const double sum = sum_in_dtype(v, eps, dtype).sum, root = nb_round_to(sqrt(sum), dtype);
    return (struct reached){sum, nb_round_to(1 / root, dtype)};
}

static const struct {
    const char *text;
    add_root_fn reach;
    bool result_is_f32;
} formulas[] = {
    {"f32: 1/sqrtf(v + eps)", all_f32, true},
    {"f32, rstd stored in the dtype", stored, false},
    {"v + eps in the dtype, then f32", sum_in_dtype, true},
    {"sum, square root and reciprocal in the dtype", all_in_dtype, false},
};

static void add_variances(size_t f, const struct nb_exhaust_options *o, double eps, cJSON *rows) {
    const struct nb_judge judge = nb_judge_of(formulas[f].result_is_f32 ? NB_F32 : o->dtype);
    const uint32_t infinity = o->dtype == NB_F16 ? 0x7c00 : 0x7f80;
    struct nb_judged sums = {0};
    int64_t absorbed = 0;
    char text[40];
    for (uint32_t bits = 0; bits < infinity; bits += (uint32_t)o->stride) {
        const double v = nb_get(&(uint16_t){(uint16_t)bits}, 0, o->dtype);
        const struct reached r = formulas[f].reach(v, eps, o->dtype);
        nb_judge_add(&judge, &sums, bits, 1 / sqrt(v + eps), r.root);
        absorbed += eps > 0 && v > 0 && r.sum == v;
    }
    cJSON *row = nb_json_add_object(rows);
    nb_json_text(row, "formula", formulas[f].text);
    nb_shortest_text(eps, text);
    nb_json_text(row, "eps", text);
    nb_judged_to_json(&sums, row);
    nb_json_number(row, "absorbed", (double)absorbed);
    snprintf(text, sizeof text, "0x%04x", (unsigned)sums.witness);
    nb_json_text(row, "witness", sums.max_ulp > 0 ? text : NULL);
}

static int exhaust_stage(const struct nb_exhaust_options *o, cJSON *answer) {
    const int result = multiply(o, answer);
    cJSON *rows = cJSON_GetObjectItemCaseSensitive(answer, "rows");
    for (size_t f = 0; f < sizeof formulas / sizeof formulas[0] && result == 0; f++)
        for (int e = 0; e < o->n_eps; e++) add_variances(f, o, o->eps[e], rows);
    return result;
}

const struct nb_exhaust_mode nb_exhaust_stage = {
    .name = "stage", .run = exhaust_stage, .eps = "0,1e-12,1e-8,1e-7,1e-6,1e-5,1e-3"};
