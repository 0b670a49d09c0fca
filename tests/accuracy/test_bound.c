// SPDX-License-Identifier: Apache-2.0
/* The bound lets every correct kernel pass, on ordinary rows and on rows made to hurt, and is tight enough that mistakes
 * that people make lie beyond it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "src/accuracy/accuracy.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "tests/support/softgradient.h"
#include "tests/support/sparsely.h"

/* ---- correct kernels pass -------------------------------------------------------------------------------------------- */

static double tightest;
static void expect_within(const struct problem *p, const struct soft_kernel *k, const char *rows) {
    const struct nb_accuracy a = soft_accuracy(k, p, NULL);
    const struct nb_reproducer *w = &a.reproducer;
    const struct nb_formula *f = &p->c.formula;
    cr_expect(a.n_beyond == 0,
              "%s, op %u %s n %lld root %u place %u cast %u offset %u affine %u param %u variance %u stats %u eps %g: "
              "%lld of %lld beyond; [%lld][%lld] %.9g, should be %.9g, %.3g ulp, allowed %.3g",
              rows, p->c.op, nb_formats[p->c.dtype].name, (long long)p->c.shape.cols, f->root, f->eps_place, f->cast,
              f->weight_offset, f->affine, f->param, p->c.variance, p->c.stats_dtype, p->c.eps, (long long)a.n_beyond,
              (long long)a.n, (long long)w->row, (long long)w->col, w->got, w->want, w->err_ulp, w->tolerance_ulp);
    tightest = fmax(tightest, a.worst_ratio);
}

Test(bound, holds_for_every_formula_on_normal_rows) {
    uint64_t r = 11;
    for (int trial = 0; trial < 3000; trial += one_in(3)) {
        struct problem p released_by(problem_free);
        struct soft_kernel k = {0};
        problem_init(&p, row_ops[trial % N_NORM_OPS], (enum nb_dtype)(nb_random_next(&r) % NB_N_DTYPES), 2,
                     1 + (int64_t)(nb_random_next(&r) % 300));
        problem_fill_normal(&p, random_normal(&r), exp(2 * random_normal(&r)), nb_random_next(&r));
        draw_formula(&p, &r);
        k.lanes = 1 << nb_random_next(&r) % 7;
        expect_within(&p, &k, "normal");
    }
    cr_expect(tightest > 0.9, "some formula comes near its bound");
}

Test(bound, holds_for_every_formula_on_rows_made_to_hurt) {
    uint64_t r = 12;
    char kind_name[16];
    for (int trial = 0; trial < 6000; trial += one_in(3)) {
        struct problem p released_by(problem_free);
        struct soft_kernel k = {0};
        const int kind = trial % N_HARD_KINDS;
        const int64_t cols = 1 + (int64_t)(nb_random_next(&r) % (trial % 5 ? 100 : 2000));
        problem_init(&p, row_ops[nb_random_next(&r) % N_NORM_OPS], (enum nb_dtype)(nb_random_next(&r) % NB_N_DTYPES), 1,
                     cols);
        problem_fill_normal(&p, 0, 1, nb_random_next(&r));
        for (int64_t i = 0; i < cols; i++) problem_set(&p, i, hard_value(kind, i, cols, &r));
        draw_formula(&p, &r);
        k.lanes = 1 << nb_random_next(&r) % 7;
        snprintf(kind_name, sizeof kind_name, "hard %d", kind);
        expect_within(&p, &k, kind_name);
    }
}

/* Each element drawn so that its square's rounding error pushes the sum the same way: hundreds of u where random rows give tens. */
Test(bound, holds_for_rows_that_are_chosen_against_the_order_of_summation) {
    uint64_t r = 13;
    for (int sign = -1; sign <= 1; sign += 2) {
        struct problem p released_by(problem_free);
        struct soft_kernel k = {.lanes = 1};
        problem_init(&p, NB_OP_RMSNORM, NB_F32, 1, 4096);
        float acc = 0;
        double exact = 0;
        for (int64_t i = 0; i < 4096; i++) {
            float best = 0, best_error = -1e30f;
            for (int candidate = 0; candidate < 16; candidate++) {
                float x = (float)random_normal(&r);
                float error = (float)sign * (float)((double)(acc + x * x) - ((double)acc + (double)x * x));
                if (error > best_error) best_error = error, best = x;
            }
            acc += best * best;
            exact += (double)best * best;
            problem_set(&p, i, best);
        }
        cr_expect(fabs(acc / exact - 1) > 500 * 0x1p-24, "the row is no attack: %g u", (acc / exact - 1) * 0x1p24);
        expect_within(&p, &k, "greedy");
    }
}

