// SPDX-License-Identifier: Apache-2.0
/* The fast row kernels where only the bits tell: ties, NaN in rows and parameters, instructions beyond the variant's. test_kernels.c has their figures, test_circumstances.c what changes none of their bits. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/measure/pool.h"
#include "tests/support/cases.h"

enum { MAX_ROWS = 9 };

static bool is_fast(const struct nb_kernel *k) {
    const char *ending = strstr(k->name, "_fast");
    return ending && !ending[5] && k->pass == NB_FORWARD && k->op != NB_OP_BATCHNORM;
}

/* A call of all rows, packed, and what its output should be. */
struct bench {
    const struct nb_kernel *kernel;
    enum nb_dtype dtype;
    struct nb_call call;
    void *x, *residual, *y, *sum, *wants; /* wants: what y should be */
    float *gamma, *beta;
};

static size_t item_of(const struct bench *b) { return nb_formats[b->dtype].bytes; }
static double any_value(int64_t i) { return (double)((i * 2654435761u) >> 7 & 0xffff) / 32768 - 0.75; }

static struct bench bench_new(const struct nb_kernel *k, int64_t rows, int64_t cols) {
    struct bench b = {.kernel = k, .dtype = (enum nb_dtype)k->dtype};
    void **const blocks[] = {&b.x, &b.residual, &b.y, &b.sum, &b.wants};
    for (int i = 0; i < 5; i++) *blocks[i] = nb_alloc((unsigned long long)(rows * cols), item_of(&b));
    b.gamma = nb_alloc((unsigned long long)(2 * cols), sizeof(float));
    b.beta = b.gamma + cols;
    for (int64_t i = 0; i < rows * cols; i++) {
        nb_set(b.x, i, b.dtype, any_value(i) * (double)(1 + i / cols));
        nb_set(b.residual, i, b.dtype, any_value(3 * i + 1));
    }
    for (int64_t i = 0; i < cols; i++) {
        b.gamma[i] = 1.0f + 0.125f * (float)(i % 7);
        b.beta[i] = 0.25f * (float)(i % 5) - 0.5f;
    }
    const bool beta = k->formulas.affines == 0 || k->formulas.affines >> NB_AFFINE_GAMMA_BETA & 1;
    b.call = (struct nb_call){.struct_size = sizeof b.call,
                              .rows = rows,
                              .cols = cols,
                              .k = cols / 2 + 1,
                              .eps = 1e-5,
                              .formula = {.struct_size = sizeof b.call.formula,
                                          .root = NB_ROOT_MUL_RECIP,
                                          .affine = beta ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA,
                                          .round_sum = (uint32_t)(cols % 2)},
                              .x = b.x,
                              .y = b.y,
                              .gamma = b.gamma,
                              .beta = b.beta,
                              .x_stride = cols,
                              .y_stride = cols,
                              .n_threads = 1};
    if (k->op == NB_OP_ADD_RMSNORM || k->op == NB_OP_ADD_LAYERNORM) {
        b.call.residual = b.residual;
        b.call.residual_out = b.sum;
        b.call.residual_stride = b.call.residual_out_stride = cols;
    }
    return b;
}
static void bench_release(struct bench *b) { nb_free_all(b->x, b->residual, b->y, b->sum, b->wants, b->gamma); }

static void run_in(const struct nb_kernel *k, struct nb_call call, int64_t range) {
    call.scratch = aligned_alloc(64, (nb_kernel_scratch_bytes(k, &call) + 64) / 64 * 64);
    cr_assert_eq(nb_run_in_ranges(k, &call, range), 0);
    free(call.scratch);
}
/* All rows into b->y and b->sum, in ranges of so many. */
static void call_rows(struct bench *b, const struct nb_tuning *tuning, int64_t range) {
    b->call.tuning = tuning;
    run_in(b->kernel, b->call, range);
}
static size_t bytes_of(const struct bench *b) { return (size_t)(b->call.rows * b->call.cols) * item_of(b); }
static void expect_wanted(const struct bench *b, const char *what) {
    cr_expect(memcmp(b->y, b->wants, bytes_of(b)) == 0, "%s, %lldx%lld, %s: other bits", b->kernel->variant,
              (long long)b->call.rows, (long long)b->call.cols, what);
}

