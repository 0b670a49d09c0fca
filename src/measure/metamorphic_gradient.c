// SPDX-License-Identifier: Apache-2.0
/* Multiplying by 2^k commutes with every rounding of a sum of products as long as nothing leaves the normal numbers. */
#include "src/measure/metamorphic_gradient.h"

#include <math.h>

#include "src/core/dtype.h"

/* Factors of this size leave f32 room for their products: dy w (x - mean) rstd, its sums, and both terms of dx. */
static const double least_factor = 0x1p-24, largest_factor = 0x1p24;

static bool is_moderate(double v) { return v == 0 || (fabs(v) >= least_factor && fabs(v) <= largest_factor); }

static bool all_moderate(const void *array, int64_t n, enum nb_dtype dtype) {
    for (int64_t i = 0; array && i < n; i++)
        if (!is_moderate(nb_get(array, i, dtype))) return false;
    return true;
}

/* Why the bits may change, or null. */
static const char *excuse(const struct nb_trials *t) {
    const struct nb_inputs *in = &t->fixture->in;
    const struct nb_case *c = &t->fixture->c;
    const int64_t n = in->rows * in->cols;
    if (c->stats_dtype == NB_STATS_X && c->dtype == NB_F16) return "intermediate results in f16 may be subnormal";
    if (!all_moderate(in->dy, n, in->dtype) || !all_moderate(in->dresidual_out, n, in->dtype) ||
        !all_moderate(in->x, n, in->dtype) || !all_moderate(in->gamma_f32, in->n_params, NB_F32))
        return "the inputs are near the ends of the numbers";
    for (int i = 0; i < in->n_saved; i++)
        if (!all_moderate(in->saved[i].rstd, in->saved[i].n, NB_F32)) return "rstd is near the ends of the numbers";
    return NULL;
}

static bool is_normal(double v, enum nb_dtype dtype) {
    return v == 0 || (fabs(v) >= nb_formats[dtype].min_normal && fabs(v) <= nb_formats[dtype].max_finite);
}

static void compare(struct nb_trials *t, int k) {
    const enum nb_dtype dtype = t->fixture->in.dtype;
    const int64_t cols = t->fixture->in.cols, n = t->fixture->in.rows * cols;
    for (int64_t i = 0; i < n; i++) {
        const double now = nb_get(t->y, i, dtype), want = ldexp(nb_get(t->first, i, dtype), k);
        if (now == want || !is_normal(want, dtype) || !is_normal(ldexp(want, -k), dtype)) continue;
        if (t->out->relations[NB_REL_SCALE].figure++ > 0) continue;
        t->out->relations[NB_REL_SCALE].row = i / cols;
        t->out->relations[NB_REL_SCALE].col = i % cols;
    }
}

void nb_trials_scale_gradient(struct nb_trials *t) {
    static const int powers[] = {1, -1, 4, -4};
    nb_fixture_reset(t->fixture);
    const char *why = excuse(t);
    for (size_t i = 0; i < sizeof powers / sizeof powers[0] && !why; i++) {
        nb_fixture_reset(t->fixture);
        if (!nb_fixture_scale(t->fixture, powers[i])) why = "dy leaves the normal numbers";
        if (!why && !nb_trials_call(t, NB_REL_SCALE, t->fixture->in.rows, 0)) return;
        if (!why) compare(t, powers[i]);
    }
    if (why)
        nb_trials_skip(t, NB_REL_SCALE, why);
    else
        nb_trials_judge(t, NB_REL_SCALE, "a power of two of dy changes more than the power of dx");
    nb_fixture_reset(t->fixture);
}
