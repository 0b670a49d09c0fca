// SPDX-License-Identifier: Apache-2.0
/* What exhaustive modes judge by: each checker against MPFR, and its fast form against the plain one. */
#include <criterion/criterion.h>
#include <math.h>
#include <mpfr.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/lab/exhaustive/exhaust.h"
#include "src/lab/exhaustive/exhaust_rsqrt.c"
#include "src/lab/exhaustive/exhaust_stage.c"
#include "src/lab/exhaustive/root_variants.h"
#include "tests/support/numerics.h"

/* ---- the checker of 1/sqrt ---- */

static float root_by_mpfr(float x) {
    mpfr_t v;
    mpfr_init2(v, 24); /* rounded once, to f32's precision: the results are normal numbers of f32 */
    mpfr_set_flt(v, x, MPFR_RNDN);
    mpfr_rec_sqrt(v, v, MPFR_RNDN);
    const float r = mpfr_get_flt(v, MPFR_RNDN);
    mpfr_clear(v);
    return r;
}

/* Positive finite floats: even and odd exponents, subnormals, powers of two and their neighbours. */
static float some_float(struct random_state *r, int i) {
    const uint32_t random = (uint32_t)random_bits(r);
    if (i % 4 == 0) return nb_float_of(random % 0x800000u + 1);
    if (i % 4 == 1) return nb_float_of((random % 254 + 1) << 23 | (random >> 30));
    return nb_float_of(random % 0x7f7fffffu + 1);
}

Test(exhaust_checks, the_checker_calls_the_rounded_root_of_mpfr_right_and_both_its_neighbours_wrong) {
    struct random_state random = {11};
    for (int i = 0; i < 40000; i++) {
        const float x = some_float(&random, i), r = root_by_mpfr(x);
        const float tries[] = {r, nextafterf(r, 0), nextafterf(r, INFINITY)};
        for (int k = 0; k < 3; k++) {
            struct root_sums sums = {0};
            root_check(&x, &tries[k], 1, true, &sums);
            cr_assert_eq(sums.n_misrounded, k > 0, "x %a, result %a", (double)x, (double)tries[k]);
            cr_assert_eq(sums.histogram[k > 0], 1, "x %a, result %a", (double)x, (double)tries[k]);
            cr_assert(k > 0 ? sums.max_ulp >= 0.5 : sums.max_ulp <= 0.5 + 1e-7, "%a: %g", (double)x, sums.max_ulp);
        }
    }
}

Test(exhaust_checks, the_error_in_ulp_of_a_root_is_that_of_mpfr) {
    struct random_state random = {12};
    mpfr_t y, error;
    mpfr_inits2(200, y, error, (mpfr_ptr)0);
    for (int i = 0; i < 20000; i++) {
        const float x = some_float(&random, i), r = root_by_mpfr(x) * (1 + 0x1p-20f * (float)(i % 7 - 3));
        mpfr_set_flt(y, x, MPFR_RNDN);
        mpfr_rec_sqrt(y, y, MPFR_RNDN);
        mpfr_set_flt(error, r, MPFR_RNDN);
        mpfr_sub(error, error, y, MPFR_RNDN);
        mpfr_mul_2si(error, error, 24 - (long)mpfr_get_exp(y), MPFR_RNDN);
        const double want = mpfr_get_d(error, MPFR_RNDN), got = root_error_ulp(x, r);
        cr_assert(fabs(got - want) <= 1e-7, "x %a, result %a: %g, not %g", (double)x, (double)r, got, want);
    }
    mpfr_clears(y, error, (mpfr_ptr)0);
}

#if defined(__x86_64__)
/* Everything in it but padding. */
static void expect_equal_sums(const struct root_sums *a, const struct root_sums *b, const char *what) {
    cr_expect_eq(a->n, b->n, "%s", what);
    cr_expect_arr_eq(a->outcomes, b->outcomes, sizeof a->outcomes, "%s", what);
    cr_expect_eq(a->n_misrounded, b->n_misrounded, "%s", what);
    cr_expect_arr_eq(a->histogram, b->histogram, sizeof a->histogram, "%s", what);
    cr_expect_eq(a->sum_ulp, b->sum_ulp, "%s", what);
    cr_expect_eq(a->max_ulp, b->max_ulp, "%s", what);
    cr_expect_eq(a->max_relative, b->max_relative, "%s", what);
    cr_expect_eq(a->witness, b->witness, "%s", what);
}

