// SPDX-License-Identifier: Apache-2.0
/* What can be had at all: the larger of copy and core, and which of them it is. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/registry.h"
#include "src/core/shape.h"
#include "src/measure/launch_job.c"
#include "src/measure/timing.h"
#include "tests/support/files.h"

/* ---- from launches ------------------------------------------------------------------------------------------------ */

/* Six launches of one sample: the case 100 ns, its copy, its core and a call of nothing so much. */
static struct nb_timing timing_beside(double copy_ns, double core_ns, double floor_ns, const char *level) {
    struct nb_launches launches = {0};
    struct nb_timing t = {0};
    const struct nb_noise noise = {.wall_s = 1, .cpu_s = 1};
    for (int l = 0; l < NB_MIN_LAUNCHES; l++) {
        const double own = 100 * (1 + 0.001 * l), copy = copy_ns * (1 + 0.001 * l);
        const struct nb_samples samples = {.ns = &own, .n = 1}, copies = {.ns = &copy, .n = 1};
        nb_launches_add(&launches, &samples, isfinite(copy_ns) ? &copies : NULL, NULL, &noise);
        if (level) nb_launches_bound(&launches, core_ns, floor_ns, level);
    }
    nb_launches_finish(&launches, 800, &t);
    nb_launches_release(&launches);
    return t;
}

static struct nb_timing timing(double copy_ns, double core_ns, const char *level) {
    return timing_beside(copy_ns, core_ns, NAN, level);
}

Test(attainable, on_a_device_is_the_larger_of_copy_and_a_call_of_nothing) {
    const struct nb_timing memory = timing_beside(80, NAN, 30, "L2"), launch = timing_beside(20, NAN, 60, "L2");
    cr_expect_float_eq(memory.attainable.share.value, 0.8, 1e-3);
    cr_expect_str_eq(memory.attainable.bound, "L2");
    cr_expect_float_eq(launch.attainable.share.value, 0.6, 5e-3);
    cr_expect_str_eq(launch.attainable.bound, "launch");
    cr_expect(isnan(launch.attainable.core_ns));
    cr_expect_eq(launch.floor_ns, 60);
}

Test(attainable, is_the_larger_of_copy_and_core) {
    const struct nb_timing memory = timing(80, 30, "L2"), core = timing(80, 90, "L2");
    cr_expect_float_eq(memory.attainable.share.value, 0.8, 1e-3);
    cr_expect_float_eq(memory.attainable.time_ns.value, 80, 1);
    cr_expect_str_eq(memory.attainable.bound, "L2");
    cr_expect_float_eq(memory.attainable.core_ns, 30, 0.1);
    cr_expect_float_eq(core.attainable.share.value, 0.9, 5e-3);
    cr_expect_str_eq(core.attainable.bound, "core");
    cr_expect_lt(core.attainable.share.low, core.attainable.share.high);
}

Test(attainable, goes_by_the_copy_that_is_the_roof) {
    struct nb_launches launches = {0};
    struct nb_timing t = {0};
    const struct nb_noise noise = {.wall_s = 1, .cpu_s = 1};
    for (int l = 0; l < NB_MIN_LAUNCHES; l++) {
        const double own = 100, copy = 120, other = 70;
        const struct nb_samples samples = {.ns = &own, .n = 1}, copies = {.ns = &copy, .n = 1},
                                others = {.ns = &other, .n = 1};
        nb_launches_add(&launches, &samples, &copies, NULL, &noise);
        nb_launches_add_other(&launches, &samples, &others);
        nb_launches_bound(&launches, 30, NAN, "L3");
    }
    nb_launches_finish(&launches, 800, &t);
    nb_launches_release(&launches);
    cr_expect_float_eq(t.attainable.share.value, 0.7, 1e-3);
    cr_expect_str_eq(t.attainable.bound, "L3");
}

/* Six launches of four samples, two of them with a neighbour, who doubles the case's time and leaves the copy alone; in the last `busy`
 * launches he was there throughout. */
static struct nb_timing timing_with_a_neighbour(int busy) {
    static const double own[] = {200, 100, 100, 200}, copy[] = {80, 80, 80, 80}, other[] = {70, 70, 70, 70};
    static const bool shared[] = {true, false, false, true}, never[4], late[] = {false, false, true, false};
    const struct nb_samples samples = {.ns = own, .n = 4, .shared = shared},
                            others = {.ns = other, .n = 4, .shared = never};
    const struct nb_samples copies = {.ns = copy, .n = 4, .shared = late};
    const struct nb_noise noise = {.wall_s = 1, .cpu_s = 1, .probe_cycles = 6000};
    struct nb_launches launches = {0};
    struct nb_timing t = {0};
    for (int l = 0; l < NB_MIN_LAUNCHES; l++) {
        nb_launches_add(&launches, &samples, &copies, NULL, &noise);
        nb_launches_add_other(&launches, &samples, &others);
        nb_launches_bound(&launches, 30, NAN, "L2");
        launches.values[l].is_shared = l >= NB_MIN_LAUNCHES - busy;
    }
    nb_launches_finish(&launches, 800, &t);
    nb_launches_release(&launches);
    return t;
}

