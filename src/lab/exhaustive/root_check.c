// SPDX-License-Identifier: Apache-2.0
/* The errors of 1/sqrt(x), one value after another: the definition, and what runs where AVX2 is not. */
#include "src/lab/exhaustive/root_check.h"

#include <math.h>
#include <string.h>

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

int nb_root_bucket(uint32_t distance) {
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
        sums->histogram[nb_root_bucket(got > want ? got - want : want - got)]++;
        sums->n_misrounded += is_misrounded(x[i], r[i]);
        if (fabs(ulps) > max_ulp) max_ulp = fabs(ulps);
        if (relative > sums->max_relative) sums->max_relative = relative;
    }
    sums->n += n;
    sums->sum_ulp += ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    if (max_ulp > sums->max_ulp) {
        sums->max_ulp = max_ulp;
        nb_root_find_witness(x, r, n, sums);
    }
}

void nb_root_find_witness(const float *x, const float *r, int n, struct nb_root_sums *sums) {
    for (int i = 0; i < n; i++) {
        if (nb_root_outcome(r[i]) != NB_ROOT_POSITIVE || fabs(nb_root_error_ulp(x[i], r[i])) != sums->max_ulp) continue;
        sums->witness = float_bits(x[i]);
        sums->witness_got = r[i];
        return;
    }
}

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
