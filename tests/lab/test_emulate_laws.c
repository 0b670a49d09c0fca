// SPDX-License-Identifier: Apache-2.0
/* What the errors of sums and casts do as theory has it: stochastic rounding, the table of cast orders, bounds. Limits are those of
 * the statistics: an emulator with another format, order or rounding leaves them. How sums walk and stagnate: test_limits.c; the powers
 * of rho: test_sweeps.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/random.h"
#include "src/lab/emulate/design.h"
#include "src/lab/emulate/design_rows.h"
#include "src/lab/emulate/emulate.h"

static struct nb_design parsed(const char *text) {
    struct nb_design d;
    cr_assert_eq(nb_design_parse(&d, text), 0, "%s", text);
    return d;
}

/* Over rows of N(0,1) in bf16. */
Test(emulate_laws, stochastic_rounding_does_not_stagnate) {
    enum { COLS = 4096, ROWS = 40 };
    static double x[COLS];
    const struct nb_design d = parsed("rmsnorm/acc:bf16/square:f32/round:sr");
    double sum = 0, squares = 0;
    for (uint64_t row = 0; row < ROWS; row++) {
        const struct nb_random random = nb_random_stream(41, row);
        double exact = 0;
        for (int i = 0; i < COLS; i++) {
            x[i] = nb_number_round(nb_random_normal(random, (uint64_t)i), 0, d.store, NB_ROUND_NEAREST, 0);
            exact += x[i] * x[i];
        }
        const double error = nb_emulate_sum_of_squares(&d, COLS, x, row) / exact - 1;
        sum += error;
        squares += error * error;
    }
    const double rms = sqrt(squares / ROWS);
    cr_expect(fabs(sum / ROWS) < 5 * rms / sqrt(ROWS), "mean %g, rms %g", sum / ROWS, rms);
    cr_expect(rms > 0.01 && rms < 0.25, "%g", rms);
}

Test(emulate_laws, one_pass_variance_of_40000_to_40003_is_minus_128) {
    const double x[4] = {40000, 40001, 40002, 40003};
    double y[4];
    const struct nb_design naive = parsed("naive"), good = parsed("layernorm"), wide = parsed("naive/compute:f64");
    cr_expect_eq(nb_emulate_row(&naive, 4, x, NULL, NULL, y, 1).var, -128);
    cr_expect(isnan(y[0]));
    cr_expect_eq(nb_emulate_row(&good, 4, x, NULL, NULL, y, 1).var, 1.25);
    cr_expect_eq(nb_emulate_row(&wide, 4, x, NULL, NULL, y, 1).var, 1.25);
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