Test(exhaust_checks, eight_roots_at_a_time_are_judged_as_one_by_one) {
    if (nb_cpu_refuses(NB_CPU_AVX2, NB_NATIVE)) cr_skip_test("no AVX2");
    struct random_state random = {13};
    float x[NB_BATCH], r[NB_BATCH];
    for (int round = 0; round < 60; round++) {
        struct root_sums plain = {0}, wide = {0};
        const int n = round % 3 ? NB_BATCH - round : NB_BATCH;
        for (int i = 0; i < NB_BATCH; i++) {
            x[i] = some_float(&random, i);
            const float right = root_by_mpfr(x[i]),
                        odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0f, -1, 0x1p-149f, 0x1p-127f};
            r[i] = i % 5 ? right : right * (1 + 0x1p-22f * (float)(random_bits(&random) % 4096));
            if (round % 2 && i % 9 == 0) r[i] = odd[random_bits(&random) % 8];
        }
        root_check(x, r, n, true, &plain);
        root_check(x, r, n, false, &wide);
        expect_equal_sums(&plain, &wide, "random");
    }
}

Test(exhaust_checks, fast_forms_of_a_root_give_the_bits_of_the_plain_ones) {
    if (nb_cpu_refuses(NB_CPU_AVX2, NB_NATIVE)) cr_skip_test("no AVX2");
    struct random_state random = {14};
    float x[NB_BATCH], a[NB_BATCH], b[NB_BATCH];
    for (size_t v = 0; v < nb_n_root_variants; v++) {
        if (!nb_root_variants[v].fill_v3) continue;
        for (int round = 0; round < 20; round++) {
            for (int i = 0; i < NB_BATCH; i++) x[i] = nb_float_of((uint32_t)random_bits(&random));
            nb_root_variants[v].fill(x, a);
            nb_root_variants[v].fill_v3(x, b);
            for (int i = 0; i < NB_BATCH; i++)
                cr_assert(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])), "%s of %a", nb_root_variants[v].name,
                          (double)x[i]);
        }
    }
}

Test(exhaust_checks, double_roundings_are_found_by_their_residuals_as_by_definition) {
    if (nb_cpu_refuses(NB_CPU_AVX2, NB_NATIVE)) cr_skip_test("no AVX2");
    for (int d = NB_F16; d <= NB_BF16; d++) {
        int64_t n = 0;
        for (int i = 0; i < 64; i++) {
            const float x = (float)(1 + (2 * i + 1) / 128.0);
            const struct double_roundings a = double_roundings(x, 0x3f800000u, 37, 50003, (enum nb_dtype)d, true);
            const struct double_roundings b = double_roundings(x, 0x3f800000u, 37, 50003, (enum nb_dtype)d, false);
            cr_assert_eq(a.n, b.n);
            cr_assert_eq(a.first, b.first);
            n += a.n;
        }
        cr_expect_gt(n, 0, "the sample must show the phenomenon");
    }
}
#endif

/* ---- conversions and short rows ---- */

static double value_by_mpfr(float x, const struct nb_format *f, bool has_inf) {
    mpfr_t v;
    if (isnan(x) || (isinf(x) && !has_inf)) return NAN;
    const mpfr_exp_t old_min = mpfr_get_emin();
    mpfr_init2(v, f->precision);
    mpfr_set_emin(f->emin - f->precision + 2);
    const int inexact = mpfr_set_flt(v, x, MPFR_RNDN);
    mpfr_subnormalize(v, inexact, MPFR_RNDN);
    const double y = mpfr_get_d(v, MPFR_RNDN);
    mpfr_set_emin(old_min);
    mpfr_clear(v);
    if (fabs(y) <= f->max_finite) return y;
    return has_inf ? copysign(INFINITY, y) : NAN;
}

