// SPDX-License-Identifier: Apache-2.0
/* dy, w and x - mean are kept as exact pairs, so that only the accumulators round, at 2^-106. */
#include "src/accuracy/gradient.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/twofold.h"

/* ---- rows of pairs --------------------------------------------------------------------------------------------------- */

/* Rows of pairs hi[i] + lo[i]. Below, n is rounded up to an even number: arrays have room for that, and hold numbers there whose
 * products are 0. What is not finite stays right in hi and becomes NaN in lo. */

struct halves {
    nb_pair high, low;
};

static struct halves pair_split(nb_pair a) {
    nb_pair scaled = a * 134217729.0, high = scaled - (scaled - a);
    return (struct halves){high, a - high};
}

/* The rounding error of a * b, exactly (Dekker). */
static nb_pair pair_product_error(nb_pair a, nb_pair b, nb_pair product) {
    struct halves p = pair_split(a), q = pair_split(b);
    return (((p.high * q.high - product) + p.high * q.low) + p.low * q.high) + p.low * q.low;
}

static void pair_store(double *x, nb_pair v) {
    x[0] = v[0];
    x[1] = v[1];
}

/* hi + lo = x - centre, exactly. */
static void pairs_subtract(int64_t n, const double *x, double centre, double *hi, double *lo) {
    const nb_pair c = {centre, centre};
    for (int64_t i = 0; i < n; i += 2) {
        nb_pair a = nb_pair_load(x + i), d = a - c, a_part = d + c;
        pair_store(hi + i, d);
        pair_store(lo + i, (a - a_part) - (c - (a_part - d)));
    }
}

/* hi + lo = a (b + b_lo), to 2^-105 of itself. */
static void pairs_multiply(int64_t n, const double *a, const double *b, const double *b_lo, double *hi, double *lo) {
    for (int64_t i = 0; i < n; i += 2) {
        nb_pair p = nb_pair_load(a + i), q = nb_pair_load(b + i), product = p * q;
        pair_store(hi + i, product);
        pair_store(lo + i, pair_product_error(p, q, product) + p * nb_pair_load(b_lo + i));
    }
}

/* Adds the pairs, or the products of two rows of pairs, each to 2^-104 of itself. */
static void sum_add_pairs(struct nb_sum *s, int64_t n, const double *hi, const double *lo) {
    struct nb_sum t = *s; /* in registers */
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        nb_pair_accumulate(&t.hi[0], &t.lo[0], nb_pair_load(hi + i), nb_pair_load(lo + i));
        nb_pair_accumulate(&t.hi[1], &t.lo[1], nb_pair_load(hi + i + 2), nb_pair_load(lo + i + 2));
    }
    for (; i < n; i += 2) nb_pair_accumulate(&t.hi[0], &t.lo[0], nb_pair_load(hi + i), nb_pair_load(lo + i));
    *s = t;
}

static void pair_add_product(nb_pair *hi, nb_pair *lo, nb_pair a, nb_pair a_lo, nb_pair b, nb_pair b_lo) {
    nb_pair product = a * b;
    nb_pair_accumulate(hi, lo, product, pair_product_error(a, b, product) + (a * b_lo + a_lo * b));
}

static void sum_add_products(struct nb_sum *s, int64_t n, const double *a, const double *a_lo, const double *b,
                             const double *b_lo) {
    struct nb_sum t = *s;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        pair_add_product(&t.hi[0], &t.lo[0], nb_pair_load(a + i), nb_pair_load(a_lo + i), nb_pair_load(b + i),
                         nb_pair_load(b_lo + i));
        pair_add_product(&t.hi[1], &t.lo[1], nb_pair_load(a + i + 2), nb_pair_load(a_lo + i + 2),
                         nb_pair_load(b + i + 2), nb_pair_load(b_lo + i + 2));
    }
    for (; i < n; i += 2)
        pair_add_product(&t.hi[0], &t.lo[0], nb_pair_load(a + i), nb_pair_load(a_lo + i), nb_pair_load(b + i),
                         nb_pair_load(b_lo + i));
    *s = t;
}

