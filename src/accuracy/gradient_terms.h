// SPDX-License-Identifier: Apache-2.0
/* What the sums of a backward call add up: one row of it widened to exact pairs, and the accumulators down the columns. */
#ifndef NB_GRADIENT_TERMS_H
#define NB_GRADIENT_TERMS_H

#include "src/accuracy/gradient.h"
#include "src/core/twofold.h"

/* Numbers of one row, with room for an even number of them. */
struct nb_gradient_terms {
    double *all; /* what is allocated; free it */
    double *x, *dy, *mean, *rstd;
    double *d, *d_lo;        /* x - mean */
    double *g, *g_lo;        /* dy * w: the caller's to fill */
    double *dy_rstd, *no_lo; /* exact in double; zeros */
};
struct nb_gradient_terms nb_gradient_terms_new(int64_t n);
void nb_gradient_terms_load(const struct nb_gradient *g, int64_t row, struct nb_gradient_terms *s);

/* Accumulators of all columns, and sums of magnitudes. */
struct nb_gradient_columns {
    double *all; /* what is allocated; free it */
    double *dgamma, *dgamma_lo, *dbeta, *dbeta_lo, *abs_dgamma, *abs_dbeta;
};
struct nb_gradient_columns nb_gradient_columns_new(int64_t n);
/* A row of n elements, each to its own column; or, a plane of NCHW, all to one. */
void nb_gradient_columns_add(struct nb_gradient_columns *t, const struct nb_gradient_terms *s, int64_t n);
void nb_gradient_columns_add_plane(struct nb_gradient_columns *t, int64_t channel, const struct nb_gradient_terms *s,
                                   int64_t n);
/* Of an accumulator, given its sum of magnitudes: of Inf and NaN the upper part alone is right. */
struct nb_twofold nb_gradient_total(double hi, double lo, double magnitudes);
/* n zeros, with room for an even number. */
double *nb_gradient_zeros(int64_t n);

#endif
