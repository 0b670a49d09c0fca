// SPDX-License-Identifier: Apache-2.0
/* The derivations are in derivations.md. */
#include "src/accuracy/bias.h"

#include "src/core/dtype.h"

/* ---- forward --------------------------------------------------------------------------------------------------------- */

static double mean_weight(const struct nb_oracle *o, const struct nb_case *c) {
    if (c->formula.eps_place != NB_EPS_INSIDE) return 1;
    double sum = 0;
    for (int64_t i = 0; i < o->n_truth; i++) sum += o->truth[i].var / (o->truth[i].var + c->eps);
    return sum / (double)o->n_truth;
}

/* Mean relative error of the weights, each with `more` added, as rounded; exact, since they are known. */
static double rounding_bias(const double *weight, double more, int64_t n, enum nb_dtype to) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double w = more + weight[i];
        if (w != 0) sum += nb_round_to(w, to) / w - 1;
    }
    return sum / (double)n;
}

/* Of 1 + gamma. */
static double offset_bias(const struct nb_bound *b) {
    const struct nb_case *c = b->c;
    if (!b->o->gamma || !c->formula.weight_offset) return 0;
    return rounding_bias(b->o->gamma, 1, b->o->n_params,
                         c->formula.cast == NB_CAST_BEFORE ? (enum nb_dtype)c->dtype : NB_F32);
}

/* Half of what the variance gets from 1/n, where a kernel multiplies by it in f32, and from eps in f32. */
static double constants_bias(const struct nb_bound *b, double weight) {
    const double n = (double)b->o->n_stats, eps = b->c->eps;
    const double reciprocal = fabs(nb_round_to(1 / n, NB_F32) * n - 1);
    const double stored = eps > 0 ? fabs(nb_round_to(eps, NB_F32) / eps - 1) : 0;
    return 0.5 * (weight * reciprocal + (1 - weight) * stored);
}

/* A sum with eps stands on the grid of the larger summand, so that eps enters as its nearest multiple of the grid, and the
 * difference is the same in every row whose statistics lie in one binade: for v near 1 and eps = 1e-5, 84 steps of 2^-23 for
 * 83.9. Mean relative error of the scale by it. */
static double eps_grid_bias(const struct nb_bound *b) {
    const double eps = nb_round_to(b->c->eps, NB_F32);
    const bool inside = b->c->formula.eps_place == NB_EPS_INSIDE;
    double sum = 0;
    if (b->c->formula.eps_place == NB_EPS_CLAMP) return 0;
    for (int64_t i = 0; i < b->o->n_truth; i++) {
        const double v = b->o->truth[i].var, beside = inside ? v : sqrt(v), step = nb_ulp(beside, NB_F32);
        if (!isfinite(v) || eps > beside) continue;
        sum += (inside ? 0.5 : 1) * (eps - rint(eps / step) * step) / (beside + eps);
    }
    return sum / (double)b->o->n_truth;
}

static bool any_row_lost(const struct nb_bound *b) {
    for (int64_t i = 0; i < b->o->n_truth; i++)
        if (nb_bound_statistics(b, i).loss != NB_LOSS_NONE) return true;
    return false;
}

/* What the errors of a row's sums are multiplied with in its variance and in its mean, over rows: 1 + rho^2 where squares of the
 * mean are subtracted, sqrt(1 + rho^2) where the mean is updated, rho = |mean| / sigma (of x - x_0 where it is shifted). */
static struct nb_conditioning { double variance, mean; } conditioning(const struct nb_bound *b) {
    const struct nb_oracle *o = b->o;
    struct nb_conditioning sum = {0, 0};
    for (int64_t i = 0; i < o->n_truth; i++) {
        const struct nb_row_truth *t = &o->truth[i];
        const double rho = fabs(t->mean) * t->scale, shifted = fabs(t->mean - t->first) * t->scale;
        sum.mean += rho / (double)o->n_truth;
        double factor = 1;
        if (b->c->variance == NB_VAR_ONEPASS) factor = 1 + rho * rho;
        if (b->c->variance == NB_VAR_SHIFTED) factor = 1 + shifted * shifted;
        if (b->c->variance == NB_VAR_WELFORD) factor = 2 * sqrt(1 + rho * rho);
        sum.variance += factor / (double)o->n_truth;
    }
    return sum;
}

