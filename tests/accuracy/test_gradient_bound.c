// SPDX-License-Identifier: Apache-2.0
/* The bound of gradients lets every correct backward kernel pass, on ordinary rows and on rows made to hurt, and is tight enough that
 * mistakes that people make lie beyond it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/accuracy/gradient_bound.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "tests/support/softgradient.h"
#include "tests/support/sparsely.h"

/* Largest |computed - exact| / tolerance of each output. */
struct verdict {
    double dx, dgamma, dbeta;
};

static struct verdict judge(const struct problem *b, const struct soft_gradient *k) {
    struct nb_gradient_bound bound released_by(nb_gradient_bound_release);
    struct verdict v = {0};
    const struct nb_inputs *in = &b->in;
    const size_t n = (size_t)(in->rows * in->cols), cols = (size_t)in->cols;
    double *exact freed = calloc(cols, sizeof *exact), *tolerance freed = calloc(cols, sizeof *tolerance);
    float *dx freed = calloc(n, sizeof *dx), *dgamma freed = calloc((size_t)in->n_params, sizeof *dgamma),
              *dbeta freed = calloc((size_t)in->n_params, sizeof *dbeta);
    const bool channels = b->c.op == NB_OP_BATCHNORM;
    const int64_t terms = channels ? b->c.shape.n * b->c.shape.hw : in->cols;
    struct nb_gradient g released_by(nb_gradient_release) = backward_gradient(b);
    nb_gradient_bound_init(&bound, &b->c, &g, NULL, soft_gradient_chain(k, terms),
                           soft_gradient_chain(k, channels ? terms : in->rows), b->c.flushes);
    soft_gradient_run(k, b, dx, dgamma, dbeta);
    for (int64_t row = 0; row < in->rows; row++) {
        nb_gradient_row(&g, row, exact);
        nb_gradient_bound_row(&bound, row, exact, tolerance);
        for (size_t i = 0; i < cols; i++) {
            const double got = nb_get(dx, row * in->cols + (int64_t)i, in->dtype);
            v.dx = fmax(v.dx, bound_ratio(got, exact[i], tolerance[i]));
        }
    }
    for (int64_t i = 0; i < in->n_params; i++) {
        if (g.dgamma)
            v.dgamma =
                fmax(v.dgamma, bound_ratio(dgamma[i], g.dgamma[i], nb_gradient_bound_parameter(&bound, NB_DGAMMA, i)));
        if (g.dbeta)
            v.dbeta =
                fmax(v.dbeta, bound_ratio(dbeta[i], g.dbeta[i], nb_gradient_bound_parameter(&bound, NB_DBETA, i)));
    }
    return v;
}

/* ---- correct kernels pass -------------------------------------------------------------------------------------------- */

static double tightest;
static void expect_within(const struct problem *b, const struct soft_gradient *k, const char *rows) {
    const struct verdict v = judge(b, k);
    const struct nb_formula *f = &b->c.formula;
    cr_expect(v.dx <= 1 && v.dgamma <= 1 && v.dbeta <= 1,
              "%s, op %u %s %lld x %lld order %d lanes %d offset %u affine %u param %u stats %u style %u layout %u: dx "
              "%.3g, dgamma "
              "%.3g, dbeta %.3g of the bound",
              rows, b->c.op, nb_formats[b->c.dtype].name, (long long)b->in.rows, (long long)b->in.cols, k->order,
              k->lanes, f->weight_offset, f->affine, f->param, b->c.stats_dtype, b->c.style, b->c.shape.layout, v.dx,
              v.dgamma, v.dbeta);
    tightest = fmax(tightest, v.dx);
}

/* 1 .. n */
static int64_t up_to(uint64_t *r, uint64_t n) { return 1 + (int64_t)(nb_random_next(r) % n); }

static void draw_kernel(struct problem *b, struct soft_gradient *k, uint64_t *r) {
    struct nb_case *c = &b->c;
    draw_formula(b, r);
    k->lanes = 1 << nb_random_next(r) % 6;
    k->order = (enum order)(nb_random_next(r) %
                            (c->stats_dtype == NB_STATS_X && c->dtype != NB_F32 ? N_NARROW_ORDERS : N_ORDERS));
    c->folded = k->order >= N_SOUND_ORDERS;
}

