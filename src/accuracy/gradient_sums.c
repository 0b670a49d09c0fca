// SPDX-License-Identifier: Apache-2.0
/* The sums of a backward call in one sweep over x and dy: along the rows those that dx needs, down the columns dgamma and dbeta.
 * BatchNorm's sums of a channel are both. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "src/accuracy/gradient.h"
#include "src/accuracy/gradient_terms.h"
#include "src/accuracy/truth.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/twofold.h"

/* ---- along a row ------------------------------------------------------------------------------------------------------- */

static double larger(double a, double b) { return a > b ? a : b; }

/* Sums and extremes of magnitudes, not yet divided. */
static void add_magnitudes(struct nb_row_gradient *r, const struct nb_gradient_terms *s, const double *g, int64_t n) {
    struct nb_row_gradient t = *r;
    for (int64_t i = 0; i < n; i++) {
        const double size = fabs(g[i]), xhat = fabs(s->d[i] * s->rstd[i]);
        t.mean_abs_g += size;
        t.mean_abs_gx += size * xhat;
        t.max_abs_g = larger(size, t.max_abs_g);
        t.max_abs_dy = larger(fabs(s->dy[i]), t.max_abs_dy);
        t.max_abs_xhat = larger(xhat, t.max_abs_xhat);
    }
    *r = t;
}

/* By the formula as it stands: what Inf and NaN become. */
static void set_not_finite(struct nb_row_gradient *r, const struct nb_gradient_terms *s, const double *g, int64_t n,
                           double divisor, bool centred) {
    double sum = 0, sum_gx = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += g[i];
        sum_gx += g[i] * (s->d[i] * s->rstd[i]);
    }
    r->mean_g = centred ? sum / divisor : 0;
    r->mean_gx = sum_gx / divisor;
}

static double divisor_of(const struct nb_case *c) { return c->op == NB_OP_L2NORM ? 1 : (double)nb_truth_elements(c); }

static void set_means(struct nb_row_gradient *r, struct nb_twofold g, struct nb_twofold gx, double divisor,
                      bool centred) {
    g = centred ? nb_twofold_div(g, nb_twofold_of(divisor)) : nb_twofold_of(0);
    gx = nb_twofold_div(gx, nb_twofold_of(divisor));
    r->mean_g = g.hi;
    r->mean_g_lo = g.lo;
    r->mean_gx = gx.hi;
    r->mean_gx_lo = gx.lo;
}

static void sum_row(const struct nb_gradient *g, int64_t row, struct nb_gradient_terms *s) {
    struct nb_row_gradient *r = &g->rows[row];
    struct nb_sum sum_g = {0}, sum_gd = {0};
    const int64_t n = g->in->cols;
    const double divisor = divisor_of(g->c), rstd = g->rstd[row];
    const bool centred = nb_op_centres(g->c->op);
    nb_pairs_multiply(n, s->dy, g->weight, g->weight_lo, s->g, s->g_lo);
    add_magnitudes(r, s, s->g, n);
    if (isfinite(r->mean_abs_g) && isfinite(r->mean_abs_gx)) {
        if (centred) nb_sum_add_pairs(&sum_g, n, s->g, s->g_lo);
        nb_sum_add_products(&sum_gd, n, s->g, s->g_lo, s->d, s->d_lo);
        struct nb_twofold gx = nb_twofold_mul(nb_sum_total(&sum_gd), nb_twofold_of(rstd));
        set_means(r, nb_sum_total(&sum_g), gx, divisor, centred);
    } else {
        set_not_finite(r, s, s->g, n, divisor, centred);
    }
    r->mean_abs_g /= divisor;
    r->mean_abs_gx /= divisor;
}

/* ---- all rows ---------------------------------------------------------------------------------------------------------- */