static const struct nb_tuning big_cache = {.struct_size = sizeof big_cache, .l1_bytes = 1 << 24};
static const struct {
    const char *what;
    struct nb_tuning tuning;
    int64_t range;
} manners[] = {{"no cache", {.l1_bytes = 1}, 5},
               {"big cache", {.l1_bytes = 1 << 24}, 4},
               {"streaming", {.l1_bytes = 1 << 15, .stream_bytes = 1}, 0},
               {"streaming singly", {.l1_bytes = 1, .stream_bytes = 1}, 3}};

static uint32_t native_here(const struct nb_kernel *k) {
    return k->dtype == NB_BF16 ? nb_cpu_light()->features & NB_CPU_AVX512BF16 : 0;
}
static struct nb_tuning with_native(struct nb_tuning t, uint32_t native) {
    t.struct_size = sizeof t;
    t.native = native;
    return t;
}

/* ---- the mean of LayerNorm ---- */

/* LayerNorm without parameters, in double, of the stored elements. */
static void exact_layernorm(const struct bench *b, int64_t row, double *y) {
    double mean = 0, var = 0;
    const int64_t n = b->call.cols;
    for (int64_t i = 0; i < n; i++) {
        y[i] = nb_get(b->x, row * n + i, b->dtype);
        mean += y[i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) var += (y[i] - mean) * (y[i] - mean) / (double)n;
    for (int64_t i = 0; i < n; i++) y[i] = (y[i] - mean) / sqrt(var + 1e-5);
}
/* An offset of 1.0 to 1.5e-3 over a spread of a thousandth of it, where eps = 1e-5 makes mean * scale less than half: the mean must not be
 * folded, whose product is rounded by as much as the mean itself is. */
static void check_folding(const struct nb_kernel *k) {
    enum { ROWS = 64, COLS = 96 };
    if (k->op != NB_OP_LAYERNORM || k->dtype != NB_F32) return;
    struct bench b released_by(bench_release) = bench_new(k, ROWS, COLS);
    double exact[COLS];
    b.call.formula.affine = NB_AFFINE_NONE;
    for (int64_t i = 0; i < ROWS * COLS; i++) {
        const double offset = 1e-3 * (1 + (double)(i / COLS) / 128);
        nb_set(b.x, i, NB_F32, offset * (1 + any_value(i) / 1024));
    }
    call_rows(&b, &big_cache, 0);
    for (int64_t r = 0; r < ROWS; r++) {
        const double mean = 1e-3 * (1 + (double)r / 128), scale = 1 / sqrt(1e-5);
        double worst = 0;
        exact_layernorm(&b, r, exact);
        for (int64_t i = 0; i < COLS; i++) worst = fmax(worst, fabs(nb_get(b.y, r * COLS + i, NB_F32) - exact[i]));
        cr_expect_leq(worst, (nb_ulp(mean, NB_F32) / 2 + 64 * 0x1p-24 * mean / 1024) * scale, "%s, row %lld: off by %g",
                      k->variant, (long long)r, worst);
    }
}
Test(fast_rows, a_mean_is_not_folded_where_eps_outweighs_the_variance) { each_kernel(is_fast, check_folding); }

/* ---- the second look of BatchNorm ---- */

/* The first value of a channel, about which it is summed, is 10^4 standard deviations off the rest: so the variance would keep a digit or two. */
static void look_in(const struct nb_kernel *k, uint32_t layout) {
    enum { N = 8, C = 2, HW = 2500 };
    static float x[N * C * HW], y[N * C * HW], mean[C], rstd[C];
    struct nb_call call = {
        .struct_size = sizeof call, .layout = layout, .n_threads = 1, .n = N, .c = C, .hw = HW, .eps = 1e-5};
    call.rows = layout == NB_NCHW ? N * C : N * HW;
    call.cols = layout == NB_NCHW ? HW : C;
    call.x_stride = call.y_stride = call.cols;
    call.formula.struct_size = sizeof call.formula;
    call.formula.root = NB_ROOT_MUL_RECIP;
    call.x = x, call.y = y, call.mean = mean, call.rstd = rstd;
    double sums[C] = {0}, squares[C] = {0};
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < N * C * HW; i++) {
            const int64_t row = i / call.cols, c = layout == NB_NCHW ? row % C : i % C;
            const bool is_first = layout == NB_NCHW ? row < C && i % HW == 0 : row == 0;
            nb_set(x, i, NB_F32, is_first && c == 0 ? 1e4 : 0.25 + any_value(i));
            const double d = (double)x[i] - sums[c] / (N * HW);
            if (pass == 0)
                sums[c] += (double)x[i];
            else
                squares[c] += d * d;
        }
    run_in(k, call, 0);
    for (int c = 0; c < C; c++) {
        const double want = 1 / sqrt(squares[c] / (N * HW) + 1e-5);
        cr_expect(fabs((double)rstd[c] / want - 1) <= 0x1p-17, "%s, layout %u: rstd %g, not %g", k->variant, layout,
                  (double)rstd[c], want);
    }
}
static bool is_batchnorm(const struct nb_kernel *k) {
    return strcmp(k->name, "batchnorm_fast") == 0 && k->dtype == NB_F32;
}
static void check_look(const struct nb_kernel *k) {
    for (uint32_t layout = NB_NCHW; layout <= NB_NHWC; layout++) look_in(k, layout);
}
Test(fast_rows, a_batchnorm_looks_again_where_the_first_value_is_far_off) { each_kernel(is_batchnorm, check_look); }

