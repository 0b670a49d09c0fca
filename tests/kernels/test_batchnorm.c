// SPDX-License-Identifier: Apache-2.0
/* BatchNorm against the textbook in plain double: both layouts, training and inference, statistics and running statistics, for
 * every variant that can run here. Nothing of the harness's own oracle is used. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/kernel_fields.h"
#include "src/measure/pool.h"
#include "tests/support/batchnorm.h"
#include "tests/support/plans.h"

TestSuite(batchnorm, .init = load_kernels);

static const struct size sizes[] = {{2, 1, 1},  {1, 1, 2},   {1, 3, 7},    {3, 5, 1},   {2, 17, 16},  {9, 3, 5},
                                    {4, 33, 9}, {16, 2, 49}, {1, 2, 5000}, {7, 70, 11}, {2, 1100, 3}, {1, 2, 17000}};
enum { N_SIZES = sizeof sizes / sizeof sizes[0], PAD = 3 };

/* A call with buffers of its own, and the exact results beside them. */
struct problem {
    struct nb_call call;
    enum nb_dtype dtype;
    int64_t n_stored;
    struct memory memory;
    double *exact_y, *exact_mean, *exact_var;
};

/* Values about an offset, to both sides by turns within a channel, so that no channel is constant. */
static double element(const struct nb_call *call, int64_t row, int64_t col, double offset) {
    const int64_t turn = call->layout == NB_NCHW ? row / call->c + col : row;
    const double size = 0.5 + (double)((row * 37 + col * 101) % 64) / 64;
    return offset + (turn % 2 ? size : -size);
}

static void fill(struct problem *p, double offset) {
    struct nb_call *call = &p->call;
    float *gamma = take_floats(&p->memory, call->c, 0), *beta = take_floats(&p->memory, call->c, 0);
    float *mean = take_floats(&p->memory, call->c, 0), *var = take_floats(&p->memory, call->c, 0);
    void *x = take(&p->memory, p->n_stored, nb_formats[p->dtype].bytes);
    for (int64_t r = 0; r < call->rows; r++)
        for (int64_t i = 0; i < call->cols; i++)
            nb_set(x, r * call->x_stride + i, p->dtype, element(call, r, i, offset));
    for (int64_t c = 0; c < call->c; c++) {
        gamma[c] = 1 + 0.25f * (float)(c % 5);
        beta[c] = 0.5f * (float)(c % 3) - 0.5f;
        mean[c] = 0.125f * (float)(c % 4);
        var[c] = 0.5f + 0.25f * (float)(c % 4);
    }
    call->x = x;
    call->gamma = gamma;
    call->beta = beta;
    call->running_mean_in = mean;
    call->running_var_in = var;
    call->y = take(&p->memory, p->n_stored, nb_formats[p->dtype].bytes);
    call->mean = take_floats(&p->memory, call->c, NAN);
    call->rstd = take_floats(&p->memory, call->c, NAN);
    call->running_mean_out = take_floats(&p->memory, call->c, NAN);
    call->running_var_out = take_floats(&p->memory, call->c, NAN);
}

/* y, not rounded. */
static void solve(struct problem *p) {
    const struct nb_call *call = &p->call;
    channel_statistics(call, p->dtype, p->exact_mean, p->exact_var);
    for (int64_t r = 0; r < call->rows; r++)
        for (int64_t i = 0; i < call->cols; i++) {
            const int64_t c = channel_of(call, r, i);
            const bool training = call->mode == NB_TRAINING;
            const double mean = training ? p->exact_mean[c] : call->running_mean_in[c];
            const double var = training ? p->exact_var[c] : call->running_var_in[c];
            const double x = nb_get(call->x, r * call->x_stride + i, p->dtype);
            p->exact_y[r * call->cols + i] =
                (x - mean) / sqrt(var + call->eps) * ((const float *)call->gamma)[c] + ((const float *)call->beta)[c];
        }
}

static void setup(struct problem *p, const struct nb_kernel *k, struct size size, uint32_t layout, uint32_t mode,
                  double offset) {
    *p = (struct problem){.dtype = (enum nb_dtype)k->dtype, .call = batchnorm_call(size, layout, mode, PAD)};
    p->call.momentum = 0.25;
    p->n_stored = p->call.rows * p->call.x_stride;
    p->exact_y = take(&p->memory, p->call.rows * p->call.cols, sizeof(double));
    p->exact_mean = take(&p->memory, size.c, sizeof(double));
    p->exact_var = take(&p->memory, size.c, sizeof(double));
    fill(p, offset);
    take_scratch(&p->memory, k, &p->call);
    solve(p);
}

