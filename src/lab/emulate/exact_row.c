// SPDX-License-Identifier: Apache-2.0
/* The statistics are the oracle's; its elements, which a few 2^-53 of error are good enough for, are not. */
#include "src/lab/emulate/exact_row.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/core/twofold.h"

static struct nb_twofold exact(const struct nb_case *c, const struct nb_row_truth *t, double x, const double *gamma,
                               const double *beta) {
    struct nb_twofold v = nb_twofold_sub(nb_twofold_of(x), (struct nb_twofold){t->mean, t->mean_lo});
    v = nb_twofold_mul(v, (struct nb_twofold){t->scale, t->scale_lo});
    if (gamma) v = nb_twofold_mul(v, c->formula.weight_offset ? nb_two_sum(1.0, *gamma) : nb_twofold_of(*gamma));
    if (beta) v = nb_twofold_add(v, nb_twofold_of(*beta));
    return v;
}

static double plain(const struct nb_case *c, const struct nb_row_truth *t, double x, const double *gamma,
                    const double *beta) {
    double v = (x - t->mean) * t->scale;
    if (gamma) v *= c->formula.weight_offset ? 1 + *gamma : *gamma;
    return beta ? v + *beta : v;
}

void nb_exact_row(const struct nb_case *c, const double *x, const double *gamma, const double *beta,
                  struct nb_row_truth *t, double *y, double *y_low) {
    struct nb_row_truth own = {0};
    struct nb_row_truth *const truth = t ? t : &own;
    nb_truth_of_row(truth, c, x, nb_truth_elements(c));
    const bool ordinary = isfinite(truth->mean) && isfinite(truth->scale) && isfinite(truth->var);
    for (int64_t i = 0; i < c->shape.cols; i++) {
        const double *const g = gamma ? &gamma[i] : NULL, *const b = beta ? &beta[i] : NULL;
        struct nb_twofold v = {0, 0};
        if (ordinary && isfinite(x[i])) v = exact(c, truth, x[i], g, b);
        if (!ordinary || !isfinite(v.hi) || v.hi == 0) v = nb_twofold_of(plain(c, truth, x[i], g, b)); /* signs of 0 */
        y[i] = v.hi;
        if (y_low) y_low[i] = v.lo;
    }
}
