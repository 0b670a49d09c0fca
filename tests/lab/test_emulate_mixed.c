// SPDX-License-Identifier: Apache-2.0
/* Formats mixed in one design: each part of its text reaches the step that it names, and only that. What is wanted is written in plain
 * C once more, with nb_round_to() at the step in question. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/lab/emulate/depth.h"
#include "src/lab/emulate/emulate.h"
#include "tests/support/numerics.h"

enum { N = 1000 };

static struct nb_design parsed(const char *text) {
    struct nb_design d;
    cr_assert_eq(nb_design_parse(&d, text), 0, "%s", text);
    return d;
}

struct row {
    double wide_x[N], wide_gamma[N], wide_beta[N]; /* f32 numbers */
};

static void row_fill(struct row *r, double mean, uint64_t seed) {
    struct random_state random = {seed};
    for (int i = 0; i < N; i++) {
        r->wide_x[i] = nb_round_to(mean + random_normal(&random), NB_F32);
        r->wide_gamma[i] = nb_round_to(1 + 0.3 * random_normal(&random), NB_F32);
        r->wide_beta[i] = nb_round_to(0.1 * random_normal(&random), NB_F32);
    }
}

static double bf16(double v) { return nb_round_to(v, NB_BF16); }

/* ---- one narrow step --------------------------------------------------------------------------------------------------- */

Test(emulate_mixed, squares_are_rounded_before_they_are_added) {
    static struct row r;
    row_fill(&r, 0, 61);
    const struct nb_design d = parsed("rmsnorm/square:bf16");
    float sum = 0;
    for (int i = 0; i < N; i++) sum += (float)bf16(r.wide_x[i] * r.wide_x[i]);
    cr_expect_eq(nb_emulate_sum_of_squares(&d, N, r.wide_x, 1), (double)sum);
    const struct nb_design fused = parsed("rmsnorm/square:bf16/fma:1"), plain = parsed("rmsnorm/fma:1");
    cr_expect_eq(nb_emulate_sum_of_squares(&fused, N, r.wide_x, 1), nb_emulate_sum_of_squares(&plain, N, r.wide_x, 1));
}

Test(emulate_mixed, distances_of_welford_are_in_square_and_its_steps_in_acc) {
    static struct row r;
    double y[N];
    float mean = 0, squares = 0;
    row_fill(&r, 2, 62);
    for (int i = 0; i < N; i++) {
        const double before = bf16(r.wide_x[i] - (double)mean);
        mean += (float)before / (float)(i + 1);
        const double after = bf16(r.wide_x[i] - (double)mean);
        squares += (float)bf16(before * after);
    }
    const struct nb_design d = parsed("welford/square:bf16");
    const struct nb_emulated e = nb_emulate_row(&d, N, r.wide_x, NULL, NULL, y, 1);
    cr_expect_eq(e.mean, (double)mean);
    cr_expect_eq(e.var, (double)(squares / N));
}

