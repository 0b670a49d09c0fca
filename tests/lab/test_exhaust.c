// SPDX-License-Identifier: Apache-2.0
/* Sweeps over every input: that threads change nothing, and what they judge by, against MPFR. What they find: tests/cli/exhaustive.sh. */
#include <criterion/criterion.h>
#include <math.h>
#include <mpfr.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/lab/exhaustive/exhaust.h"
#include "src/lab/exhaustive/exhaust_roots.c"
#include "tests/support/files.h"
#include "tests/support/numerics.h"

static char *text_without_seconds(cJSON *answer) {
    cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(answer, "rows"))
        cJSON_DeleteItemFromObjectCaseSensitive(row, "seconds");
    return json_text(answer);
}

static struct nb_exhaust_options options_of(int64_t stride, int threads) {
    nb_log_quiet(true);
    return (struct nb_exhaust_options){.threads = threads, .stride = stride};
}

Test(exhaust, roots_of_all_classes_of_inputs_are_as_promised_and_do_not_depend_on_threads) {
    char *texts[2];
    for (int k = 0; k < 2; k++) {
        struct nb_exhaust_options o = options_of(4999, k ? 3 : 1);
        cJSON *answer = kept_json(cJSON_CreateObject());
        const cJSON *row;
        int n = 0;
        o.all_inputs = true;
        cr_assert_eq(nb_exhaust_roots(&o, answer), 0);
        cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(answer, "rows")) {
            const char *name = nb_json_get_text(row, "variant");
            cr_expect_not(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(row, "within_limit")), "%s", name);
            if (strcmp(name, "double") != 0) continue;
            cr_expect_eq(nb_json_get_number(row, "other_kind"), 0, "%s", nb_json_get_text(row, "class"));
            n++;
        }
        cr_expect_eq(n, 8, "classes");
        texts[k] = text_without_seconds(answer);
    }
    cr_expect_str_eq(texts[0], texts[1]);
}

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

Test(exhaust, the_checker_calls_the_rounded_root_of_mpfr_right_and_both_its_neighbours_wrong) {
    struct random_state random = {11};
    for (int i = 0; i < 40000; i++) {
        const float x = some_float(&random, i), r = root_by_mpfr(x);
        const float tries[] = {r, nextafterf(r, 0), nextafterf(r, INFINITY)};
        for (int k = 0; k < 3; k++) {
            struct root_sums sums = {0};
            root_check(&x, &tries[k], 1, &sums);
            cr_assert_eq(sums.n_misrounded, k > 0, "x %a, result %a", (double)x, (double)tries[k]);
            cr_assert_eq(sums.histogram[k > 0], 1, "x %a, result %a", (double)x, (double)tries[k]);
            cr_assert(k > 0 ? sums.max_ulp >= 0.5 : sums.max_ulp <= 0.5 + 1e-7, "%a: %g", (double)x, sums.max_ulp);
        }
    }
}

/* ---- conversions ---- */

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

Test(exhaust, rounding_by_integers_is_that_of_mpfr) {
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
