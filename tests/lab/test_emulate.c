// SPDX-License-Identifier: Apache-2.0
/* The emulator against the kernels, and against plain C where no kernel does it: orders of sums, and formats mixed in one design, of which
 * each part reaches the step that it names; and what is reported of a design's errors. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/lab/emulate/emulate.h"
#include "tests/support/numerics.h"

enum { N = 1000 };

struct row {
    float x[N];
    double wide_x[N], wide_gamma[N], wide_beta[N];
};

static void row_fill(struct row *r, double mean, uint64_t seed) {
    uint64_t random = seed;
    for (int i = 0; i < N; i++) {
        r->wide_x[i] = (double)(r->x[i] = (float)(mean + random_normal(&random)));
        r->wide_gamma[i] = (double)(float)(1 + 0.3 * random_normal(&random));
        r->wide_beta[i] = (double)(float)(0.1 * random_normal(&random));
    }
}

/* ---- plain C ----------------------------------------------------------------------------------------------------------- */

/* Squares in f32, one after another. */
static float sum_of(const float *x, int n) {
    float s = 0;
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}
static float sum_pairwise(const float *x, int n) {
    return n <= 8 ? sum_of(x, n) : sum_pairwise(x, n / 2) + sum_pairwise(x + n / 2, n - n / 2);
}
static float sum_blocked(const float *x, int n) {
    float s = 0;
    for (int i = 0; i < n; i += 64) s += sum_of(x + i, n - i < 64 ? n - i : 64);
    return s;
}
static float sum_kahan(const float *x, int n) {
    float s = 0, c = 0;
    for (int i = 0; i < n; i++) {
        const float y = x[i] * x[i] - c, t = s + y;
        c = (t - s) - y;
        s = t;
    }
    return s;
}

/* Lanes and fused sums have the bits of the kernels, below. */
Test(emulate, sums_in_every_order_are_plain_c_bit_for_bit) {
    static const struct {
        const char *text;
        float (*sum)(const float *x, int n);
    } orders[] = {{"rmsnorm", sum_of},
                  {"rmsnorm/order:pairwise", sum_pairwise},
                  {"rmsnorm/order:blocked/leaf:64", sum_blocked},
                  {"rmsnorm/order:kahan", sum_kahan}};
    static struct row r;
    row_fill(&r, 0, 31);
    for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
        const struct nb_design d = parsed(orders[o].text);
        cr_expect_eq(nb_emulate_sum_of_squares(&d, N, r.wide_x, 1), (double)orders[o].sum(r.x, N), "%s",
                     orders[o].text);
    }
}

/* Lanes, halves and blocks merged by Chan's formula: exact on small integers, where nothing is rounded but the quotients. */
Test(emulate, merged_welford_is_exact_where_nothing_is_rounded) {
    static const char *const texts[] = {"welford/lanes:4", "welford/order:pairwise/leaf:4",
                                        "welford/order:blocked/leaf:4", "welford/acc:f64x4/stat:f64/square:f64"};
    double x[16], y[16];
    for (int i = 0; i < 16; i++) x[i] = i / 4 % 2 ? 3 : -1; /* each lane, half and block has a mean of its own */
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        const struct nb_design d = parsed(texts[t]);
        const struct nb_emulated e = nb_emulate_row(&d, 16, x, NULL, NULL, y, 1);
        cr_expect_eq(e.mean, 1, "%s: mean %g", texts[t], e.mean);
        cr_expect_eq(e.var, 4, "%s: variance %g", texts[t], e.var);
    }
}

/* ---- the kernels ------------------------------------------------------------------------------------------------------- */

