// SPDX-License-Identifier: Apache-2.0
/* How far a correct kernel of the declared formula may be off, element by element: an a-priori rounding-error bound from the
 * formula, the kernel's chain, the dtypes and the row's own statistics. derivations.md derives it. Nothing in here is fitted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/oracle.h"
#include "src/core/case.h"

/* ---- what a row shares ----------------------------------------------------------------------------------------------- */

/* How far mean and scale of a row may be off, whatever order they are summed in. */

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
    NB_LOSS_UNBOUNDED,        /* nothing is lost for sure, but the bound allows errors as large as the row of results */
    NB_N_LOSSES
};
extern const char *const nb_loss_names[NB_N_LOSSES + 1]; /* null-terminated */

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

/* (1 + g) (1 + u)^k - 1 */
static inline double nb_compound(double g, double u, int k) {
    double factor = 1 + g;
    for (int i = 0; i < k; i++) factor *= 1 + u;
    return factor - 1;
}

/* Relative error, before any rounding, of 1/sqrt by the hardware's estimate as specified: itself (NB_ROOT_RSQRT_RAW), or after the kernels'
 * Newton steps (NB_ROOT_RSQRT_NR); 0 of roots without one. */
double nb_rsqrt_error(uint32_t root);

/* ---- elements -------------------------------------------------------------------------------------------------------- */

struct nb_bound {
    const struct nb_case *c;
    const struct nb_oracle *o;
    int64_t chain;
    bool folded; /* y = a x + b with the mean inside b */
    struct nb_arithmetic arithmetic;
    struct nb_statistics_error *channels; /* NHWC, where each column has its own: of each; else null */
};

void nb_bound_init(struct nb_bound *b, const struct nb_case *c, const struct nb_oracle *o, int64_t chain);
void nb_bound_release(struct nb_bound *b);
/* Sets tolerance[i] = |allowed error| of y_i for each column of a row, the last rounding to the dtype included, from the exact
 * y of nb_oracle_row(). Infinity: a loss is predicted for the element and any value is right. Returns the first loss; of a row that is
 * unbounded the tolerances are as large as its results, and hold. */
enum nb_loss nb_bound_row(const struct nb_bound *b, int64_t row, const double *y, double *tolerance);
/* The same for the outputs beside y of a row or channel: mean, and rstd = 1 / sqrt(var + eps) relative to itself. */
struct nb_statistics_error nb_bound_statistics(const struct nb_bound *b, int64_t truth);
/* BatchNorm: how far the running statistics of a channel may be off after the call; infinite where the batch's are lost. */
struct nb_running_error {
    double mean, var;
} nb_bound_running(const struct nb_bound *b, int64_t channel);

/* What the mean and the mean square of y must be when gamma is 1 and beta 0, whatever the
 * exact y: 0 in ops that centre, and v / (v + eps). */

/* Residuals above this fail, as in LAPACK's tests. */
#define NB_RESIDUAL_THRESHOLD 30.0

struct nb_residual {
    double ratio; /* the largest, in units of the declared arithmetic */
    int64_t row;  /* where; -1: nowhere */
    int64_t n;    /* rows or channels judged */
};
struct nb_residuals {
    struct nb_residual squares, sum; /* sum: of ops that centre */
};

/* Rows of y, packed; row r has the statistics of row r mod the case's rows. */
void nb_residuals(const struct nb_bound *bound, const void *y, int64_t rows, struct nb_residuals *out);