Test(gradient_bound, holds_for_every_formula_and_order_on_normal_rows) {
    uint64_t r = 21;
    for (int trial = 0; trial < 3000; trial += one_in(5)) {
        struct problem b released_by(problem_free);
        struct soft_gradient k = {0};
        const int64_t rows = up_to(&r, 6), cols = up_to(&r, 200);
        backward_init(&b, row_ops[trial % N_NORM_OPS], (enum nb_dtype)(up_to(&r, NB_N_DTYPES) - 1), rows, cols);
        draw_kernel(&b, &k, &r);
        const double mean = random_normal(&r), sd = exp(2 * random_normal(&r));
        backward_fill_normal(&b, mean, sd, nb_random_next(&r));
        expect_within(&b, &k, "normal");
    }
    cr_expect(tightest > 0.9, "some formula comes near its bound");
}

Test(gradient_bound, holds_for_batchnorm_in_both_layouts_and_modes) {
    uint64_t r = 22;
    for (int trial = 0; trial < 1500; trial += one_in(5)) {
        struct problem b released_by(problem_free);
        struct soft_gradient k = {0};
        const int64_t n = up_to(&r, 3), channels = up_to(&r, 5), hw = up_to(&r, 40);
        backward_init_batchnorm(&b, NB_NCHW + (uint32_t)trial % 2, (enum nb_dtype)(up_to(&r, NB_N_DTYPES) - 1), n,
                                channels, hw);
        draw_kernel(&b, &k, &r);
        b.c.mode = (uint32_t)(nb_random_next(&r) % NB_N_MODES);
        if (b.c.mode == NB_INFERENCE && k.order == ORDER_AFFINE) k.order = ORDER_PLAIN;
        const double mean = 3 * random_normal(&r), sd = exp((trial % 3 ? 2 : 20) * random_normal(&r));
        b.c.flushes = trial % 7 == 0;
        backward_fill_normal(&b, mean, sd, nb_random_next(&r));
        expect_within(&b, &k, "batchnorm");
    }
}

static double hard_dy(int kind, int64_t i, uint64_t *r) {
    if (kind == 0) return 1;
    if (kind == 1) return 1e-40 * random_normal(r);
    if (kind == 2) return 1e37 * random_normal(r);
    if (kind == 3) return i % 17 == 3 ? 1000 : 0;
    if (kind == 4) return 100 + random_normal(r);
    return random_normal(r);
}

Test(gradient_bound, holds_for_every_formula_and_order_on_rows_made_to_hurt) {
    uint64_t r = 23;
    char kind_name[32];
    for (int trial = 0; trial < 6000; trial += one_in(7)) {
        struct problem b released_by(problem_free);
        struct soft_gradient k = {0};
        const int of_x = trial % N_HARD_KINDS, of_dy = trial / N_HARD_KINDS % 6;
        const int64_t cols = up_to(&r, trial % 5 ? 100 : 700), op = up_to(&r, N_NORM_OPS) - 1;
        backward_init(&b, row_ops[op], (enum nb_dtype)(up_to(&r, NB_N_DTYPES) - 1), 2, cols);
        draw_kernel(&b, &k, &r);
        backward_fill_normal(&b, 0, 1, nb_random_next(&r));
        for (int64_t i = 0; i < 2 * cols; i++) {
            problem_set(&b, i, hard_value(of_x, i % cols, cols, &r));
            backward_set_dy(&b, i, hard_dy(of_dy, i % cols, &r));
        }
        backward_statistics(&b);
        snprintf(kind_name, sizeof kind_name, "hard %d, dy %d", of_x, of_dy);
        expect_within(&b, &k, kind_name);
    }
}

/* ---- mistakes lie beyond --------------------------------------------------------------------------------------------- */

