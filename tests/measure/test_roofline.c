// SPDX-License-Identifier: Apache-2.0
/* What can be had at all: the larger of copy and core, and which of them it is. */
#include <criterion/criterion.h>
#include <math.h>

#include "src/core/registry.h"
#include "src/measure/launch_job.c"
#include "src/measure/timing.h"
#include "tests/support/cases.h"

/* ---- from launches ------------------------------------------------------------------------------------------------ */

/* Six launches of one sample: the case 100 ns, its copy, its core and a call of nothing so much. */
static struct nb_timing timing_beside(double copy_ns, double core_ns, double floor_ns, const char *level) {
    struct nb_launches launches released_by(nb_launches_release) = {0};
    struct nb_timing t = {0};
    const struct nb_noise noise = {.wall_s = 1, .cpu_s = 1};
    for (int l = 0; l < NB_MIN_LAUNCHES; l++) {
        const double own = 100 * (1 + 0.001 * l), copy = copy_ns * (1 + 0.001 * l);
        const struct nb_samples samples = {.ns = &own, .n = 1}, copies = {.ns = &copy, .n = 1};
        nb_launches_add(&launches, &samples, isfinite(copy_ns) ? &copies : NULL, NULL, &noise);
        if (level) nb_launches_bound(&launches, core_ns, floor_ns, level);
    }
    nb_launches_finish(&launches, 800, &t);
    return t;
}

/* The larger of copy and core, on a device of copy and a call of nothing; none where one of them is not known. */
Test(roofline, is_the_largest_of_what_is_known) {
    static const struct {
        double copy_ns, core_ns, floor_ns, share;
        const char *bound, *level;
    } cases[] = {{80, 30, NAN, 0.8, "L2", "L2"},     {80, 90, NAN, 0.9, "core", "L2"}, {80, NAN, 30, 0.8, "L2", "L2"},
                 {20, NAN, 60, 0.6, "launch", "L2"}, {NAN, 30, NAN, NAN, "", "L1"},    {80, NAN, NAN, NAN, "", "L1"},
                 {80, 0, NAN, NAN, "", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct nb_timing t = timing_beside(cases[i].copy_ns, cases[i].core_ns, cases[i].floor_ns, cases[i].level);
        cr_expect_str_eq(t.roofline.bottleneck, cases[i].bound, "case %zu", i);
        if (isnan(cases[i].share))
            cr_expect(isnan(t.roofline.share.value), "case %zu", i);
        else
            cr_expect_float_eq(t.roofline.share.value, cases[i].share, 5e-3, "case %zu", i);
        if (isfinite(cases[i].copy_ns))
            cr_expect_float_eq(t.vs_copy.value, cases[i].copy_ns / 100, 1e-3, "the copy stays");
    }
}

/* ---- the core ----------------------------------------------------------------------------------------------------- */

static struct nb_case rms_of(uint32_t dtype, int threads) {
    struct nb_case c = case_of(NB_OP_RMSNORM, dtype);
    c.threads = threads;
    set(&c, "shape", "8x512");
    return c;
}

Test(core, the_bound_is_that_of_the_op_and_not_of_a_kernel) {
    const struct core_rates r = {.fma_ns = 1, .widen_ns = {0, 10, 10}, .narrow_ns = {0, 20, 20}};
    cr_assert_eq(nb_registry_load_builtin(), 0);
    struct nb_case c = rms_of(NB_F32, 1);
    const double bound = core_bound_ns(&c, &r);
    double fewest = INFINITY;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_kernel *k = nb_registry_at(i)->kernel;
        if (k->op == NB_OP_RMSNORM && k->pass == NB_FORWARD && k->flops > 0) fewest = fmin(fewest, (double)k->flops);
    }
    cr_expect_float_eq(bound, 8 * 512 * fewest / 2, 1e-6);
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_kernel *k = nb_registry_at(i)->kernel;
        if (k->op != NB_OP_RMSNORM || k->pass != NB_FORWARD || k->dtype != NB_F32) continue;
        nb_case_set_kernel(&c, k, NULL);
        cr_expect_float_eq(core_bound_ns(&c, &r), bound, 1e-9, "%s would be compared with itself", k->variant);
    }
    const struct nb_case half = rms_of(NB_BF16, 1);
    cr_expect_float_eq(core_bound_ns(&half, &r), 8 * 512 * 30, 1e-6, "conversions of x and y");
    const struct nb_case two = rms_of(NB_F32, 2);
    cr_expect_float_eq(core_bound_ns(&two, &r), bound / 2, 1e-6);
    const struct core_rates unknown = {.fma_ns = NAN};
    cr_expect(isnan(core_bound_ns(&two, &unknown)));
}