/* y and the bound of the first row. */
static enum nb_loss bound_of_row(const struct problem *p, int64_t chain, double *y, double *tolerance) {
    struct nb_bound b released_by(nb_bound_release);
    struct nb_oracle o released_by(nb_oracle_release) = oracle_of(p);
    nb_bound_init(&b, &p->c, &o, chain);
    nb_oracle_row(&o, 0, y);
    return nb_bound_row(&b, 0, y, tolerance);
}

/* What soft kernels do not know: tanh(alpha x) in f32 or, step by step, in x's dtype. */
Test(bound, holds_for_dyt_of_any_size) {
    uint64_t r = 14;
    for (int trial = 0; trial < 60; trial++) {
        const enum nb_dtype dtype = (enum nb_dtype)(trial % NB_N_DTYPES), steps = trial % 2 ? dtype : NB_F32;
        struct problem p released_by(problem_free);
        double y[64], tolerance[64];
        problem_init(&p, NB_OP_DYT, dtype, 1, 64);
        problem_fill_normal(&p, 0, exp(10 * random_normal(&r)), nb_random_next(&r));
        problem_set(&p, 0, trial % 5 ? 1 : INFINITY);
        p.c.stats_dtype = trial % 2 ? NB_STATS_X : NB_STATS_F32;
        p.c.alpha = exp(3 * random_normal(&r));
        bound_of_row(&p, 64, y, tolerance);
        for (int64_t i = 0; i < 64; i++) {
            const double t = nb_round_to(nb_round_to(p.c.alpha, steps) * nb_get(p.in.x, i, dtype), steps);
            const double got = nb_round_to(nb_round_to((double)tanhf((float)t), steps), dtype);
            cr_expect_leq(fabs(got - y[i]), tolerance[i], "trial %d, alpha %g: %g, not %g", trial, p.c.alpha, got,
                          y[i]);
        }
    }
}

/* ---- predicted losses ------------------------------------------------------------------------------------------------ */

static enum nb_loss loss_of_row(const struct problem *p) {
    double y[64], tolerance[64];
    const enum nb_loss loss = bound_of_row(p, p->c.shape.cols, y, tolerance);
    cr_expect_eq(isinf(tolerance[0]), loss != NB_LOSS_NONE && loss != NB_LOSS_UNBOUNDED);
    return loss;
}

static void expect_loss(uint32_t op, enum nb_dtype dtype, uint32_t stats_dtype, uint32_t variance, double eps, double x,
                        double step, enum nb_loss want) {
    struct problem p released_by(problem_free);
    problem_init(&p, op, dtype, 1, 64);
    p.c.stats_dtype = stats_dtype;
    p.c.style = stats_dtype == NB_STATS_X ? NB_COMPOSED : NB_FUSED;
    p.c.variance = variance;
    p.c.eps = eps;
    for (int64_t i = 0; i < 64; i++) problem_set(&p, i, x + step * (double)i);
    enum nb_loss got = loss_of_row(&p);
    cr_expect_eq(got, want, "op %u %s x %g eps %g: %s, not %s", op, nb_formats[dtype].name, x, eps, nb_loss_names[got],
                 nb_loss_names[want]);
}