/* Room for every rounding of these short sums: statistics within 2^-15 in f32, within 16 u where they are in x's dtype. */
static double statistics_tolerance(const struct nb_kernel *k) {
    const double u = nb_formats[k->dtype].unit_roundoff;
    return k->stats_dtype == NB_STATS_X ? 16 * u : 0x1p-15;
}
static void expect_near(double got, double want, double tolerance, const struct nb_kernel *k, const char *what,
                        int64_t at) {
    cr_expect(fabs(got - want) <= tolerance, "%s: %s %lld is %g, not %g", k->variant, what, (long long)at, got, want);
}

static void expect_output(const struct problem *p, const struct nb_kernel *k) {
    const struct nb_call *call = &p->call;
    const double u = nb_formats[p->dtype].unit_roundoff, statistics = statistics_tolerance(k);
    for (int64_t r = 0; r < call->rows; r++) {
        for (int64_t i = 0; i < call->cols; i++) {
            const double want = p->exact_y[r * call->cols + i];
            expect_near(nb_get(call->y, r * call->y_stride + i, p->dtype), want,
                        statistics * (1 + fabs(want)) + u * fabs(want), k, "y of row", r);
        }
        for (int64_t i = call->cols; i < call->y_stride; i++)
            cr_expect_eq(nb_bits(call->y, r * call->y_stride + i, p->dtype), 0, "%s: wrote between rows", k->variant);
    }
}

static void expect_statistics(const struct problem *p, const struct nb_kernel *k) {
    const struct nb_call *call = &p->call;
    const double n = (double)(call->n * call->hw), m = call->momentum, tolerance = statistics_tolerance(k);
    for (int64_t c = 0; c < call->c; c++) {
        const double mean = p->exact_mean[c], var = p->exact_var[c];
        const double kept_mean = (1 - m) * call->running_mean_in[c] + m * mean;
        const double kept_var = (1 - m) * call->running_var_in[c] + m * var * n / (n - 1);
        expect_near(call->mean[c], mean, tolerance * (1 + fabs(mean)), k, "mean", c);
        expect_near(call->rstd[c], 1 / sqrt(var + call->eps), tolerance / sqrt(var), k, "rstd", c);
        expect_near(call->running_mean_out[c], kept_mean, tolerance * (1 + fabs(mean)), k, "running mean", c);
        expect_near(call->running_var_out[c], kept_var, tolerance * (1 + kept_var), k, "running variance", c);
    }
}

/* Runs session for every kernel that takes the call. Returns how many took part. */
typedef void (*visit_fn)(struct problem *p, const struct nb_kernel *k);
static int for_all(uint32_t mode, double offset, visit_fn session) {
    struct walk w = {.pass = NB_FORWARD, .sizes = sizes, .n_sizes = N_SIZES};
    int n_sessions = 0;
    while (walk_on(&w)) {
        struct problem p;
        setup(&p, w.kernel, w.size, w.layout, mode, offset);
        if (!nb_kernel_applicable(w.kernel, &p.call)) {
            session(&p, w.kernel);
            n_sessions++;
        }
        release_memory(&p.memory);
    }
    return n_sessions;
}

static void visit_training(struct problem *p, const struct nb_kernel *k) {
    cr_assert_eq(nb_run_in_ranges(k, &p->call, 0), 0);
    expect_output(p, k);
    expect_statistics(p, k);
}
Test(batchnorm, training_takes_the_statistics_of_the_batch_and_moves_the_running_ones) {
    cr_expect_gt(for_all(NB_TRAINING, 0.375, visit_training), 0);
}

static void visit_inference(struct problem *p, const struct nb_kernel *k) {
    cr_assert_eq(nb_run_in_ranges(k, &p->call, 0), 0);
    expect_output(p, k);
    for (int64_t c = 0; c < p->call.c; c++) {
        cr_expect(isnan(p->call.running_mean_out[c]) && isnan(p->call.running_var_out[c]),
                  "%s: inference moved a running statistic", k->variant);
        expect_near(p->call.mean[c], p->call.running_mean_in[c], statistics_tolerance(k), k, "mean", c);
    }
}
Test(batchnorm, inference_takes_the_running_statistics_and_leaves_them) {
    cr_expect_gt(for_all(NB_INFERENCE, 0.375, visit_inference), 0);
}

