// SPDX-License-Identifier: Apache-2.0
/* What the mathematics says of a backward call (kernels/kernel.h has the formulas): compensated double arithmetic, with the f32
 * mean and rstd that the kernels are given taken as exact, so that a kernel is judged by its own work alone; for kernels that find
 * their own with the exact ones, rounded to double. Built with -ffp-contract=off; refuses to run with FTZ or DAZ, as the oracle does.
 *
 * Error of dx: below 1e-7 f32 ulp, also where its terms cancel, as long as it stands above 2^-90 of them; DyT has what exp leaves,
 * some 2^-50 of itself. test_gradient.c holds it against MPFR, and the formulas against differences of the forward oracle. Rows with
 * Inf or NaN follow IEEE evaluation of the formula, left to right. */
#pragma once

#include <stdint.h>

#include "src/accuracy/oracle.h"
#include "src/core/case.h"
#include "src/plan/inputs.h"

/* Of one row (BatchNorm: of one channel): what dx shares. The means are sums over all n elements of the row, divided by n (prmsnorm:
 * by k; l2norm: not divided); all 0 in BatchNorm's inference, where dx has no use for them. */
struct nb_row_gradient {
    double mean_g, mean_g_lo;       /* mean of g = dy * w; 0 where the op does not centre */
    double mean_gx, mean_gx_lo;     /* mean of g * xhat (l2norm: the sum) */
    double mean_abs_g, mean_abs_gx; /* mean |g|, mean |g * xhat|: what the error of a sum is bounded by */
    double max_abs_g, max_abs_dy, max_abs_xhat;
};

struct nb_gradient {
    const struct nb_case *c;
    const struct nb_inputs *in;
    double *mean, *rstd; /* n_stats each, as the kernels get them, or exact; mean null where the op does not centre */
    struct nb_row_gradient *rows;   /* n_stats of them; DyT: null */
    int64_t n_stats;                /* rows; BatchNorm: c; DyT: 0 */
    double *weight, *weight_lo;     /* w of each parameter, exact as a pair (1 where there is none); n_params */
    double *dgamma, *dbeta;         /* n_params each; sums over rows; null where the formula has none */
    double *abs_dgamma, *abs_dbeta; /* sum |dy * xhat|, sum |dy|; null without gamma */
    double *abs_distance;           /* sum |x - mean|; DyT: of |tanh|; null without gamma */
    int64_t n_params;
    double max_abs_weight;
    double dalpha, abs_dalpha;         /* DyT: sum of dy * w * x * (1 - tanh^2(alpha x)), and of its magnitudes */
    double abs_dy_w_x;                 /* DyT: sum of |dy * w * x| */
    struct nb_squashed_rows *squashed; /* DyT; else null */
};

/* The f32 mean and rstd that a backward call is given: the oracle's, rounded once. mean may be null; n_stats of o->n_truth. */
void nb_gradient_statistics(const struct nb_oracle *o, float *mean, float *rstd);
/* Computes the sums; -1 after nb_error when the environment flushes subnormals. Borrows c and in. DyT takes no statistics. */
int nb_gradient_init(struct nb_gradient *g, const struct nb_case *c, const struct nb_inputs *in, const float *mean,
                     const float *rstd);
/* The same with the statistics of the case's own oracle. */
int nb_gradient_of_oracle(struct nb_gradient *g, const struct nb_oracle *o);
/* The exact dx of one row, before the rounding to the dtype. */
void nb_gradient_row(const struct nb_gradient *g, int64_t row, double *dx);
void nb_gradient_release(struct nb_gradient *g);

/* Of a row: element i has the statistics stat + i * stat_step and the parameter param + i * param_step; the first n_coupled elements
 * depend on the sums of their row or channel (in prmsnorm k, in inference none). */
struct nb_gradient_place {
    int64_t stat, param, stat_step, param_step, n_coupled;
};
struct nb_gradient_place nb_gradient_place_of(const struct nb_case *c, int64_t row);

/* ---- saved statistics ------------------------------------------------------------------------------------------------ */

/* The mean and rstd that a backward call is given: those of a perfect forward call, the exact ones rounded once to f32. */

/* Adds to the inputs what a case needs and they do not have; nothing for a forward case. The case's rows are the inputs'. -1 after
 * nb_error. */
int nb_saved_statistics_add(struct nb_inputs *in, const struct nb_case *c);
/* The exact gradient of a case whose inputs have them (gradient.h); borrows both. -1 after nb_error. */
int nb_saved_statistics_gradient(struct nb_gradient *g, const struct nb_case *c, const struct nb_inputs *in);