Test(attainable, is_of_the_samples_without_anybody_else_on_the_core) {
    const struct nb_timing all = timing_with_a_neighbour(0), few = timing_with_a_neighbour(4),
                           some = timing_with_a_neighbour(1);
    cr_expect_float_eq(all.attainable.share.value, 0.7, 1e-3, "the runner-up is the roof");
    cr_expect_float_eq(all.attainable.time_ns.value, 70, 1e-3);
    cr_expect_float_eq(all.attainable.core_ns, 30, 1e-3);
    cr_expect(all.attainable.alone && !few.attainable.alone);
    cr_expect_float_eq(all.core_shared, 0.5, 1e-12);
    cr_expect_float_eq(all.roof.value, sqrt(0.7 * 0.35), 1e-3, "other ratios are of all samples");
    cr_expect_float_eq(few.attainable.share.value, sqrt(0.7 * 0.35), 1e-3, "too few launches have such samples");
    cr_expect_float_eq(few.core_shared, (2 * 2 + 4 * 4) / 24.0, 1e-12);
    cr_expect(some.attainable.alone && isnan(some.attainable.share.low), "five launches give no interval");
    cr_expect_float_eq(some.attainable.share.value, 0.7, 1e-3);
    cr_expect(isnan(timing(80, 30, "L2").core_shared), "nothing was probed");
}

Test(attainable, pairs_count_where_neither_was_timed_beside_somebody) {
    static const double a[] = {2, 3, 5, 7, 11}, b[] = {1, 1, 1, 1, 1};
    static const bool with_a[] = {true, false, false, false, false}, with_b[] = {false, true, false, false, false};
    const struct nb_samples x = {.ns = a, .n = 5, .shared = with_a}, y = {.ns = b, .n = 5, .shared = with_b},
                            unknown = {.ns = b, .n = 5};
    cr_expect_float_eq(nb_paired_ln(&x, &y, NB_PAIRS_ALONE), log(7), 1e-12);
    cr_expect_float_eq(nb_samples_median_alone(&x), 6, 1e-12, "of 3, 5, 7, 11");
    cr_expect(isnan(nb_paired_ln(&x, &unknown, NB_PAIRS_ALONE)) && isnan(nb_samples_median_alone(&unknown)));
    cr_expect(nb_is_shared(2311, 2100) && !nb_is_shared(2309, 2100));
    cr_expect(!nb_is_shared(NAN, 2100) && !nb_is_shared(2100, NAN));
}

Test(attainable, without_copy_or_core_there_is_none) {
    const struct nb_timing no_copy = timing(NAN, 30, "L1"), no_core = timing(80, NAN, "L1"), old = timing(80, 0, NULL);
    cr_expect(isnan(no_copy.attainable.share.value));
    cr_expect(isnan(no_core.attainable.share.value));
    cr_expect(isnan(old.attainable.share.value), "journals of earlier versions say nothing of the core");
    cr_expect_str_eq(no_copy.attainable.bound, "");
    cr_expect_str_eq(old.attainable.bound, "");
    cr_expect_float_eq(old.roof.value, 0.8, 1e-3, "the roof stays");
}

Test(attainable, reads_back_from_json) {
    struct nb_timing t = timing(80, 90, "DRAM"), back;
    cJSON *json = kept_json(nb_json_of_members(nb_timing_members, &t));
    cr_assert_eq(nb_json_get_members(json, nb_timing_members, &back, "a test"), 0);
    cr_expect_eq(back.attainable.share.value, t.attainable.share.value);
    cr_expect_eq(back.attainable.time_ns.high, t.attainable.time_ns.high);
    cr_expect_eq(back.attainable.core_ns, t.attainable.core_ns);
    cr_expect_str_eq(back.attainable.bound, "core");
    free(back.reference);
    cJSON_DeleteItemFromObjectCaseSensitive(json, "attainable");
    cr_assert_eq(nb_json_get_members(json, nb_timing_members, &back, "a test"), 0,
                 "results of earlier versions have none");
    cr_expect(isnan(back.attainable.share.value));
    free(back.reference);
}

/* ---- the core ----------------------------------------------------------------------------------------------------- */