/* Accumulators side by side, sum[i] + sum_lo[i]: adds a_i, or a_i (b_i + b_lo_i), to each. */
static void columns_add(int64_t n, double *sum, double *sum_lo, const double *a) {
    const nb_pair zero = {0.0, 0.0};
    for (int64_t i = 0; i < n; i += 2) {
        nb_pair hi = nb_pair_load(sum + i), lo = nb_pair_load(sum_lo + i);
        nb_pair_accumulate(&hi, &lo, nb_pair_load(a + i), zero);
        pair_store(sum + i, hi);
        pair_store(sum_lo + i, lo);
    }
}

static void columns_add_products(int64_t n, double *sum, double *sum_lo, const double *a, const double *b,
                                 const double *b_lo) {
    const nb_pair zero = {0.0, 0.0};
    for (int64_t i = 0; i < n; i += 2) {
        nb_pair hi = nb_pair_load(sum + i), lo = nb_pair_load(sum_lo + i);
        pair_add_product(&hi, &lo, nb_pair_load(a + i), zero, nb_pair_load(b + i), nb_pair_load(b_lo + i));
        pair_store(sum + i, hi);
        pair_store(sum_lo + i, lo);
    }
}

/* ---- terms ----------------------------------------------------------------------------------------------------------- */

/* Numbers of one row (BatchNorm: of one channel), with room for an even number of them. */
struct terms {
    double *all; /* what is allocated; free it */
    int64_t n;
    double mean, rstd;
    double *x, *dy, *w, *w_lo;
    double *d, *d_lo;        /* x - mean */
    double *g, *g_lo;        /* dy * w */
    double *dy_rstd, *no_lo; /* exact in double where rstd is f32; zeros */
};

/* Accumulators of all columns, and sums of magnitudes. */
struct columns {
    double *all; /* what is allocated; free it */
    double *dgamma, *dgamma_lo, *dbeta, *dbeta_lo, *abs_dgamma, *abs_dbeta, *abs_d;
};

/* n zeros, with room for an even number. */
static double *new_zeros(int64_t n) { return nb_alloc((unsigned long long)(n + n % 2), sizeof(double)); }

/* So many arrays of n zeros in one piece. */
static double *new_arrays(double **const arrays[], int n_arrays, int64_t n) {
    double *all = new_zeros((n + n % 2) * n_arrays);
    for (int i = 0; i < n_arrays; i++) *arrays[i] = all + i * (n + n % 2);
    return all;
}

static struct terms new_terms(int64_t n) {
    struct terms s = {.n = n};
    double **const arrays[] = {&s.x, &s.dy, &s.w, &s.w_lo, &s.d, &s.d_lo, &s.g, &s.g_lo, &s.dy_rstd, &s.no_lo};
    s.all = new_arrays(arrays, sizeof arrays / sizeof arrays[0], n);
    return s;
}

static struct columns new_columns(int64_t n) {
    struct columns t = {0};
    double **const arrays[] = {&t.dgamma, &t.dgamma_lo, &t.dbeta, &t.dbeta_lo, &t.abs_dgamma, &t.abs_dbeta, &t.abs_d};
    t.all = new_arrays(arrays, sizeof arrays / sizeof arrays[0], n);
    return t;
}

/* x and dy of a row or channel. */
static void load(const struct nb_gradient *g, int64_t stat, struct terms *s) {
    const struct nb_inputs *in = g->in;
    if (g->c->op == NB_OP_BATCHNORM) {
        nb_truth_channel(g->c, in, in->x, stat, s->x);
        nb_truth_channel(g->c, in, in->dy, stat, s->dy);
    } else {
        nb_truth_widen(in->x, stat * in->cols, in->cols, in->dtype, s->x);
        nb_truth_widen(in->dy, stat * in->cols, in->cols, in->dtype, s->dy);
    }
}

static void load_terms(const struct nb_gradient *g, int64_t stat, struct terms *s) {
    const bool by_channel = g->c->op == NB_OP_BATCHNORM;
    load(g, stat, s);
    s->mean = g->mean ? g->mean[stat] : 0;
    s->rstd = g->rstd[stat];
    for (int64_t i = 0; i < s->n; i++) {
        s->w[i] = g->weight[by_channel ? stat : i];
        s->w_lo[i] = g->weight_lo[by_channel ? stat : i];
        s->dy_rstd[i] = s->dy[i] * s->rstd;
    }
    pairs_subtract(s->n, s->x, s->mean, s->d, s->d_lo);
    pairs_multiply(s->n, s->dy, s->w, s->w_lo, s->g, s->g_lo);
}

