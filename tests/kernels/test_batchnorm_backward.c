// SPDX-License-Identifier: Apache-2.0
/* BatchNorm's gradients against the formula of kernels/kernel.h in plain double: every backward variant that can run here, both
 * layouts and modes, affine parts, outputs that are not wanted, padding, cuts. Nothing of the harness's own oracle is used. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/measure/pool.h"
#include "tests/support/batchnorm.h"
#include "tests/support/plans.h"

TestSuite(batchnorm_backward, .init = load_kernels);

/* The last three are long enough for a channel to be cut into blocks, of planes and of parts of one. */
static const struct size sizes[] = {{2, 1, 1},     {1, 3, 7},      {64, 70, 1},  {3, 5, 49},  {9, 33, 15},
                                    {600, 3, 2},   {5, 20, 300},   {7, 2, 513},  {2, 130, 3}, {530, 17, 1},
                                    {3, 1, 50000}, {1, 1, 140001}, {1, 2, 17000}};
enum { N_SIZES = sizeof sizes / sizeof sizes[0], PAD = 3 };

struct problem {
    struct nb_call call;
    enum nb_dtype dtype;
    int64_t n_stored;
    struct memory memory;
    double *dx, *dgamma, *dbeta; /* exact */
    double *abs_g, *abs_gx;      /* by channels: mean |g| and mean |g * xhat|, what errors are measured by */
};

static double weight_of(const struct nb_call *call, int64_t channel) {
    if (call->formula.affine == NB_AFFINE_NONE) return 1;
    return ((const float *)call->gamma)[channel] + (call->formula.weight_offset ? 1 : 0);
}

static void fill(struct problem *p) {
    struct nb_call *call = &p->call;
    void *x = take(&p->memory, p->n_stored, nb_formats[p->dtype].bytes);
    void *dy = take(&p->memory, p->n_stored, nb_formats[p->dtype].bytes);
    for (int64_t r = 0; r < call->rows; r++)
        for (int64_t i = 0; i < call->cols; i++) {
            nb_set(x, r * call->x_stride + i, p->dtype, scattered(r * call->cols + i));
            nb_set(dy, r * call->dy_stride + i, p->dtype, scattered(3 * (r * call->cols + i) + 7) + 0.25);
        }
    float *gamma = take(&p->memory, call->c, sizeof *gamma);
    call->mean = take(&p->memory, call->c, sizeof(float));
    call->rstd = take(&p->memory, call->c, sizeof(float));
    call->dgamma = take(&p->memory, call->c, sizeof(float));
    call->dbeta = take(&p->memory, call->c, sizeof(float));
    for (int64_t c = 0; c < call->c; c++) {
        gamma[c] = 0.5f + 0.25f * (float)(c % 5);
        call->mean[c] = 0.0625f * (float)(c % 3);
        call->rstd[c] = 1 + 0.125f * (float)(c % 4);
    }
    call->x = x;
    call->dy = dy;
    call->gamma = gamma;
    call->dx = take(&p->memory, p->n_stored, nb_formats[p->dtype].bytes);
}

static void sum_channels(struct problem *p) {
    const struct nb_call *call = &p->call;
    const double n = (double)(call->n * call->hw);
    for (int64_t r = 0; r < call->rows; r++)
        for (int64_t i = 0; i < call->cols; i++) {
            const int64_t c = channel_of(call, r, i);
            const double dy = nb_get(call->dy, r * call->dy_stride + i, p->dtype);
            const double xhat = (nb_get(call->x, r * call->x_stride + i, p->dtype) - call->mean[c]) * call->rstd[c];
            p->dbeta[c] += dy;
            p->dgamma[c] += dy * xhat;
            p->abs_g[c] += fabs(dy) / n;
            p->abs_gx[c] += fabs(dy * xhat) / n;
        }
}
static void solve(struct problem *p) {
    const struct nb_call *call = &p->call;
    const double n = (double)(call->n * call->hw);
    sum_channels(p);
    for (int64_t r = 0; r < call->rows; r++)
        for (int64_t i = 0; i < call->cols; i++) {
            const int64_t c = channel_of(call, r, i);
            const double dy = nb_get(call->dy, r * call->dy_stride + i, p->dtype);
            const double xhat = (nb_get(call->x, r * call->x_stride + i, p->dtype) - call->mean[c]) * call->rstd[c];
            double inner = dy;
            if (call->mode == NB_TRAINING) inner -= p->dbeta[c] / n + xhat * p->dgamma[c] / n;
            p->dx[r * call->cols + i] = call->rstd[c] * weight_of(call, c) * inner;
        }
}

