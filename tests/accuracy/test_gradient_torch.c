// SPDX-License-Identifier: Apache-2.0
/* What PyTorch's backward passes returned for real activations (tests/tools/torch_gradients.cpp recorded them), against the oracle of
 * gradients. PyTorch has statistics of its own making and folds the mean, so that what is allowed is the bound for that and what
 * statistics that are off by their own bound do. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/accuracy/bound.h"
#include "src/accuracy/gradient_bound.h"
#include "src/core/dtype.h"
#include "src/plan/npy.h"
#include "tests/support/backward.h"
#include "tests/support/files.h"

static void release_array(void *array) { nb_array_release(array); }

static struct nb_array read_data(const char *name) {
    const char *dir = getenv("NORMBENCH_DATA");
    char path[512], reason[256];
    struct nb_array a = {0};
    snprintf(path, sizeof path, "%s/%s.npy", dir ? dir : "tests/data", name);
    cr_assert_eq(nb_array_read(&a, path, 0, 0, reason, sizeof reason), 0, "%s", reason);
    release_at_end(&a, sizeof a, release_array);
    return a;
}

static struct nb_array read_site(const char *what) {
    char name[192];
    snprintf(name, sizeof name, "minilm_layer0_out_%s", what);
    return read_data(name);
}

static void load(struct backward *b, uint32_t op, enum nb_dtype dtype) {
    struct nb_array x = read_site("x"), dy = read_site("dy"), gamma = read_site("gamma");
    backward_init(b, op, dtype, x.rows, x.cols);
    for (int64_t i = 0; i < x.rows * x.cols; i++) {
        problem_set(&b->p, i, x.values[i]);
        backward_set_dy(b, i, dy.values[i]);
    }
    for (int64_t i = 0; i < x.cols; i++) nb_set(b->p.in.gamma_x, i, dtype, gamma.values[i]);
    b->p.c.formula.param = NB_PARAM_X;
    b->p.c.formula.affine = op == NB_OP_LAYERNORM ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA;
    b->p.c.eps = op == NB_OP_LAYERNORM ? 1e-12 : 1e-6;
    b->p.c.folded = op == NB_OP_LAYERNORM;
    backward_statistics(b);
}

/* Largest ratios of PyTorch's error to what is allowed. */
struct ratios {
    double dx, dgamma, dbeta;
};

/* What dx does when mean and rstd are off by theirs: three factors of rstd, and xhat that moves with the mean. */
static double of_statistics(const struct nb_gradient *g, const struct nb_statistics_error *e, int64_t row, int64_t i) {
    const struct nb_row_gradient *r = &g->rows[row];
    const struct nb_inputs *in = g->in;
    const double rstd = g->rstd[row], mean = g->mean ? g->mean[row] : 0;
    const double size = fabs(nb_get(in->dy, row * in->cols + i, in->dtype) * g->weight[i]);
    const double xhat = fabs((nb_get(in->x, row * in->cols + i, in->dtype) - mean) * rstd);
    return rstd * (3 * e->scale * (size + fabs(r->mean_g) + xhat * fabs(r->mean_gx)) +
                   e->mean * rstd * (fabs(r->mean_gx) + xhat * r->mean_abs_g));
}

static double worst_of_dx(const struct backward *b, const struct nb_gradient *g, const struct nb_gradient_bound *bound,
                          const char *name) {
    struct nb_oracle o;
    struct nb_bound statistics;
    const int64_t cols = b->p.in.cols;
    struct nb_array torch = read_site(name);
    double *dx = calloc((size_t)cols, sizeof *dx), *tolerance = calloc((size_t)cols, sizeof *tolerance), worst = 0;
    cr_assert_eq(nb_oracle_init(&o, &b->p.c, &b->p.in), 0);
    nb_bound_init(&statistics, &b->p.c, &o, cols);
    for (int64_t row = 0; row < b->p.in.rows; row++) {
        const struct nb_statistics_error e = nb_bound_statistics(&statistics, row);
        nb_gradient_row(g, row, dx);
        cr_assert_eq(nb_gradient_bound_row(bound, row, dx, tolerance), NB_LOSS_NONE);
        for (int64_t i = 0; i < cols; i++)
            worst =
                fmax(worst, fabs(torch.values[row * cols + i] - dx[i]) / (tolerance[i] + of_statistics(g, &e, row, i)));
    }
    nb_bound_release(&statistics);
    nb_oracle_release(&o);
    free(dx);
    free(tolerance);
    return worst;
}

/* Statistics that are off move xhat by no more than the same again as its rounding: 2^-20 covers it for 384 columns. */
static double worst_of_sums(const double *exact, const double *magnitudes, const struct nb_gradient_bound *bound,
                            enum nb_parameter parameter, const char *name) {
    struct nb_array torch = read_data(name);
    double worst = 0;
    for (int64_t i = 0; i < bound->g->n_params; i++) {
        const double allowed = nb_gradient_bound_parameter(bound, parameter, i) + 0x1p-20 * magnitudes[i];
        worst = fmax(worst, fabs(torch.values[i] - exact[i]) / allowed);
    }
    return worst;
}

