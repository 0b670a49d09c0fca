// SPDX-License-Identifier: Apache-2.0
/* On the stored bits, so that it is exact and cheap. */
#include "src/measure/scaling.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"

/* ---- the factor -------------------------------------------------------------------------------------------------- */

static void set_bits(void *array, int64_t i, size_t item, uint32_t bits) {
    if (item == 4)
        ((uint32_t *)array)[i] = bits;
    else
        ((uint16_t *)array)[i] = (uint16_t)bits;
}

/* A normal number gets another exponent; 0, Inf and NaN stay. array may be null. */
static bool scale_bits(void *array, int64_t n, enum nb_dtype dtype, int k) {
    const struct nb_format *f = &nb_formats[dtype];
    const int shift = f->precision - 1, last = f->emax - f->emin + 1; /* exponent field of the largest numbers */
    const uint32_t mask = (uint32_t)last + 1;
    for (int64_t i = 0; array && i < n; i++) {
        const uint32_t bits = (uint32_t)nb_bits(array, i, dtype);
        const int exponent = (int)(bits >> shift & mask);
        const bool is_zero = exponent == 0 && (bits & ((1u << shift) - 1)) == 0;
        if (is_zero || exponent == last + 1) continue;
        if (exponent == 0 || exponent + k < 1 || exponent + k > last) return false;
        set_bits(array, i, f->bytes, bits + ((uint32_t)k << shift));
    }
    return true;
}

static int eps_power(const struct nb_case *c, int k) { return c->formula.eps_place == NB_EPS_INSIDE ? 2 * k : k; }

bool nb_scale(struct nb_fixture *fixture, int k) {
    struct nb_inputs *in = &fixture->in;
    const int64_t n = in->rows * in->cols;
    nb_fixture_reset(fixture);
    if (fixture->c.pass == NB_BACKWARD)
        return scale_bits(in->dy, n, in->dtype, k) && scale_bits(in->dresidual_out, n, in->dtype, k);
    fixture->c.eps = ldexp(fixture->eps, eps_power(&fixture->c, k));
    fixture->c.alpha = ldexp(fixture->alpha, -k);
    return scale_bits(in->x, n, in->dtype, k) && scale_bits(in->residual, n, in->dtype, k) &&
           scale_bits(in->running_mean, in->n_params, NB_F32, k) &&
           scale_bits(in->running_var, in->n_params, NB_F32, 2 * k);
}

/* ---- where it is exact: forward ---------------------------------------------------------------------------------- */

/* Least magnitude beside 0, and largest, of what is stored and of what is normalized. */
struct extent {
    double least, largest;
    bool finite;
};

static void extend(struct extent *e, double v) {
    const double magnitude = fabs(v);
    if (!isfinite(magnitude)) e->finite = false;
    if (magnitude == 0 || !e->finite) return;
    e->least = fmin(e->least, magnitude);
    e->largest = fmax(e->largest, magnitude);
}

static struct extent extent_of(const struct nb_fixture *fixture) {
    const struct nb_inputs *in = &fixture->in;
    double *row = nb_alloc((unsigned long long)in->cols, sizeof *row);
    struct extent e = {.least = INFINITY, .finite = true};
    for (int64_t r = 0; r < in->rows; r++) {
        nb_truth_row(&fixture->c, in, r, row);
        for (int64_t i = 0; i < in->cols; i++) {
            extend(&e, row[i]);
            if (in->residual) extend(&e, nb_get(in->x, r * in->cols + i, in->dtype));
            if (in->residual) extend(&e, nb_get(in->residual, r * in->cols + i, in->dtype));
        }
    }
    free(row);
    return e;
}

static const struct nb_format *statistics_format(const struct nb_case *c) {
    return &nb_formats[c->stats_dtype == NB_STATS_X ? c->dtype : NB_F32];
}

static bool is_normal(double v, const struct nb_format *f) { return v >= f->min_normal && v <= f->max_finite; }

/* Does a parameter of the call scale exactly in the statistics' dtype? */
static bool scales(double v, int k, const struct nb_format *f) {
    const enum nb_dtype dtype = (enum nb_dtype)(f - nb_formats);
    if (v == 0) return true;
    const double before = nb_round_to(v, dtype), after = nb_round_to(ldexp(v, k), dtype);
    return is_normal(before, f) && is_normal(after, f) && after == ldexp(before, k);
}