static void setup(struct problem *p, const struct nb_kernel *k, struct size size, uint32_t layout, uint32_t mode,
                  uint32_t affine) {
    *p = (struct problem){.dtype = (enum nb_dtype)k->dtype, .call = batchnorm_call(size, layout, mode, PAD)};
    p->call.formula.affine = affine;
    p->call.formula.weight_offset = affine == NB_AFFINE_GAMMA;
    p->n_stored = p->call.rows * p->call.x_stride;
    take_scratch(&p->memory, k, &p->call); /* before any output is known, as the harness asks */
    p->dx = take(&p->memory, p->call.rows * p->call.cols, sizeof(double));
    p->dgamma = take(&p->memory, size.c, sizeof(double));
    p->dbeta = take(&p->memory, size.c, sizeof(double));
    p->abs_g = take(&p->memory, size.c, sizeof(double));
    p->abs_gx = take(&p->memory, size.c, sizeof(double));
    fill(p);
    solve(p);
}

/* Room for the roundings of sums this long and of a dozen operations, by the size of what is added. */
static const double room = 0x1p-18;

static void expect_dx(const struct problem *p, const struct nb_kernel *k) {
    const struct nb_call *call = &p->call;
    const double u = nb_formats[p->dtype].unit_roundoff;
    for (int64_t r = 0; r < call->rows; r++) {
        for (int64_t i = 0; i < call->cols; i++) {
            const int64_t c = channel_of(call, r, i);
            const double want = p->dx[r * call->cols + i], got = nb_get(call->dx, r * call->dx_stride + i, p->dtype);
            const double scale = 8 * (1 + p->abs_g[c] + p->abs_gx[c]);
            cr_assert(fabs(got - want) <= room * scale + u * fabs(want),
                      "%s, %lldx%lldx%lld, layout %u, mode %u: dx of row %lld, column %lld is %g, not %g", k->variant,
                      (long long)call->n, (long long)call->c, (long long)call->hw, call->layout, call->mode,
                      (long long)r, (long long)i, got, want);
        }
        for (int64_t i = call->cols; i < call->dx_stride; i++)
            cr_assert_eq(nb_bits(call->dx, r * call->dx_stride + i, p->dtype), 0, "%s: wrote between rows", k->variant);
    }
}
static void expect_parameters(const struct problem *p, const struct nb_kernel *k) {
    const struct nb_call *call = &p->call;
    const double n = (double)(call->n * call->hw);
    for (int64_t c = 0; c < call->c; c++) {
        cr_expect(fabs(call->dbeta[c] - p->dbeta[c]) <= room * n * p->abs_g[c], "%s: dbeta %g, not %g", k->variant,
                  call->dbeta[c], p->dbeta[c]);
        cr_expect(fabs(call->dgamma[c] - p->dgamma[c]) <= room * n * p->abs_gx[c], "%s: dgamma %g, not %g", k->variant,
                  call->dgamma[c], p->dgamma[c]);
    }
}

typedef void (*visit_fn)(struct problem *p, const struct nb_kernel *k);
static int for_all(uint32_t mode, uint32_t affine, visit_fn session) {
    struct walk w = {.pass = NB_BACKWARD, .sizes = sizes, .n_sizes = N_SIZES, .longest = 10000};
    int n_sessions = 0;
    for (; walk_on(&w); n_sessions++) {
        struct problem p;
        setup(&p, w.kernel, w.size, w.layout, mode, affine);
        session(&p, w.kernel);
        release_memory(&p.memory);
    }
    return n_sessions;
}

static void visit_gradients(struct problem *p, const struct nb_kernel *k) {
    cr_assert_eq(nb_run_in_ranges(k, &p->call, 0), 0);
    expect_dx(p, k);
    expect_parameters(p, k);
}
Test(batchnorm_backward, training_is_the_formula) {
    cr_expect_gt(for_all(NB_TRAINING, NB_AFFINE_GAMMA_BETA, visit_gradients), 0);
    cr_expect_gt(for_all(NB_TRAINING, NB_AFFINE_GAMMA, visit_gradients), 0);
}
Test(batchnorm_backward, inference_is_the_formula) {
    cr_expect_gt(for_all(NB_INFERENCE, NB_AFFINE_GAMMA_BETA, visit_gradients), 0);
}

