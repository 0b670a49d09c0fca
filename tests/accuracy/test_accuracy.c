// SPDX-License-Identifier: Apache-2.0
/* The counter of errors itself: every category by hand, then the two tests of the bias on kernels that are right and that truncate. */
#include <criterion/criterion.h>
#include <math.h>
#include <mpfr.h>
#include <string.h>

#include "src/accuracy/accuracy.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "tests/support/softgradient.h"
#include "tests/support/sparsely.h"

/* One row; tolerance in ulp, or Inf. */
static struct nb_accuracy count(enum nb_dtype dtype, int64_t n, const double *computed, const double *exact,
                                double tolerance_ulp, enum nb_loss loss) {
    float stored[64];
    double tolerance[64];
    struct nb_accuracy a;
    for (int64_t i = 0; i < n; i++) {
        nb_set(stored, i, dtype, computed[i]);
        tolerance[i] =
            isinf(tolerance_ulp) ? INFINITY : tolerance_ulp * nb_ulp(isfinite(exact[i]) ? exact[i] : 1, dtype);
    }
    struct nb_accuracy_sum *s = nb_accuracy_new(nb_number_of(dtype));
    const struct nb_row_values row = {
        .stored = stored, .stored_x = stored, .exact = exact, .tolerance = tolerance, .loss = loss};
    nb_accuracy_row(s, 5, n, &row);
    nb_accuracy_finish(s, &a);
    return a;
}
static struct nb_accuracy one(enum nb_dtype dtype, double computed, double exact) {
    return count(dtype, 1, &computed, &exact, 1, NB_LOSS_NONE);
}

Test(accuracy, errors_round_one_are_counted_in_the_spacing_at_the_exact_value) {
    const double u = 0x1p-24;
    cr_expect_eq(one(NB_F32, 1, 1).max_ulp, 0);
    cr_expect_eq(one(NB_F32, 1 + 2 * u, 1).max_ulp, 1);
    cr_expect_eq(one(NB_F32, 1 - u, 1).max_ulp, 0.5, "below a power of two the neighbour is half as far");
    cr_expect_eq(one(NB_F32, 1, 1 - u).max_ulp, 1);
    cr_expect_eq(one(NB_F32, 1, 1 + 0.5 * u).max_ulp, 0.25);
    cr_expect_eq(one(NB_F32, -1, -1 - 2 * u).max_ulp, 1);
    cr_expect_eq(one(NB_BF16, 1.0078125, 1).max_ulp, 1);
}

Test(accuracy, zeros_of_either_sign_are_the_same_and_subnormals_have_their_own_unit) {
    for (int d = 0; d < NB_N_DTYPES; d++) {
        const double least = nb_formats[d].min_subnormal, normal = nb_formats[d].min_normal;
        cr_expect_eq(one((enum nb_dtype)d, -0.0, 0.0).max_ulp, 0);
        cr_expect_eq(one((enum nb_dtype)d, 0.0, -0.0).correctly_rounded, 1);
        cr_expect_eq(one((enum nb_dtype)d, least, 0).max_ulp, 1);
        cr_expect_eq(one((enum nb_dtype)d, -least, least).max_ulp, 2);
        cr_expect_eq(one((enum nb_dtype)d, normal - least, normal).max_ulp, 1);
        cr_expect_eq(one((enum nb_dtype)d, 0, least / 4).max_ulp, 0.25);
        cr_expect_eq(one((enum nb_dtype)d, 0, least / 4).zero_unexpected, 0);
    }
}

Test(accuracy, overflow_is_right_from_half_an_ulp_above_the_largest_number_on) {
    for (int d = 0; d < NB_N_DTYPES; d++) {
        const struct nb_format *f = &nb_formats[d];
        struct nb_accuracy a = one((enum nb_dtype)d, INFINITY, f->overflow);
        cr_expect(a.n_exceptional == 1 && a.n_beyond == 0 && isnan(a.max_ulp));
        a = one((enum nb_dtype)d, INFINITY, nextafter(f->overflow, 0));
        cr_expect(a.inf_unexpected == 1 && a.n_beyond == 1 && a.worst_ratio == INFINITY);
        a = one((enum nb_dtype)d, f->max_finite, f->overflow);
        cr_expect(a.inf_missing == 1 && a.n_beyond == 1);
        a = one((enum nb_dtype)d, -INFINITY, f->overflow);
        cr_expect(a.inf_missing == 1, "the wrong sign");
        a = one((enum nb_dtype)d, f->max_finite, f->max_finite);
        cr_expect(a.n_beyond == 0 && a.max_ulp == 0);
    }
}

