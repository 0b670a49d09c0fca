// SPDX-License-Identifier: Apache-2.0
/* 8-bit storage: what is exact, what is lost, what scaling and a norm before do for it. */
#include <criterion/criterion.h>
#include <math.h>

#include "src/core/random.h"
#include "src/lab/emulate/design_rows.c"

Test(quantize, what_is_beyond_and_what_is_lost_is_counted) {
    const double values[8] = {1e6, 500, 464, 1e-9, -1e-9, 1, 0, NAN};
    struct nb_quantized q;
    nb_quantize(&q, values, 1, 8, NB_QUANTUM_E4M3, NB_SCALING_NONE);
    cr_expect_eq(q.n_not_finite, 1);
    cr_expect_float_eq(q.beyond, 2.0 / 7, 1e-15, "464 is rounded down to 448");
    cr_expect_float_eq(q.lost, 2.0 / 6, 1e-15);
    nb_quantize(&q, values, 1, 8, NB_QUANTUM_E4M3, NB_SCALING_ROW);
    cr_expect(q.beyond == 0 && q.lost > 0.3);
    cr_expect_eq(quantize_value(200, 1, NB_QUANTUM_INT8), 127);
    cr_expect_eq(quantize_value(-2.5, 1, NB_QUANTUM_INT8), -2, "ties to even");
}

/* e4m3 has no Inf: beyond 464 it is NaN. Cut off, as int8 is, the error is finite. */
Test(quantize, what_becomes_nan_or_inf_is_an_infinite_error) {
    const double values[4] = {1000, 1, -1, 2}, to_inf[4] = {1e6, 1, -1, 2};
    struct nb_quantized q;
    nb_quantize(&q, values, 1, 4, NB_QUANTUM_E4M3, NB_SCALING_NONE);
    cr_expect(q.beyond == 0.25 && isinf(q.rms_error) && isinf(q.max_error) && isinf(q.max_relative));
    cr_expect(isinf(q.mean_relative) && q.sqnr_db == -INFINITY, "%g dB", q.sqnr_db);
    nb_quantize(&q, to_inf, 1, 4, NB_QUANTUM_E5M2, NB_SCALING_NONE);
    cr_expect(isinf(q.rms_error) && isinf(q.max_error) && q.sqnr_db == -INFINITY);
    nb_quantize(&q, values, 1, 4, NB_QUANTUM_E4M3, NB_SCALING_TENSOR);
    cr_expect(q.beyond == 0 && isfinite(q.rms_error) && isfinite(q.max_error));
    nb_quantize(&q, values, 1, 4, NB_QUANTUM_INT8, NB_SCALING_NONE);
    cr_expect(q.beyond == 0.25 && isfinite(q.rms_error) && isfinite(q.max_error));
}

Test(quantize, all_zeros_and_all_nan_are_no_figures) {
    const double zeros[4] = {0, 0, 0, 0}, nans[2] = {NAN, INFINITY};
    struct nb_quantized q;
    nb_quantize(&q, zeros, 2, 2, NB_QUANTUM_INT8, NB_SCALING_ROW);
    cr_expect(isnan(q.sqnr_db) && q.lost == 0 && q.max_error == 0);
    nb_quantize(&q, nans, 1, 2, NB_QUANTUM_E5M2, NB_SCALING_TENSOR);
    cr_expect(q.n_not_finite == 2 && isnan(q.beyond) && isnan(q.sqnr_db));
}

/* Uniform quantization noise: step^2 / 12. Floating point: relative error uniform in a binade, independent of the scale. */
Test(quantize, ratios_of_normal_rows_are_those_of_the_formats) {
    enum { ROWS = 8, COLS = 4096 };
    static double values[ROWS * COLS];
    const struct nb_random random = nb_random_stream(51, 0);
    double largest = 0, squares = 0;
    for (int i = 0; i < ROWS * COLS; i++) {
        values[i] = nb_random_normal(random, (uint64_t)i);
        largest = fmax(largest, fabs(values[i]));
        squares += values[i] * values[i];
    }
    struct nb_quantized q;
    nb_quantize(&q, values, ROWS, COLS, NB_QUANTUM_INT8, NB_SCALING_TENSOR);
    const double step = largest / 127, want = 10 * log10(squares / (ROWS * COLS) / (step * step / 12));
    cr_expect(fabs(q.sqnr_db - want) < 0.2, "%g, not %g", q.sqnr_db, want);
    nb_quantize(&q, values, ROWS, COLS, NB_QUANTUM_E4M3, NB_SCALING_TENSOR);
    cr_expect(q.sqnr_db > 31 && q.sqnr_db < 32.2, "%g", q.sqnr_db);
    const double e4m3 = q.sqnr_db;
    nb_quantize(&q, values, ROWS, COLS, NB_QUANTUM_E5M2, NB_SCALING_TENSOR);
    cr_expect(fabs(e4m3 - q.sqnr_db - 6.02) < 0.3, "a bit less, 6 dB less: %g after %g", q.sqnr_db, e4m3);
}