Test(exhaust_checks, rounding_by_integers_is_that_of_mpfr) {
    static const struct {
        const struct nb_narrow *narrow;
        enum nb_number number;
    } formats[] = {{&nb_narrow_f16, NB_NUM_F16},
                   {&nb_narrow_bf16, NB_NUM_BF16},
                   {&nb_narrow_e5m2, NB_NUM_E5M2},
                   {&nb_narrow_e4m3, NB_NUM_E4M3}};
    struct random_state random = {15};
    for (int f = 0; f < 4; f++) {
        const struct nb_format *format = &nb_numbers[formats[f].number];
        for (int i = 0; i < 100000; i++) {
            uint32_t bits = (uint32_t)random_bits(&random);
            if (i % 2) bits &= 0xfffff000u << (i % 12); /* ties */
            if (i % 8 >= 4) { /* where the format has numbers: from below its least one to above its largest */
                const uint32_t exponent =
                    (uint32_t)(format->emin - format->precision - 1 + 127 +
                               (int)(random_bits(&random) %
                                     (unsigned)(format->emax - format->emin + format->precision + 3)));
                bits = (bits & 0x807fffffu) | (exponent < 255 ? exponent : 254) << 23;
            }
            const uint32_t code = nb_convert_by_integers(bits, formats[f].narrow);
            const double got = nb_number_decode(code, formats[f].number);
            const double want = value_by_mpfr(nb_float_of(bits), format, formats[f].narrow->has_inf);
            cr_assert((isnan(got) && isnan(want)) || (got == want && !signbit(got) == !signbit(want)),
                      "%s of %08x: %a, not %a", format->name, bits, got, want);
        }
    }
}

Test(exhaust_checks, the_judge_tells_right_from_wrong_beside_every_tie_and_leaves_the_tie_itself_undecided) {
    for (int d = NB_F16; d <= NB_BF16; d++) {
        const struct nb_judge judge = nb_judge_of((enum nb_dtype)d);
        const uint32_t infinity = d == NB_F16 ? 0x7c00 : 0x7f80;
        for (uint32_t bits = 1; bits + 1 < infinity; bits += 7) {
            const double below = nb_get(&(uint16_t){(uint16_t)bits}, 0, (enum nb_dtype)d);
            const double above = nb_get(&(uint16_t){(uint16_t)(bits + 1)}, 0, (enum nb_dtype)d),
                         tie = (below + above) / 2;
            struct nb_judged right = {0}, wrong = {0}, open = {0};
            nb_judge_add(&judge, &right, 0, tie * (1 - 0x1p-40), below);
            nb_judge_add(&judge, &right, 0, tie * (1 + 0x1p-40), above);
            nb_judge_add(&judge, &wrong, 0, tie * (1 - 0x1p-40), above);
            nb_judge_add(&judge, &wrong, 0, tie * (1 + 0x1p-40), below);
            nb_judge_add(&judge, &open, 0, tie, above);
            cr_assert(right.misrounded == 0 && right.undecided == 0 && right.n == 2, "%04x", bits);
            cr_assert(wrong.misrounded == 2 && wrong.undecided == 0, "%04x", bits);
            cr_assert(open.misrounded == 0 && open.undecided == 1, "%04x", bits);
        }
        struct nb_judged lost = {0};
        nb_judge_add(&judge, &lost, 0, 1, NAN);
        nb_judge_add(&judge, &lost, 0, NAN, INFINITY);
        nb_judge_add(&judge, &lost, 0, nb_formats[d].overflow, INFINITY);
        cr_expect(lost.n == 1 && lost.non_finite == 3 && lost.misrounded == 1);
    }
}

Test(exhaust_checks, near_ties_are_resolved_by_the_second_double_and_true_ties_are_not) {
    for (int d = NB_F16; d <= NB_BF16; d++) {
        const struct nb_judge judge = nb_judge_of((enum nb_dtype)d);
        for (int sign = -1; sign <= 1; sign += 2) {
            const double unit = nb_ulp(1, (enum nb_dtype)d), below = sign * (1 + unit), above = sign * (1 + 2 * unit);
            const double tie = (below + above) / 2, lo = sign * 0x1p-70;
            struct nb_judged judged = {0};
            cr_assert(nb_judge_add(&judge, &judged, 0, tie, below));
            nb_judge_resolve(&judge, &judged, (struct nb_twofold){tie, -lo}, below);
            cr_expect(judged.undecided == 0 && judged.misrounded == 0);
            cr_assert(nb_judge_add(&judge, &judged, 0, tie, below));
            nb_judge_resolve(&judge, &judged, (struct nb_twofold){tie, lo}, below);
            cr_expect(judged.undecided == 0 && judged.misrounded == 1);
            cr_assert(nb_judge_add(&judge, &judged, 0, tie, above));
            nb_judge_resolve(&judge, &judged, (struct nb_twofold){tie, 0}, above);
            cr_expect(judged.undecided == 1 && judged.misrounded == 1);
        }
    }
}
