// SPDX-License-Identifier: Apache-2.0
/* From samples to figures: pairing, medians, intervals over launches, and the verdict of noise. Expected values are computed
 * here, from the definitions. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "src/core/log.h"
#include "src/measure/timing.h"

#define assert_near(a, b)                                                                                              \
    cr_assert(fabs((a) - (b)) <= 1e-12 * fabs((double)(b)), "%.17g, expected %.17g", (double)(a), (double)(b))

static const struct nb_noise calm = {.steal_ms = 0, .involuntary = 0, .wall_s = 1, .cpu_s = 1};

static struct nb_samples samples(const double *ns, size_t n) { return (struct nb_samples){.ns = ns, .n = n}; }

/* n launches of three equal samples each; the copy takes `share` of the case's time. */
static struct nb_launches launches_of(const double *ns, size_t n, double share, const struct nb_noise *noise) {
    struct nb_launches l = {0};
    for (size_t i = 0; i < n; i++) {
        double own[] = {ns[i], ns[i], ns[i]}, copy[] = {share * ns[i], share * ns[i], share * ns[i]};
        struct nb_samples o = samples(own, 3), t = samples(copy, 3);
        nb_launches_add(&l, &o, &t, &o, noise);
    }
    return l;
}

/* What launches come to of a case that moves so many bytes; they are released. */
static struct nb_timing finished(struct nb_launches l, double bytes) {
    struct nb_timing t = {0};
    nb_launches_finish(&l, bytes, &t);
    nb_launches_release(&l);
    return t;
}

Test(timing, ratios_are_paired_within_blocks) {
    /* The machine slows down in blocks 2 and 3 by 3; the case takes twice its copy in each block. The unpaired ratio of medians
     * over the blocks that the copy has would be 2 * 3 / 1. */
    double own[] = {20, 20, 60, 60, 60}, copy[] = {10, 10, 30, NAN, NAN};
    struct nb_launches l = {0};
    struct nb_samples o = samples(own, 5), t = samples(copy, 5);
    nb_launches_add(&l, &o, &t, NULL, &calm);
    const struct nb_timing timing = finished(l, 640);
    assert_near(timing.time_ns.value, 60);
    assert_near(timing.vs_copy.value, 0.5);
    assert_near(timing.gbytes_per_s, 640.0 / 60);
    assert_near(timing.min_ns, 20);
    cr_assert_eq(timing.n_samples, 5);
    cr_assert(isnan(timing.vs_reference.value));
}