Test(bound, predicts_where_the_formula_loses_its_result) {
    const uint32_t rms = NB_OP_RMSNORM, ln = NB_OP_LAYERNORM;
    expect_loss(rms, NB_F16, NB_STATS_F32, 0, 1e-5, 256, 0, NB_LOSS_NONE);
    expect_loss(rms, NB_F16, NB_STATS_X, 0, 1e-5, 255.75, 0, NB_LOSS_NONE);
    expect_loss(rms, NB_F16, NB_STATS_X, 0, 1e-5, 256, 0, NB_LOSS_SQUARE_OVERFLOW);
    expect_loss(rms, NB_F16, NB_STATS_X, 0, 1e-7, 0, 0, NB_LOSS_NONE);
    expect_loss(rms, NB_F16, NB_STATS_X, 0, 1e-8, 0, 0, NB_LOSS_EPS_ZERO);
    expect_loss(rms, NB_F16, NB_STATS_X, 0, 0, 1e-4, 0, NB_LOSS_SQUARE_UNDERFLOW);
    expect_loss(rms, NB_F32, NB_STATS_F32, 0, 0, 0, 0, NB_LOSS_EPS_ZERO);
    expect_loss(rms, NB_F32, NB_STATS_F32, 0, 0, 1e-30, 0, NB_LOSS_SQUARE_UNDERFLOW);
    expect_loss(rms, NB_F32, NB_STATS_F32, 0, 1e-5, 1e-30, 0, NB_LOSS_NONE);
    expect_loss(rms, NB_BF16, NB_STATS_F32, 0, 1e-5, 0x1p64, 0, NB_LOSS_SQUARE_OVERFLOW);
    expect_loss(rms, NB_BF16, NB_STATS_F32, 0, 1e-5, 0x1p60, 0, NB_LOSS_NONE);
    expect_loss(rms, NB_F32, NB_STATS_F32, 0, 1e-5, 1.5e19, 0, NB_LOSS_SQUARE_OVERFLOW); /* the sum, no square */
    expect_loss(ln, NB_F32, NB_STATS_F32, NB_VAR_TWOPASS, 1e-5, 3e37, 0, NB_LOSS_SQUARE_OVERFLOW); /* the mean's */
    expect_loss(rms, NB_F16, NB_STATS_X, 0, 1e-8, 1e-4, 0, NB_LOSS_EPS_ZERO);
    expect_loss(rms, NB_F32, NB_STATS_F32, 0, 1e-5, NAN, 0, NB_LOSS_INPUT_NOT_FINITE);
    expect_loss(rms, NB_F32, NB_STATS_F32, 0, 1e-5, INFINITY, 0, NB_LOSS_INPUT_NOT_FINITE);
    expect_loss(ln, NB_F32, NB_STATS_F32, NB_VAR_ONEPASS, 1e-5, 40000, 1e-3, NB_LOSS_CANCELLATION);
    expect_loss(ln, NB_F32, NB_STATS_F32, NB_VAR_TWOPASS, 1e-5, 40000, 1e-3, NB_LOSS_UNBOUNDED);
    expect_loss(ln, NB_F32, NB_STATS_F32, NB_VAR_WELFORD, 1e-5, 40000, 1, NB_LOSS_NONE);
    expect_loss(ln, NB_F32, NB_STATS_F32, NB_VAR_SHIFTED, 1e-5, 40000, 1, NB_LOSS_NONE);
    expect_loss(ln, NB_F32, NB_STATS_F32, NB_VAR_ONEPASS, 1e-5, 0, 1, NB_LOSS_NONE);
    /* A constant row is 0, and a mean that is off by an ulp makes it what it likes. */
    expect_loss(ln, NB_F32, NB_STATS_F32, NB_VAR_TWOPASS, 1e-12, 3.7, 0, NB_LOSS_UNBOUNDED);
    expect_loss(ln, NB_F32, NB_STATS_F32, NB_VAR_TWOPASS, 1e-3, 3.7, 0, NB_LOSS_NONE);
    expect_loss(rms, NB_F32, NB_STATS_F32, 0, 1e-12, 3.7, 0, NB_LOSS_NONE);
}

