// SPDX-License-Identifier: Apache-2.0
/* The errors of 1/sqrt(x): one value after another, which is the definition and what runs without AVX2; then eight at a time. */
#include "src/lab/exhaustive/root_check.h"

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "src/core/cpu.h"
#include "src/lab/exhaustive/simd_functions.h"

const char *const nb_root_outcome_names[NB_N_ROOT_OUTCOMES] = {"nan", "inf", "-inf", "zero", "negative", "positive"};

static uint64_t double_bits(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
static double double_of(uint64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static uint32_t float_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

enum nb_root_outcome nb_root_outcome(float r) {
    if (isnan(r)) return NB_ROOT_NAN;
    if (isinf(r)) return r > 0 ? NB_ROOT_INF : NB_ROOT_MINUS_INF;
    return r > 0 ? NB_ROOT_POSITIVE : r < 0 ? NB_ROOT_NEGATIVE : NB_ROOT_ZERO;
}

static int root_bucket(uint32_t distance) {
    if (distance <= 4) return (int)distance;
    const int log2_up = 32 - __builtin_clz(distance - 1); /* 5..8: 3 */
    const int bucket = 5 + log2_up - 3;
    return bucket < NB_ROOT_BUCKETS ? bucket : NB_ROOT_BUCKETS - 1;
}

/* 1/sqrt(x) of a positive float is a normal number of f32, so one ulp of it is 2^(e - 23), e its exponent: 1/ulp has the biased
 * exponent 1023 + 23 - e. Two roundings of a double leave 2^-28 ulp of f32. */
static double inverse_ulp(double y) { return double_of((2069 - (double_bits(y) >> 52)) << 52); }

double nb_root_error_ulp(float x, float r) {
    const double y = 1.0 / sqrt((double)x);
    return ((double)r - y) * inverse_ulp(y);
}

/* Half an ulp of f32 is bit 28 of a double's fraction. Below a power of two the borrow halves it, as it should. */
static int is_misrounded(double x, double r) {
    const uint64_t half_ulp = 1ull << 28, bits = double_bits(r);
    const double down = double_of(bits - half_ulp), up = double_of(bits + half_ulp);
    return !(fma(down * down, x, -1.0) < 0 && fma(up * up, x, -1.0) > 0);
}

/* sums->max_ulp was raised to this by one of the n values: finds the first. */
static void root_find_witness(const float *x, const float *r, int n, struct nb_root_sums *sums) {
    for (int i = 0; i < n; i++) {
        if (nb_root_outcome(r[i]) != NB_ROOT_POSITIVE || fabs(nb_root_error_ulp(x[i], r[i])) != sums->max_ulp) continue;
        sums->witness = float_bits(x[i]);
        sums->witness_got = r[i];
        return;
    }
}

void nb_root_check_plain(const float *x, const float *r, int n, struct nb_root_sums *sums) {
    double lanes[8] = {0}, max_ulp = 0;
    for (int i = 0; i < n; i++) {
        const enum nb_root_outcome outcome = nb_root_outcome(r[i]);
        sums->outcomes[outcome]++;
        if (outcome != NB_ROOT_POSITIVE) continue;
        const double root = sqrt((double)x[i]), y = 1.0 / root, error = (double)r[i] - y;
        const double ulps = error * inverse_ulp(y), relative = fabs(error * root);
        const uint32_t got = float_bits(r[i]), want = float_bits((float)y);
        lanes[i % 8] += ulps;
        sums->histogram[root_bucket(got > want ? got - want : want - got)]++;
        sums->n_misrounded += is_misrounded(x[i], r[i]);
        if (fabs(ulps) > max_ulp) max_ulp = fabs(ulps);
        if (relative > sums->max_relative) sums->max_relative = relative;
    }
    sums->n += n;
    sums->sum_ulp += ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    if (max_ulp > sums->max_ulp) {
        sums->max_ulp = max_ulp;
        root_find_witness(x, r, n, sums);
    }
}

/* ---- The errors of 1/sqrt(x), eight values at a time: operation by operation what nb_root_check_plain() does, in
 * the same eight lanes. */

#if defined(__x86_64__)
NB_TARGET_BEGIN(NB_TARGET_V3)

struct lanes {
    __m256d sum[2], max_ulp, max_relative;
    __m256i misrounded;     /* minus the count */
    __m256i near_counts[5]; /* minus the count of distances 0 to 4 */
};

static inline __m256d double_abs(__m256d v) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v); }

