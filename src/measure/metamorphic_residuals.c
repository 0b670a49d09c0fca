// SPDX-License-Identifier: Apache-2.0
/* Sums in double over the y that the kernel stored. */
#include "src/measure/metamorphic_residuals.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"

static bool centres(const struct nb_case *c) {
    return c->op == NB_OP_LAYERNORM || c->op == NB_OP_ADD_LAYERNORM || c->op == NB_OP_BATCHNORM;
}

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

static double squares_unit(const struct nb_trials *t, const struct nb_row_truth *truth) {
    const struct nb_case *c = &t->fixture->c;
    const struct nb_arithmetic *a = &t->bound.arithmetic;
    const double eps = c->stats_dtype == NB_STATS_X ? nb_round_to(c->eps, (enum nb_dtype)c->dtype) : c->eps;
    const double stored_eps = fabs(eps - c->eps) * truth->scale * truth->scale; /* |d eps| / (v + eps) */
    const double estimate = c->formula.root == NB_ROOT_RSQRT_RAW ? 2 * nb_rsqrt_estimate_error() : 0;
    return (a->chain + 8) * a->op.u * conditioning(c, truth) + 2 * nb_formats[c->dtype].unit_roundoff + stored_eps +
           estimate;
}

static double sum_unit(const struct nb_trials *t, const struct nb_row_truth *truth) {
    const struct nb_arithmetic *a = &t->bound.arithmetic;
    return (a->chain + 8) * a->op.u * (1 + rho_of(truth)) + nb_formats[t->fixture->c.dtype].unit_roundoff;
}

static void keep(struct nb_trials *t, enum nb_relation relation, double ratio, int64_t row) {
    if (!(ratio > t->out->relations[relation].figure) && !isnan(ratio)) return;
    t->out->relations[relation].figure = isnan(ratio) ? INFINITY : ratio;
    t->out->relations[relation].row = row;
}

/* The residual over its unit; what the bound of the declared formula allows is within the threshold whatever the unit. */
static double in_units(double residual, double unit, double allowed) {
    return residual / fmax(unit, allowed / NB_RESIDUAL_THRESHOLD);
}

static void judge_sums(struct nb_trials *t, const struct sums *s, int64_t truth, int64_t row, int64_t n_counted[2]) {
    const struct nb_case *c = &t->fixture->c;
    const struct nb_row_truth *at = &t->oracle->truth[truth];
    const struct nb_statistics_error error = nb_bound_statistics(&t->bound, truth);
    const double n = (double)t->oracle->n_stats, store = nb_formats[c->dtype].unit_roundoff;
    if (error.loss != NB_LOSS_NONE || !isfinite(at->scale)) return;
    const double want = at->var * at->scale * at->scale, got = c->op == NB_OP_L2NORM ? s->squares : s->squares / n;
    const double off = error.mean * at->scale * (1 + error.scale); /* of every y, by the error of the mean */
    if (want > 0x1p-20) {                                          /* beside nothing the square says nothing */
        const double relative = error.scale + off / sqrt(want) + 4 * store;
        keep(t, NB_REL_SQUARES,
             in_units(fabs(got - want), want * squares_unit(t, at), want * relative * (2 + relative)), row);
        n_counted[0]++;
    }
    if (!centres(c)) return;
    const double residual = fabs(s->sum / n);
    keep(t, NB_REL_SUM,
         residual == 0 ? 0 : in_units(residual, s->largest * sum_unit(t, at), off + 2 * store * s->largest), row);
    n_counted[1]++;
}

static void add(struct sums *s, double y) {
    s->sum += y;
    s->squares += y * y;
    s->largest = fmax(s->largest, fabs(y));
}

static void all_rows(struct nb_trials *t, int64_t n_counted[2]) {
    const struct nb_inputs *in = &t->fixture->in;
    for (int64_t r = 0; r < in->rows; r++) {
        struct sums s = {0};
        for (int64_t i = 0; i < t->oracle->n_stats; i++) add(&s, nb_get(t->y, r * in->cols + i, in->dtype));
        judge_sums(t, &s, r % t->fixture->source_rows, r, n_counted);
    }
}

static void all_channels(struct nb_trials *t, int64_t n_counted[2]) {
    const struct nb_inputs *in = &t->fixture->in;
    struct sums *sums = nb_alloc((unsigned long long)t->oracle->n_truth, sizeof *sums);
    for (int64_t r = 0; r < in->rows; r++)
        for (int64_t i = 0; i < in->cols; i++)
            add(&sums[nb_oracle_truth(t->oracle, r, i) - t->oracle->truth], nb_get(t->y, r * in->cols + i, in->dtype));
    for (int64_t i = 0; i < t->oracle->n_truth; i++) judge_sums(t, &sums[i], i, i, n_counted);
    free(sums);
}

void nb_trials_residuals(struct nb_trials *t) {
    const struct nb_case *c = &t->fixture->c;
    const bool given = c->op == NB_OP_BATCHNORM && c->mode == NB_INFERENCE;
    int64_t n_counted[2] = {0, 0};
    if (c->op == NB_OP_DYT || given) {
        const char *reason = given ? "the statistics are not the batch's" : "the op has no statistics";
        nb_trials_skip(t, NB_REL_SQUARES, reason);
        nb_trials_skip(t, NB_REL_SUM, reason);
        return;
    }
    nb_fixture_reset(t->fixture);
    nb_fixture_plain_params(t->fixture);
    if (!nb_trials_call(t, NB_REL_SQUARES, t->fixture->in.rows, 0)) return;
    if (c->op == NB_OP_BATCHNORM)
        all_channels(t, n_counted);
    else
        all_rows(t, n_counted);
    t->n_compared = n_counted[0];
    nb_trials_judge_ratio(t, NB_REL_SQUARES, NB_RESIDUAL_THRESHOLD, "the mean of y^2 is not v / (v + eps)");
    t->n_compared = n_counted[1];
    if (centres(c))
        nb_trials_judge_ratio(t, NB_REL_SUM, NB_RESIDUAL_THRESHOLD, "the mean of y is not 0");
    else
        nb_trials_skip(t, NB_REL_SUM, "the op does not centre its rows");
}