/* All that a call may write, one after another. */
static size_t outputs(const struct problem *p, unsigned char **copy) {
    const size_t y = (size_t)p->n_stored * nb_formats[p->dtype].bytes, c = (size_t)p->call.c * sizeof(float);
    *copy = malloc(y + 4 * c);
    memcpy(*copy, p->call.y, y);
    memcpy(*copy + y, p->call.mean, c);
    memcpy(*copy + y + c, p->call.rstd, c);
    memcpy(*copy + y + 2 * c, p->call.running_mean_out, c);
    memcpy(*copy + y + 3 * c, p->call.running_var_out, c);
    return y + 4 * c;
}
static void visit_ranges(struct problem *p, const struct nb_kernel *k) {
    unsigned char *whole;
    cr_assert_eq(nb_run_in_ranges(k, &p->call, 0), 0);
    const size_t n = outputs(p, &whole);
    for (int64_t range = 1; range <= 7; range += 3) {
        unsigned char *cut;
        memset(p->call.mean, 0xff, (size_t)p->call.c * sizeof(float));
        memset(p->call.rstd, 0xff, (size_t)p->call.c * sizeof(float));
        memset(p->call.scratch, 0, nb_kernel_scratch_bytes(k, &p->call));
        cr_assert_eq(nb_run_in_ranges(k, &p->call, range), 0);
        outputs(p, &cut);
        cr_expect(memcmp(whole, cut, n) == 0, "%s: ranges of %lld units change the result of %lldx%lldx%lld",
                  k->variant, (long long)range, (long long)p->call.n, (long long)p->call.c, (long long)p->call.hw);
        free(cut);
    }
    free(whole);
}
Test(batchnorm, no_bit_hangs_on_how_phases_are_cut) {
    cr_expect_gt(for_all(NB_TRAINING, -2, visit_ranges), 0);
    cr_expect_gt(for_all(NB_INFERENCE, -2, visit_ranges), 0);
}

/* 2^13 +- 1: the variance is 1, but floats near 2^26 are 4 and 8 apart, so that E[x^2] - mean^2 cannot be 1. */
static double rstd_at_large_mean(const char *kernel_id, uint32_t layout) {
    const struct size size = {4, 2, 16};
    struct problem p;
    const struct nb_entry *entry = nb_registry_find(kernel_id);
    cr_assert_not_null(entry, "%s is missing", kernel_id);
    setup(&p, entry->kernel, size, layout, NB_TRAINING, 0);
    for (int64_t r = 0; r < p.call.rows; r++)
        for (int64_t i = 0; i < p.call.cols; i++) {
            const int64_t turn = layout == NB_NCHW ? r / p.call.c + i : r;
            nb_set((void *)p.call.x, r * p.call.x_stride + i, NB_F32, 8192 + (turn % 2 ? 1 : -1));
        }
    cr_assert_eq(nb_run_in_ranges(entry->kernel, &p.call, 0), 0);
    const double rstd = p.call.rstd[1];
    release_memory(&p.memory);
    return rstd;
}
Test(batchnorm, only_the_one_pass_variance_cancels) {
    const uint32_t layouts[] = {NB_NCHW, NB_NHWC};
    for (int l = 0; l < 2; l++) {
        cr_expect_float_eq(rstd_at_large_mean("batchnorm_twopass_scalar_f32", layouts[l]), 1, 1e-4);
        cr_expect_float_eq(rstd_at_large_mean("batchnorm_welford_scalar_f32", layouts[l]), 1, 1e-4);
        cr_expect_float_eq(rstd_at_large_mean("batchnorm_composed_scalar_f32", layouts[l]), 1, 1e-4);
        const double onepass = rstd_at_large_mean("batchnorm_onepass_scalar_f32", layouts[l]);
        cr_expect(!(fabs(onepass - 1) < 0.25), "rstd %g: nothing was lost", onepass);
    }
}

Test(batchnorm, refuses_what_has_no_answer) {
    int n_kernels = 0;
    for (size_t e = 0; e < nb_registry_size(); e++) {
        const struct nb_kernel *k = nb_registry_at(e)->kernel;
        if (k->op != NB_OP_BATCHNORM) continue;
        struct nb_call call = {.struct_size = sizeof call, .n = 1, .c = 3, .hw = 1, .rows = 3, .cols = 1};
        call.layout = NB_NCHW;
        call.mode = NB_TRAINING;
        cr_expect_not_null(nb_kernel_applicable(k, &call), "%s: one value has no variance", k->variant);
        call.layout = NB_ROWS;
        call.mode = NB_INFERENCE;
        cr_expect_not_null(nb_kernel_applicable(k, &call), "%s: rows have no channels", k->variant);
        n_kernels++;
    }
    cr_expect_gt(n_kernels, 0);
}
