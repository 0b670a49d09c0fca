// SPDX-License-Identifier: Apache-2.0
/* Rows for which the exact result, or the mistake, is known: their values, how they are written, and that a key replays them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/stats.h"
#include "src/plan/inputs.h"
#include "tests/support/cases.h"

/* One row of x; owned. */
static double *row_of(const char *data, uint32_t dtype, int64_t cols, int64_t row) {
    struct nb_case c = case_of(NB_OP_LAYERNORM, dtype);
    char shape[32];
    struct nb_inputs in released_by(nb_inputs_release);
    snprintf(shape, sizeof shape, "3x%d", (int)cols);
    set(&c, "shape", shape);
    set(&c, "data", data);
    nb_case_normalize(&c);
    cr_assert_eq(nb_inputs_init(&in, &c), 0, "%s", data);
    double *v = calloc((size_t)cols, sizeof *v);
    for (int64_t i = 0; i < cols; i++) v[i] = nb_get(in.x, row * cols + i, (enum nb_dtype)dtype);
    return v;
}

static void row_is(const char *data, uint32_t dtype, const double *want, int64_t cols) {
    double *got freed = row_of(data, dtype, cols, 1);
    for (int64_t i = 0; i < cols; i++)
        cr_expect(got[i] == want[i] && signbit(got[i]) == signbit(want[i]), "%s, column %d: %g, should be %g", data,
                  (int)i, got[i], want[i]);
}

Test(special_rows, are_the_values_that_the_text_gives) {
    row_is("values(40000,40001,40002,40003)", NB_F32, (const double[]){40000, 40001, 40002, 40003, 40000}, 5);
    row_is("values(-0,0x1p-24,1e-3)", NB_F32, (const double[]){-0.0, 0x1p-24, (double)1e-3f}, 3);
    row_is("constant(-0)", NB_F16, (const double[]){-0.0, -0.0}, 2);
    row_is("linear(100,0.5)", NB_F32, (const double[]){100, 100.5, 101}, 3);
    row_is("linear", NB_F32, (const double[]){0, 1, 2}, 3);
    row_is("noise(7,0)", NB_BF16, (const double[]){7, 7}, 2);
    row_is("columns(5,0)", NB_F32, (const double[]){5, -5, 5}, 3);
}

Test(special_rows, numbers_beyond_the_dtype_become_its_largest) {
    double *row = row_of("massive(696320)", NB_F16, 4096, 0);
    cr_expect_eq(row[1415], 65504);
    free(row);
    row = row_of("massive(7100,5296,1014)", NB_F32, 4096, 0);
    cr_expect_eq(row[1415], 7100);
    cr_expect_eq(row[2533], 5296);
    cr_expect_eq(row[512], 1014);
    free(row);
}

Test(special_rows, sorted_ones_hold_the_same_numbers_in_their_orders) {
    enum { N = 101 };
    double *ascending freed = row_of("ascending", NB_F32, N, 2), *descending = row_of("descending", NB_F32, N, 2);
    double *growing = row_of("growing", NB_F32, N, 2), *shrinking freed = row_of("shrinking", NB_F32, N, 2);
    double *interleaved = row_of("interleaved", NB_F32, N, 2), *other freed = row_of("ascending", NB_F32, N, 1);
    for (int i = 1; i < N; i++) {
        cr_expect(ascending[i] > ascending[i - 1]);
        cr_expect(descending[i] < descending[i - 1]);
        cr_expect(i < 2 || fabs(growing[i]) > fabs(growing[i - 2]), "by magnitude, but for what the two sides differ");
    }
    for (int i = 0; i < N; i++) cr_expect_eq(growing[i], shrinking[N - 1 - i]);
    cr_expect(interleaved[0] < -1.9 && interleaved[1] > 1.9 && interleaved[2] < -1.5);
    cr_expect(other[0] != ascending[0], "each row has numbers of its own");
    double *sets[] = {descending, growing, interleaved};
    for (int s = 0; s < 3; s++) {
        nb_sort(sets[s], N);
        for (int i = 0; i < N; i++) cr_expect_eq(sets[s][i], ascending[i]);
        free(sets[s]);
    }
}

Test(special_rows, stratified_ones_meet_every_binade_alike) {
    for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++) {
        const struct nb_format *f = &nb_formats[dtype];
        const int binades = f->emax - f->emin + 1, n = 16 * (binades + 1);
        int *counts freed = calloc((size_t)binades, sizeof *counts), subnormal = 0;
        double *row = row_of("stratified", dtype, n, 0);
        for (int i = 0; i < n; i++) {
            cr_assert(isfinite(row[i]));
            if (fabs(row[i]) < f->min_normal)
                subnormal++;
            else
                counts[ilogb(row[i]) - f->emin]++;
        }
        for (int b = 0; b < binades; b++)
            cr_expect(counts[b] >= 15 && counts[b] <= 17, "%s: %d of binade %d", f->name, counts[b], b);
        cr_expect(subnormal >= 15 && subnormal <= 17);
        free(row);
        row = row_of("stratified(1,4)", dtype, 64, 0);
        for (int i = 0; i < 64; i++) cr_expect(fabs(row[i]) >= 1 && fabs(row[i]) <= 4);
        free(row);
    }
}

Test(special_rows, refuse_what_is_no_such_row) {
    static const struct {
        const char *text, *words;
    } wrong[] = {{"values", "needs numbers"},    {"values()", "write a number"},      {"values(1,)", "write a number"},
                 {"values(1", "write a number"}, {"linear(1,2,3)", "no more than 2"}, {"inf(2)", "from -1 to 1"},
                 {"values(1e39)", "from"},       {"ascending(3)", "no number"},       {"noise(0,-1)", "from 0"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct nb_recipe recipe;
        char reason[256] = "";
        cr_expect_eq(nb_distribution_parse(wrong[i].text, &recipe, reason, sizeof reason), -1, "%s", wrong[i].text);
        cr_expect(strstr(reason, wrong[i].words), "%s: %s", wrong[i].text, reason);
    }
}

Test(params, are_what_the_axis_says_and_leave_old_keys_alone) {
    struct nb_case c = case_of(NB_OP_LAYERNORM, NB_F32);
    set(&c, "shape", "2x64");
    nb_case_normalize(&c);
    char *key = key_of(&c);
    cr_expect_null(strstr(key, "params"), "%s", key);
    static const char *const texts[] = {"negative", "zeros", "tiny", "fixed(2,-0.5)", "drawn"};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        struct nb_inputs in released_by(nb_inputs_release);
        set(&c, "params", texts[t]);
        cr_assert_eq(nb_inputs_init(&in, &c), 0);
        for (int64_t i = 0; i < 64; i++) {
            const double g = (double)in.gamma_f32[i], b = (double)in.beta_f32[i];
            if (t == 0) cr_expect(g < 0);
            if (t == 1) cr_expect_eq(g == 0 && b == 0, i % 3 == 1);
            if (t == 2) cr_expect(fabs(g) < 0.04);
            if (t == 3) cr_expect(g == 2 && b == -0.5);
            if (t == 4) cr_expect(g > -0.5 && g < 2.5 && g != 0);
        }
    }
}
