// SPDX-License-Identifier: Apache-2.0
/* BatchNorm's gradients against the formula of kernels/kernel.h in plain double: every backward variant that can run here, both
 * layouts and modes, affine parts, outputs that are not wanted, padding, cuts. Nothing of the harness's own oracle is used. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/registry.h"
#include "src/measure/pool.h"

struct size {
    int64_t n, c, hw;
};
/* The last two are long enough for a channel to be cut into blocks, of planes and of parts of one. */
static const struct size sizes[] = {{2, 1, 1},   {1, 3, 7},    {64, 70, 1},   {3, 5, 49},
                                    {9, 33, 15}, {600, 3, 2},  {5, 20, 300},  {7, 2, 513},
                                    {2, 130, 3}, {530, 17, 1}, {3, 1, 50000}, {1, 1, 140001}};
enum { N_SIZES = sizeof sizes / sizeof sizes[0], PAD = 3 };

struct problem {
    struct nb_call call;
    enum nb_dtype dtype;
    int64_t n_stored;
    double *dx, *dgamma, *dbeta; /* exact */
    double *abs_g, *abs_gx;      /* by channels: mean |g| and mean |g * xhat|, what errors are measured by */
};

static int64_t channel_of(const struct nb_call *call, int64_t row, int64_t col) {
    return call->layout == NB_NCHW ? row % call->c : col;
}
static double draw(int64_t i) { return (double)((uint64_t)i * 0x9e3779b97f4a7c15u >> 40) / 0x1p24 * 3 - 1.5; }
static double weight_of(const struct nb_call *call, int64_t channel) {
    if (call->formula.affine == NB_AFFINE_NONE) return 1;
    return ((const float *)call->gamma)[channel] + (call->formula.weight_offset ? 1 : 0);
}

static void fill(struct problem *p) {
    struct nb_call *call = &p->call;
    void *x = calloc((size_t)p->n_stored, nb_formats[p->dtype].bytes);
    void *dy = calloc((size_t)p->n_stored, nb_formats[p->dtype].bytes);
    for (int64_t r = 0; r < call->rows; r++)
        for (int64_t i = 0; i < call->cols; i++) {
            nb_set(x, r * call->x_stride + i, p->dtype, draw(r * call->cols + i));
            nb_set(dy, r * call->dy_stride + i, p->dtype, draw(3 * (r * call->cols + i) + 7) + 0.25);
        }
    float *gamma = calloc((size_t)call->c, sizeof *gamma);
    call->mean = calloc((size_t)call->c, sizeof(float));
    call->rstd = calloc((size_t)call->c, sizeof(float));
    call->dgamma = calloc((size_t)call->c, sizeof(float));
    call->dbeta = calloc((size_t)call->c, sizeof(float));
    for (int64_t c = 0; c < call->c; c++) {
        gamma[c] = 0.5f + 0.25f * (float)(c % 5);
        call->mean[c] = 0.0625f * (float)(c % 3);
        call->rstd[c] = 1 + 0.125f * (float)(c % 4);
    }
    call->x = x;
    call->dy = dy;
    call->gamma = gamma;
    call->dx = calloc((size_t)p->n_stored, nb_formats[p->dtype].bytes);
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
    *p = (struct problem){.dtype = (enum nb_dtype)k->dtype};
    struct nb_call *call = &p->call;
    *call = (struct nb_call){
        .struct_size = sizeof *call, .layout = layout, .mode = mode, .n_threads = 1, .eps = 1e-5, .momentum = 0.1};
    call->formula = (struct nb_formula){.struct_size = sizeof call->formula,
                                        .root = NB_ROOT_MUL_RECIP,
                                        .affine = affine,
                                        .weight_offset = affine == NB_AFFINE_GAMMA};
    call->n = size.n;
    call->c = size.c;
    call->hw = size.hw;
    call->rows = layout == NB_NCHW ? size.n * size.c : size.n * size.hw;
    call->cols = layout == NB_NCHW ? size.hw : size.c;
    call->x_stride = call->dy_stride = call->dx_stride = call->cols + PAD;
    p->n_stored = call->rows * call->x_stride;
    const size_t bytes = nb_kernel_scratch_bytes(k, call); /* before any output is known, as the harness asks */
    call->scratch = aligned_alloc(64, (bytes + 127) / 64 * 64);
    memset(call->scratch, 0xff, bytes); /* NaN */
    p->dx = calloc((size_t)(call->rows * call->cols), sizeof(double));
    p->dgamma = calloc((size_t)size.c, sizeof(double));
    p->dbeta = calloc((size_t)size.c, sizeof(double));
    p->abs_g = calloc((size_t)size.c, sizeof(double));
    p->abs_gx = calloc((size_t)size.c, sizeof(double));
    fill(p);
    solve(p);
}
static void release(struct problem *p) {
    struct nb_call *call = &p->call;
    void *const owned[] = {(void *)call->x, (void *)call->dy, (void *)call->gamma, call->dx, call->mean, call->rstd,
                           call->dgamma,    call->dbeta,      call->scratch,       p->dx,    p->dgamma,  p->dbeta,
                           p->abs_g,        p->abs_gx};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
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
    int n_sessions = 0;
    cr_assert_eq(nb_registry_load_builtin(), 0);
    for (size_t e = 0; e < nb_registry_size(); e++) {
        const struct nb_kernel *k = nb_registry_at(e)->kernel;
        if (k->op != NB_OP_BATCHNORM || k->pass != NB_BACKWARD || nb_cpu_refuses(k->cpu_features, k->width)) continue;
        for (size_t s = 0; s < 2 * N_SIZES; s++) {
            struct problem p;
            if (s % 2 && sizes[s / 2].hw > 10000) continue; /* long planes are rows of one column there */
            setup(&p, k, sizes[s / 2], s % 2 ? NB_NHWC : NB_NCHW, mode, affine);
            session(&p, k);
            release(&p);
            n_sessions++;
        }
    }
    nb_registry_release();
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
