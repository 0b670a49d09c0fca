// SPDX-License-Identifier: Apache-2.0
/* Sums of any order: a computed sum is the sum of t_i (1 + e_i) with |e_i| <= (1 + u)^k - 1, k the roundings that a term passes. */
#include "src/accuracy/gradient_error.h"

#include <math.h>

#include "src/core/dtype.h"

/* Roundings of a division by n: 1/n, or n itself where f32 does not hold it, and the product. */
enum { DIVISION = 2, PRODUCT = 1 };

double nb_gradient_compound(double g, double u, int k) {
    double factor = 1 + g;
    for (int i = 0; i < k; i++) factor *= 1 + u;
    return factor - 1;
}

static double larger(double a, double b) { return a > b ? a : b; }

static double both(double g, double h) { return g + h + g * h; }

void nb_gradient_arithmetic_init(struct nb_gradient_arithmetic *a, const struct nb_case *c, const struct nb_gradient *g,
                                 int64_t chain, bool flushes) {
    struct nb_arithmetic arithmetic;
    nb_arithmetic_init(&arithmetic, c, chain);
    *a = (struct nb_gradient_arithmetic){.c = c, .g = g, .op = arithmetic.op, .sum_overflow = arithmetic.sum.overflow};
    a->low_precision = c->stats_dtype == NB_STATS_X && c->dtype != NB_F32;
    if (flushes) {
        a->flushed = 0x1p-126;
        a->op.eta = fmax(a->op.eta, a->flushed);
    }
    const double u = a->op.u;
    const int narrowing = a->low_precision; /* of mean and rstd, of a sum's result */
    const int weight = c->formula.affine == NB_AFFINE_NONE ? 0 : c->formula.weight_offset ? 2 : 1;
    a->growth = arithmetic.growth;
    a->of_g = nb_gradient_compound(0, u, weight);
    a->of_xhat = nb_gradient_compound(0, u, (g->mean != NULL) + PRODUCT + narrowing);
    a->of_sum = nb_gradient_compound(arithmetic.growth, u, DIVISION + narrowing);
    a->of_mean_g = both(a->of_sum, a->of_g);
    /* the products; rstd as a factor of the sum in place of its terms */
    a->of_mean_gx = nb_gradient_compound(both(a->of_mean_g, a->of_xhat), u, 2 * PRODUCT);
    a->n = c->op == NB_OP_BATCHNORM ? (double)(c->shape.n * c->shape.hw) : (double)c->shape.cols;
    a->divisor = c->op == NB_OP_L2NORM ? 1 : (double)nb_truth_elements(c);
}

/* The mean rounded to a narrow dtype; x, mean and their difference flushed. Folded, fma(x, rstd, -mean * rstd) or b x + c, terms
 * of the size of the shift are rounded before they cancel; sums of g * x and of g, of which the one is taken from the other, carry
 * the whole error of a sum. */
struct nb_xhat_error nb_xhat_error(const struct nb_gradient_arithmetic *a, double shift, double rstd) {
    const double u = a->op.u;
    double e = 3 * a->flushed * rstd * (1 + a->of_xhat) + a->op.eta;
    if (a->low_precision) e += (u * shift + 2 * a->op.eta * rstd) * (1 + a->of_xhat);
    if (!a->c->folded) return (struct nb_xhat_error){e, e};
    e += nb_gradient_compound(0, u, 4) * shift + a->op.eta;
    return (struct nb_xhat_error){e, e + 2 * nb_gradient_compound(a->of_sum, u, 2 * PRODUCT) * shift};
}

/* Coefficients of x hold rstd^2, folded ones rstd^3; where f32 has no such number, the squares of the forward pass had none either. With
 * all in a narrow dtype rstd alone must be one. */
static enum nb_loss loss_of_scale(const struct nb_gradient_arithmetic *a, double rstd, bool coupled) {
    const double power = !coupled || a->low_precision ? rstd : a->c->folded ? rstd * rstd * rstd : rstd * rstd;
    if (isnan(rstd)) return NB_LOSS_INPUT_NOT_FINITE;
    if (power >= a->op.overflow) return NB_LOSS_SCALE_OVERFLOW;
    if (a->low_precision || (!coupled && a->flushed == 0)) return NB_LOSS_NONE;
    return power < nb_formats[NB_F32].min_normal ? NB_LOSS_SQUARE_OVERFLOW : NB_LOSS_NONE;
}

/* Where a sum, or what is needed for its terms, may leave the range: g * xhat, or g * (x - mean), folded g * x. */
static enum nb_loss loss_of_sums(const struct nb_gradient_arithmetic *a, const struct nb_row_gradient *r, double rstd,
                                 double mean) {
    const double grown = 1 + a->of_mean_gx, distance = r->max_abs_xhat / rstd;
    if (!isfinite(r->mean_g) || !isfinite(r->mean_gx) || !isfinite(r->mean_abs_gx)) return NB_LOSS_INPUT_NOT_FINITE;
    double of_x = a->low_precision ? 0 : r->mean_abs_gx / rstd;
    if (a->c->folded) of_x += r->mean_abs_g * fabs(mean);
    /* the two means with their factors of rstd, as far as a form may fold them */
    const double once = larger(1, rstd), twice = a->low_precision ? once : larger(1, rstd * rstd);
    const double pull = (fabs(r->mean_gx) + r->mean_abs_gx * a->of_mean_gx) * twice;
    const double sum = a->divisor * larger(larger(r->mean_abs_gx, r->mean_abs_g), of_x);
    double single = larger(larger(fabs(r->mean_g) * once, pull), larger(distance, r->max_abs_g));
    if (a->c->folded) single = larger(fabs(mean) * rstd, single);
    const bool overflows = sum * grown >= a->sum_overflow || single * grown >= a->op.overflow;
    return overflows ? NB_LOSS_SQUARE_OVERFLOW : NB_LOSS_NONE;
}

/* What is lost of a term to the end of the range may be lost of each. */
struct nb_row_gradient_error nb_row_gradient_error(const struct nb_gradient_arithmetic *a, int64_t stat, bool coupled) {
    const struct nb_row_gradient *r = &a->g->rows[stat];
    const double rstd = a->g->rstd[stat], mean = a->g->mean ? a->g->mean[stat] : 0, eta = a->op.eta;
    struct nb_row_gradient_error e = {.loss = loss_of_scale(a, rstd, coupled)};
    if (a->low_precision) e.of_rstd = eta / rstd;
    if (!coupled) return e;
    if (e.loss == NB_LOSS_NONE) e.loss = loss_of_sums(a, r, rstd, mean);
    if (e.loss != NB_LOSS_NONE) return e;
    e.xhat = nb_xhat_error(a, fabs(mean) * rstd, rstd);
    e.xhat.element += e.of_rstd * r->max_abs_xhat * (1 + a->of_xhat);
    e.xhat.in_sums += e.of_rstd * r->max_abs_xhat * (1 + a->of_xhat);
    const double lost_g = eta + a->flushed * (a->g->max_abs_weight + r->max_abs_dy);
    const double reach = r->max_abs_xhat + 1 + (a->c->folded ? fabs(mean) * rstd : 0);
    const double lost_gx = lost_g * reach + eta * (1 + rstd);
    if (nb_op_centres(a->c->op)) e.mean_g = r->mean_abs_g * a->of_mean_g + lost_g * (1 + a->of_mean_g) + eta;
    e.mean_gx = r->mean_abs_gx * a->of_mean_gx + eta * (reach + 2 * rstd) +
                (r->mean_abs_g * e.xhat.in_sums + a->n / a->divisor * lost_gx) * (1 + a->of_mean_gx);
    return e;
}
