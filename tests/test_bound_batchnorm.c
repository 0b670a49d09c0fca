// SPDX-License-Identifier: Apache-2.0
/* The bound of BatchNorm's inference knows whether a kernel subtracts the mean or folds it into a constant. */
#include <criterion/criterion.h>
#include <math.h>

#include "src/accuracy/accuracy.h"
#include "src/number/dtype.h"
#include "tests/test_support_softkernel.h"

/* Inference in f32, by itself or folded into a x + c. */
static float infer(const struct problem *p, double x, int64_t channel, bool folded) {
    const float scale = 1 / sqrtf(p->in.running_var[channel] + (float)p->c.eps), mean = p->in.running_mean[channel];
    const float gamma = p->in.gamma_f32[channel], beta = p->in.beta_f32[channel];
    if (!folded) return ((float)x - mean) * scale * gamma + beta;
    const float a = gamma * scale, c = beta - mean * a;
    return a * (float)x + c;
}

static double worst_of_inference(uint32_t layout, bool declared, bool folded) {
    struct problem p;
    struct nb_oracle o;
    struct nb_bound b;
    double y[64], tolerance[64], worst = 0;
    problem_init_batchnorm(&p, layout, NB_F32, 2, 8, 32);
    problem_fill_normal(&p, 1000, 1, 8);
    for (int64_t i = 0; i < 8; i++) p.in.running_mean[i] = (float)(1000 + 0.1 * (double)i);
    p.c.mode = NB_INFERENCE;
    p.c.folded = declared;
    p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
    cr_assert_eq(nb_oracle_init(&o, &p.c, &p.in), 0);
    nb_bound_init(&b, &p.c, &o, 0);
    for (int64_t r = 0; r < p.in.rows; r++) {
        nb_oracle_row(&o, r, y);
        cr_assert_eq(nb_bound_row(&b, r, y, tolerance), NB_LOSS_NONE);
        for (int64_t i = 0; i < p.in.cols; i++) {
            int64_t channel = layout == NB_NHWC ? i : r % 8;
            double got = infer(&p, nb_get(p.in.x, r * p.in.cols + i, NB_F32), channel, folded);
            worst = fmax(worst, fabs(got - y[i]) / tolerance[i]);
        }
    }
    nb_oracle_release(&o);
    problem_free(&p);
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