Test(accuracy, nan_inf_and_lost_zeros_are_counted_and_have_a_reproducer) {
    struct nb_accuracy a = one(NB_F16, NAN, 1);
    cr_expect(a.nan_unexpected == 1 && a.n_beyond == 1 && a.n_exceptional == 1);
    cr_expect(a.reproducer.row == 5 && a.reproducer.col == 0 && isnan(a.reproducer.got) && a.reproducer.want == 1);
    a = one(NB_F16, 1, NAN);
    cr_expect(a.nan_missing == 1 && a.n_beyond == 1);
    a = one(NB_F16, NAN, NAN);
    cr_expect(a.n_beyond == 0 && a.n_exceptional == 1);
    a = one(NB_F16, NAN, INFINITY);
    cr_expect(a.inf_missing == 1);
    a = one(NB_F16, 0, 1);
    cr_expect(a.zero_unexpected == 1 && a.n_beyond == 1);
}

Test(accuracy, elements_whose_loss_is_predicted_are_left_out) {
    const double computed[] = {NAN, INFINITY, 0, 3}, exact[] = {1, 1, 1, 1};
    struct nb_accuracy a = count(NB_F32, 4, computed, exact, INFINITY, NB_LOSS_SQUARE_OVERFLOW);
    cr_expect(a.n == 4 && a.n_exceptional == 4 && a.n_beyond == 0 && a.nan_unexpected == 0 && a.inf_unexpected == 0);
    cr_expect(a.n_rows_lost == 1 && a.loss == NB_LOSS_SQUARE_OVERFLOW && a.reproducer.row == -1);
}

Test(accuracy, mean_share_histogram_and_reproducer_describe_the_errors) {
    const double ulp = 0x1p-7; /* bf16 at 1 */
    const double exact[] = {1, 1, 1, 1 + 0.25 * ulp}, computed[] = {1, 1 + ulp, 1 + 3 * ulp, 1};
    struct nb_accuracy a = count(NB_BF16, 4, computed, exact, 2, NB_LOSS_NONE);
    cr_expect_eq(a.max_ulp, 3);
    cr_expect_float_eq(a.mean_ulp, (1 + 3 + 0.25) / 4, 1e-12);
    cr_expect_eq(a.correctly_rounded, 0.5);
    cr_expect(a.histogram[0] == 2 && a.histogram[1] == 1 && a.histogram[3] == 1);
    cr_expect_eq(a.n_beyond, 1);
    cr_expect_eq(a.worst_ratio, 1.5);
    cr_expect(a.reproducer.col == 2 && a.reproducer.err_ulp == 3 && a.reproducer.tolerance_ulp == 2);
    cr_expect_eq(a.reproducer.x, 1 + 3 * ulp);
}

Test(accuracy, p99_is_the_quantile_to_a_32nd) {
    uint64_t r = 3;
    struct nb_accuracy a;
    struct nb_accuracy_sum *s = nb_accuracy_new(NB_NUM_F32);
    for (int row = 0; row < 1000; row++) { /* error k of 1000 in units of 1/1000 of 100 ulp */
        float got[10];
        double want[10], tolerance[10];
        for (int i = 0; i < 10; i++) {
            double error = 0.1 * floor(1000 * random_uniform(&r));
            got[i] = 1.5f;
            want[i] = 1.5 - error * 0x1p-23;
            tolerance[i] = 1;
        }
        nb_accuracy_row(s, row, 10, &(struct nb_row_values){.stored = got, .exact = want, .tolerance = tolerance});
    }
    nb_accuracy_finish(s, &a);
    cr_expect(a.p99_ulp >= 98.5 && a.p99_ulp <= 99.5 * 33 / 32, "%g", a.p99_ulp);
}

/* error = 30 u y + 5 u rms(y), and a rounding of the dtype */
Test(accuracy, row_errors_fall_apart_into_gain_offset_and_residual) {
    uint64_t r = 4;
    double exact[64], computed[64], squares = 0;
    for (int i = 0; i < 64; i++) {
        exact[i] = random_normal(&r);
        squares += exact[i] * exact[i];
    }
    const double rms = sqrt(squares / 64), u = 0x1p-24;
    for (int i = 0; i < 64; i++) computed[i] = exact[i] * (1 + 30 * u) + 5 * u * rms;
    struct nb_accuracy a = count(NB_F32, 64, computed, exact, 1e4, NB_LOSS_NONE);
    cr_expect_float_eq(a.gain_u, 30, 0.5);
    cr_expect_float_eq(a.offset_u, 5, 0.5);
    cr_expect(a.residual_ulp > 0.1 && a.residual_ulp < 0.6, "%g", a.residual_ulp);
    for (int i = 0; i < 64; i++) computed[i] = nb_round_to(exact[i], NB_F32);
    a = count(NB_F32, 64, computed, exact, 1, NB_LOSS_NONE);
    cr_expect(fabs(a.gain_u) < 0.3 && fabs(a.offset_u) < 0.3 && a.max_ulp <= 0.5 && a.correctly_rounded == 1);
}