static struct nb_case case_of(uint32_t op, uint32_t pass, uint32_t dtype, const char *shape, int threads) {
    struct nb_case c;
    char reason[200];
    nb_case_init(&c);
    c.op = op;
    c.pass = pass;
    c.dtype = dtype;
    c.threads = threads;
    cr_assert_eq(nb_shape_parse(&c.shape, shape, reason, sizeof reason), 0, "%s", reason);
    nb_case_normalize(&c);
    return c;
}

Test(core, rates_are_those_of_a_machine) {
    struct core_rates r;
    core_rates_measure(&r);
    cr_expect(r.clock_ghz > 0.05 && r.clock_ghz < 10, "%g additions per ns", r.clock_ghz);
    if (nb_cpu_refuses(NB_CPU_AVX2, NB_256)) {
        cr_expect(isnan(r.fma_ns));
        return;
    }
    /* At most two multiply-adds of 16 lanes in a cycle; at least one of 4 lanes, preempted or not, since the fastest run counts. */
    cr_expect(r.fma_ns * r.clock_ghz > 0.9 / 32 / 2 && r.fma_ns * r.clock_ghz < 4, "%g ns at %g GHz", r.fma_ns,
              r.clock_ghz);
    for (int d = NB_F16; d <= NB_BF16; d++) {
        cr_expect(r.widen_ns[d] > 0 && r.widen_ns[d] < 5);
        cr_expect(r.narrow_ns[d] > 0 && r.narrow_ns[d] < 5);
    }
    cr_expect_eq(r.widen_ns[NB_F32], 0);
}

Test(core, the_better_of_two_measurements_counts) {
    struct core_rates a = {.clock_ghz = 2, .fma_ns = 3, .widen_ns = {0, 1, NAN}, .narrow_ns = {0, 5, 6}};
    const struct core_rates b = {.clock_ghz = 3, .fma_ns = 4, .widen_ns = {0, 0.5, 7}, .narrow_ns = {0, 6, 5}};
    core_rates_best(&a, &b);
    cr_expect_eq(a.clock_ghz, 3);
    cr_expect_eq(a.fma_ns, 3);
    cr_expect_eq(a.widen_ns[NB_F16], 0.5);
    cr_expect_eq(a.widen_ns[NB_BF16], 7);
    cr_expect_eq(a.narrow_ns[NB_BF16], 5);
}

Test(core, the_bound_is_that_of_the_op_and_not_of_a_kernel) {
    const struct core_rates r = {.fma_ns = 1, .widen_ns = {0, 10, 10}, .narrow_ns = {0, 20, 20}};
    cr_assert_eq(nb_registry_load_builtin(), 0);
    struct nb_case c = case_of(NB_OP_RMSNORM, NB_FORWARD, NB_F32, "8x512", 1);
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
    const struct nb_case half = case_of(NB_OP_RMSNORM, NB_FORWARD, NB_BF16, "8x512", 1);
    cr_expect_float_eq(core_bound_ns(&half, &r), 8 * 512 * 30, 1e-6, "conversions of x and y");
    const struct nb_case two = case_of(NB_OP_RMSNORM, NB_FORWARD, NB_F32, "8x512", 2);
    cr_expect_float_eq(core_bound_ns(&two, &r), bound / 2, 1e-6);
    const struct core_rates unknown = {.fma_ns = NAN};
    cr_expect(isnan(core_bound_ns(&two, &unknown)));
}

Test(core, levels_follow_the_caches) {
    const struct nb_cpu *cpu = nb_cpu_light();
    char shape[64];
    if (cpu->l1d_bytes <= 0 || cpu->l2_bytes <= 0 || cpu->l3_bytes <= 0)
        cr_skip("this machine does not say its caches");
    const struct {
        double bytes;
        const char *level;
    } sets[] = {{0.5 * (double)cpu->l1d_bytes, "L1"},
                {1.5 * (double)cpu->l1d_bytes, "L2"},
                {1.5 * (double)cpu->l2_bytes, "L3"},
                {1.5 * (double)cpu->l3_bytes, "DRAM"}};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        snprintf(shape, sizeof shape, "%.0fx64", sets[i].bytes / (2 * 64 * 4));
        const struct nb_case c = case_of(NB_OP_RMSNORM, NB_FORWARD, NB_F32, shape, 1);
        cr_expect_str_eq(case_level(&c), sets[i].level, "%s", shape);
    }
    struct nb_case cold = case_of(NB_OP_RMSNORM, NB_FORWARD, NB_F32, "8x64", 1);
    cold.cache = NB_COLD;
    cr_expect_str_eq(case_level(&cold), "DRAM");
}
