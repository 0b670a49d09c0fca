// SPDX-License-Identifier: Apache-2.0
/* What a step costs and what a norm saves of it, on rates of round figures: products take 4 s, what is moved 1 s, LayerNorm 2 s, of which RMSNorm
 * saves a half. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/models/step.h"
#include "tests/support/plans.h"

TestSuite(step, .init = load_kernels_quietly, .fini = nb_registry_release);

static struct nb_interval around(double v, double half) { return (struct nb_interval){v, v - half, v + half}; }

static const char text[] =
    "{\"title\":\"t\",\"source\":\"s\",\"work\":\"inference\",\"tokens\":10,\"operations\":["
    "{\"op\":\"product\",\"shape\":\"1000x10x10\",\"batch\":2,\"count\":2},{\"op\":\"norm\",\"shape\":\"10x16\",\"count\":4},"
    "{\"op\":\"elementwise\",\"shape\":\"1024x1024\",\"reads\":1,\"writes\":1,\"dispatches\":3,\"count\":2}]}";

struct measured {
    struct nb_model_step step;
    struct nb_rates rates;
    struct nb_norm_times norms;
};

/* half: of every interval, of the value. */
static struct measured measured_of(double half) {
    struct measured m = {.norms = {.n = 1, .items = nb_alloc(1, sizeof *m.norms.items)}};
    cr_assert_eq(nb_model_step_parse(&m.step, "m.json", text, strlen(text), 0), 0);
    nb_rates_add(&m.rates, &m.step);
    cr_assert_eq(m.rates.n, 1);
    m.rates.products[0].seconds = around(1, half);
    for (int i = 0; i < NB_N_COPY_SIZES; i++)
        m.rates.copies[i] = (struct nb_rate_copy){nb_copy_bytes(i), around(0x1p-24, half * 0x1p-24)};
    m.norms.items[0] = (struct nb_norm_time){.rows = 10,
                                             .cols = 16,
                                             .timed_rows = 10,
                                             .against_s = around(0.5, half / 2),
                                             .ratio = around(0.5, half / 2),
                                             .of_dispatches = 4,
                                             .against_dispatches = 7,
                                             .of_bytes = 480e9 / 4,
                                             .against_bytes = 480e9 / 2};
    return m;
}

static void release(struct measured *m) {
    nb_model_step_release(&m->step);
    nb_rates_release(&m->rates);
    nb_norm_times_release(&m->norms);
}

static struct nb_step_side side_of(const struct measured *m, const char *machine) {
    return nb_step_sum(&m->step, NB_PART_STEP, &m->rates, &m->norms, machine ? nb_machine_of(machine) : NULL);
}

Test(step, the_sum_of_its_operations) {
    struct measured m released_by(release) = measured_of(0);
    const struct nb_step_side s = side_of(&m, NULL);
    cr_expect(s.products_s.value == 4 && s.moved_s.value == 1 && s.norms_s.value == 2 && s.saved_s.value == 1);
    cr_expect(s.dispatches == 2 + 2 * 3 + 4 * 7 && s.norm_dispatches == 28 && s.of_norm_dispatches == 16);
    cr_expect(nb_step_seconds(&s, 0).value == 7 && nb_step_seconds(&s, 1).value == 7 + 36);
    cr_expect(nb_step_share(&s).value == 2.0 / 7 && nb_step_cut(&s, 0).value == 1.0 / 7);
    cr_expect(!s.reason && s.flops == 2 * 2 * 2e5);
}

Test(step, the_saving_never_exceeds_the_share_and_their_intervals_hold_them) {
    struct measured m released_by(release) = measured_of(0.4);
    const struct nb_step_side s = side_of(&m, NULL);
    const struct nb_interval cut = nb_step_cut(&s, 0), share = nb_step_share(&s);
    cr_expect(cut.low < cut.value && cut.value < cut.high && share.low < share.value && share.value < share.high);
    cr_expect(cut.high <= share.high && cut.value <= share.value);
    cr_expect_float_eq(cut.low, 4 * 0.3 * 0.3 / (4 * 1.4 + 1.4 + 4 * 0.3), 1e-12);
    cr_expect_float_eq(cut.high, 4 * 0.7 * 0.7 / (4 * 0.6 + 0.6 + 4 * 0.7), 1e-12);
}

Test(step, a_slower_norm_saves_less_than_nothing) {
    struct measured m released_by(release) = measured_of(0.1);
    m.norms.items[0].ratio = around(1.5, 0.1);
    const struct nb_step_side s = side_of(&m, NULL);
    const struct nb_interval cut = nb_step_cut(&s, 0);
    cr_expect_float_eq(cut.value, -1.0 / 7, 1e-12);
    cr_expect(cut.low < cut.value && cut.value < cut.high && cut.high < 0);
}

Test(step, dispatch_takes_the_cut_to_its_limit) {
    struct measured m released_by(release) = measured_of(0);
    const struct nb_step_side s = side_of(&m, NULL);
    cr_expect_float_eq(nb_step_cut_limit(&s), 12.0 / 36, 1e-12);
    const double d = nb_step_dispatch_for(&s, 0.25).value;
    cr_expect_float_eq(nb_step_cut(&s, d).value, 0.25, 1e-12);
    cr_expect_eq(nb_step_dispatch_for(&s, 0.1).value, 0, "it is there without dispatch");
    cr_expect(isinf(nb_step_dispatch_for(&s, 0.34).value), "no dispatch is enough");
}