/* An offset of 1000 u rms that is off by 1 u in one half of the row: elements near 0 would divide that by their own tiny ulp. */
Test(accuracy, an_element_near_0_does_not_blow_up_the_residual) {
    double exact[64], computed[64];
    const double u = 0x1p-24;
    for (int i = 0; i < 64; i++) {
        exact[i] = i == 0 ? 1e-40 : (i % 2 ? -1 : 1) * (1 + i / 64.0);
        computed[i] = exact[i] + 1000 * u + (i < 32 ? u : 0);
    }
    const struct nb_accuracy a = count(NB_F32, 64, computed, exact, 1e9, NB_LOSS_NONE);
    cr_expect(a.residual_ulp > 0.05 && a.residual_ulp < 1, "%g", a.residual_ulp);
}

Test(accuracy, rows_of_equal_or_zero_results_have_no_line_and_no_nan) {
    const double same[] = {2, 2, 2}, off[] = {2.5, 2.5, 2.5}, zero[] = {0, 0, 0};
    struct nb_accuracy a = count(NB_F32, 3, off, same, 1e9, NB_LOSS_NONE);
    cr_expect_float_eq(a.gain_u, 0.25 * 0x1p24, 1);
    cr_expect_eq(a.offset_u, 0);
    a = count(NB_F32, 3, zero, zero, 1, NB_LOSS_NONE);
    cr_expect(a.max_ulp == 0 && a.gain_u == 0 && a.correctly_rounded == 1);
    cr_expect(isnan(a.bias_u), "no element has a relative error");
}

/* ---- against MPFR ---- */

/* The neighbours of a number of the format, by its bits. */
static double neighbour(double v, enum nb_dtype dtype, int step) {
    uint32_t stored = 0;
    nb_set(&stored, 0, dtype, v);
    const int64_t bits = (int64_t)nb_bits(&stored, 0, dtype) + step;
    if (dtype == NB_F32)
        stored = (uint32_t)bits;
    else
        memcpy(&stored, &(uint16_t){(uint16_t)bits}, sizeof(uint16_t));
    return nb_get(&stored, 0, dtype);
}

/* |computed - exact| / 2^(max(floor(log2 |exact|), emin) - p + 1), in 300 bits. */
static double error_by_mpfr(enum nb_dtype dtype, double computed, double exact) {
    const struct nb_format *f = &nb_formats[dtype];
    mpfr_t e;
    mpfr_init2(e, 300);
    mpfr_set_d(e, exact, MPFR_RNDN);
    long exponent = mpfr_zero_p(e) ? f->emin : (long)mpfr_get_exp(e) - 1;
    if (exponent < f->emin) exponent = f->emin;
    mpfr_d_sub(e, computed, e, MPFR_RNDN);
    mpfr_abs(e, e, MPFR_RNDN);
    mpfr_mul_2si(e, e, f->precision - 1 - exponent, MPFR_RNDN);
    const double ulps = mpfr_get_d(e, MPFR_RNDN);
    mpfr_clear(e);
    return ulps;
}

Test(accuracy, errors_are_those_of_mpfr_at_every_edge) {
    uint64_t r = 22;
    for (int d = 0; d < NB_N_DTYPES; d++) {
        const struct nb_format *f = &nb_formats[d];
        const double edges[] = {0,
                                -0.0,
                                1,
                                nextafter(1, 0),
                                nextafter(1, 2),
                                2,
                                f->min_normal,
                                nextafter(f->min_normal, 0),
                                nextafter(f->min_normal, 1),
                                f->min_subnormal,
                                f->min_subnormal / 2,
                                f->min_subnormal * 1.5,
                                f->max_finite,
                                nextafter(f->max_finite, 0),
                                nextafter(f->overflow, 0)};
        enum { N = sizeof edges / sizeof edges[0] };
        for (int i = 0; i < 20000; i++) {
            double exact = edges[i % N];
            if (i >= 2 * N) exact *= 1 + ldexp(random_uniform(&r) - 0.5, -(int)(nb_random_next(&r) % 30));
            if (i % 2) exact = -exact;
            if (fabs(exact) >= f->overflow) continue;
            double computed = nb_round_to(exact, (enum nb_dtype)d);
            if (isinf(computed)) computed = copysign(f->max_finite, computed);
            if (fabs(computed) < f->max_finite && computed != 0)
                computed = neighbour(computed, (enum nb_dtype)d, (int)(nb_random_next(&r) % 2));
            if (computed == 0 && fabs(exact) >= f->min_normal) continue;
            const double want = error_by_mpfr((enum nb_dtype)d, computed, exact);
            const struct nb_accuracy a = one((enum nb_dtype)d, computed, exact);
            cr_assert(fabs(a.max_ulp - want) <= 1e-9 * (1 + want), "%s: %a for %a: %g, not %g", f->name, computed,
                      exact, a.max_ulp, want);
            cr_assert_eq(a.correctly_rounded == 1, computed == nb_round_to(exact, (enum nb_dtype)d), "%s: %a for %a",
                         f->name, computed, exact);
        }
        cr_expect(isnan(nb_ulp(INFINITY, (enum nb_dtype)d)) && isnan(nb_ulp(NAN, (enum nb_dtype)d)));
    }
}