/* Four values, all of them positive and finite where `valid` is set. Returns the wanted floats. */
static inline __m128 check_four(__m128 x4, __m128 r4, __m256d valid, int half, struct lanes *l) {
    const __m256d x = _mm256_cvtps_pd(x4), r = _mm256_cvtps_pd(r4), one = _mm256_set1_pd(1.0);
    const __m256d root = _mm256_sqrt_pd(x), y = _mm256_div_pd(one, root);
    const __m256d error = _mm256_and_pd(_mm256_sub_pd(r, y), valid);
    const __m256i exponent = _mm256_srli_epi64(_mm256_castpd_si256(y), 52);
    const __m256d scale =
        _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_sub_epi64(_mm256_set1_epi64x(2069), exponent), 52));
    const __m256d ulps = _mm256_mul_pd(error, scale);
    l->sum[half] = _mm256_add_pd(l->sum[half], ulps);
    l->max_ulp = _mm256_max_pd(l->max_ulp, double_abs(ulps));
    l->max_relative = _mm256_max_pd(l->max_relative, double_abs(_mm256_mul_pd(error, root)));

    const __m256i half_ulp = _mm256_set1_epi64x(1ll << 28), bits = _mm256_castpd_si256(r);
    const __m256d down = _mm256_castsi256_pd(_mm256_sub_epi64(bits, half_ulp));
    const __m256d up = _mm256_castsi256_pd(_mm256_add_epi64(bits, half_ulp));
    const __m256d below = _mm256_fmsub_pd(_mm256_mul_pd(down, down), x, one);
    const __m256d above = _mm256_fmsub_pd(_mm256_mul_pd(up, up), x, one);
    const __m256d zero = _mm256_setzero_pd();
    const __m256d right = _mm256_and_pd(_mm256_cmp_pd(below, zero, _CMP_LT_OQ), _mm256_cmp_pd(above, zero, _CMP_GT_OQ));
    l->misrounded = _mm256_add_epi64(l->misrounded, _mm256_castpd_si256(_mm256_andnot_pd(right, valid)));
    return _mm256_cvtpd_ps(y);
}

static inline int64_t sum_of_epi64(__m256i v) {
    int64_t part[4];
    _mm256_storeu_si256((__m256i *)part, v);
    return part[0] + part[1] + part[2] + part[3];
}
static inline int64_t sum_of_epi32(__m256i v) {
    int32_t part[8];
    int64_t sum = 0;
    _mm256_storeu_si256((__m256i *)part, v);
    for (int i = 0; i < 8; i++) sum += part[i];
    return sum;
}
static inline double max_of(__m256d v) {
    double part[4], max = 0;
    _mm256_storeu_pd(part, v);
    for (int i = 0; i < 4; i++) max = part[i] > max ? part[i] : max;
    return max;
}

/* Distances beyond 4, one by one. */
static inline void count_far(__m256i distance, unsigned far, struct nb_root_sums *sums) {
    uint32_t distances[8];
    _mm256_storeu_si256((__m256i *)distances, distance);
    for (; far; far &= far - 1) sums->histogram[root_bucket(distances[__builtin_ctz(far)])]++;
}