/* A mean in bf16 leaves a residual that counts. */
Test(emulate_mixed, the_residual_of_a_coarse_mean_is_taken_off_the_variance_and_off_each_element) {
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

/* 1/sqrt is computed in its own format and rounded again to what it is kept in: twice, which shows next to ties. */
Test(emulate_mixed, rstd_is_rounded_from_the_root_and_not_from_the_exact_quotient) {
    const struct nb_design d = parsed("rmsnorm/rstd:bf16/eps:0");
    int differs = 0;
    for (int k = 129; k < 256; k++) {
        const double tie = (k + 0.5) / 128, x = nb_round_to(1 / tie, NB_F32);
        double y;
        const float root = sqrtf((float)x * (float)x);
        const struct nb_emulated e = nb_emulate_row(&d, 1, &x, NULL, NULL, &y, 1);
        cr_expect_eq(e.rstd, bf16((double)(1 / root)));
        differs += e.rstd != bf16(1 / (double)root);
    }
    cr_expect(differs > 5, "%d", differs);
}

Test(emulate_mixed, a_wide_weight_is_rounded_where_the_cast_comes_before_it) {
    static struct row r;
    double x[N], y[N];
    row_fill(&r, 0, 64);
    const struct nb_design d = parsed("llama/weight:f32");
    for (int i = 0; i < N; i++) x[i] = bf16(r.wide_x[i]);
    const struct nb_emulated e = nb_emulate_row(&d, N, x, r.wide_gamma, NULL, y, 1);
    for (int i = 0; i < N; i++) {
        const double xhat = bf16((double)((float)x[i] * (float)e.rstd));
        cr_assert_eq(y[i], bf16(xhat * bf16(r.wide_gamma[i])));
    }
}

/* eps = 2.5 and v = 1 steps of f16: as stored eps is 2 steps, so that 3 come out, and not the 4 of 3.5. */
Test(emulate_mixed, eps_is_stored_before_it_is_added) {
    const struct nb_design d = parsed("rmsnorm/stat:f16/eps:1.4901161193847656e-7");
    const double x = 0x1p-12;
    double y;
    const struct nb_emulated e = nb_emulate_row(&d, 1, &x, NULL, NULL, &y, 1);
    cr_expect_eq(e.rstd, (double)(1 / sqrtf(3 * 0x1p-24f)));
}

Test(emulate_mixed, subnormal_inputs_are_flushed_when_they_are_read) {
    const struct nb_design keeps = parsed("rmsnorm/store:f16"), flushes = parsed("rmsnorm/store:f16/flush:1");
    const double x = 0x1p-20, gamma = 1000; /* times sqrt(1e5): normal in f16 again */
    double y;
    nb_emulate_row(&keeps, 1, &x, &gamma, NULL, &y, 1);
    cr_expect(y > 0.25);
    nb_emulate_row(&flushes, 1, &x, &gamma, NULL, &y, 1);
    cr_expect_eq(y, 0);
}

/* Rows of one element, where long double has 11 bits more than the result. */
Test(emulate_mixed, squared_errors_of_f64_are_those_of_the_exact_result) {
    enum { ROWS = 500 };
    struct random_state random = {65};
    const struct nb_design d = parsed("rmsnorm/all:f64/eps:0.3");
    double x[ROWS];
    long double errors = 0, squares = 0;
    for (int i = 0; i < ROWS; i++) {
        double y;
        x[i] = random_normal(&random);
        nb_emulate_row(&d, 1, &x[i], NULL, NULL, &y, 1);
        const long double v = (long double)x[i], exact = v / sqrtl(v * v + (long double)d.eps);
        errors += ((long double)y - exact) * ((long double)y - exact);
        squares += exact * exact;
    }
    const struct nb_design_rows rows = {.rows = ROWS, .cols = 1, .affine = NB_AFFINE_NONE, .x = x};
    struct nb_design_report report;
    nb_design_measure(&report, &d, &rows, 1);
    const double want = (double)(errors / squares);
    cr_expect(fabs(report.nmse / want - 1) < 0.02, "%g, not %g", report.nmse, want);
}

/* ---- what is written in the design, and nothing else, decides ---------------------------------------------------------- */

Test(emulate_mixed, every_part_of_a_design_reaches_the_result) {
    static const char *const parts[] = {"/square:bf16",
                                        "/acc:bf16",
                                        "/stat:bf16",
                                        "/sqrt:bf16",
                                        "/rstd:bf16",
                                        "/scale:f16",
                                        "/lanes:4",
                                        "/order:kahan",
                                        "/order:pairwise",
                                        "/order:blocked",
                                        "/fma:1",
                                        "/round:rz",
                                        "/round:sr",
                                        "/eps:1e-2",
                                        "/eps_place:outside",
                                        "/root:div_sqrt",
                                        "/root:rsqrt_raw",
                                        "/folded:1",
                                        "/store_round:rz/store:bf16",
                                        "/variance:welford",
                                        "/variance:onepass",
                                        "/variance:shifted",
                                        "/variance:corrected",
                                        "/weight_offset:1",
                                        "/cast:before/store:bf16"};
    static struct row r;
    double plain[N], y[N];
    row_fill(&r, 3, 36);
    const struct nb_design base = parsed("layernorm");
    nb_emulate_row(&base, N, r.wide_x, r.wide_gamma, r.wide_beta, plain, 1);
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        char text[64];
        snprintf(text, sizeof text, "layernorm%s", parts[p]);
        const struct nb_design d = parsed(text);
        nb_emulate_row(&d, N, r.wide_x, r.wide_gamma, r.wide_beta, y, 1);
        cr_expect(memcmp(plain, y, sizeof y) != 0, "%s changes nothing", parts[p]);
    }
}