static void extremes_of_channels(const struct nb_gradient *g, int64_t row, const struct nb_gradient_terms *s) {
    const struct nb_gradient_place at = nb_gradient_place_of(g->c, row);
    for (int64_t i = 0; i < g->in->cols; i++) {
        struct nb_row_gradient *r = &g->rows[at.stat + i * at.stat_step];
        r->max_abs_dy = larger(fabs(s->dy[i]), r->max_abs_dy);
        r->max_abs_xhat = larger(fabs(s->d[i] * s->rstd[i]), r->max_abs_xhat);
    }
}

/* g = w dy with one w for the channel: its sums are those of the parameter gradients times w. */
static void sum_channels(const struct nb_gradient *g, struct nb_gradient_columns *t, struct nb_gradient_terms *s) {
    const bool planes = g->c->shape.layout == NB_NCHW;
    const double n = (double)nb_truth_elements(g->c);
    for (int64_t row = 0; row < g->in->rows; row++) {
        nb_gradient_terms_load(g, row, s);
        extremes_of_channels(g, row, s);
        if (planes)
            nb_gradient_columns_add_plane(t, row % g->c->shape.c, s, g->in->cols);
        else
            nb_gradient_columns_add(t, s, g->in->cols);
    }
    for (int64_t i = 0; i < g->n_stats; i++) {
        struct nb_row_gradient *r = &g->rows[i];
        const struct nb_twofold w = {g->weight[i], g->weight_lo[i]};
        r->max_abs_g = r->max_abs_dy * fabs(w.hi);
        if (g->c->mode != NB_TRAINING) continue;
        const struct nb_twofold sum_dy = nb_gradient_total(t->dbeta[i], t->dbeta_lo[i], t->abs_dbeta[i]);
        const struct nb_twofold sum_dyx = nb_gradient_total(t->dgamma[i], t->dgamma_lo[i], t->abs_dgamma[i]);
        r->mean_abs_g = t->abs_dbeta[i] / n * fabs(w.hi);
        r->mean_abs_gx = t->abs_dgamma[i] / n * fabs(w.hi);
        if (isfinite(r->mean_abs_g) && isfinite(r->mean_abs_gx))
            set_means(r, nb_twofold_mul(sum_dy, w), nb_twofold_mul(sum_dyx, w), n, true);
        else {
            r->mean_g = sum_dy.hi * w.hi / n;
            r->mean_gx = sum_dyx.hi * w.hi / n;
        }
    }
}

static void sum_rows(const struct nb_gradient *g, struct nb_gradient_columns *t, struct nb_gradient_terms *s) {
    for (int64_t row = 0; row < g->in->rows; row++) {
        nb_gradient_terms_load(g, row, s);
        sum_row(g, row, s);
        if (g->dgamma) nb_gradient_columns_add(t, s, g->in->cols);
    }
}

/* xhat is tanh, which stands in the place of x - mean; the slope's product goes to dalpha. */
static void sum_squashed(struct nb_gradient *g, struct nb_gradient_columns *t, struct nb_gradient_terms *s) {
    const struct nb_inputs *in = g->in;
    struct nb_sum dalpha = {0};
    for (int64_t row = 0; row < in->rows; row++) {
        nb_truth_widen(in->x, row * in->cols, in->cols, in->dtype, s->x);
        nb_truth_widen(in->dy, row * in->cols, in->cols, in->dtype, s->dy);
        const struct nb_squash *squash = nb_gradient_squash(g, row);
        for (int64_t i = 0; i < in->cols; i++) {
            s->dy_rstd[i] = s->dy[i];
            s->d[i] = squash[i].tanh;
            const double unsquashed = s->dy[i] * g->weight[i] * s->x[i];
            s->g[i] = unsquashed * squash[i].slope;
            g->abs_dalpha += fabs(s->g[i]);
            g->abs_dy_w_x += fabs(unsquashed);
        }
        nb_sum_add_pairs(&dalpha, in->cols, s->g, s->no_lo);
        if (g->dgamma) nb_gradient_columns_add(t, s, in->cols);
    }
    for (int i = 0; i < 4; i++) g->dalpha += dalpha.hi[i / 2][i % 2];
    if (isfinite(g->abs_dalpha)) g->dalpha = nb_sum_total(&dalpha).hi;
}