/* 64 x 384, as the smallest shape that is looked at; 8 accumulators, as the kernels have. */
Test(gradient_bound, mistakes_in_the_means_are_caught) {
    static const struct {
        enum gradient_fault fault;
        uint32_t op;
        enum nb_dtype dtype;
    } mistakes[] = {
        {GRADIENT_DIVISOR, NB_OP_LAYERNORM, NB_F32},  {GRADIENT_DIVISOR, NB_OP_LAYERNORM, NB_F16},
        {GRADIENT_DIVISOR, NB_OP_LAYERNORM, NB_BF16}, {GRADIENT_DIVISOR, NB_OP_PRMSNORM, NB_F32},
        {GRADIENT_DIVISOR, NB_OP_BATCHNORM, NB_F32},  {GRADIENT_NO_MEAN, NB_OP_ADD_LAYERNORM, NB_BF16},
        {GRADIENT_NO_MEAN, NB_OP_BATCHNORM, NB_F32},  {GRADIENT_NO_PULL, NB_OP_L2NORM, NB_F16},
        {GRADIENT_NO_PULL, NB_OP_BATCHNORM, NB_F32},  {GRADIENT_ALL_COUPLED, NB_OP_PRMSNORM, NB_BF16},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        struct problem b released_by(problem_free);
        struct soft_gradient k = {.lanes = 8, .fault = mistakes[i].fault};
        if (mistakes[i].op == NB_OP_BATCHNORM)
            backward_init_batchnorm(&b, NB_NCHW + (uint32_t)i % 2, NB_F32, 2, 8, 49);
        else
            backward_init(&b, mistakes[i].op, mistakes[i].dtype, 64, 384);
        b.c.k = 96;
        b.c.formula.affine = NB_AFFINE_GAMMA_BETA;
        b.c.formula.weight_offset = 1;
        backward_fill_normal(&b, 0, 1, 300 + i);
        cr_expect_gt(judge(&b, &k).dx, 1, "mistake %zu", i);
        k.fault = GRADIENT_RIGHT;
        cr_expect_leq(judge(&b, &k).dx, 1, "without mistake %zu", i);
    }
}

/* Only where it is declared: the folded forms lose what |mean| is larger than the spread. */
Test(gradient_bound, tells_folded_forms_from_those_that_subtract_the_mean) {
    for (int order = ORDER_FOLDED_XHAT; order <= ORDER_AFFINE; order++) {
        struct problem b released_by(problem_free);
        struct soft_gradient k = {.lanes = 8, .order = (enum order)order};
        backward_init(&b, NB_OP_LAYERNORM, NB_F32, 8, 384);
        backward_fill_normal(&b, 1000, 1, 4);
        for (int64_t i = 0; i < 8 * 384; i++) /* g and xhat of one mind, so that xhat * mean(gx) counts */
            backward_set_dy(&b, i, nb_get(b.in.dy, i, NB_F32) / 4 + nb_get(b.in.x, i, NB_F32) - 1000);
        b.c.folded = true;
        const double declared = judge(&b, &k).dx;
        cr_expect(declared <= 1 && declared > 1e-3, "order %d: %g", order, declared);
        b.c.folded = false;
        cr_expect_gt(judge(&b, &k).dx, 1);
    }
}

/* Rows of mean/sd = 10^8, whose mean a folded form takes off last: the bound is as large as what dx is a difference of. */
Test(gradient_bound, that_allows_everything_is_said_to) {
    for (int folded = 0; folded < 2; folded++) {
        struct problem b released_by(problem_free);
        double dx[64], tolerance[64];
        backward_init(&b, NB_OP_LAYERNORM, NB_F32, 1, 64);
        backward_fill_normal(&b, 1e5, 1e-3, 4);
        b.c.folded = folded;
        cr_expect_eq(backward_bound_of_row(&b, 64, dx, tolerance), folded ? NB_LOSS_UNBOUNDED : NB_LOSS_NONE);
    }
}

/* What f32 adds to the last rounding is a few times the error of the two sums, chain * u, of terms near 1. */
Test(gradient_bound, is_half_an_ulp_and_little_more_for_narrow_outputs) {
    for (int dtype = NB_F16; dtype <= NB_BF16; dtype++) {
        struct problem b released_by(problem_free);
        double dx[384], tolerance[384];
        backward_init(&b, NB_OP_LAYERNORM, (enum nb_dtype)dtype, 1, 384);
        backward_fill_normal(&b, 0, 1, 6);
        cr_expect_eq(backward_bound_of_row(&b, 55, dx, tolerance), NB_LOSS_NONE);
        for (int i = 0; i < 384; i++) {
            const double beside = tolerance[i] - nb_ulp(dx[i], b.in.dtype) / 2;
            cr_expect(beside > 0 && beside < 5 * 55 * 0x1p-24, "%g: %g", dx[i], beside);
        }
    }
}
