// SPDX-License-Identifier: Apache-2.0
/* What the errors of sums, variances and casts do as theory has it: stagnation, the walk of roundings, the powers of rho, the table
 * of cast orders. Limits are those of the statistics: an emulator with another format, order or rounding leaves them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/random.h"
#include "src/lab/emulate/depth.h"
#include "src/lab/emulate/design.h"
#include "src/lab/emulate/emulate.h"

static struct nb_design parsed(const char *text) {
    struct nb_design d;
    cr_assert_eq(nb_design_parse(&d, text), 0, "%s", text);
    return d;
}

/* ---- sums of squares --------------------------------------------------------------------------------------------------- */

struct spread {
    double mean, rms, largest;
};

/* Relative error of S over rows of N(0,1), each rounded to `store`; in u of the accumulator unless relative. */
static struct spread error_of_sum(const char *text, int n, int rows, bool relative) {
    const struct nb_design d = parsed(text);
    const double u = relative ? 1 : nb_numbers[d.acc].unit_roundoff;
    double *x = calloc((size_t)n, sizeof *x), sum = 0, squares = 0, largest = 0;
    for (int row = 0; row < rows; row++) {
        const struct nb_random random = nb_random_stream(41, (uint64_t)row);
        long double exact = 0;
        for (int i = 0; i < n; i++) {
            x[i] = nb_number_round(nb_random_normal(random, (uint64_t)i), 0, d.store, NB_ROUND_NEAREST, 0);
            exact += (long double)x[i] * (long double)x[i];
        }
        const double got = nb_emulate_sum_of_squares(&d, n, x, (uint64_t)row);
        const double error = (double)(((long double)got - exact) / exact) / u;
        sum += error;
        squares += error * error;
        largest = fmax(largest, fabs(error));
    }
    free(x);
    return (struct spread){sum / rows, sqrt(squares / rows), largest};
}

/* -0.0404 p0 nu^1.5, nu = n u / lanes: test_limits.c has the law. */
Test(emulate_laws, stagnation_is_the_same_at_equal_nu_whatever_format_and_lanes) {
    const double bf16 = error_of_sum("rmsnorm/acc:bf16", 512, 100, true).mean; /* nu = 2 */
    const double f16 = error_of_sum("rmsnorm/acc:f16", 4096, 20, true).mean;
    const double lanes = error_of_sum("rmsnorm/acc:bf16x8", 4096, 20, true).mean;
    cr_expect(fabs(bf16 - f16) < 0.01, "%g %g", bf16, f16);
    cr_expect(fabs(bf16 - lanes) < 0.015, "%g %g", bf16, lanes);
}

Test(emulate_laws, stochastic_rounding_does_not_stagnate) {
    const struct spread s = error_of_sum("rmsnorm/acc:bf16/square:f32/round:sr", 4096, 40, true);
    const double sd = s.rms / sqrt(40);
    cr_expect(fabs(s.mean) < 5 * sd, "mean %g, rms %g", s.mean, s.rms);
    cr_expect(s.rms > 0.01 && s.rms < 0.25, "%g", s.rms);
}

/* rms of the error, sequential: u sqrt(n / (18 L^2) + c), c about 0.5; a tree 0.7; compensated 0.45. Ranges take the statistics of
 * 200 rows and the constant into account. */
Test(emulate_laws, the_error_of_f32_sums_walks_as_the_order_says) {
    const struct {
        const char *text;
        int n;
        double low, high, most;
    } table[] = {{"rmsnorm", 256, 3.0, 4.6, 20},          {"rmsnorm", 1024, 6.0, 9.0, 40},
                 {"rmsnorm", 4096, 11.5, 18, 75},         {"rmsnorm/lanes:16", 256, 0.5, 1.0, 4},
                 {"rmsnorm/lanes:16", 4096, 0.9, 1.6, 7}, {"pairwise", 256, 0.5, 0.9, 4},
                 {"pairwise", 4096, 0.5, 0.9, 4},         {"kahan", 256, 0.3, 0.65, 1.7},
                 {"kahan", 4096, 0.3, 0.65, 1.7},         {"rmsnorm/acc:f64/square:f64", 4096, 0, 1e-6, 1e-5}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct spread s = error_of_sum(table[i].text, table[i].n, 200, false);
        const double in_u32 =
            table[i].low == 0 ? nb_numbers[NB_NUM_F64].unit_roundoff * 0x1p24 : 1; /* of f64: in f32's u */
        cr_expect(s.rms * in_u32 >= table[i].low && s.rms * in_u32 <= table[i].high, "%s, n %d: rms %g u",
                  table[i].text, table[i].n, s.rms);
        cr_expect(s.largest * in_u32 <= table[i].most, "%s, n %d: %g u", table[i].text, table[i].n, s.largest);
    }
}