/* A row, each element to its own column. */
static void add_to_columns(struct columns *t, const struct terms *s) {
    columns_add(s->n, t->dbeta, t->dbeta_lo, s->dy);
    columns_add_products(s->n, t->dgamma, t->dgamma_lo, s->dy_rstd, s->d, s->d_lo);
    for (int64_t i = 0; i < s->n; i++) {
        t->abs_dbeta[i] += fabs(s->dy[i]);
        t->abs_dgamma[i] += fabs(s->dy_rstd[i] * s->d[i]);
        t->abs_d[i] += fabs(s->d[i]);
    }
}

/* Of an accumulator, given its sum of magnitudes: of Inf and NaN the upper part alone is right. */
static double total_of(double hi, double lo, double magnitudes) { return isfinite(magnitudes) ? hi + lo : hi; }

static double value_of(const struct nb_sum *s, double magnitudes) {
    if (isfinite(magnitudes)) return nb_sum_total(s).hi;
    return (s->hi[0][0] + s->hi[0][1]) + (s->hi[1][0] + s->hi[1][1]);
}

/* ---- sums ------------------------------------------------------------------------------------------------------------ */

/* The sums of a backward call: along the rows those that dx needs, down the columns dgamma and dbeta. BatchNorm's sums of a channel are both. */

static double larger(double a, double b) { return a > b ? a : b; }

/* Sums and extremes of magnitudes, not yet divided. */
static void add_magnitudes(struct nb_row_gradient *r, const struct terms *s) {
    struct nb_row_gradient t = *r;
    for (int64_t i = 0; i < s->n; i++) {
        const double size = fabs(s->g[i]), xhat = fabs(s->d[i] * s->rstd);
        t.mean_abs_g += size;
        t.mean_abs_gx += size * xhat;
        t.max_abs_g = larger(size, t.max_abs_g);
        t.max_abs_dy = larger(fabs(s->dy[i]), t.max_abs_dy);
        t.max_abs_xhat = larger(xhat, t.max_abs_xhat);
    }
    *r = t;
}

/* By the formula as it stands: what Inf and NaN become. */
static void set_not_finite(struct nb_row_gradient *r, const struct terms *s, double divisor, bool centred) {
    double sum = 0, sum_gx = 0;
    for (int64_t i = 0; i < s->n; i++) {
        sum += s->g[i];
        sum_gx += s->g[i] * (s->d[i] * s->rstd);
    }
    r->mean_g = centred ? sum / divisor : 0;
    r->mean_gx = sum_gx / divisor;
}

static void set_means(struct nb_row_gradient *r, const struct terms *s, double divisor, bool centred) {
    struct nb_sum sum_g = {0}, sum_gd = {0};
    if (centred) sum_add_pairs(&sum_g, s->n, s->g, s->g_lo);
    sum_add_products(&sum_gd, s->n, s->g, s->g_lo, s->d, s->d_lo);
    const struct nb_twofold gx = nb_twofold_mul(nb_sum_total(&sum_gd), nb_twofold_of(s->rstd)),
                            g = nb_twofold_div(nb_sum_total(&sum_g), nb_twofold_of(divisor)),
                            mean_gx = nb_twofold_div(gx, nb_twofold_of(divisor));
    r->mean_g = g.hi;
    r->mean_g_lo = g.lo;
    r->mean_gx = mean_gx.hi;
    r->mean_gx_lo = mean_gx.lo;
}

static void sum_row(const struct nb_gradient *g, int64_t stat, const struct terms *s) {
    struct nb_row_gradient *r = &g->rows[stat];
    const double divisor = g->c->op == NB_OP_L2NORM ? 1 : (double)nb_truth_elements(g->c);
    const bool centred = nb_op_centres(g->c->op);
    add_magnitudes(r, s);
    if (g->c->op == NB_OP_BATCHNORM && g->c->mode != NB_TRAINING)
        r->mean_abs_g = r->mean_abs_gx = 0;
    else if (isfinite(r->mean_abs_g) && isfinite(r->mean_abs_gx))
        set_means(r, s, divisor, centred);
    else
        set_not_finite(r, s, divisor, centred);
    r->mean_abs_g /= divisor;
    r->mean_abs_gx /= divisor;
}

