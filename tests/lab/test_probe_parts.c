// SPDX-License-Identifier: Apache-2.0
/* The instruments of the probes by themselves: rows of integers, weighing. */
#include <criterion/criterion.h>
#include <math.h>

#include "src/lab/probe/probe_root.c"
#include "tests/support/probe.h"

Test(probe, rows_of_integers_have_the_sum_of_squares_that_was_asked_for) {
    struct nb_case c;
    struct nb_probe p;
    struct nb_box b;
    cr_assert_eq(nb_registry_load_builtin(), 0);
    const struct nb_entry *entry = nb_registry_find("rmsnorm_twopass_scalar_bf16");
    cr_assert_not_null(entry);
    cr_assert_eq(probe_case(&c, entry, (struct nb_formula){.root = NB_ROOT_MUL_RECIP}), 0);
    nb_probe_init(&p, &c, entry);
    p.unit = 1;
    cr_assert_eq(nb_box_init(&b, &p, 1, 128, 0), 0);
    for (int64_t sum = 100000; sum < 900000; sum += 9973) {
        cr_assert_eq(integers_set(&b, 0, 77, sum), 0);
        cr_expect_eq((double)integers_variance(&b, 0), (double)sum / 128);
        cr_expect_eq(b.x[0], 77);
    }
    cr_expect_eq(integers_set(&b, 0, 1, 128 * 255 * 255 + 1), -1);
    nb_box_release(&b);
    cJSON_Delete(p.answers);
}

/* 256 + k/32 beside 256 by eps alone. */
Test(probe, sums_of_squares_are_weighed_to_2e_minus_20) {
    struct nb_case c;
    struct nb_probe p;
    struct nb_box b;
    struct nb_scale s;
    const char *why = NULL;
    cr_assert_eq(nb_registry_load_builtin(), 0);
    const struct nb_entry *entry = nb_registry_find("rmsnorm_twopass_scalar_bf16");
    cr_assert_not_null(entry);
    cr_assert_eq(probe_case(&c, entry, (struct nb_formula){.root = NB_ROOT_RSQRT_RAW}), 0);
    nb_probe_init(&p, &c, entry);
    p.unit = 1;
    p.eps_place = NB_EPS_INSIDE;
    p.eps_plain = true;
    cr_assert_eq(nb_box_init(&b, &p, 1, 64, 0), 0);
    cr_assert_eq(nb_scale_init(&s, &b, 0, 16, &why), 0, "%s", why);
    for (int k = 1; k < 20; k++) {
        nb_box_set(&b, 0, k, 0.125);
        cr_expect_float_eq(nb_scale_weigh(&s, &b, 0, 16), 256 + k / 64.0, 256 * 0x1p-20, "%d", k);
    }
    nb_box_release(&b);
    p.eps_place = -1;
    cr_assert_eq(nb_box_init(&b, &p, 1, 64, 0), 0);
    cr_expect_eq(nb_scale_init(&s, &b, 0, 16, &why), -1);
    cr_expect_not_null(why);
    nb_box_release(&b);
    cJSON_Delete(p.answers);
}