static void check_kernel(const char *variant, const char *text, enum nb_affine affine) {
    enum { ROWS = 4, COLS = 777 };
    const struct nb_entry *entry = nb_registry_find(variant);
    if (!entry) cr_skip_test("%s is not built", variant);
    const enum nb_dtype dtype = entry->kernel->dtype;
    const struct nb_design d = parsed(text);
    struct problem p released_by(problem_free);
    struct nb_case c;
    struct nb_call call;
    problem_init(&p, entry->kernel->op, dtype, ROWS, COLS);
    problem_fill_normal(&p, 1.5, 2, 35);
    nb_design_case(&c, &d, ROWS, COLS, affine);
    p.c.eps = c.eps;
    p.c.formula = c.formula;
    p.c.formula.param = d.weight == d.store ? NB_PARAM_X : NB_PARAM_F32;
    nb_case_call(&p.c, &call);
    void *stored freed = calloc(ROWS * COLS, sizeof(float));
    call.x = p.in.x;
    call.y = stored;
    call.gamma = d.weight == d.store ? p.in.gamma_x : p.in.gamma_f32;
    call.beta = d.weight == d.store ? p.in.beta_x : p.in.beta_f32;
    cr_assert_eq(entry->kernel->run(&call, 0, 0, ROWS), 0);
    const enum nb_dtype of_weight = d.weight == d.store ? dtype : NB_F32;
    double x[COLS], gamma[COLS], beta[COLS], y[COLS];
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < COLS; i++) {
            x[i] = nb_get(p.in.x, row * COLS + i, dtype);
            gamma[i] = nb_get(call.gamma, i, of_weight);
            beta[i] = nb_get(call.beta, i, of_weight);
        }
        nb_emulate_row(&d, COLS, x, affine == NB_AFFINE_NONE ? NULL : gamma,
                       affine == NB_AFFINE_GAMMA_BETA ? beta : NULL, y, 1);
        for (int i = 0; i < COLS; i++) {
            const double got = nb_get(stored, row * COLS + i, dtype);
            cr_assert_eq(y[i], got, "%s, %s, element %d: design %a, kernel %a", variant, text, i, y[i], got);
        }
    }
}

/* What a kernel does is written in its file; a design of the same words gives its bits. */
Test(emulate, designs_of_the_scalar_kernels_have_their_bits, .fini = nb_registry_release) {
    static const struct {
        const char *variant, *design;
        enum nb_affine affine;
    } pairs[] = {
        {"rmsnorm_twopass_scalar_f32", "rmsnorm/fma:1/lanes:8", NB_AFFINE_GAMMA},
        {"rmsnorm_twopass_scalar_f32", "rmsnorm/fma:1/lanes:8/eps:0.25/root:div_sqrt", NB_AFFINE_GAMMA},
        {"rmsnorm_twopass_scalar_f32", "rmsnorm/fma:1/lanes:8/eps:0.25/eps_place:outside", NB_AFFINE_GAMMA},
        {"rmsnorm_twopass_scalar_f32", "rmsnorm/fma:1/lanes:8/eps:0.25/eps_place:outside/root:div_sqrt",
         NB_AFFINE_GAMMA},
        {"rmsnorm_twopass_scalar_f32", "rmsnorm/fma:1/lanes:8/eps:4/eps_place:clamp", NB_AFFINE_GAMMA},
        {"rmsnorm_twopass_scalar_bf16", "llama/fma:1/lanes:8", NB_AFFINE_GAMMA},
        {"rmsnorm_twopass_scalar_bf16", "gemma/fma:1/lanes:8", NB_AFFINE_GAMMA},
        {"rmsnorm_twopass_scalar_bf16", "gemma_bf16/cast:before/fma:1/lanes:8", NB_AFFINE_GAMMA},
        {"rmsnorm_twopass_scalar_bf16", "rmsnorm/fma:1/lanes:8/store:bf16", NB_AFFINE_GAMMA},
        {"rmsnorm_twopass_scalar_f16", "rmsnorm/fma:1/lanes:8/store:f16", NB_AFFINE_GAMMA},
        {"rmsnorm_serial_scalar_f32", "rmsnorm/fma:1", NB_AFFINE_GAMMA},
        {"rmsnorm_lowp_scalar_bf16", "rmsnorm/all:bf16/weight:f32/scale:f32/cast:before", NB_AFFINE_NONE},
        {"layernorm_twopass_scalar_f32", "layernorm/fma:1/lanes:8", NB_AFFINE_GAMMA_BETA},
        {"layernorm_onepass_scalar_f32", "naive/fma:1/lanes:4", NB_AFFINE_GAMMA_BETA},
        {"layernorm_shifted_scalar_f32", "layernorm/variance:shifted/fma:1/lanes:4", NB_AFFINE_GAMMA_BETA},
    };
    cr_assert_eq(nb_registry_load_builtin(), 0);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        check_kernel(pairs[i].variant, pairs[i].design, pairs[i].affine);
}

