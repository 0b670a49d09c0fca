// SPDX-License-Identifier: Apache-2.0
/* Two evaluations of each element, as the oracle has them: in double, whose few 2^-53 of the largest term are enough unless the terms
 * cancel, and in pairs of doubles where they do. */
#include "src/accuracy/gradient.h"

#include <math.h>

#include "src/accuracy/truth.h"
#include "src/core/dtype.h"
#include "src/core/twofold.h"

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

enum { CHUNK = 256 }; /* elements widened at once: 6 KB of stack */

const struct nb_squash *nb_gradient_squash(const struct nb_gradient *g, int64_t row) {
    return nb_squashed_row(g->squashed, g->c->alpha, g->in, row);
}

static void squashed_row(const struct nb_gradient *g, int64_t row, double *dx) {
    const struct nb_inputs *in = g->in;
    const struct nb_squash *squash = nb_gradient_squash(g, row);
    nb_truth_widen(in->dy, row * in->cols, in->cols, in->dtype, dx);
    for (int64_t i = 0; i < in->cols; i++) dx[i] = dx[i] * g->weight[i] * g->c->alpha * squash[i].slope;
}

static void normalized_chunk(const struct nb_gradient *g, int64_t row, int64_t col, int64_t n, double *dx) {
    static const struct nb_row_gradient apart = {0};
    const struct nb_inputs *in = g->in;
    const struct nb_gradient_place at = nb_gradient_place_of(g->c, row);
    const int64_t first = row * in->cols + col;
    double x[CHUNK], dy[CHUNK], past[CHUNK] = {0};
    nb_truth_widen(in->x, first, n, in->dtype, x);
    nb_truth_widen(in->dy, first, n, in->dtype, dy);
    if (in->dresidual_out && nb_op_adds(g->c->op)) nb_truth_widen(in->dresidual_out, first, n, in->dtype, past);
    for (int64_t i = 0; i < n; i++) {
        const int64_t stat = at.stat + (col + i) * at.stat_step, param = at.param + (col + i) * at.param_step;
        const struct element e = {
            .x = x[i],
            .dy = dy[i],
            .past = past[i],
            .weight = g->weight[param],
            .weight_lo = g->weight_lo[param],
            .mean = g->mean ? g->mean[stat] : 0,
            .rstd = g->rstd[stat],
            .row = col + i < at.n_coupled ? &g->rows[stat] : &apart,
        };
        dx[i] = normalized(&e);
    }
}

void nb_gradient_row(const struct nb_gradient *g, int64_t row, double *dx) {
    if (g->c->op == NB_OP_DYT) {
        squashed_row(g, row, dx);
        return;
    }
    for (int64_t col = 0; col < g->in->cols; col += CHUNK) {
        const int64_t left = g->in->cols - col;
        normalized_chunk(g, row, col, left < CHUNK ? left : CHUNK, dx + col);
    }
}