/* Six launches of 100 ns or so beside a copy of 110, and in all but the first a runner-up; its share of the case's time. */
static struct nb_launches launches_with_other(double share) {
    static const double ns[] = {100, 101, 102, 103, 104, 105};
    struct nb_launches l = launches_of(ns, 1, 1.1, &calm);
    for (size_t i = 1; i < 6; i++) {
        double own[] = {ns[i], ns[i]}, copy[] = {1.1 * ns[i], 1.1 * ns[i]}, other[] = {share * ns[i], share * ns[i]};
        struct nb_samples o = samples(own, 2), c = samples(copy, 2), r = samples(other, 2);
        nb_launches_add(&l, &o, &c, &o, &calm);
        nb_launches_add_other(&l, &o, &r);
    }
    return l;
}
Test(timing, the_runner_up_is_taken_where_it_is_five_percent_faster) {
    static const struct {
        double share, vs_copy;
        bool other;
    } cases[] = {{0.9, 0.9, true}, {1.03, 1.03, true}, {1.06, 1.1, false}, {1.4, 1.1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nb_launches l = launches_with_other(cases[i].share);
        cr_expect_eq(nb_launches_other_copy_is_faster(&l), cases[i].other, "share %g", cases[i].share);
        const struct nb_timing timing = finished(l, 1);
        assert_near(timing.vs_copy.value, cases[i].vs_copy);
        cr_expect_eq(timing.suspect, cases[i].vs_copy == 1.1);
        assert_near(timing.copy_drift, cases[i].other ? 105.0 / 101 : 1.05);
    }
}

Test(timing, times_are_those_at_the_highest_clock) {
    static const double ghz[] = {2, 2.5, 3, 2.75, 2.25, 2, 3};
    struct nb_launches l released_by(nb_launches_release) = {0};
    struct nb_timing timing = {0};
    for (size_t i = 0; i < 7; i++) { /* 600 cycles */
        double own[] = {600 / ghz[i], 600 / ghz[i]};
        struct nb_samples o = samples(own, 2);
        nb_launches_add(&l, &o, &o, NULL, &calm);
        nb_launches_clock(&l, ghz[i], 3);
    }
    nb_launches_finish(&l, 1, &timing);
    assert_near(timing.time_ns.low, 200);
    assert_near(timing.time_ns.high, 200);
    assert_near(timing.copy_drift, 1);
    assert_near(timing.vs_copy.value, 1);
    assert_near(nb_timing_as_measured(&timing).value, 240);
    nb_launches_clock(&l, NAN, 3); /* not known: as measured */
    nb_launches_finish(&l, 1, &timing);
    assert_near(timing.time_ns.high, 200);
}

Test(timing, five_launches_give_no_interval_and_no_rank) {
    double ns[] = {100, 104, 98, 101, 110};
    const struct nb_timing timing = finished(launches_of(ns, 5, 2, &calm), 1);
    cr_assert(isfinite(timing.time_ns.value) && isnan(timing.time_ns.low) && isnan(timing.time_ns.high));
    cr_assert_not(timing.suspect, "without an interval nothing lies beyond it");
    cr_assert(timing.noisy);
    cr_assert_not_null(strstr(timing.noise, "5 launches, 6 needed"), "%s", timing.noise);
}

Test(timing, a_launch_without_a_valid_sample_counts_for_nothing) {
    double none[] = {NAN, NAN}, some[] = {NAN, 7};
    struct nb_launches l = {0};
    struct nb_samples n = samples(none, 2), s = samples(some, 2);
    nb_launches_add(&l, &n, &s, &s, &calm);
    cr_assert_eq(l.n, 0);
    nb_launches_add(&l, &s, &n, &s, &calm);
    const struct nb_timing timing = finished(l, 1);
    cr_assert_eq(timing.n_launches, 1);
    cr_assert_eq(timing.n_samples, 1);
    assert_near(timing.time_ns.value, 7);
    cr_assert(isnan(timing.vs_copy.value));
}

static struct nb_timing timed_with_hits(size_t n_own, size_t n_copy) {
    enum { BLOCKS = 10 };
    double ns[BLOCKS];
    bool own_hit[BLOCKS] = {false}, copy_hit[BLOCKS] = {false};
    for (size_t i = 0; i < BLOCKS; i++) ns[i] = 100;
    for (size_t i = 0; i < n_own; i++) own_hit[i] = true;
    for (size_t i = 0; i < n_copy; i++) copy_hit[BLOCKS - 1 - i] = true;
    struct nb_launches l = {0};
    struct nb_samples own = {.ns = ns, .preempted = own_hit, .n = BLOCKS};
    struct nb_samples copy = {.ns = ns, .preempted = copy_hit, .n = BLOCKS};
    for (int launch = 0; launch < 6; launch++) nb_launches_add(&l, &own, &copy, &own, &calm);
    return finished(l, 1);
}

Test(timing, preempted_pairs_are_counted_from_both_sides_and_judged_by_their_share) {
    struct nb_timing few = timed_with_hits(2, 1), many = timed_with_hits(2, 2), both = timed_with_hits(10, 10);
    cr_assert_eq(few.n_preempted, 18);
    cr_assert_not(few.noisy, "30 %% is not over 30 %%");
    cr_assert_eq(many.n_preempted, 24);
    cr_assert(many.noisy);
    cr_assert_eq(both.n_preempted, 60, "a pair that is hit on both sides counts once");
}

/* Six launches whose paired ratio to the copy spreads by +-half_width. */
static struct nb_timing spread_by(double half_width, const struct nb_noise *noise, double drift) {
    struct nb_launches l = {0};
    for (int i = 0; i < 6; i++) {
        double base = i == 0 ? 100 * drift : 100, copy[] = {base, base};
        double ratio = exp(half_width * (i - 2.5) / 2.5), own[] = {base * ratio, base * ratio};
        struct nb_samples o = samples(own, 2), t = samples(copy, 2);
        nb_launches_add(&l, &o, &t, &o, noise);
    }
    return finished(l, 1);
}

Test(timing, a_wide_interval_decides_and_a_busy_machine_does_not) {
    struct nb_noise busy = {.wall_s = 4, .cpu_s = 1, .involuntary = 3, .steal_ms = 2};
    cr_assert_not(spread_by(0.029, &calm, 1).noisy);
    cr_assert(spread_by(0.031, &calm, 1).noisy);
    cr_assert_not(spread_by(0.029, &busy, 1).noisy, "pairs that agree are not spoilt by a busy machine");
    cr_assert_not(spread_by(0.029, &calm, 2.5).noisy);
    struct nb_timing drifted = spread_by(0.04, &calm, 2.5), loaded = spread_by(0.04, &busy, 1);
    cr_assert(drifted.noisy);
    assert_near(drifted.copy_drift, 2.5);
    assert_near(loaded.wall_per_cpu, 4);
    assert_near(loaded.steal_ms, 12);
    assert_near(loaded.involuntary, 18);
}
