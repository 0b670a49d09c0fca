// SPDX-License-Identifier: Apache-2.0
/* See gradient_terms.h. dy, w and x - mean are kept as exact pairs, so that only the accumulators round, at 2^-106. */
#include "src/accuracy/gradient_terms.h"

#include <math.h>

#include "src/accuracy/truth.h"
#include "src/core/log.h"
#include "src/core/twofold.h"

double *nb_gradient_zeros(int64_t n) { return nb_alloc((unsigned long long)(n + n % 2), sizeof(double)); }

static double *take(double **from, int64_t n) {
    double *piece = *from;
    *from += n + n % 2;
    return piece;
}

struct nb_gradient_terms nb_gradient_terms_new(int64_t n) {
    double *all = nb_gradient_zeros((n + n % 2) * 10), *rest = all;
    return (struct nb_gradient_terms){.all = all,
                                      .x = take(&rest, n),
                                      .dy = take(&rest, n),
                                      .mean = take(&rest, n),
                                      .rstd = take(&rest, n),
                                      .d = take(&rest, n),
                                      .d_lo = take(&rest, n),
                                      .g = take(&rest, n),
                                      .g_lo = take(&rest, n),
                                      .dy_rstd = take(&rest, n),
                                      .no_lo = take(&rest, n)};
}

struct nb_gradient_columns nb_gradient_columns_new(int64_t n) {
    double *all = nb_gradient_zeros((n + n % 2) * 6), *rest = all;
    return (struct nb_gradient_columns){.all = all,
                                        .dgamma = take(&rest, n),
                                        .dgamma_lo = take(&rest, n),
                                        .dbeta = take(&rest, n),
                                        .dbeta_lo = take(&rest, n),
                                        .abs_dgamma = take(&rest, n),
                                        .abs_dbeta = take(&rest, n)};
}

void nb_gradient_terms_load(const struct nb_gradient *g, int64_t row, struct nb_gradient_terms *s) {
    const struct nb_inputs *in = g->in;
    const struct nb_gradient_place at = nb_gradient_place_of(g->c, row);
    nb_truth_widen(in->x, row * in->cols, in->cols, in->dtype, s->x);
    nb_truth_widen(in->dy, row * in->cols, in->cols, in->dtype, s->dy);
    for (int64_t i = 0; i < in->cols; i++) {
        const int64_t stat = at.stat + i * at.stat_step;
        s->mean[i] = g->mean ? g->mean[stat] : 0;
        s->rstd[i] = g->rstd[stat];
        s->dy_rstd[i] = s->dy[i] * s->rstd[i];
    }
    nb_pairs_subtract(in->cols, s->x, s->mean, s->d, s->d_lo);
}

void nb_gradient_columns_add(struct nb_gradient_columns *t, const struct nb_gradient_terms *s, int64_t n) {
    nb_columns_add(n, t->dbeta, t->dbeta_lo, s->dy);
    nb_columns_add_products(n, t->dgamma, t->dgamma_lo, s->dy_rstd, s->d, s->d_lo);
    for (int64_t i = 0; i < n; i++) {
        t->abs_dbeta[i] += fabs(s->dy[i]);
        t->abs_dgamma[i] += fabs(s->dy_rstd[i] * s->d[i]);
    }
}

/* A plane of NCHW: its row goes to one column. */
void nb_gradient_columns_add_plane(struct nb_gradient_columns *t, int64_t channel, const struct nb_gradient_terms *s,
                                   int64_t n) {
    struct nb_sum sum_dy = {0}, sum_dyx = {0};
    double abs_dy = 0, abs_dyx = 0;
    nb_sum_add_pairs(&sum_dy, n, s->dy, s->no_lo);
    nb_sum_add_products(&sum_dyx, n, s->dy_rstd, s->no_lo, s->d, s->d_lo);
    for (int64_t i = 0; i < n; i++) {
        abs_dy += fabs(s->dy[i]);
        abs_dyx += fabs(s->dy_rstd[i] * s->d[i]);
    }
    for (int i = 0; i < 4; i++) {
        struct nb_twofold beta = {t->dbeta[channel], t->dbeta_lo[channel]};
        struct nb_twofold gamma = {t->dgamma[channel], t->dgamma_lo[channel]};
        nb_accumulate(&beta, sum_dy.hi[i / 2][i % 2], sum_dy.lo[i / 2][i % 2]);
        nb_accumulate(&gamma, sum_dyx.hi[i / 2][i % 2], sum_dyx.lo[i / 2][i % 2]);
        t->dbeta[channel] = beta.hi;
        t->dbeta_lo[channel] = beta.lo;
        t->dgamma[channel] = gamma.hi;
        t->dgamma_lo[channel] = gamma.lo;
    }
    t->abs_dbeta[channel] += abs_dy;
    t->abs_dgamma[channel] += abs_dyx;
}

/* Of Inf and NaN the upper part alone is right. */
struct nb_twofold nb_gradient_total(double hi, double lo, double magnitudes) {
    return isfinite(magnitudes) ? nb_twofold_renormalize(hi, lo) : nb_twofold_of(hi);
}
