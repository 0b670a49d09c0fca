// SPDX-License-Identifier: Apache-2.0
/* How far mean and scale of a row may be off, whatever order they are summed in: the part of the bound that all elements of a
 * row share. src/README.md derives each case. */
#ifndef NB_STATISTICS_ERROR_H
#define NB_STATISTICS_ERROR_H

#include <stdint.h>

#include "src/accuracy/truth.h"
#include "src/core/case.h"

/* A loss that the declared formula predicts for this row: its value need not be right there. */
enum nb_loss {
    NB_LOSS_NONE,
    NB_LOSS_SQUARE_OVERFLOW,  /* x^2, or a sum, leaves the range of the statistics' dtype */
    NB_LOSS_SQUARE_UNDERFLOW, /* x^2 vanishes where eps does not cover it */
    NB_LOSS_EPS_ZERO,         /* eps is 0, in the statistics' dtype or altogether, and the row needs it */
    NB_LOSS_CANCELLATION,     /* E[x^2] - mean^2 may have no correct digit, or be negative */
    NB_LOSS_OUTPUT_OVERFLOW,  /* the exact result lies beyond the dtype's range */
    NB_LOSS_INPUT_NOT_FINITE, /* Inf or NaN in the row */
    NB_LOSS_SCALE_OVERFLOW,   /* 1 / sqrt(var + eps) leaves the range of the statistics' dtype */
    NB_N_LOSSES
};
const char *nb_loss_name(enum nb_loss loss);

/* Where a result is rounded to: relative error at most u, absolute error at most eta where it is subnormal. */
struct nb_precision {
    double u, eta, overflow;
};

/* Largest number that NB_FLAG_FLUSHES loses: f32's subnormal numbers, and bf16's, lie below. */
#define NB_FLUSHED 0x1p-126

/* The arithmetic of a kernel's statistics. */
struct nb_arithmetic {
    struct nb_precision op;  /* of every operation on statistics: f32, or x's dtype (NB_STATS_X) */
    struct nb_precision sum; /* of the additions inside a reduction */
    double growth;           /* (1 + u)^chain - 1 for those additions */
    double chain;
};

struct nb_statistics_error {
    double mean;  /* |computed - exact| mean */
    double scale; /* |computed / exact - 1| of the scale; infinite: lost */
    double var;   /* |computed - exact| variance; infinite where a square or a sum may overflow */
    enum nb_loss loss;
};

void nb_arithmetic_init(struct nb_arithmetic *a, const struct nb_case *c, int64_t chain);
struct nb_statistics_error nb_statistics_error(const struct nb_arithmetic *a, const struct nb_case *c,
                                               const struct nb_row_truth *t, int64_t n);

/* Relative error of a hardware estimate of 1/sqrt, as specified. */
double nb_rsqrt_estimate_error(void);

#endif