/* ---- ties ---- */

/* Rows of 1 and -1, whose scale is a power of two: what is rounded to the dtype are the parameters, many of them half way between two bf16
 * numbers, in all blocks or in one. */
static void check_ties(const struct nb_kernel *k, int64_t cols, int64_t columns_each) {
    struct bench b released_by(bench_release) = bench_new(k, MAX_ROWS, cols);
    const double scale = k->op == NB_OP_L2NORM ? 1 / sqrt((double)cols) : 1;
    const bool has_beta = b.call.formula.affine == NB_AFFINE_GAMMA_BETA;
    b.call.eps = 0;
    b.call.formula.round_sum = 0;
    for (int64_t i = 0; i < cols; i++) {
        b.gamma[i] = 1.0f + (float)(i % 64) / 128 + (i % columns_each == 3 ? 0x1p-8f : 0.0f);
        b.beta[i] = i % 5 == 0 ? 0x1p-8f : 0.0f;
    }
    for (int64_t i = 0; i < b.call.rows * cols; i++) {
        const double sign = (i / cols + i % cols) % 2 ? -1 : 1;
        nb_set(b.x, i, b.dtype, sign);
        nb_set(b.residual, i, b.dtype, 0);
        nb_set(b.wants, i, b.dtype,
               sign * scale * (double)b.gamma[i % cols] + (has_beta ? (double)b.beta[i % cols] : 0));
    }
    for (size_t m = 0; m < sizeof manners / sizeof manners[0]; m++) {
        const struct nb_tuning t = with_native(manners[m].tuning, 0);
        call_rows(&b, &t, manners[m].range);
        expect_wanted(&b, manners[m].what);
    }
}
static void check_all_ties(const struct nb_kernel *k) {
    static const int64_t lengths[] = {16, 64, 256, 1024, 4096, 16384}; /* L2 has powers of two for scales of these */
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        check_ties(k, lengths[i], 4);
        check_ties(k, lengths[i], 4096);
    }
}
Test(fast_rows, ties_go_to_even) { each_kernel(is_fast, check_all_ties); }

/* ---- NaN ---- */

