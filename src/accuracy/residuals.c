// SPDX-License-Identifier: Apache-2.0
/* In double over the y that was stored. The units: (h + 8) u for h roundings in a chain of the statistics' arithmetic, times what the
 * declared variance loses with rho = |mean| / sigma (two-pass nothing, updating 1 + rho, one pass 1 + rho^2), 2 u of the store, and the
 * declared error of an estimate; the sum: (h + 8) u (1 + rho) + u of the store, of the largest |y|. */
#include "src/accuracy/bound.h"

#include <assert.h>
#include <math.h>

#include "src/core/dtype.h"
#include "src/core/log.h"

/* Of one row or channel. */
struct sums {
    double sum, squares, largest;
};

static double rho_of(const struct nb_row_truth *t) { return t->var > 0 ? fabs(t->mean) / sqrt(t->var) : 0; }

/* How much the declared variance magnifies a relative error of the numbers. */
static double conditioning(const struct nb_case *c, const struct nb_row_truth *t) {
    const double rho = rho_of(t);
    if (c->variance == NB_VAR_WELFORD) return 1 + rho;
    if (c->variance == NB_VAR_ONEPASS) return 1 + rho * rho;
    if (c->variance != NB_VAR_SHIFTED || !(t->var > 0)) return 1;
    const double from_first = (t->mean - t->first) * (t->mean - t->first) / t->var;
    return 1 + from_first + rho; /* x - x_0 is rounded at the size of x */
}

static double squares_unit(const struct nb_bound *b, const struct nb_row_truth *truth) {
    const struct nb_case *c = b->c;
    const struct nb_arithmetic *a = &b->arithmetic;
    const double eps = c->stats_dtype == NB_STATS_X ? nb_round_to(c->eps, (enum nb_dtype)c->dtype) : c->eps;
    const double stored_eps = fabs(eps - c->eps) * truth->scale * truth->scale; /* |d eps| / (v + eps) */
    const double estimate = c->formula.root == NB_ROOT_RSQRT_RAW ? 2 * nb_rsqrt_error(NB_ROOT_RSQRT_RAW) : 0;
    return (a->chain + 8) * a->op.u * conditioning(c, truth) + 2 * nb_formats[c->dtype].unit_roundoff + stored_eps +
           estimate;
}

static double sum_unit(const struct nb_bound *b, const struct nb_row_truth *truth) {
    const struct nb_arithmetic *a = &b->arithmetic;
    return (a->chain + 8) * a->op.u * (1 + rho_of(truth)) + nb_formats[b->c->dtype].unit_roundoff;
}

static void keep(struct nb_residual *worst, double ratio, int64_t row) {
    worst->n++;
    if (!(ratio > worst->ratio) && !isnan(ratio)) return;
    worst->ratio = isnan(ratio) ? INFINITY : ratio;
    worst->row = row;
}

/* The residual over its unit; what the bound of the declared formula allows is within the threshold whatever the unit. */
static double in_units(double residual, double unit, double allowed) {
    return residual / fmax(unit, allowed / NB_RESIDUAL_THRESHOLD);
}

static void judge_sums(const struct nb_bound *b, const struct sums *s, int64_t truth, int64_t row,
                       struct nb_residuals *out) {
    const struct nb_case *c = b->c;
    const struct nb_row_truth *at = &b->o->truth[truth];
    const struct nb_statistics_error error = nb_bound_statistics(b, truth);
    const double n = (double)b->o->n_stats, store = nb_formats[c->dtype].unit_roundoff;
    if (error.loss != NB_LOSS_NONE || !isfinite(at->scale)) return;
    const double want = at->var * at->scale * at->scale, got = c->op == NB_OP_L2NORM ? s->squares : s->squares / n;
    const double off = error.mean * at->scale * (1 + error.scale); /* of every y, by the error of the mean */
    if (want > 0x1p-20) {                                          /* beside nothing the square says nothing */
        const double relative = error.scale + off / sqrt(want) + 4 * store;
        keep(&out->squares, in_units(fabs(got - want), want * squares_unit(b, at), want * relative * (2 + relative)),
             row);
    }
    if (!nb_op_centres(c->op)) return;
    const double residual = fabs(s->sum / n);
    keep(&out->sum, residual == 0 ? 0 : in_units(residual, s->largest * sum_unit(b, at), off + 2 * store * s->largest),
         row);
}

static void add_y(struct sums *s, double y) {
    s->sum += y;
    s->squares += y * y;
    s->largest = fmax(s->largest, fabs(y));
}

static void judge_rows(const struct nb_bound *b, const void *y, int64_t rows, struct nb_residuals *out) {
    for (int64_t r = 0; r < rows; r++) {
        struct sums s = {0};
        for (int64_t i = 0; i < b->o->n_stats; i++) add_y(&s, nb_get(y, r * b->o->in->cols + i, b->o->in->dtype));
        judge_sums(b, &s, r % b->c->shape.rows, r, out);
    }
}

static void judge_channels(const struct nb_bound *b, const void *y, int64_t rows, struct nb_residuals *out) {
    const struct nb_inputs *in = b->o->in;
    struct sums *sums freed = nb_alloc((unsigned long long)b->o->n_truth, sizeof *sums);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < in->cols; i++)
            add_y(&sums[nb_oracle_truth(b->o, r, i) - b->o->truth], nb_get(y, r * in->cols + i, in->dtype));
    for (int64_t i = 0; i < b->o->n_truth; i++) judge_sums(b, &sums[i], i, i, out);
}

void nb_residuals(const struct nb_bound *bound, const void *y, int64_t rows, struct nb_residuals *out) {
    assert(bound && y && rows > 0 && out);
    *out = (struct nb_residuals){.squares.row = -1, .sum.row = -1};
    if (bound->c->op == NB_OP_BATCHNORM)
        judge_channels(bound, y, rows, out);
    else
        judge_rows(bound, y, rows, out);
}
