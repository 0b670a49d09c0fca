// SPDX-License-Identifier: Apache-2.0
/* The bound of dgamma, dbeta and dalpha: sums down the columns, each term with its own error, in chains of column_chain roundings. The
 * outputs are f32, so that the last rounding is the sum's own. */
#include <math.h>

#include "src/accuracy/gradient_bound.h"
#include "src/core/dtype.h"

/* As in gradient_bound.c. */
static const double slack = 1 + 0x1p-26;

/* Relative to tanh: 4 ulp, and what alpha * x is off, since |t| (1 - tanh^2 t) <= |tanh t|. */
static double tanh_error(const struct nb_gradient_bound *b) {
    const double alpha = b->c->alpha, u = b->columns.op.u;
    const double of_alpha = alpha != 0 ? fabs(nb_round_to(alpha, NB_F32) / alpha - 1) : 0;
    return 8 * 0x1p-24 + (of_alpha + u) * (1 + 4 * u) + (b->low_precision ? 2 * u : 0);
}

/* Terms of a column: its rows, or a channel's elements. */
static double n_terms(const struct nb_gradient_bound *b) {
    return b->c->op == NB_OP_BATCHNORM ? b->columns.n : (double)b->g->in->rows;
}

static double finished(const struct nb_gradient_bound *b, double magnitudes, double exact, double tolerance) {
    const bool in_range = magnitudes * (1 + b->columns.of_sum) < b->columns.sum_overflow &&
                          fabs(exact) + tolerance < b->columns.op.overflow;
    return in_range ? tolerance * slack : (double)INFINITY;
}

/* Of dy * xhat: xhat's own error, dy that is flushed, the product. */
double nb_gradient_bound_dgamma(const struct nb_gradient_bound *b, int64_t i) {
    const struct nb_gradient_arithmetic *a = &b->columns;
    const struct nb_gradient *g = b->g;
    const bool squashes = b->c->op == NB_OP_DYT, by_channel = b->c->op == NB_OP_BATCHNORM;
    const double rstd = squashes ? 1 : by_channel ? g->rstd[i] : b->max_rstd;
    const double min_rstd = by_channel ? rstd : b->min_rstd;
    const double shift = by_channel && g->mean ? fabs((double)g->mean[i]) * rstd : b->max_shift;
    const double of_xhat = squashes ? tanh_error(b) : a->of_xhat;
    /* the product; rstd as a factor of the sum; the result in a narrow dtype */
    const double d = nb_gradient_compound(a->growth, a->op.u, 2 + b->low_precision) * (1 + of_xhat) + of_xhat;
    const double lost = a->op.eta * (1 + rstd) + a->flushed * (b->max_abs_xhat + b->max_abs_dy + squashes);
    double of_terms = nb_xhat_error(a, shift, rstd).in_sums;
    if (b->low_precision && !squashes) of_terms += a->op.eta / min_rstd * b->max_abs_xhat * (1 + a->of_xhat);
    const double tolerance =
        g->abs_dgamma[i] * d + (g->abs_dbeta[i] * of_terms + n_terms(b) * lost) * (1 + d) + a->op.eta;
    const double distance = by_channel ? g->rows[i].max_abs_xhat / rstd : b->max_distance;
    const double largest = fmax(fmax(rstd, distance), b->c->folded ? shift : 0);
    if (largest * (1 + a->of_xhat) >= a->op.overflow) return INFINITY;
    return finished(b, g->abs_dgamma[i] * (by_channel ? fmax(1, 1 / rstd) : 1), g->dgamma[i], tolerance);
}

double nb_gradient_bound_dbeta(const struct nb_gradient_bound *b, int64_t i) {
    const struct nb_gradient_arithmetic *a = &b->columns;
    const struct nb_gradient *g = b->g;
    const double d = nb_gradient_compound(a->growth, a->op.u, b->low_precision);
    return finished(b, g->abs_dbeta[i], g->dbeta[i], g->abs_dbeta[i] * d + n_terms(b) * a->flushed * (1 + d));
}

/* dy w x (1 - t^2): the slope's error is absolute, 2 |t| that of t and two roundings. */
double nb_gradient_bound_dalpha(const struct nb_gradient_bound *b) {
    const struct nb_gradient_arithmetic *a = &b->columns;
    const struct nb_gradient *g = b->g;
    const double u = a->op.u, of_tanh = tanh_error(b), n = (double)g->in->rows * (double)g->in->cols;
    const double sums = (1 + b->rows.growth) * (1 + a->growth) - 1;
    const double d = nb_gradient_compound(sums * (1 + a->of_g) + a->of_g, u, 4 + b->low_precision);
    const double of_slope = 2 * of_tanh + of_tanh * of_tanh + 2 * u + a->op.eta;
    const double lost = (a->op.eta + a->flushed) * (1 + b->max_abs_dy) * (1 + g->max_abs_weight);
    return finished(b, g->abs_dy_w_x, g->dalpha,
                    g->abs_dalpha * d + (g->abs_dy_w_x * of_slope + n * lost) * (1 + d) + a->op.eta);
}