Test(step, on_a_gpu_operations_take_their_flops_and_bytes) {
    struct measured m released_by(release) = measured_of(0);
    m.norms.items[0].reason = nb_strdup("not timed here");
    const struct nb_step_side s = side_of(&m, "titan-x-pascal");
    cr_expect_float_eq(s.products_s.value, 8e5 / 10.97e12, 1e-18);
    cr_expect_float_eq(s.moved_s.value, 2 * 8.0 * 1024 * 1024 / 480e9, 1e-12);
    cr_expect(s.norms_s.value == 2 && s.saved_s.value == 1 && !s.reason);
    cr_expect_null(nb_machine_of("gtx-9000"));
}

Test(step, what_was_not_timed_leaves_no_figure_and_says_why) {
    struct measured m released_by(release) = measured_of(0);
    m.rates.products[0].seconds = around(NAN, 0);
    m.rates.reason = nb_strdup("no library");
    struct nb_step_side s = side_of(&m, NULL);
    cr_expect(isnan(nb_step_cut(&s, 0).value) && isnan(nb_step_dispatch_for(&s, 0.1).value));
    cr_expect_str_eq(s.reason, "no library");
    m.step.dtype = NB_BF16;
    s = side_of(&m, NULL);
    cr_expect_str_eq(s.reason, "products of 16 bits are not timed on a CPU");
}

Test(step, products_are_timed_smaller_and_once) {
    static const char many[] =
        "{\"title\":\"t\",\"source\":\"s\",\"work\":\"training\",\"tokens\":4096,\"parameters\":1,\"tensors\":1,"
        "\"operations\":[{\"op\":\"product\",\"shape\":\"4096x4096x4096\"},"
        "{\"op\":\"product\",\"shape\":\"1x4096x128256\"},{\"op\":\"product\",\"shape\":\"64x100x200\"}]}";
    struct nb_model_step step released_by(nb_model_step_release);
    struct nb_rates rates released_by(nb_rates_release) = {0};
    cr_assert_eq(nb_model_step_parse(&step, "m.json", many, strlen(many), 0), 0);
    nb_rates_add(&rates, &step);
    nb_rates_add(&rates, &step);
    cr_assert_eq(rates.n, 1 + 3 + 3, "forward and both backward ones of a square product are one");
    const struct nb_rate_size *square = &rates.products[0].timed, *row = &rates.products[1].timed,
                              *small = &rates.products[4].timed;
    cr_expect(square->rows == 256 && square->inner == 1024 && square->cols == 128);
    cr_expect(row->rows == 1 && row->inner == 4096 && row->cols == 512, "no more than 8 MiB of it");
    cr_expect(small->rows == 64 && small->inner == 100 && small->cols == 200);
}

Test(step, bytes_cost_what_a_copy_of_as_many_costs) {
    struct nb_rates rates = {0};
    for (int i = 0; i < NB_N_COPY_SIZES; i++)
        rates.copies[i] = (struct nb_rate_copy){nb_copy_bytes(i), around(i < 3 ? 1 : 2, 0)};
    cr_expect_eq(nb_rate_of_bytes(&rates, 1000).value, 1000);
    cr_expect_eq(nb_rate_of_bytes(&rates, 1e10).value, 2e10);
    cr_expect_eq(nb_rate_of_bytes(&rates, 2 * nb_copy_bytes(2)).value, 1.5 * 2 * nb_copy_bytes(2),
                 "halfway between two sizes");
    cr_expect_eq(nb_rate_of_bytes(&rates, 0).value, 0);
}

Test(step, kernels_of_a_style_and_their_cases) {
    struct nb_norm_pair pairs[] = {nb_norm_pair_of("rmsnorm", "layernorm", "fused"),
                                   nb_norm_pair_of("rmsnorm", "layernorm", "composed")};
    struct nb_config config released_by(nb_config_release) = {.path = nb_strdup("m")};
    struct nb_model_step step released_by(nb_model_step_release);
    cr_expect_str_eq(pairs[0].of[NB_FORWARD], "rmsnorm_fast");
    cr_expect_str_eq(pairs[0].against[NB_BACKWARD], "layernorm_backward_fast");
    cr_expect_str_eq(pairs[1].of[NB_BACKWARD], "rmsnorm_backward_composed");
    cr_assert_eq(nb_model_step_read(&step, "llama-3-8b", 4096), 0);
    nb_norms_plan(&step, pairs, 2, false, &config);
    cr_assert_eq(config.n_blocks, 8);
    struct nb_norm_times times;
    nb_norm_times_find(&times, &pairs[1], &step, false, NULL, NULL);
    cr_assert_eq(times.n, 2);
    cr_expect(times.items[0].timed_rows < 4096 && times.items[0].timed_rows >= 512 && times.items[0].reason);
    cr_expect(times.items[0].of_dispatches > 1 && times.items[0].against_dispatches > times.items[0].of_dispatches);
    nb_norm_times_release(&times);
    nb_norm_times_find(&times, &pairs[1], &step, true, NULL, NULL);
    cr_expect_eq(times.items[0].timed_rows, 128, "rows of 16 KiB that are 2 MiB");
    nb_norm_times_release(&times);
}