static struct ratios compare(uint32_t op, enum nb_dtype dtype, bool narrow, const char *stem) {
    struct backward b;
    struct nb_gradient g;
    struct nb_gradient_bound bound;
    struct ratios worst = {0};
    char name[128], site[160];
    load(&b, op, dtype);
    if (narrow) {
        b.p.c.stats_dtype = NB_STATS_X;
        b.p.c.style = NB_COMPOSED;
    }
    backward_gradient(&g, &b);
    nb_gradient_bound_init(&bound, &b.p.c, &g, b.p.in.cols, b.p.in.rows, false);
    snprintf(name, sizeof name, "%s_dx_torch", stem);
    worst.dx = worst_of_dx(&b, &g, &bound, name);
    snprintf(site, sizeof site, "minilm_layer0_out_%s_dgamma_torch", stem);
    worst.dgamma = worst_of_sums(g.dgamma, g.abs_dgamma, &bound, NB_DGAMMA, site);
    snprintf(site, sizeof site, "minilm_layer0_out_%s_dbeta_torch", stem);
    if (g.dbeta) worst.dbeta = worst_of_sums(g.dbeta, g.abs_dbeta, &bound, NB_DBETA, site);
    fprintf(stderr, "PyTorch %s%s: dx %.2f, dgamma %.2f, dbeta %.2f of what is allowed\n", stem,
            narrow ? ", all rounded to bf16" : "", worst.dx, worst.dgamma, worst.dbeta);
    nb_gradient_bound_release(&bound);
    nb_gradient_release(&g);
    backward_free(&b);
    return worst;
}

Test(gradient_torch, gradients_of_real_rows_are_pytorchs_to_within_rounding) {
    const struct ratios layernorm = compare(NB_OP_LAYERNORM, NB_F32, false, "layernorm");
    cr_expect(layernorm.dx <= 1 && layernorm.dgamma <= 1 && layernorm.dbeta <= 1);
    const struct ratios rmsnorm = compare(NB_OP_RMSNORM, NB_F32, false, "rmsnorm");
    cr_expect(rmsnorm.dx <= 1 && rmsnorm.dgamma <= 1);
}

/* Another formula is far away: the LayerNorm's gradients are not the RMSNorm's. */
Test(gradient_torch, another_op_is_not_within_the_rounding) {
    const struct ratios other = compare(NB_OP_RMSNORM, NB_F32, false, "layernorm");
    cr_expect(other.dx > 10 && other.dgamma > 10);
}
/* RMSNorm is composed of elementary operators on an f32 copy: dx is rounded once, dgamma to bf16 at the end. */
Test(gradient_torch, rmsnorm_in_bf16_is_f32_rounded) {
    const struct ratios once = compare(NB_OP_RMSNORM, NB_BF16, false, "rmsnorm_bf16");
    cr_expect(once.dx <= 1 && once.dx > 0.9 && once.dgamma > 1);
    cr_expect_leq(compare(NB_OP_RMSNORM, NB_BF16, true, "rmsnorm_bf16").dgamma, 1);
}

/* LayerNorm saves mean and rstd in bf16, which shows in dx, and adds up dgamma and dbeta in bf16, which goes beyond a bound that has
 * every other intermediate in bf16 and f32 in the sums. */
Test(gradient_torch, layernorm_in_bf16_keeps_its_statistics_and_its_sums_in_bf16) {
    const struct ratios once = compare(NB_OP_LAYERNORM, NB_BF16, false, "layernorm_bf16");
    cr_expect(once.dx > 1 && once.dgamma > 1 && once.dbeta > 1);
    const struct ratios narrow = compare(NB_OP_LAYERNORM, NB_BF16, true, "layernorm_bf16");
    cr_expect(narrow.dx <= 1 && narrow.dbeta > 1);
}

/* 4096 rows of dy = 1, x as the recorder's grid() has it. */
static void load_grid(struct backward *b, uint32_t op) {
    backward_init(b, op, NB_BF16, 4096, 8);
    for (int64_t row = 0; row < 4096; row++)
        for (int64_t i = 0; i < 8; i++) {
            problem_set(&b->p, row * 8 + i, (double)((row * 7 + i * i * 3) % 16 - 8) / 8);
            backward_set_dy(b, row * 8 + i, 1);
        }
    b->p.c.formula.affine = op == NB_OP_LAYERNORM ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA;
    backward_statistics(b);
}

Test(gradient_torch, sums_over_4096_rows_are_caught_where_they_are_made_in_bf16) {
    struct backward b;
    struct nb_gradient g;
    struct nb_gradient_bound bound;
    struct nb_array dbeta = read_data("grid_4096x8_layernorm_bf16_dbeta_torch");
    load_grid(&b, NB_OP_LAYERNORM);
    backward_gradient(&g, &b);
    nb_gradient_bound_init(&bound, &b.p.c, &g, 8, 4096, false);
    cr_expect(g.dbeta[0] == 4096 && dbeta.values[0] == 256, "1 is half a spacing of bf16 at 256");
    cr_expect_gt(worst_of_sums(g.dbeta, g.abs_dbeta, &bound, NB_DBETA, "grid_4096x8_layernorm_bf16_dbeta_torch"), 100);
    cr_expect_gt(worst_of_sums(g.dgamma, g.abs_dgamma, &bound, NB_DGAMMA, "grid_4096x8_layernorm_bf16_dgamma_torch"),
                 10);
    nb_gradient_bound_release(&bound);
    nb_gradient_release(&g);
    backward_free(&b);
}

Test(gradient_torch, sums_over_4096_rows_are_right_where_they_are_rounded_at_the_end) {
    struct backward b;
    struct nb_gradient g;
    struct nb_array dgamma = read_data("grid_4096x8_rmsnorm_bf16_dgamma_torch");
    load_grid(&b, NB_OP_RMSNORM);
    backward_gradient(&g, &b);
    for (int64_t i = 0; i < 8; i++)
        cr_expect_leq(fabs(dgamma.values[i] - g.dgamma[i]), 1.01 * nb_ulp(g.dgamma[i], NB_BF16), "%g, exact %g",
                      dgamma.values[i], g.dgamma[i]);
    nb_gradient_release(&g);
    backward_free(&b);
}