static double bf16(double v) { return nb_round_to(v, NB_BF16); }

/* ---- one narrow step --------------------------------------------------------------------------------------------------- */

/* A mean in bf16 leaves a residual that counts. */
Test(emulate, the_residual_of_a_coarse_mean_is_taken_off_the_variance_and_off_each_element) {
    static struct row r;
    double y[N];
    float sum = 0, rest = 0, fused = 0, plain = 0;
    row_fill(&r, 100.2, 63);
    for (int i = 0; i < N; i++) sum += (float)r.wide_x[i];
    const double mean = bf16((double)(sum / N));
    for (int i = 0; i < N; i++) {
        const float d = (float)r.wide_x[i] - (float)mean;
        rest += d;
        fused = fmaf(d, d, fused);
        plain += d * d;
    }
    const float residual = (float)bf16((double)rest / N);
    cr_assert(fabsf(residual) > 0.05f, "%g", (double)residual);
    struct nb_design d = parsed("corrected/order:sequential/stat:bf16");
    struct nb_emulated e = nb_emulate_row(&d, N, r.wide_x, NULL, NULL, y, 1);
    cr_expect_eq(e.var, bf16((double)(plain - residual * rest) / N), "%g", e.var);
    for (int i = 0; i < N; i++) {
        const float want = (((float)r.wide_x[i] - (float)mean) - residual) * (float)e.rstd;
        cr_assert_eq(y[i], (double)want);
    }
    d = parsed("corrected/order:sequential/stat:bf16/fma:1");
    e = nb_emulate_row(&d, N, r.wide_x, NULL, NULL, y, 1);
    cr_expect_eq(e.var, bf16((double)fmaf(-residual, rest, fused) / N), "%g", e.var);
}

Test(emulate, subnormal_inputs_are_flushed_when_they_are_read) {
    const struct nb_design keeps = parsed("rmsnorm/store:f16"), flushes = parsed("rmsnorm/store:f16/flush:1");
    const double x = 0x1p-20, gamma = 1000; /* times sqrt(1e5): normal in f16 again */
    double y;
    nb_emulate_row(&keeps, 1, &x, &gamma, NULL, &y, 1);
    cr_expect(y > 0.25);
    nb_emulate_row(&flushes, 1, &x, &gamma, NULL, &y, 1);
    cr_expect_eq(y, 0);
}

/* ---- what is written in the design, and nothing else, decides ---------------------------------------------------------- */

Test(emulate, every_part_of_a_design_reaches_the_result) {
    char parts[] =
        "square:bf16 acc:bf16 stat:bf16 sqrt:bf16 rstd:bf16 scale:f16 lanes:4 order:kahan order:pairwise order:blocked "
        "fma:1 round:rz round:sr eps:1e-2 eps_place:outside root:div_sqrt root:rsqrt_raw folded:1 "
        "store_round:rz/store:bf16 variance:welford variance:onepass variance:shifted variance:corrected "
        "weight_offset:1 cast:before/store:bf16";
    static struct row r;
    double plain[N], y[N];
    row_fill(&r, 3, 36);
    const struct nb_design base = parsed("layernorm");
    nb_emulate_row(&base, N, r.wide_x, r.wide_gamma, r.wide_beta, plain, 1);
    for (const char *part = strtok(parts, " "); part; part = strtok(NULL, " ")) {
        char text[64];
        snprintf(text, sizeof text, "layernorm/%s", part);
        const struct nb_design d = parsed(text);
        nb_emulate_row(&d, N, r.wide_x, r.wide_gamma, r.wide_beta, y, 1);
        cr_expect(memcmp(plain, y, sizeof y) != 0, "%s changes nothing", part);
    }
}

