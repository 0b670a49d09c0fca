// SPDX-License-Identifier: Apache-2.0
/* What the mathematics says of a backward call (kernels/kernel.h has the formulas): compensated double arithmetic, with the f32
 * mean and rstd that the kernels are given taken as exact, so that a kernel is judged by its own work alone. Built with
 * -ffp-contract=off; refuses to run with FTZ or DAZ, as the oracle does. */
#ifndef NB_GRADIENT_H
#define NB_GRADIENT_H

#include <stdint.h>

#include "src/accuracy/oracle.h"
#include "src/case/case.h"
#include "src/input/inputs.h"

/* Of one row (BatchNorm: of one channel): what dx shares. */
struct nb_row_gradient {
    double mean_g, mean_g_lo;       /* mean of g = dy * w; 0 where the op does not centre */
    double mean_gx, mean_gx_lo;     /* mean of g * xhat (l2norm: the sum) */
    double mean_abs_g, mean_abs_gx; /* mean |g|, mean |g * xhat|: what the error of a sum is bounded by */
    double max_abs_g, max_abs_xhat;
};

struct nb_gradient {
    const struct nb_case *c;
    const struct nb_inputs *in;
    const float *mean,
        *rstd; /* n_stats each, as the kernels get them; mean null where the op does not centre; borrowed */
    struct nb_row_gradient *rows;   /* n_stats of them */
    int64_t n_stats;                /* rows; BatchNorm: c */
    double *weight;                 /* w of each parameter, exact (1 where there is none); n_params */
    double *dgamma, *dbeta;         /* n_params each; sums over rows; null where the formula has none */
    double *abs_dgamma, *abs_dbeta; /* sum |dy * xhat|, sum |dy| */
    int64_t n_params;
};

/* The f32 mean and rstd that a backward call is given: the oracle's, rounded once. mean may be null; n_stats of o->n_truth. */
void nb_gradient_statistics(const struct nb_oracle *o, float *mean, float *rstd);
/* Computes the sums; -1 after nb_error when the environment flushes subnormals or memory cannot be had. Borrows all it is given. */
int nb_gradient_init(struct nb_gradient *g, const struct nb_case *c, const struct nb_inputs *in, const float *mean,
                     const float *rstd);
/* The exact dx of one row, before the rounding to the dtype. */
void nb_gradient_row(const struct nb_gradient *g, int64_t row, double *dx);
void nb_gradient_release(struct nb_gradient *g);

#endif