Test(bound, an_output_beyond_the_range_frees_only_the_element_that_has_it) {
    struct problem p released_by(problem_free);
    double y[8], tolerance[8];
    problem_init(&p, NB_OP_RMSNORM, NB_F16, 1, 8);
    problem_fill_normal(&p, 1, 0.1, 4);
    p.c.formula.affine = NB_AFFINE_GAMMA;
    p.in.gamma_f32[2] = 0;
    p.in.gamma_f32[3] = 1e5f;
    for (uint32_t stats = NB_STATS_F32; stats <= NB_STATS_X; stats++) {
        p.c.stats_dtype = stats;
        cr_expect_eq(bound_of_row(&p, 8, y, tolerance), NB_LOSS_OUTPUT_OVERFLOW);
        for (int i = 0; i < 8; i++) cr_expect_eq(isinf(tolerance[i]), i == 3);
    }
    p.c.op = NB_OP_COPY;
    cr_expect_eq(bound_of_row(&p, 8, y, tolerance), NB_LOSS_NONE);
    for (int i = 0; i < 8; i++) cr_expect_eq(tolerance[i], 0, "a copy is exact");
}

/* ---- mistakes lie beyond --------------------------------------------------------------------------------------------- */

/* 64 x 384, as the smallest shape that is looked at; 8 accumulators, as the kernels have. */
Test(bound, the_divisor_n_minus_1_is_caught_in_every_dtype) {
    for (int dtype = 0; dtype < NB_N_DTYPES; dtype++) {
        struct problem p released_by(problem_free);
        struct soft_kernel k = {.lanes = 8, .unbiased = true};
        problem_init(&p, NB_OP_LAYERNORM, (enum nb_dtype)dtype, 64, 384);
        problem_fill_normal(&p, 0, 1, 100 + (uint64_t)dtype);
        p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
        struct nb_accuracy a = soft_accuracy(&k, &p, NULL);
        cr_expect(a.n_beyond > 0, "%s: worst %.2f of the bound", nb_formats[dtype].name, a.worst_ratio);
        k.unbiased = false;
        a = soft_accuracy(&k, &p, NULL);
        cr_expect(a.n_beyond == 0 && !(fabs(a.bias_sigma) > 6), "%s: %.1f sigma", nb_formats[dtype].name, a.bias_sigma);
    }
}

/* The worst error over the bound of a LayerNorm of standard normal rows. */
static double ratio_of(uint32_t variance, bool unbiased, int64_t n, int lanes) {
    struct problem p released_by(problem_free);
    struct soft_kernel k = {.lanes = lanes, .unbiased = unbiased};
    problem_init(&p, NB_OP_LAYERNORM, NB_F32, 4, n);
    p.c.variance = variance;
    p.c.formula.root = NB_ROOT_MUL_RECIP;
    problem_fill_normal(&p, 0, 1, 77);
    return soft_accuracy(&k, &p, NULL).worst_ratio;
}

/* n - 1 for n is the same mistake in both. */
Test(bound, an_updated_variance_is_bounded_nearly_as_tightly_as_two_passes) {
    for (int64_t n = 64; n <= 16384; n *= 4)
        for (int lanes = 8; lanes <= 64; lanes *= 8) {
            const double two_passes = ratio_of(NB_VAR_TWOPASS, true, n, lanes);
            const double updated = ratio_of(NB_VAR_WELFORD, true, n, lanes);
            cr_expect_lt(two_passes, 4 * updated, "n %lld, %d lanes: %g, %g", (long long)n, lanes, two_passes, updated);
            cr_expect(n > 4096 || updated > 1, "n %lld, %d lanes: unseen, %g", (long long)n, lanes, updated);
            cr_expect_leq(ratio_of(NB_VAR_WELFORD, false, n, lanes), 1);
        }
}