/* ---- bias ------------------------------------------------------------------------------------------------------------ */

/* Formulas and shapes drawn at random; no correct kernel may come near 6. */
static void draw(struct problem *p, struct soft_kernel *k, uint64_t *r, int trial) {
    static const int64_t shapes[][2] = {{1, 1},    {1, 4096}, {4, 384}, {64, 384},
                                        {64, 384}, {200, 64}, {33, 17}, {16, 1000}};
    const int64_t *shape = shapes[nb_random_next(r) % 8];
    problem_init(p, row_ops[trial % N_NORM_OPS], (enum nb_dtype)(nb_random_next(r) % NB_N_DTYPES), shape[0], shape[1]);
    problem_fill_normal(p, nb_random_next(r) % 2 ? 0 : random_normal(r), exp(random_normal(r)), nb_random_next(r));
    draw_formula(p, r);
    p->c.formula.round_sum = nb_random_next(r) % 2;
    p->c.stats_dtype = NB_STATS_F32;
    k->lanes = 1 << nb_random_next(r) % 7;
}

Test(accuracy, correct_kernels_are_never_called_biased) {
    uint64_t r = 21;
    double worst = 0;
    for (int trial = 0; trial < 1200; trial += one_in(5) * sparsely()) {
        struct problem p released_by(problem_free);
        struct soft_kernel k = {0};
        draw(&p, &k, &r, trial);
        struct nb_bias bias;
        const struct nb_accuracy a = soft_accuracy(&k, &p, &bias);
        const struct nb_formula *f = &p.c.formula;
        cr_expect(!(fabs(a.bias_sigma) > 6),
                  "op %u %s %lldx%lld affine %u cast %u offset %u root %u variance %u lanes %d: %.1f sigma, bias %.3f "
                  "u (expected %.3f +- "
                  "%.3f), last rounding %.4f ulp, sd %.3f",
                  p.c.op, nb_formats[p.c.dtype].name, (long long)p.in.rows, (long long)p.in.cols, f->affine, f->cast,
                  f->weight_offset, f->root, p.c.variance, k.lanes, a.bias_sigma, a.bias_large_u,
                  bias.expected / nb_formats[p.c.dtype].unit_roundoff,
                  bias.systematic / nb_formats[p.c.dtype].unit_roundoff, a.rounding_ulp, a.rounding_sd_ulp);
        if (!isnan(a.bias_sigma)) worst = fmax(worst, fabs(a.bias_sigma));
    }
    cr_expect(worst > 0.5, "sigma is no figure of speech: chance shows in it");
}

Test(accuracy, stagnation_is_predicted_and_not_taken_for_truncation) {
    struct problem p released_by(problem_free);
    struct soft_kernel k = {.lanes = 1};
    problem_init(&p, NB_OP_RMSNORM, NB_F32, 16, 65536);
    problem_fill_normal(&p, 0, 1, 77);
    struct nb_bias bias;
    const struct nb_accuracy a = soft_accuracy(&k, &p, &bias);
    const double u = 0x1p-24;
    cr_expect(a.bias_large_u > 20, "a sum of 65536 squares one by one stays behind: %.1f u", a.bias_large_u);
    cr_expect_float_eq(a.bias_large_u, bias.expected / u, 0.35 * bias.expected / u);
    cr_expect(fabs(a.bias_sigma) < 6);
}

Test(accuracy, nothing_is_predicted_where_the_statistics_are_of_low_precision) {
    struct problem p released_by(problem_free);
    struct soft_kernel k = {.lanes = 8};
    problem_init(&p, NB_OP_RMSNORM, NB_BF16, 64, 384);
    problem_fill_normal(&p, 0, 1, 78);
    p.c.stats_dtype = NB_STATS_X;
    cr_expect(isnan(soft_accuracy(&k, &p, NULL).bias_sigma));
}