static void check_nan_row(const struct nb_kernel *k) {
    struct bench b released_by(bench_release) = bench_new(k, MAX_ROWS, 256);
    const struct nb_tuning t = with_native(big_cache, native_here(k));
    call_rows(&b, &t, 0);
    memcpy(b.wants, b.y, bytes_of(&b));
    nb_set(b.x, 4 * b.call.cols + 7, b.dtype, NAN);
    call_rows(&b, &t, 0);
    for (int64_t i = 0; i < b.call.rows * b.call.cols; i++) {
        const double got = nb_get(b.y, i, b.dtype), want = nb_get(b.wants, i, b.dtype);
        cr_expect(i / b.call.cols == 4 ? isnan(got) : got == want, "%s: element %lld is %g", k->variant, (long long)i,
                  got);
    }
}
Test(fast_rows, a_nan_takes_its_row_and_no_other) { each_kernel(is_fast, check_nan_row); }

/* Rounded on integers, a NaN with all bits set would carry over into a number. */
static void check_nan_param(const struct nb_kernel *k) {
    static const uint32_t payloads[] = {0x7fffffffu, 0xffffffffu, 0x7fc00000u, 0x7f800001u};
    for (int p = 0; p < 16; p++) {
        struct bench b released_by(bench_release) = bench_new(k, 5, 131);
        const struct nb_tuning t = with_native(big_cache, p < 8 ? 0 : native_here(k));
        if (p % 8 >= 4 && b.call.formula.affine != NB_AFFINE_GAMMA_BETA) b.call.formula.affine = NB_AFFINE_GAMMA;
        const bool in_beta = p % 8 >= 4 && b.call.formula.affine == NB_AFFINE_GAMMA_BETA;
        memcpy((in_beta ? b.beta : b.gamma) + 9, &payloads[p % 4], sizeof(float));
        call_rows(&b, &t, 0);
        for (int64_t i = 0; i < b.call.rows * b.call.cols; i++) {
            const double got = nb_get(b.y, i, b.dtype);
            cr_expect_eq(isnan(got), i % b.call.cols == 9, "%s, NaN %08x: element %lld is %g", k->variant,
                         payloads[p % 4], (long long)i, got);
        }
    }
}
Test(fast_rows, a_nan_parameter_takes_its_column_and_no_other) { each_kernel(is_fast, check_nan_param); }

/* ---- instructions beyond the variant's ---- */

/* With them a result is within a spacing of that without: both are right to little more than half of one. Where it is subnormal it may be
 * 0, as those of row 4 are. */
static void check_native(const struct nb_kernel *k) {
    if (!native_here(k)) return;
    struct bench b released_by(bench_release) = bench_new(k, MAX_ROWS, 531);
    const struct nb_tuning with = with_native(big_cache, native_here(k)), without = with_native(big_cache, 0);
    const double least = nb_formats[NB_BF16].min_normal;
    int64_t n_zero = 0, n_subnormal = 0;
    for (int64_t i = 0; i < b.call.cols; i++) {
        b.gamma[i] = 0x1p-16f;
        b.beta[i] = 0;
        nb_set(b.x, 4 * b.call.cols + i, NB_BF16, any_value(i) * 0x1p-120);
        nb_set(b.residual, 4 * b.call.cols + i, NB_BF16, 0);
    }
    call_rows(&b, &without, 0);
    memcpy(b.wants, b.y, bytes_of(&b));
    call_rows(&b, &with, 0);
    for (int64_t i = 0; i < b.call.rows * b.call.cols; i++) {
        const double got = nb_get(b.y, i, NB_BF16), want = nb_get(b.wants, i, NB_BF16);
        const bool subnormal = fabs(want) < least && want != 0;
        n_subnormal += subnormal;
        n_zero += subnormal && got == 0;
        cr_expect(fabs(got - want) <= nb_ulp(want, NB_BF16) || (subnormal && got == 0),
                  "%s: element %lld is %g, not %g", k->variant, (long long)i, got, want);
    }
    cr_expect_gt(n_subnormal, 0);
    cr_expect((k->flags & NB_FLAG_FLUSHES) || n_zero == 0, "%s does not declare that it flushes", k->variant);
}
Test(fast_rows, native_instructions_change_roundings_and_subnormal_numbers_alone) {
    each_kernel(is_fast, check_native);
}