/* The rounding errors of a sum walk randomly: sd u sqrt(chain / 18 + 1/2); the root takes half of those of the squares, the mean
 * enters with its share of y. The root's own operations add some 0.6 u, and in a narrow dtype the elements' last roundings may
 * agree over a row when the scale is near a power of two, which counts as one rounding to the dtype. */
static double scale_deviation(const struct nb_bound *b, double u_out) {
    const struct nb_conditioning k = conditioning(b);
    const double u = b->arithmetic.op.u, walk = sqrt(b->arithmetic.chain / 18 + 0.5);
    const double own = u * sqrt(walk * walk * (0.25 * k.variance * k.variance + k.mean * k.mean) + 0.4);
    return u_out > u ? hypot(own, 0.58 * u_out) : own;
}

/* What every row has of the figure for the last rounding: errors of columns, which fall on the same significands in every row
 * when x hardly varies. They make 1.6 ulp / sqrt(columns) of it, as the roundings of a row do, for each 0.29 ulp that they are
 * off: by the roundings of 1 + gamma, by the scales of channels (NHWC), and by the means of channels through beta. */
static double shared_by_rows(const struct nb_bound *b, const struct nb_bias *bias) {
    const double channel_u = (bias->scale_sd + bias->systematic) / nb_formats[b->c->dtype].unit_roundoff;
    const bool interleaved = b->c->shape.layout == NB_NHWC;
    double shared = 0;
    if (b->c->op == NB_OP_BATCHNORM && (interleaved || b->o->beta))
        shared = (interleaved ? 5 : 0.5) * channel_u / sqrt((double)bias->n_scales);
    if (b->o->gamma && b->c->formula.weight_offset) shared = hypot(shared, 2 / sqrt((double)b->o->n_params));
    return shared;
}

/* How many values of the format a row's elements are spread over, as part of a binade: 1 or, where x hardly varies, less. */
static double grid_share(const struct nb_bound *b) {
    const struct nb_oracle *o = b->o;
    if (b->c->op == NB_OP_BATCHNORM && b->c->mode == NB_INFERENCE) return 0.125; /* the rows have not been looked at */
    double sum = 0;
    for (int64_t i = 0; i < o->n_truth; i++) {
        const struct nb_row_truth *t = &o->truth[i];
        sum += t->max_abs > 0 ? fmin(1, (t->max - t->min) / (2 * t->max_abs)) : 1;
    }
    return sum / (double)o->n_truth;
}

/* Where squares of the mean are subtracted, what is left of the sums' errors follows the data and is not random. */
static bool is_ill_conditioned(const struct nb_bound *b) {
    const double factor = conditioning(b).variance, u_out = nb_formats[b->c->dtype].unit_roundoff;
    return factor > 2.5 && factor * b->arithmetic.op.u * sqrt(b->arithmetic.chain) > 0.05 * u_out;
}

static bool is_predictable(const struct nb_bound *b) {
    const struct nb_case *c = b->c;
    const struct nb_inputs *in = b->o->in;
    const int64_t fewest = 16; /* rows whose spread can be measured, elements that can differ */
    /* tanh is one-sided by itself; near 0 and near 1 a narrow result rounds back to alpha x and to 1 all along a row. */
    if (c->op == NB_OP_DYT || c->recomputes || (c->stats_dtype == NB_STATS_X && c->dtype != NB_F32)) return false;
    if (in->rows < fewest || in->cols < fewest) return false;
    if (c->op == NB_OP_COPY) return true;
    if (b->o->n_truth < fewest || is_ill_conditioned(b)) return false;
    return b->arithmetic.chain * b->arithmetic.sum.u <= 0.25 && !any_row_lost(b);
}