/* ---- variances --------------------------------------------------------------------------------------------------------- */

Test(emulate_laws, one_pass_variance_of_40000_to_40003_is_minus_128) {
    const double x[4] = {40000, 40001, 40002, 40003};
    double y[4];
    const struct nb_design naive = parsed("naive"), good = parsed("layernorm"), wide = parsed("naive/compute:f64");
    cr_expect_eq(nb_emulate_row(&naive, 4, x, NULL, NULL, y, 1).var, -128);
    cr_expect(isnan(y[0]));
    cr_expect_eq(nb_emulate_row(&good, 4, x, NULL, NULL, y, 1).var, 1.25);
    cr_expect_eq(nb_emulate_row(&wide, 4, x, NULL, NULL, y, 1).var, 1.25);
}

/* Root mean square over rows of the largest |error| in ulp(1) = 2^-23; eps 1e-5, no weights; rho from the one given to twice that, so
 * that no row's squares fall on the grid as another's do. */
static double error_at(const char *text, double rho) {
    enum { COLS = 1024, ROWS = 40 };
    static double x[COLS], y[COLS], exact[COLS];
    double squares = 0;
    const struct nb_design d = parsed(text);
    struct nb_case c;
    nb_design_case(&c, &d, 1, COLS, NB_AFFINE_NONE);
    for (int row = 0; row < ROWS; row++) {
        const struct nb_random random = nb_random_stream(42, (uint64_t)row);
        const double mean = rho * (1 + (double)row / ROWS);
        double worst = 0;
        for (int i = 0; i < COLS; i++)
            x[i] = nb_number_round(mean + nb_random_normal(random, (uint64_t)i), 0, NB_NUM_F32, NB_ROUND_NEAREST, 0);
        nb_exact_row(&c, x, NULL, NULL, NULL, exact, NULL);
        nb_emulate_row(&d, COLS, x, NULL, NULL, y, 1);
        for (int i = 0; i < COLS; i++) worst = fmax(worst, isnan(y[i]) ? INFINITY : fabs(y[i] - exact[i]) * 0x1p23);
        squares += worst * worst;
    }
    return sqrt(squares / ROWS);
}

/* Slope of log error over log rho between two points. */
static void expect_slope(const char *text, double from, double to, double slope, double within) {
    const double low = error_at(text, from), high = error_at(text, to), got = log(high / low) / log(to / from);
    cr_expect(fabs(got - slope) < within, "%s: error %g at rho %g, %g at %g: slope %.2f, not %g", text, low, from, high,
              to, got, slope);
}

Test(emulate_laws, errors_of_layernorm_grow_with_the_power_of_rho_that_the_algorithm_has) {
    expect_slope("naive", 16, 256, 2, 0.3);
    expect_slope("naive/order:pairwise", 16, 256, 2, 0.3);
    expect_slope("layernorm", 64, 4096, 1, 0.25);
    expect_slope("layernorm/order:pairwise", 64, 4096, 1, 0.25);
    expect_slope("welford", 64, 4096, 1, 0.25);
    expect_slope("welford/lanes:16", 64, 4096, 1, 0.25);
    expect_slope("corrected", 1, 4096, 0, 0.1);
    cr_expect(error_at("corrected", 4096) < 10);
    cr_expect(error_at("naive", 256) > 100 * error_at("layernorm", 256));
    cr_expect(error_at("layernorm", 256) > 5 * error_at("layernorm/order:pairwise", 256));
    cr_expect(error_at("naive/acc:f64/square:f64/stat:f64", 256) <=
              1.1 * error_at("layernorm/acc:f64/square:f64/stat:f64", 256));
    cr_expect(error_at("layernorm/variance:shifted", 256) < error_at("naive", 256) / 100);
}

/* ---- cast orders ------------------------------------------------------------------------------------------------------- */

static struct nb_design_report report_of(const char *text, int rows, int cols) {
    const struct nb_design d = parsed(text);
    struct nb_design_data data = {.data = "scales", .rows = rows, .cols = cols, .seed = 3, .affine = NB_N_AFFINES};
    struct nb_design_rows drawn;
    struct nb_design_report report;
    cr_assert_eq(nb_design_rows_init(&drawn, &d, &data), 0);
    nb_design_measure(&report, &d, &drawn, 1);
    nb_design_rows_release(&drawn);
    return report;
}

/* Each figure within what 60 rows of 2048 leave open. The largest error creeps up with the number of elements, never beyond the sum
 * of the roundings; the statistics here are summed pairwise in f32, which is exact enough. */