/* ---- the struct -------------------------------------------------------------------------------------------------------- */

static void set_weights(struct nb_gradient *g) {
    const struct nb_formula *f = &g->c->formula;
    g->weight = nb_gradient_zeros(g->n_params);
    g->weight_lo = nb_gradient_zeros(g->n_params);
    for (int64_t i = 0; i < g->n_params; i++) {
        struct nb_twofold w = nb_twofold_of(1);
        if (f->affine != NB_AFFINE_NONE) {
            const bool narrow = f->param == NB_PARAM_X;
            const double gamma = narrow ? nb_get(g->in->gamma_x, i, g->in->dtype) : (double)g->in->gamma_f32[i];
            w = f->weight_offset && isfinite(gamma) ? nb_two_sum(1, gamma) : nb_twofold_of(gamma);
        }
        g->weight[i] = w.hi;
        g->weight_lo[i] = w.lo;
        g->max_abs_weight = larger(fabs(w.hi), g->max_abs_weight);
    }
}

static void set_parameter_gradients(struct nb_gradient *g, const struct nb_gradient_columns *t) {
    for (int64_t i = 0; g->dgamma && i < g->n_params; i++) {
        g->abs_dgamma[i] = t->abs_dgamma[i];
        g->abs_dbeta[i] = t->abs_dbeta[i];
        g->dgamma[i] = nb_gradient_total(t->dgamma[i], t->dgamma_lo[i], t->abs_dgamma[i]).hi;
        if (g->dbeta) g->dbeta[i] = nb_gradient_total(t->dbeta[i], t->dbeta_lo[i], t->abs_dbeta[i]).hi;
    }
}

static void sum_all(struct nb_gradient *g) {
    struct nb_gradient_terms s = nb_gradient_terms_new(g->in->cols);
    struct nb_gradient_columns t = nb_gradient_columns_new(g->n_params);
    if (g->c->op == NB_OP_DYT)
        sum_squashed(g, &t, &s);
    else if (g->c->op == NB_OP_BATCHNORM)
        sum_channels(g, &t, &s);
    else
        sum_rows(g, &t, &s);
    set_parameter_gradients(g, &t);
    free(s.all);
    free(t.all);
}

int nb_gradient_init(struct nb_gradient *g, const struct nb_case *c, const struct nb_inputs *in, const float *mean,
                     const float *rstd) {
    assert(c->op != NB_OP_COPY);
    *g = (struct nb_gradient){.c = c, .in = in, .rstd = rstd, .n_params = in->n_params};
    if (nb_oracle_environment() != 0) return -1;
    if (nb_op_centres(c->op)) g->mean = mean;
    set_weights(g);
    if (c->op == NB_OP_DYT) {
        g->squashed = nb_squashed_row_new(in->cols);
    } else {
        g->n_stats = c->op == NB_OP_BATCHNORM ? c->shape.c : in->rows;
        g->rows = nb_alloc((unsigned long long)g->n_stats, sizeof *g->rows);
    }
    if (c->formula.affine != NB_AFFINE_NONE) {
        g->dgamma = nb_gradient_zeros(g->n_params);
        g->abs_dgamma = nb_gradient_zeros(g->n_params);
        g->abs_dbeta = nb_gradient_zeros(g->n_params);
        if (c->formula.affine == NB_AFFINE_GAMMA_BETA) g->dbeta = nb_gradient_zeros(g->n_params);
    }
    sum_all(g);
    return 0;
}

void nb_gradient_release(struct nb_gradient *g) {
    free(g->rows);
    free(g->squashed);
    free(g->weight);
    free(g->weight_lo);
    free(g->dgamma);
    free(g->dbeta);
    free(g->abs_dgamma);
    free(g->abs_dbeta);
    *g = (struct nb_gradient){0};
}
