// SPDX-License-Identifier: Apache-2.0
/* Judges computed numbers of a 16-bit dtype, or of f32, against exact values that a double holds to a relative 2^-49.
 *
 * Whether a number is the correctly rounded one is proven for each: an error that is off half an ulp by more than the double's own
 * decides at once; nearer to it both ends of the exact value's interval must round alike (Ziv 1991), else the number counts as
 * undecided until the caller gives the exact value to some 100 bits. Nothing is taken on trust. */
#ifndef NB_EXHAUST_JUDGE_H
#define NB_EXHAUST_JUDGE_H

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/twofold.h"
#include "src/lab/exhaustive/exhaust.h"

struct nb_judged {
    int64_t n;          /* outputs whose exact value the dtype can hold */
    int64_t misrounded; /* not the correctly rounded one, the non-finite ones included */
    int64_t undecided;
    int64_t non_finite; /* NaN or Inf, whatever the exact value */
    double max_ulp;     /* of |error|, of finite outputs */
    int64_t witness;    /* the first index with it */
};

/* What every judgement of a dtype needs at hand. */
struct nb_judge {
    enum nb_dtype dtype;
    int precision;
    uint64_t least_exponent; /* biased, as a double has it */
    double overflow;
};
struct nb_judge nb_judge_of(enum nb_dtype dtype);

/* For errors near half an ulp: 1 wrong, 0 right, -1 undecided. */
int nb_judge_closely(const struct nb_judge *j, double exact, double got);

/* got: a number of the dtype. Returns whether it was left undecided. */
static inline bool nb_judge_add(const struct nb_judge *j, struct nb_judged *sums, int64_t index, double exact,
                                double got) {
    const double magnitude = fabs(exact);
    const int is_finite = fabs(got) < INFINITY;
    sums->non_finite += !is_finite;
    if (!(magnitude < j->overflow)) return false; /* also where there is no exact value */
    sums->n++;
    if (!is_finite) {
        sums->misrounded++;
        return false;
    }
    uint64_t exponent;
    memcpy(&exponent, &magnitude, sizeof exponent);
    exponent >>= 52;
    if (exponent < j->least_exponent) exponent = j->least_exponent;
    /* 1 / ulp, ulp = 2^(e - p + 1) */
    const uint64_t inverse_bits = (2046 - exponent + (uint64_t)j->precision - 1) << 52;
    double inverse;
    memcpy(&inverse, &inverse_bits, sizeof inverse);
    const double error = fabs(got - exact) * inverse;
    if (error > sums->max_ulp) {
        sums->max_ulp = error;
        sums->witness = index;
    }
    const double off = error - 0.5;
    if (off < -0x1p-16) return false;
    if (off > 0x1p-16) {
        sums->misrounded++;
        return false;
    }
    const int wrong = nb_judge_closely(j, exact, got);
    sums->misrounded += wrong > 0;
    sums->undecided += wrong < 0;
    return wrong < 0;
}
/* The same output again, after it was left undecided, with its exact value to a relative 2^-90. Only a tie, or what cannot be distinguished
 * from one by that, stays undecided. */
void nb_judge_resolve(const struct nb_judge *j, struct nb_judged *sums, struct nb_twofold exact, double got);

/* inputs, correct_share, misrounded, max_ulp, non_finite, undecided. */
void nb_judged_to_json(const struct nb_judged *sums, cJSON *row);

#endif