static void check_cast_orders(const char *store) {
    const struct {
        const char *name;
        double max_low, max_high, correct, bias, coherent_low, coherent_high, nmse;
    } table[] = {{"ideal", 0.5, 0.502, 1.0, 0, 0, 0.08, 2.8e-6},
                 {"llama", 1.3, 1.51, 0.743, -0.01, 0, 0.6, 5.5e-6},
                 {"cast_each", 1.8, 2.8, 0.64, -0.03, 0.7, 1.3, 8.6e-6},
                 {"truncate", 0.98, 1.001, 0.501, -0.72, 0.68, 0.82, 1.1e-5},
                 {"rstd_bf16", 1.2, 1.51, 0.72, 0, 0.7, 1.1, 5.8e-6}};
    const double u = nb_numbers[nb_number_parse(store)].unit_roundoff, narrower = u * 256 * (u * 256);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[160];
        const bool rstd = i == 2 || i == 4;
        snprintf(text, sizeof text, "%s/order:pairwise/store:%s/weight:%s%s%s%s%s", table[i].name, store, store,
                 rstd ? "/rstd:" : "", rstd ? store : "", i == 2 ? "/scale:" : "", i == 2 ? store : "");
        const struct nb_design_report r = report_of(text, 60, 2048);
        const struct nb_accuracy *a = &r.accuracy;
        cr_expect(a->max_ulp >= table[i].max_low && a->max_ulp <= table[i].max_high, "%s: max %g ulp", text,
                  a->max_ulp);
        cr_expect(fabs(a->correctly_rounded - table[i].correct) < 0.04, "%s: %g correct", text, a->correctly_rounded);
        /* a wrong rstd differs from row to row, up to 1 u: 3 of its standard deviations over 60 rows */
        cr_expect(fabs(a->bias_u - table[i].bias) < (rstd ? 0.22 : 0.03), "%s: bias %g u", text, a->bias_u);
        cr_expect(fabs(a->gain_u) >= table[i].coherent_low && fabs(a->gain_u) <= table[i].coherent_high,
                  "%s: gain %g u", text, a->gain_u);
        cr_expect(r.nmse > table[i].nmse * narrower * 0.8 && r.nmse < table[i].nmse * narrower * 1.2, "%s: nmse %g",
                  text, r.nmse);
    }
}
Test(emulate_laws, cast_orders_in_bf16_have_the_errors_of_their_roundings) { check_cast_orders("bf16"); }
/* ---- reports ----------------------------------------------------------------------------------------------------------- */

Test(emulate_laws, designs_that_the_bound_knows_stay_within_it) {
    static const char *const texts[] = {"rmsnorm",
                                        "eager",
                                        "all_f16",
                                        "kahan",
                                        "gemma_bf16",
                                        "naive",
                                        "welford/order:pairwise",
                                        "corrected",
                                        "rmsnorm/lanes:16/fma:1",
                                        "layernorm/variance:shifted",
                                        "layernorm/folded:1",
                                        "layernorm/order:kahan",
                                        "rmsnorm/root:rsqrt_nr",
                                        "rmsnorm/root:rsqrt_raw",
                                        "kahan/acc:bf16/store:bf16/stat:bf16",
                                        "l2norm/root:div_sqrt",
                                        "prmsnorm",
                                        "rmsnorm/order:blocked/acc:f64",
                                        "layernorm/all:bf16/acc:f32"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct nb_design_report r = report_of(texts[i], 12, 1000);
        cr_expect_null(r.no_bound, "%s: %s", texts[i], r.no_bound);
        cr_expect(r.accuracy.worst_ratio > 0 && r.accuracy.worst_ratio <= 1, "%s: %g", texts[i],
                  r.accuracy.worst_ratio);
        cr_expect_eq(r.accuracy.n_beyond, 0);
        cr_expect_eq(r.accuracy.n, 12 * 1000);
    }
}

Test(emulate_laws, every_format_is_correctly_rounded_when_all_else_is_wide) {
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
Test(emulate_laws, f64_is_judged_by_more_than_double) {
    const struct nb_design_report r = report_of("pairwise/all:f64", 10, 500);
    cr_expect(r.accuracy.max_ulp > 0.6 && r.accuracy.max_ulp < 6, "%g", r.accuracy.max_ulp);
    cr_expect(r.accuracy.correctly_rounded > 0.2 && r.accuracy.correctly_rounded < 0.9, "%g",
              r.accuracy.correctly_rounded);
    const struct nb_design_report kahan = report_of("rmsnorm/order:kahan/all:f64", 10, 500);
    cr_expect(kahan.accuracy.correctly_rounded > 0.2 && fabs(kahan.accuracy.bias_u) < 0.6);
}