/* Of a channel, whose elements have one parameter. */
static void sum_parameters(struct nb_gradient *g, int64_t channel, const struct terms *s) {
    struct nb_sum dgamma = {0}, dbeta = {0};
    sum_add_pairs(&dbeta, s->n, s->dy, s->no_lo);
    sum_add_products(&dgamma, s->n, s->dy_rstd, s->no_lo, s->d, s->d_lo);
    for (int64_t i = 0; i < s->n; i++) {
        g->abs_dbeta[channel] += fabs(s->dy[i]);
        g->abs_dgamma[channel] += fabs(s->dy_rstd[i] * s->d[i]);
        g->abs_distance[channel] += fabs(s->d[i]);
    }
    g->dgamma[channel] = value_of(&dgamma, g->abs_dgamma[channel]);
    if (g->dbeta) g->dbeta[channel] = value_of(&dbeta, g->abs_dbeta[channel]);
}

static void sum_rows(struct nb_gradient *g, struct columns *t, struct terms *s) {
    for (int64_t stat = 0; stat < g->n_stats; stat++) {
        load_terms(g, stat, s);
        sum_row(g, stat, s);
        if (g->dgamma && g->c->op == NB_OP_BATCHNORM)
            sum_parameters(g, stat, s);
        else if (g->dgamma)
            add_to_columns(t, s);
    }
}

/* xhat is tanh, which stands in the place of x - mean; the slope's product goes to dalpha. */
static void sum_squashed(struct nb_gradient *g, struct columns *t, struct terms *s) {
    struct nb_sum dalpha = {0};
    for (int64_t row = 0; row < g->in->rows; row++) {
        load(g, row, s);
        const struct nb_squash *squash = nb_squashed_row(g->squashed, row);
        for (int64_t i = 0; i < s->n; i++) {
            s->dy_rstd[i] = s->dy[i];
            s->d[i] = squash[i].tanh;
            const double unsquashed = s->dy[i] * g->weight[i] * s->x[i];
            s->g[i] = unsquashed * squash[i].slope;
            g->abs_dalpha += fabs(s->g[i]);
            g->abs_dy_w_x += fabs(unsquashed);
        }
        sum_add_pairs(&dalpha, s->n, s->g, s->no_lo);
        if (g->dgamma) add_to_columns(t, s);
    }
    g->dalpha = value_of(&dalpha, g->abs_dalpha);
}

/* ---- the struct -------------------------------------------------------------------------------------------------------- */

