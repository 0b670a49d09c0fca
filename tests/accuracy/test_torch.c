// SPDX-License-Identifier: Apache-2.0
/* What PyTorch returned for real activations, against the oracle: is our idea of the mathematics the one that people train with?
 * PyTorch's rounding is its own, so that the tolerance is the bound for its formula: f32 statistics in any order of summation
 * (chain: the row length), mean times scale folded into the last multiply-add for LayerNorm, parameters as stored. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/accuracy/bound.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/plan/npy.h"
#include "tests/support/files.h"
#include "tests/support/numerics.h"

static void release_array(void *array) { nb_array_release(array); }

static struct nb_array read_data(const char *site, const char *what) {
    const char *dir = getenv("NORMBENCH_DATA");
    char path[512], reason[256];
    struct nb_array a = {0};
    snprintf(path, sizeof path, "%s/minilm_%s_%s.npy", dir ? dir : "tests/data", site, what);
    cr_assert_eq(nb_array_read(&a, path, false, reason, sizeof reason), 0, "%s", reason);
    release_at_end(&a, sizeof a, release_array);
    return a;
}

static void load(struct problem *p, const char *site, uint32_t op, enum nb_dtype dtype) {
    struct nb_array x = read_data(site, dtype == NB_F16 ? "x_f16" : "x"), gamma = read_data(site, "gamma"),
                    beta = read_data(site, "beta");
    problem_init(p, op, dtype, x.rows, x.cols);
    for (int64_t i = 0; i < x.rows * x.cols; i++) problem_set(p, i, x.values[i]);
    for (int64_t i = 0; i < x.cols; i++) {
        p->in.gamma_f32[i] = (float)gamma.values[i];
        p->in.beta_f32[i] = (float)beta.values[i];
        nb_set(p->in.gamma_x, i, dtype, gamma.values[i]);
        nb_set(p->in.beta_x, i, dtype, beta.values[i]);
    }
    p->c.formula.param = NB_PARAM_X;
    p->c.formula.affine = op == NB_OP_LAYERNORM ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA;
    p->c.eps = op == NB_OP_LAYERNORM ? 1e-12 : 1e-6;
}

struct difference {
    double absolute, ratio; /* largest; ratio to the tolerance */
    int64_t rounded, n;     /* elements equal to the rounded exact value */
};

static struct difference compare(const char *site, uint32_t op, enum nb_dtype dtype, const char *what) {
    struct problem p released_by(problem_free);
    struct nb_bound b released_by(nb_bound_release);
    struct difference d = {0};
    load(&p, site, op, dtype);
    struct nb_array torch = read_data(site, what);
    cr_assert(torch.rows == p.in.rows && torch.cols == p.in.cols);
    struct nb_oracle o released_by(nb_oracle_release) = oracle_of(&p);
    nb_bound_init(&b, &p.c, &o, p.in.cols);
    b.folded = op == NB_OP_LAYERNORM;
    double *y freed = calloc((size_t)p.in.cols, sizeof *y),
              *tolerance freed = calloc((size_t)p.in.cols, sizeof *tolerance);
    for (int64_t r = 0; r < p.in.rows; r++) {
        nb_oracle_row(&o, r, y);
        cr_assert_eq(nb_bound_row(&b, r, y, tolerance), NB_LOSS_NONE);
        for (int64_t i = 0; i < p.in.cols; i++) {
            const double got = torch.values[r * p.in.cols + i], error = fabs(got - y[i]);
            d.absolute = fmax(d.absolute, error);
            d.ratio = fmax(d.ratio, error / tolerance[i]);
            d.rounded += got == nb_round_to(y[i], dtype);
            d.n++;
        }
    }
    return d;
}

static const char *const sites[] = {"embed", "layer0_out", "layer5_attn"};

Test(torch, norms_of_real_rows_are_ours_to_within_their_rounding) {
    for (int i = 0; i < 6; i++) {
        const bool rms = i >= 3;
        struct difference d = compare(sites[i % 3], rms ? NB_OP_RMSNORM : NB_OP_LAYERNORM, NB_F32,
                                      rms ? "rmsnorm_torch" : "layernorm_torch");
        cr_expect(d.ratio <= 1, "%s, %d: %g of the bound", sites[i % 3], i, d.ratio);
        cr_expect(d.absolute < 2e-6 && d.absolute > 0);
    }
}

/* eps = 1e-12 is 0 in f16: that the results agree shows that PyTorch's statistics are f32. */
Test(torch, half_precision_results_are_f32_statistics_rounded) {
    struct difference d = compare("layer0_out", NB_OP_LAYERNORM, NB_F16, "layernorm_f16_torch");
    cr_expect(d.ratio <= 1 && d.rounded > d.n * 95 / 100);
    d = compare("layer0_out", NB_OP_RMSNORM, NB_F16, "rmsnorm_f16_torch");
    cr_expect(d.rounded > d.n * 50 / 100);
    cr_expect_leq(d.ratio, 1);
}

/* The comparison can fail: another eps, a forgotten mean. */
Test(torch, another_formula_is_not_within_the_rounding) {
    struct difference d = compare("layer0_out", NB_OP_RMSNORM, NB_F32, "layernorm_torch");
    cr_expect_gt(d.ratio, 10);
    d = compare("layer0_out", NB_OP_LAYERNORM, NB_F32, "rmsnorm_torch");
    cr_expect_gt(d.ratio, 10);
}