/* Without parameters there is nothing to write but dx; the same dx as where dgamma and dbeta are merely not wanted. */
static void visit_dx_alone(struct problem *p, const struct nb_kernel *k) {
    struct nb_call call = p->call;
    call.dgamma = call.dbeta = NULL;
    cr_assert_eq(nb_run_in_ranges(k, &call, 0), 0);
    expect_dx(p, k);
}
Test(batchnorm_backward, dx_alone) {
    cr_expect_gt(for_all(NB_TRAINING, NB_AFFINE_NONE, visit_dx_alone), 0);
    cr_expect_gt(for_all(NB_INFERENCE, NB_AFFINE_NONE, visit_dx_alone), 0);
    cr_expect_gt(for_all(NB_INFERENCE, NB_AFFINE_GAMMA_BETA, visit_dx_alone), 0);
}
static void visit_parameters_alone(struct problem *p, const struct nb_kernel *k) {
    struct nb_call call = p->call;
    call.dx = NULL;
    cr_assert_eq(nb_run_in_ranges(k, &call, 0), 0);
    expect_parameters(p, k);
}
Test(batchnorm_backward, parameters_alone) {
    cr_expect_gt(for_all(NB_TRAINING, NB_AFFINE_GAMMA_BETA, visit_parameters_alone), 0);
}

/* Whole numbers below 2^24 add up exactly in f32, in whatever order. */
static void visit_ones(struct problem *p, const struct nb_kernel *k) {
    struct nb_call *call = &p->call;
    for (int64_t r = 0; r < call->rows; r++)
        for (int64_t i = 0; i < call->cols; i++) {
            nb_set((void *)call->x, r * call->x_stride + i, p->dtype, 2);
            nb_set((void *)call->dy, r * call->dy_stride + i, p->dtype, 1);
        }
    for (int64_t c = 0; c < call->c; c++) {
        call->mean[c] = 1;
        call->rstd[c] = 0.5f;
    }
    cr_assert_eq(nb_run_in_ranges(k, call, 0), 0);
    for (int64_t c = 0; c < call->c; c++) {
        cr_expect_eq(call->dbeta[c], (float)(call->n * call->hw), "%s: dbeta of ones is %g", k->variant,
                     call->dbeta[c]);
        cr_expect_eq(call->dgamma[c], (float)(call->n * call->hw) / 2, "%s: dgamma of halves is %g", k->variant,
                     call->dgamma[c]);
    }
}
Test(batchnorm_backward, sums_of_ones_are_exact) {
    cr_expect_gt(for_all(NB_TRAINING, NB_AFFINE_GAMMA_BETA, visit_ones), 0);
    cr_expect_gt(for_all(NB_INFERENCE, NB_AFFINE_GAMMA_BETA, visit_ones), 0);
}

static void expect_same(const struct problem *p, const struct nb_kernel *k, const struct nb_call *other, int way) {
    const size_t bytes = (size_t)p->n_stored * nb_formats[p->dtype].bytes, c = (size_t)p->call.c * sizeof(float);
    cr_expect(memcmp(p->call.dx, other->dx, bytes) == 0 && memcmp(p->call.dgamma, other->dgamma, c) == 0 &&
                  memcmp(p->call.dbeta, other->dbeta, c) == 0,
              "%s: way %d through %lldx%lldx%lld, layout %u, gives other bits", k->variant, way, (long long)other->n,
              (long long)other->c, (long long)other->hw, other->layout);
}
static void visit_ways(struct problem *p, const struct nb_kernel *k) {
    cr_assert_eq(nb_run_in_ranges(k, &p->call, 0), 0);
    for (int way = 0; way < 4; way++) {
        struct nb_call other = p->call;
        const struct nb_tuning tuning = {
            .struct_size = sizeof tuning, .stream_bytes = way % 2, .slab_bytes = way < 2 ? 1 : 1 << 26};
        other.tuning = &tuning;
        other.dx = calloc((size_t)p->n_stored, nb_formats[p->dtype].bytes);
        other.dgamma = calloc((size_t)p->call.c, sizeof(float));
        other.dbeta = calloc((size_t)p->call.c, sizeof(float));
        cr_assert_eq(nb_run_in_ranges(k, &other, 1 + 3 * way), 0);
        expect_same(p, k, &other, way);
        free(other.dx);
        free(other.dgamma);
        free(other.dbeta);
    }
}
Test(batchnorm_backward, no_bit_hangs_on_streaming_cuts_or_caches) {
    cr_expect_gt(for_all(NB_TRAINING, NB_AFFINE_GAMMA_BETA, visit_ways), 0);
    cr_expect_gt(for_all(NB_INFERENCE, NB_AFFINE_GAMMA_BETA, visit_ways), 0);
}