/* Of the weights that are not 0. A kernel may multiply 1 / sqrt(v) by them first. */
static struct extent extent_of_weights(const struct nb_fixture *fixture) {
    const struct nb_inputs *in = &fixture->in;
    const struct nb_formula *formula = &fixture->c.formula;
    struct extent e = {.least = INFINITY, .finite = true};
    for (int64_t i = 0; formula->affine != NB_AFFINE_NONE && i < in->n_params; i++) {
        const bool narrow = formula->param == NB_PARAM_X;
        extend(&e, formula->weight_offset + (narrow ? nb_get(in->gamma_x, i, in->dtype) : (double)in->gamma_f32[i]));
    }
    if (e.largest == 0) e.least = e.largest = 1;
    return e;
}

static const char *forward_excuse(const struct nb_fixture *fixture, const struct nb_oracle *oracle, int k) {
    const struct nb_case *c = &fixture->c;
    const struct nb_format *f = statistics_format(c), *stored = &nb_formats[c->dtype];
    const struct extent e = extent_of(fixture), weights = extent_of_weights(fixture);
    const double n = (double)oracle->n_stats;
    if (!e.finite) return "Inf or NaN in the rows";
    if (c->op == NB_OP_DYT) return scales(c->alpha, -k, f) ? NULL : "alpha leaves the normal numbers";
    if (!scales(c->eps, eps_power(c, k), f)) return "eps leaves the normal numbers of the statistics";
    for (int power = 0;; power = k) {
        const double least = ldexp(e.least, power), largest = ldexp(e.largest, power);
        /* Centred, the smallest distance from a mean is of the order of the least number's last place, over n. */
        const double distance = nb_op_centres(c->op) ? least * f->unit_roundoff / n : least;
        if (e.largest > 0 && (!is_normal(least, stored) || !is_normal(largest, stored)))
            return "rows leave the normal numbers";
        if (e.largest > 0 && (distance * distance < f->min_normal || 8 * n * largest * largest > f->max_finite))
            return "squares may leave the normal numbers of the statistics";
        for (int64_t i = 0; i < oracle->n_truth; i++) {
            const double scale = ldexp(oracle->truth[i].scale, -power);
            if (isfinite(scale) && !is_normal(scale, f))
                return "1 / sqrt(v) leaves the normal numbers of the statistics";
            if (isfinite(scale) && !(is_normal(scale * weights.least, f) && is_normal(scale * weights.largest, f)))
                return "1 / sqrt(v) times a weight may leave the normal numbers";
        }
        if (power == k) return NULL;
    }
}

/* ---- where it is exact: backward --------------------------------------------------------------------------------- */

/* Factors of this size leave f32 room for their products: dy w (x - mean) rstd, its sums, and both terms of dx. */
static const double least_factor = 0x1p-24, largest_factor = 0x1p24;

static bool is_moderate(double v) { return v == 0 || (fabs(v) >= least_factor && fabs(v) <= largest_factor); }

static bool all_moderate(const void *array, int64_t n, enum nb_dtype dtype) {
    for (int64_t i = 0; array && i < n; i++)
        if (!is_moderate(nb_get(array, i, dtype))) return false;
    return true;
}

static const char *backward_excuse(const struct nb_fixture *fixture) {
    const struct nb_inputs *in = &fixture->in;
    const struct nb_case *c = &fixture->c;
    const int64_t n = in->rows * in->cols;
    if (c->stats_dtype == NB_STATS_X && c->dtype == NB_F16) return "intermediate results in f16 may be subnormal";
    if (!all_moderate(in->dy, n, in->dtype) || !all_moderate(in->dresidual_out, n, in->dtype) ||
        !all_moderate(in->x, n, in->dtype) || !all_moderate(in->gamma_f32, in->n_params, NB_F32))
        return "the inputs are near the ends of the numbers";
    for (int i = 0; i < in->n_saved; i++)
        if (!all_moderate(in->saved[i].rstd, in->saved[i].n, NB_F32)) return "rstd is near the ends of the numbers";
    return NULL;
}

const char *nb_scale_excuse(struct nb_fixture *fixture, const struct nb_oracle *oracle, int k) {
    nb_fixture_reset(fixture);
    return fixture->c.pass == NB_BACKWARD ? backward_excuse(fixture) : forward_excuse(fixture, oracle, k);
}