Test(emulate, infinities_and_nan_go_where_ieee_takes_them) {
    const struct nb_design rms = parsed("rmsnorm"), layer = parsed("layernorm"), fp8 = parsed("fp8");
    const double inf[3] = {1, INFINITY, -2}, nan[3] = {1, NAN, 2}, one[1] = {5};
    double y[3];
    nb_emulate_row(&rms, 3, inf, NULL, NULL, y, 1);
    cr_expect(y[0] == 0 && isnan(y[1]) && y[2] == 0);
    nb_emulate_row(&rms, 3, nan, NULL, NULL, y, 1);
    cr_expect(isnan(y[0]) && isnan(y[1]) && isnan(y[2]));
    nb_emulate_row(&layer, 3, inf, NULL, NULL, y, 1);
    cr_expect(isnan(y[0]) && isnan(y[1]));
    nb_emulate_row(&layer, 1, one, NULL, NULL, y, 1);
    cr_expect_eq(y[0], 0);
    const double gamma[1] = {1000};
    nb_emulate_row(&fp8, 1, one, gamma, NULL, y, 1);
    cr_expect(isnan(y[0]), "1000 is beyond e4m3");
}

/* ---- reports ----------------------------------------------------------------------------------------------------------- */

static struct nb_design_report report_of(const char *text, int rows, int cols) {
    const struct nb_design d = parsed(text);
    struct nb_design_data data = {.data = "scales", .rows = rows, .cols = cols, .seed = 3, .affine = NB_N_AFFINES};
    struct nb_design_rows drawn released_by(nb_design_rows_release);
    struct nb_design_report report;
    cr_assert_eq(nb_design_rows_init(&drawn, &d, &data), 0);
    nb_design_measure(&report, &d, &drawn, 1);
    return report;
}

Test(emulate, designs_that_the_bound_knows_stay_within_it) {
    char designs[] = "eager all_f16 kahan gemma_bf16 naive welford/order:pairwise corrected rmsnorm/lanes:16/fma:1 "
                     "layernorm/variance:shifted layernorm/folded:1 rmsnorm/root:rsqrt_nr rmsnorm/root:rsqrt_raw "
                     "kahan/acc:bf16/store:bf16/stat:bf16 l2norm/root:div_sqrt prmsnorm layernorm/all:bf16/acc:f32";
    for (const char *text = strtok(designs, " "); text; text = strtok(NULL, " ")) {
        const struct nb_design_report r = report_of(text, 12, 1000);
        cr_expect_null(r.no_bound, "%s: %s", text, r.no_bound);
        cr_expect(r.accuracy.worst_ratio > 0 && r.accuracy.worst_ratio <= 1, "%s: %g", text, r.accuracy.worst_ratio);
        cr_expect_eq(r.accuracy.n_beyond, 0);
        cr_expect_eq(r.accuracy.n, 12 * 1000);
    }
}

Test(emulate, every_format_is_correctly_rounded_when_all_else_is_wide) {
    static const char *const stores[] = {"f32", "tf32", "f16", "bf16", "e5m2", "e4m3"};
    for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "rmsnorm/compute:f64/store:%s", stores[i]);
        const struct nb_design_report r = report_of(text, 10, 500);
        cr_expect_eq(r.accuracy.correctly_rounded, 1, "%s: %g", text, r.accuracy.correctly_rounded);
        cr_expect(r.accuracy.max_ulp <= 0.5 + 1e-6 && r.accuracy.max_ulp > 0.49);
    }
}

/* 2^-53 is nothing that a plain double result could judge. */
Test(emulate, f64_is_judged_by_more_than_double) {
    const struct nb_design_report r = report_of("pairwise/all:f64", 10, 500);
    cr_expect(r.accuracy.max_ulp > 0.6 && r.accuracy.max_ulp < 6, "%g", r.accuracy.max_ulp);
    cr_expect(r.accuracy.correctly_rounded > 0.2 && r.accuracy.correctly_rounded < 0.9, "%g",
              r.accuracy.correctly_rounded);
    const struct nb_design_report kahan = report_of("rmsnorm/order:kahan/all:f64", 10, 500);
    cr_expect(kahan.accuracy.correctly_rounded > 0.2 && fabs(kahan.accuracy.bias_u) < 0.6);
}