static inline void check_eight(const float *x, const float *r, struct lanes *l, struct nb_root_sums *sums) {
    const __m256 xs = _mm256_loadu_ps(x), rs = _mm256_loadu_ps(r);
    const __m256 positive = _mm256_cmp_ps(rs, _mm256_setzero_ps(), _CMP_GT_OQ);
    const __m256 valid = _mm256_and_ps(positive, _mm256_cmp_ps(rs, _mm256_set1_ps(__builtin_inff()), _CMP_LT_OQ));
    const unsigned valid_mask = (unsigned)_mm256_movemask_ps(valid);
    if (valid_mask == 0xff)
        sums->outcomes[NB_ROOT_POSITIVE] += 8;
    else
        for (int i = 0; i < 8; i++) sums->outcomes[nb_root_outcome(r[i])]++;

    const __m256i wide = _mm256_castps_si256(valid);
    const __m256d valid_low = _mm256_castsi256_pd(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(wide)));
    const __m256d valid_high = _mm256_castsi256_pd(_mm256_cvtepi32_epi64(_mm256_extracti128_si256(wide, 1)));
    const __m128 low = check_four(_mm256_castps256_ps128(xs), _mm256_castps256_ps128(rs), valid_low, 0, l);
    const __m128 high = check_four(_mm256_extractf128_ps(xs, 1), _mm256_extractf128_ps(rs, 1), valid_high, 1, l);

    const __m256i want = _mm256_castps_si256(_mm256_set_m128(high, low));
    const __m256i distance = _mm256_abs_epi32(_mm256_sub_epi32(_mm256_castps_si256(rs), want));
    for (int k = 0; k < 5; k++)
        l->near_counts[k] = _mm256_add_epi32(
            l->near_counts[k], _mm256_and_si256(wide, _mm256_cmpeq_epi32(distance, _mm256_set1_epi32(k))));
    const __m256i is_far = _mm256_and_si256(wide, _mm256_cmpgt_epi32(distance, _mm256_set1_epi32(4)));
    const unsigned far = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(is_far));
    if (far) count_far(distance, far, sums);
}

static void finish(const struct lanes *l, const float *x, const float *r, int n, struct nb_root_sums *sums) {
    double part[4];
    const __m256d sum = _mm256_add_pd(l->sum[0], l->sum[1]);
    _mm256_storeu_pd(part, sum);
    sums->sum_ulp += (part[0] + part[2]) + (part[1] + part[3]);
    sums->n += n;
    sums->n_misrounded -= sum_of_epi64(l->misrounded);
    for (int k = 0; k < 5; k++) sums->histogram[k] -= sum_of_epi32(l->near_counts[k]);
    const double max_ulp = max_of(l->max_ulp), max_relative = max_of(l->max_relative);
    if (max_relative > sums->max_relative) sums->max_relative = max_relative;
    if (!(max_ulp > sums->max_ulp)) return;
    sums->max_ulp = max_ulp;
    root_find_witness(x, r, n, sums);
}

void nb_root_check_v3(const float *x, const float *r, int n, struct nb_root_sums *sums) {
    struct lanes l = {0};
    int i = 0;
    for (; i + 8 <= n; i += 8) check_eight(x + i, r + i, &l, sums);
    if (i < n) { /* padded with results that count for nothing */
        float xs[8], rs[8];
        const int64_t nan_before = sums->outcomes[NB_ROOT_NAN];
        int n_nan = 0;
        for (int k = 0; k < 8; k++) {
            xs[k] = i + k < n ? x[i + k] : 1.0f;
            rs[k] = i + k < n ? r[i + k] : __builtin_nanf("");
            n_nan += i + k < n && r[i + k] != r[i + k];
        }
        check_eight(xs, rs, &l, sums);
        sums->outcomes[NB_ROOT_NAN] = nan_before + n_nan;
    }
    finish(&l, x, r, n, sums);
}

NB_TARGET_END
#endif

/* ---- all values ---- */

void nb_root_tally(const float *r, int n, struct nb_root_sums *sums) {
    sums->n += n;
    for (int i = 0; i < n; i++) sums->outcomes[nb_root_outcome(r[i])]++;
}

void nb_root_check(const float *x, const float *r, int n, struct nb_root_sums *sums) {
#if defined(__x86_64__)
    if (!nb_cpu_refuses(NB_CPU_AVX2, NB_NATIVE)) {
        nb_root_check_v3(x, r, n, sums);
        return;
    }
#endif
    nb_root_check_plain(x, r, n, sums);
}

void nb_root_merge(struct nb_root_sums *a, const struct nb_root_sums *b) {
    a->n += b->n;
    for (int i = 0; i < NB_N_ROOT_OUTCOMES; i++) a->outcomes[i] += b->outcomes[i];
    a->n_misrounded += b->n_misrounded;
    for (int i = 0; i < NB_ROOT_BUCKETS; i++) a->histogram[i] += b->histogram[i];
    a->sum_ulp += b->sum_ulp;
    if (b->max_relative > a->max_relative) a->max_relative = b->max_relative;
    if (!(b->max_ulp > a->max_ulp)) return;
    a->max_ulp = b->max_ulp;
    a->witness = b->witness;
    a->witness_got = b->witness_got;
}