static void set_weights(struct nb_gradient *g) {
    const struct nb_formula *f = &g->c->formula;
    g->weight = new_zeros(g->n_params);
    g->weight_lo = new_zeros(g->n_params);
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

static void set_parameter_gradients(struct nb_gradient *g, const struct columns *t) {
    for (int64_t i = 0; g->dgamma && i < g->n_params; i++) {
        g->abs_dgamma[i] = t->abs_dgamma[i];
        g->abs_dbeta[i] = t->abs_dbeta[i];
        g->abs_distance[i] = t->abs_d[i];
        g->dgamma[i] = total_of(t->dgamma[i], t->dgamma_lo[i], t->abs_dgamma[i]);
        if (g->dbeta) g->dbeta[i] = total_of(t->dbeta[i], t->dbeta_lo[i], t->abs_dbeta[i]);
    }
}

static void sum_all(struct nb_gradient *g) {
    const bool by_channel = g->c->op == NB_OP_BATCHNORM;
    struct terms s = new_terms(by_channel ? nb_truth_elements(g->c) : g->in->cols);
    struct columns t = new_columns(g->n_params);
    if (g->c->op == NB_OP_DYT)
        sum_squashed(g, &t, &s);
    else
        sum_rows(g, &t, &s);
    if (!by_channel) set_parameter_gradients(g, &t);
    free(s.all);
    free(t.all);
}

static void begin(struct nb_gradient *g, const struct nb_case *c, const struct nb_inputs *in) {
    assert(c->op != NB_OP_COPY);
    *g = (struct nb_gradient){.c = c, .in = in, .n_params = in->n_params};
    if (c->op == NB_OP_DYT) return;
    g->n_stats = c->op == NB_OP_BATCHNORM ? c->shape.c : in->rows;
    g->rows = nb_alloc((unsigned long long)g->n_stats, sizeof *g->rows);
    g->rstd = new_zeros(g->n_stats);
    if (nb_op_centres(c->op)) g->mean = new_zeros(g->n_stats);
}

/* From the statistics. */
static int finish(struct nb_gradient *g) {
    const struct nb_case *c = g->c;
    if (nb_oracle_environment() != 0) return -1;
    set_weights(g);
    if (c->op == NB_OP_DYT) g->squashed = nb_squashed_rows_new(c->alpha, g->in);
    if (c->formula.affine != NB_AFFINE_NONE) {
        g->dgamma = new_zeros(g->n_params);
        g->abs_dgamma = new_zeros(g->n_params);
        g->abs_dbeta = new_zeros(g->n_params);
        g->abs_distance = new_zeros(g->n_params);
        if (c->formula.affine == NB_AFFINE_GAMMA_BETA) g->dbeta = new_zeros(g->n_params);
    }
    sum_all(g);
    return 0;
}

int nb_gradient_init(struct nb_gradient *g, const struct nb_case *c, const struct nb_inputs *in, const float *mean,
                     const float *rstd) {
    begin(g, c, in);
    for (int64_t i = 0; i < g->n_stats; i++) {
        g->rstd[i] = rstd[i];
        if (g->mean) g->mean[i] = mean[i];
    }
    return finish(g);
}

int nb_gradient_of_oracle(struct nb_gradient *g, const struct nb_oracle *o) {
    begin(g, o->c, o->in);
    for (int64_t i = 0; i < g->n_stats; i++) {
        g->rstd[i] = o->truth[i].scale;
        if (g->mean) g->mean[i] = o->truth[i].mean;
    }
    return finish(g);
}

void nb_gradient_release(struct nb_gradient *g) {
    nb_free_all(g->mean, g->rstd, g->rows, g->squashed, g->weight, g->weight_lo, g->dgamma, g->dbeta, g->abs_dgamma,
                g->abs_dbeta, g->abs_distance);
    *g = (struct nb_gradient){0};
}

/* ---- gradients ------------------------------------------------------------------------------------------------------- */

/* Two evaluations of each element, as the oracle has them: in double, whose few 2^-53 of the largest term are enough unless the terms
 * cancel, and in pairs of doubles where they do. */

struct nb_gradient_place nb_gradient_place_of(const struct nb_case *c, int64_t row) {
    const int64_t n_coupled = c->op == NB_OP_PRMSNORM ? nb_truth_elements(c) : c->shape.cols;
    if (c->op != NB_OP_BATCHNORM) return (struct nb_gradient_place){row, 0, 0, 1, n_coupled};
    const bool last = c->shape.layout == NB_NHWC;
    const int64_t channel = last ? 0 : row % c->shape.c;
    return (struct nb_gradient_place){channel, channel, last, last, c->mode == NB_TRAINING ? n_coupled : 0};
}

void nb_gradient_statistics(const struct nb_oracle *o, float *mean, float *rstd) {
    for (int64_t i = 0; i < o->n_truth; i++) {
        const struct nb_row_truth *t = &o->truth[i];
        if (mean) mean[i] = (float)nb_number_round(t->mean, t->mean_lo, NB_NUM_F32, NB_ROUND_NEAREST, 0);
        rstd[i] = (float)nb_number_round(t->scale, t->scale_lo, NB_NUM_F32, NB_ROUND_NEAREST, 0);
    }
}

/* ---- one element of dx ----------------------------------------------------------------------------------------------- */

/* All that dx_i is made of; past: what reaches the element beside the norm. */
struct element {
    double x, dy, past, weight, weight_lo, mean, rstd;
    const struct nb_row_gradient *row;
};

static struct nb_twofold pair_of(double hi, double lo) { return (struct nb_twofold){hi, lo}; }

static double careful(const struct element *e) {
    struct nb_twofold g = nb_twofold_mul(nb_twofold_of(e->dy), pair_of(e->weight, e->weight_lo));
    struct nb_twofold xhat = nb_twofold_mul(nb_two_sum(e->x, -e->mean), nb_twofold_of(e->rstd));
    struct nb_twofold pull = nb_twofold_mul(xhat, pair_of(e->row->mean_gx, e->row->mean_gx_lo));
    struct nb_twofold own = nb_twofold_sub(g, pair_of(e->row->mean_g, e->row->mean_g_lo));
    own = nb_twofold_mul(nb_twofold_sub(own, pull), nb_twofold_of(e->rstd));
    own = nb_twofold_add(own, nb_twofold_of(e->past));
    return own.hi + own.lo;
}

/* A quarter: what is left of 53 bits is then more than 1e-7 f32 ulp needs. Inf and NaN are not less than anything. */
static double normalized(const struct element *e) {
    const double g = e->dy * e->weight, xhat = (e->x - e->mean) * e->rstd, pull = xhat * e->row->mean_gx;
    const double bracket = (g - e->row->mean_g) - pull, own = e->rstd * bracket, quarter = 4 * fabs(bracket);
    const double dx = e->past != 0 ? own + e->past : own;
    const bool cancels =
        quarter < fabs(g) || quarter < fabs(e->row->mean_g) || quarter < fabs(pull) || 4 * fabs(dx) < fabs(e->past);
    return cancels ? careful(e) : dx;
}

static void squashed_row(const struct nb_gradient *g, int64_t row, double *dx) {
    const struct nb_inputs *in = g->in;
    const struct nb_squash *squash = nb_squashed_row(g->squashed, row);
    nb_truth_widen(in->dy, row * in->cols, in->cols, in->dtype, dx);
    for (int64_t i = 0; i < in->cols; i++) dx[i] = dx[i] * g->weight[i] * g->c->alpha * squash[i].slope;
}

static void normalized_row(const struct nb_gradient *g, int64_t row, double *dx) {
    static const struct nb_row_gradient apart = {0};
    const struct nb_inputs *in = g->in;
    const struct nb_gradient_place at = nb_gradient_place_of(g->c, row);
    const bool adds = in->dresidual_out && nb_op_adds(g->c->op);
    for (int64_t i = 0; i < in->cols; i++) {
        const int64_t own = row * in->cols + i, stat = at.stat + i * at.stat_step, param = at.param + i * at.param_step;
        const struct element e = {
            .x = nb_get(in->x, own, in->dtype),
            .dy = nb_get(in->dy, own, in->dtype),
            .past = adds ? nb_get(in->dresidual_out, own, in->dtype) : 0,
            .weight = g->weight[param],
            .weight_lo = g->weight_lo[param],
            .mean = g->mean ? g->mean[stat] : 0,
            .rstd = g->rstd[stat],
            .row = i < at.n_coupled ? &g->rows[stat] : &apart,
        };
        dx[i] = normalized(&e);
    }
}

void nb_gradient_row(const struct nb_gradient *g, int64_t row, double *dx) {
    if (g->c->op == NB_OP_DYT)
        squashed_row(g, row, dx);
    else
        normalized_row(g, row, dx);
}

/* ---- saved statistics ------------------------------------------------------------------------------------------------ */

/* The oracle of the forward pass, rounded. */

/* Is it a gradient of an op with statistics? */
static bool has_saved(const struct nb_case *c) {
    return c->pass == NB_BACKWARD && c->op != NB_OP_COPY && c->op != NB_OP_DYT;
}

int nb_saved_statistics_add(struct nb_inputs *in, const struct nb_case *c) {
    struct nb_oracle oracle released_by(nb_oracle_release) = {0};
    if (!has_saved(c) || nb_inputs_saved(in, c) >= 0) return 0;
    if (nb_oracle_init(&oracle, c, in) != 0) return -1;
    const unsigned long long n = (unsigned long long)oracle.n_truth;
    struct nb_saved_statistics *saved = NB_PUSH(in->saved, in->n_saved);
    *saved = (struct nb_saved_statistics){.c = *c,
                                          .mean = nb_alloc(n, sizeof *saved->mean),
                                          .rstd = nb_alloc(n, sizeof *saved->rstd),
                                          .n = oracle.n_truth};
    nb_gradient_statistics(&oracle, saved->mean, saved->rstd);
    return 0;
}

int nb_saved_statistics_gradient(struct nb_gradient *g, const struct nb_case *c, const struct nb_inputs *in) {
    const int at = nb_inputs_saved(in, c);
    if (c->recomputes && has_saved(c)) {
        struct nb_oracle oracle released_by(nb_oracle_release);
        return nb_oracle_init(&oracle, c, in) == 0 ? nb_gradient_of_oracle(g, &oracle) : -1;
    }
    return nb_gradient_init(g, c, in, at >= 0 ? in->saved[at].mean : NULL, at >= 0 ? in->saved[at].rstd : NULL);
}
