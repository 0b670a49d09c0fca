// SPDX-License-Identifier: Apache-2.0
/* The real clock, of which a played one (support/played_time.h) takes the place in all other suites. */
#include <criterion/criterion.h>
#include <math.h>

#define nb_now_s real_now_s
#define nb_system_now_s real_system_now_s
#define nb_utc_now real_utc_now
#define nb_clock_s real_clock_s
#define nb_thread_usage real_thread_usage
#define nb_steal_ms real_steal_ms
#define nb_load_average real_load_average
#define nb_core_probe real_core_probe
#define nb_add_in_turn real_add_in_turn
#define nb_wait_s real_wait_s
#define nb_is_overdue real_is_overdue
#define nb_waited_for_cpu_s real_waited_for_cpu_s
#define nb_worked real_worked
#include "src/core/timer.c"

Test(timer, the_system_s_own_clock_is_the_program_s) {
    for (int i = 0; i < 1000; i++) {
        const double before = nb_system_now_s(), now = nb_now_s(), behind = nb_system_now_s();
        cr_assert(before <= now && now <= behind);
    }
}

Test(timer, a_wait_is_no_shorter_and_gives_the_cpu_away) {
    const double start = nb_now_s();
    const int64_t voluntary = real_thread_usage().voluntary;
    nb_wait_s(2e-3);
    cr_expect_gt(nb_now_s() - start, 1.9e-3, "CLOCK_MONOTONIC may run as fast by a part in a thousand");
    cr_expect_gt(real_thread_usage().voluntary, voluntary);
}

Test(timer, the_probe_is_some_time_and_the_load_some_number) {
    double load[3];
    nb_load_average(load);
    cr_expect_gt(nb_core_probe(), 0);
    cr_expect(load[0] >= 0 || isnan(load[0]));
    cr_expect(nb_steal_ms() >= 0 || isnan(nb_steal_ms()));
}

Test(timer, whoever_is_silent_is_overdue_at_the_limit) {
    const double now = nb_now_s();
    cr_expect(nb_is_overdue(1, now - 2, 1));
    cr_expect(!nb_is_overdue(1, now, 1e6));
    cr_expect_geq(nb_waited_for_cpu_s(getpid()), 0);
    cr_expect_eq(nb_waited_for_cpu_s(-1), 0, "there is no such process");
}