Test(emulate_mixed, outputs_are_numbers_of_the_stored_format_and_a_row_repeats_itself) {
    static const char *const texts[] = {"fp8", "stochastic", "rmsnorm/store:tf32/round:rz", "rmsnorm/all:e5m2",
                                        "all_f16"};
    static struct row r;
    double x[N], y[N], again[N], other[N];
    row_fill(&r, 0, 37);
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        const struct nb_design d = parsed(texts[t]);
        for (int i = 0; i < N; i++) x[i] = nb_number_round(r.wide_x[i], 0, d.store, NB_ROUND_NEAREST, 0);
        nb_emulate_row(&d, N, x, NULL, NULL, y, 5);
        nb_emulate_row(&d, N, x, NULL, NULL, again, 5);
        nb_emulate_row(&d, N, x, NULL, NULL, other, 6);
        cr_expect_eq(memcmp(y, again, sizeof y), 0, "%s", texts[t]);
        cr_expect_eq(memcmp(y, other, sizeof y) != 0, d.rounding == NB_ROUND_STOCHASTIC, "%s", texts[t]);
        for (int i = 0; i < N; i++)
            cr_assert(isnan(y[i]) || y[i] == nb_number_round(y[i], 0, d.store, NB_ROUND_NEAREST, 0));
    }
}

Test(emulate_mixed, subnormals_are_flushed_where_the_design_says_so) {
    const struct nb_design keeps = parsed("rmsnorm/all:f16/eps:1e-5"),
                           flushes = parsed("rmsnorm/all:f16/eps:1e-5/flush:1");
    const double x[2] = {0x1p-20, 1}, zero[2] = {0, 0};
    double y[2];
    nb_emulate_row(&keeps, 2, x, NULL, NULL, y, 1);
    cr_expect(y[0] > 0);
    nb_emulate_row(&flushes, 2, x, NULL, NULL, y, 1);
    cr_expect(y[0] == 0 && y[1] > 1);
    cr_expect(isinf(nb_emulate_row(&flushes, 2, zero, NULL, NULL, y, 1).rstd), "1e-5 is subnormal in f16");
    cr_expect(isfinite(nb_emulate_row(&keeps, 2, zero, NULL, NULL, y, 1).rstd));
}

Test(emulate_mixed, prmsnorm_sees_its_share_and_l2norm_the_sum) {
    const struct nb_design partial = parsed("prmsnorm/k:50%/eps:0"), l2 = parsed("l2norm/eps:0");
    const double x[4] = {3, 3, 100, 100};
    double y[4];
    nb_emulate_row(&partial, 4, x, NULL, NULL, y, 1);
    cr_expect(y[0] == 1 && y[2] == nb_number_round(100 * (double)(1.0f / 3.0f), 0, NB_NUM_F32, NB_ROUND_NEAREST, 0));
    cr_expect_eq(nb_emulate_row(&l2, 4, x, NULL, NULL, y, 1).var, 20018);
}

Test(emulate_mixed, infinities_and_nan_go_where_ieee_takes_them) {
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