/* The part that comes from the statistics. */
static void predict_scale(const struct nb_bound *b, struct nb_bias *bias) {
    const double weight = mean_weight(b->o, b->c), nu = b->arithmetic.chain * b->arithmetic.sum.u;
    const double gain = -0.5 * nb_stagnation_bias(nu, NB_NORMAL_DENSITY) * weight;
    const double grid = eps_grid_bias(b) / 2; /* a kernel that adds n eps to the sum has none of it */
    bias->expected = offset_bias(b) + gain + grid;
    bias->systematic = gain + fabs(grid) + constants_bias(b, weight);
    bias->systematic += nb_rsqrt_error(b->c->formula.root);
    bias->scale_sd = scale_deviation(b, nb_formats[b->c->dtype].unit_roundoff);
}

void nb_bias_predict(const struct nb_bound *b, struct nb_bias *bias) {
    const struct nb_case *c = b->c;
    const struct nb_format *f = &nb_formats[c->dtype];
    *bias = (struct nb_bias){.predictable = is_predictable(b), .n_scales = b->o->n_truth};
    if (!bias->predictable) return;
    bias->element_sd = 0.58 * f->unit_roundoff;
    bias->n_elements = (double)b->o->in->rows * (double)b->o->in->cols;
    if (c->op == NB_OP_COPY) return;
    predict_scale(b, bias);
    if (c->formula.cast == NB_CAST_BEFORE && c->dtype != NB_F32)
        bias->element_sd *= c->formula.weight_offset ? 1.8 : 1.5;
    bias->n_elements = fmin(bias->n_elements, ldexp(grid_share(b), f->precision));
    /* Under beta an error of the scale is in proportion to y - beta. The part of beta that is itself in proportion to y, all of
     * it for normal data, goes into the slope; a quarter of the rest is allowed for. */
    if (b->o->beta) bias->systematic *= 2;
    if (b->o->beta) bias->rounding_allowance_ulp = bias->systematic / f->unit_roundoff / 4;
    bias->rounding_shared_ulp = shared_by_rows(b, bias);
    bias->rounding_predictable = c->dtype == NB_F32;
}

/* ---- gradients ------------------------------------------------------------------------------------------------------- */

/* The figures stand for what is left of chance; rows whose means spread more are judged by their own spread (accuracy.h). */

/* Some six roundings of terms that may be four times as large as what is left of them. */
static const double single_element_u = 2.5;
/* A rounding to the dtype alone, uniform. */
static const double narrow_element_u = 0.58;
/* BatchNorm may multiply dy by rstd * w, rounded once for a channel. */
static const double channel_u = 0.6;

/* What a kernel's own rstd is off by tilts all of dx. */
static bool is_predictable_gradient(const struct nb_case *c, const struct nb_gradient *g) {
    const int64_t fewest = 16; /* rows whose spread can be measured, elements that can differ */
    if (c->op == NB_OP_DYT || (c->stats_dtype == NB_STATS_X && c->dtype != NB_F32)) return false;
    if (g->in->rows < fewest || g->in->cols < fewest || g->n_stats < fewest) return false;
    for (int64_t i = 0; i < g->n_stats; i++)
        if (!isfinite(g->rows[i].mean_gx) || !isfinite(g->rows[i].mean_g)) return false;
    return true;
}

void nb_bias_predict_gradient(const struct nb_case *c, const struct nb_gradient *g, struct nb_bias *bias) {
    const struct nb_format *f = &nb_formats[c->dtype];
    const double u = f->unit_roundoff;
    *bias = (struct nb_bias){.predictable = is_predictable_gradient(c, g), .n_scales = g->n_stats};
    if (!bias->predictable) return;
    if (g->dgamma && c->formula.weight_offset) bias->expected = rounding_bias(g->weight, 0, g->n_params, NB_F32);
    bias->systematic = fabs(bias->expected); /* what is taken from g has no such error */
    bias->scale_sd = c->op == NB_OP_BATCHNORM ? channel_u * 0x1p-24 : 0;
    bias->element_sd = (c->dtype == NB_F32 ? single_element_u : narrow_element_u) * u;
    bias->n_elements = fmin((double)g->in->rows * (double)g->in->cols, ldexp(1, f->precision));
    bias->rounding_predictable = c->dtype == NB_F32;
    if (c->formula.weight_offset && g->dgamma) bias->rounding_shared_ulp = 2 / sqrt((double)g->n_params);
}