/* As by the instruction that rounds to bf16: allowed where it is declared, and nothing larger is. */
Test(bound, flushed_subnormals_are_allowed_where_declared) {
    struct problem p;
    struct soft_kernel k = {.lanes = 8, .flushes = true};
    problem_init(&p, NB_OP_RMSNORM, NB_BF16, 4, 128);
    problem_fill_normal(&p, 0, 0x1p-127, 5);
    p.c.eps = 1; /* y is about x */
    struct nb_accuracy a = soft_accuracy(&k, &p, NULL);
    cr_expect(a.n_beyond > 0 && a.zero_unexpected > 0);
    p.c.flushes = true;
    a = soft_accuracy(&k, &p, NULL);
    cr_expect(a.n_beyond == 0 && a.worst_ratio > 0.5, "worst %g of the bound", a.worst_ratio);
    problem_free(&p);
    k.unbiased = true;
    problem_init(&p, NB_OP_RMSNORM, NB_BF16, 4, 128);
    problem_fill_normal(&p, 0, 1, 5);
    p.c.flushes = true;
    cr_expect_gt(soft_accuracy(&k, &p, NULL).n_beyond, 0);
    problem_free(&p);
}

/* ---- BatchNorm ---- */

/* Inference in f32, by itself or folded into a x + c. */
static float infer(const struct problem *p, double x, int64_t channel, bool folded) {
    const float scale = 1 / sqrtf(p->in.running_var[channel] + (float)p->c.eps), mean = p->in.running_mean[channel];
    const float gamma = p->in.gamma_f32[channel], beta = p->in.beta_f32[channel];
    if (!folded) return ((float)x - mean) * scale * gamma + beta;
    const float a = gamma * scale, c = beta - mean * a;
    return a * (float)x + c;
}

static double worst_of_inference(uint32_t layout, bool declared, bool folded) {
    struct problem p released_by(problem_free);
    struct nb_bound b released_by(nb_bound_release);
    double y[64], tolerance[64], worst = 0;
    problem_init_batchnorm(&p, layout, NB_F32, 2, 8, 32);
    problem_fill_normal(&p, 1000, 1, 8);
    for (int64_t i = 0; i < 8; i++) p.in.running_mean[i] = (float)(1000 + 0.1 * (double)i);
    p.c.mode = NB_INFERENCE;
    p.c.folded = declared;
    p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
    struct nb_oracle o released_by(nb_oracle_release) = oracle_of(&p);
    nb_bound_init(&b, &p.c, &o, 0);
    const struct nb_running_error running = nb_bound_running(&b, 0);
    cr_expect(running.mean == 0 && running.var == 0, "inference updates nothing");
    for (int64_t r = 0; r < p.in.rows; r++) {
        nb_oracle_row(&o, r, y);
        cr_assert_eq(nb_bound_row(&b, r, y, tolerance), NB_LOSS_NONE);
        for (int64_t i = 0; i < p.in.cols; i++) {
            int64_t channel = layout == NB_NHWC ? i : r % 8;
            double got = infer(&p, nb_get(p.in.x, r * p.in.cols + i, NB_F32), channel, folded);
            worst = fmax(worst, fabs(got - y[i]) / tolerance[i]);
        }
    }
    return worst;
}

Test(bound, tells_a_folded_batchnorm_from_one_that_subtracts_the_mean) {
    for (uint32_t layout = NB_NCHW; layout <= NB_NHWC; layout++) {
        cr_expect_leq(worst_of_inference(layout, false, false), 1);
        cr_expect_leq(worst_of_inference(layout, true, true), 1);
        cr_expect_gt(worst_of_inference(layout, true, true), 0.1);
        cr_expect_gt(worst_of_inference(layout, false, true), 1, "declared as subtracting, but folded");
    }
}

/* ---- tightness ---- */

/* One part in 768 of the scale: at 384 columns n - 1 in place of n shows in every dtype, since the bound beside the last rounding
 * is f32's. */
Test(bound, is_half_an_ulp_and_little_more_for_narrow_outputs) {
    for (int dtype = NB_F16; dtype <= NB_BF16; dtype++) {
        struct problem p released_by(problem_free);
        double y[384], tolerance[384];
        problem_init(&p, NB_OP_RMSNORM, (enum nb_dtype)dtype, 1, 384);
        problem_fill_normal(&p, 0, 1, 6);
        bound_of_row(&p, 55, y, tolerance);
        for (int i = 0; i < 384; i++) {
            double ulps = tolerance[i] / nb_ulp(y[i], p.in.dtype);
            cr_expect(ulps >= 0.5 && ulps < 0.51, "%g: %g ulp", y[i], ulps);
        }
    }
}
