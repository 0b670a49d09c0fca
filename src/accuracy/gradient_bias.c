// SPDX-License-Identifier: Apache-2.0
/* The figures stand for what is left of chance; rows whose means spread more are judged by their own spread (accuracy.h). */
#include "src/accuracy/gradient_bias.h"

#include <math.h>

#include "src/core/dtype.h"

/* Some six roundings of terms that may be four times as large as what is left of them. */
static const double single_element_u = 2.5;
/* A rounding to the dtype alone, uniform. */
static const double narrow_element_u = 0.58;
/* BatchNorm may multiply dy by rstd * w, rounded once for a channel. */
static const double channel_u = 0.6;

static bool is_predictable(const struct nb_case *c, const struct nb_gradient *g) {
    const int64_t fewest = 16; /* rows whose spread can be measured, elements that can differ */
    if (c->op == NB_OP_DYT || (c->stats_dtype == NB_STATS_X && c->dtype != NB_F32)) return false;
    if (g->in->rows < fewest || g->in->cols < fewest || g->n_stats < fewest) return false;
    for (int64_t i = 0; i < g->n_stats; i++)
        if (!isfinite(g->rows[i].mean_gx) || !isfinite(g->rows[i].mean_g)) return false;
    return true;
}

/* Mean relative error of 1 + gamma as rounded to f32; exact, since gamma is known. */
static double offset_bias(const struct nb_gradient *g) {
    double sum = 0;
    if (!g->dgamma || !g->c->formula.weight_offset) return 0;
    for (int64_t i = 0; i < g->n_params; i++)
        if (g->weight[i] != 0) sum += nb_round_to(g->weight[i], NB_F32) / g->weight[i] - 1;
    return sum / (double)g->n_params;
}

void nb_bias_predict_gradient(const struct nb_case *c, const struct nb_gradient *g, struct nb_bias *bias) {
    const struct nb_format *f = &nb_formats[c->dtype];
    const double u = f->unit_roundoff;
    *bias = (struct nb_bias){.predictable = is_predictable(c, g), .n_scales = g->n_stats};
    if (!bias->predictable) return;
    bias->expected = offset_bias(g);
    bias->systematic = fabs(bias->expected); /* what is taken from g has no such error */
    bias->scale_sd = c->op == NB_OP_BATCHNORM ? channel_u * 0x1p-24 : 0;
    bias->element_sd = (c->dtype == NB_F32 ? single_element_u : narrow_element_u) * u;
    bias->n_elements = fmin((double)g->in->rows * (double)g->in->cols, ldexp(1, f->precision));
    bias->rounding_predictable = c->dtype == NB_F32;
    if (c->formula.weight_offset && g->dgamma) bias->rounding_shared_ulp = 2 / sqrt((double)g->n_params);
}
