// SPDX-License-Identifier: Apache-2.0
/* The instruments of the probes by themselves: what a structure loses, rows of integers, weighing. */
#include <criterion/criterion.h>
#include <math.h>

#include "src/lab/probe/probe_internal.h"
#include "src/lab/probe/probe_root.c"
#include "src/lab/probe/probe_sums.c"
#include "tests/support/probe.h"

/* The same sum in f32, block by block: its lanes as they are, then all else in double, which loses nothing. */
static double summed(const struct nb_structure *s, int64_t n, int64_t j) {
    const int64_t zero = sum_zero(n, j);
    double total = 0;
    for (int64_t start = 0; start < n; start += s->block)
        for (int64_t lane = 0; lane < s->lanes && start + lane < n; lane++) {
            float sum = 0;
            for (int64_t i = start + lane; i < start + s->block && i < n; i += s->lanes)
                sum += i == j ? 0x1p24f : i == zero ? 0 : 1;
            total += (double)sum;
        }
    return total;
}

Test(probe, losses_of_a_structure_are_those_of_its_f32_sums) {
    static const struct nb_structure structures[] = {{1024, 1}, {1024, 8}, {1024, 12}, {64, 1},
                                                     {64, 4},   {8, 1},    {1024, 512}};
    for (size_t i = 0; i < sizeof structures / sizeof structures[0]; i++)
        for (int64_t j = 0; j < 1024; j += j < 20 ? 1 : 37) {
            const double lost = 0x1p24 + 1022 - summed(&structures[i], 1024, j);
            cr_expect_eq((double)structure_loss(&structures[i], 1024, j), lost,
                         "blocks of %d, %d lanes, column %d: %d, should be %g", (int)structures[i].block,
                         (int)structures[i].lanes, (int)j, (int)structure_loss(&structures[i], 1024, j), lost);
        }
}

Test(probe, a_structure_is_found_from_its_losses_and_from_no_others) {
    const struct nb_structure truth = {16384, 24};
    struct nb_losses losses = {.n = 16384, .tolerance = 2};
    struct nb_structure found = {0};
    static const int64_t at[] = {0, 1, 5, 23, 24, 333, 8192};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        losses.at[i] = at[i];
        losses.loss[i] = (double)structure_loss(&truth, losses.n, at[i]);
    }
    losses.n_positions = (int)(sizeof at / sizeof at[0]);
    cr_expect_eq(structure_search(&losses, &found), 1);
    cr_expect(found.block == truth.block && found.lanes == truth.lanes);
    losses.loss[3] += 5;
    cr_expect_eq(structure_search(&losses, &found), 0);
    losses.loss[3] = NAN;
    cr_expect_eq(structure_search(&losses, &found), 0);
}

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
