// SPDX-License-Identifier: Apache-2.0
/* Threads cover every unit of every phase exactly once, and no phase starts before the one before it is whole. */
#include "src/measure/pool.c"

#include <criterion/criterion.h>
#include <fenv.h>
#include <stdatomic.h>
#include <string.h>

enum { UNITS = 1000, PHASES = 3 };
static atomic_int sessions[PHASES][UNITS];
static atomic_int early;

static int count_phases(const struct nb_call *call) { return PHASES; }
static int64_t count_units(const struct nb_call *call, int phase) { return UNITS - phase; }
static int session(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; u++) {
        if (phase > 0)
            for (int64_t other = 0; other < UNITS - phase + 1; other += 97)
                if (atomic_load(&sessions[phase - 1][other]) == 0) atomic_fetch_add(&early, 1);
        atomic_fetch_add(&sessions[phase][u], 1);
    }
    return 0;
}
static int fail_late(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return begin <= 700 && 700 < end ? 42 : 0;
}

static const struct nb_kernel phased = {
    .struct_size = sizeof phased, .name = "phased", .run = session, .n_phases = count_phases, .n_units = count_units};
static const struct nb_kernel failing = {
    .struct_size = sizeof failing, .name = "failing", .run = fail_late, .n_units = count_units};

static void expect_all_once(void) {
    for (int p = 0; p < PHASES; p++)
        for (int u = 0; u < UNITS - p; u++) cr_assert_eq(sessions[p][u], 1, "phase %d, unit %d", p, u);
    cr_assert_eq(early, 0);
    memset(sessions, 0, sizeof sessions);
}

Test(pool, runs_every_unit_once_whatever_the_threads) {
    struct nb_call call = {.struct_size = sizeof call, .rows = UNITS};
    for (int threads = 1; threads <= 5; threads++) {
        struct nb_pool *pool = nb_pool_new(threads, NULL);
        for (int again = 0; again < 20; again++) {
            if (again == 10) nb_pool_park(pool);
            cr_assert_eq(nb_pool_run(pool, &phased, &call), 0);
            expect_all_once();
        }
        nb_pool_free(pool);
    }
}

Test(pool, runs_a_chunk_of_rows_and_no_other) {
    struct nb_call call = {.struct_size = sizeof call, .rows = UNITS};
    struct nb_pool *pool = nb_pool_new(3, NULL);
    cr_assert_eq(nb_pool_run_rows(pool, &phased, &call, 100, 350), 0);
    for (int u = 0; u < UNITS; u++) cr_assert_eq(sessions[0][u], u >= 100 && u < 350);
    nb_pool_free(pool);
}

Test(pool, returns_the_code_of_a_failing_unit) {
    struct nb_call call = {.struct_size = sizeof call, .rows = UNITS};
    for (int threads = 1; threads <= 3; threads++) {
        struct nb_pool *pool = nb_pool_new(threads, NULL);
        cr_assert_eq(nb_pool_run(pool, &failing, &call), 42);
        cr_assert_eq(nb_pool_run_rows(pool, &failing, &call, 0, 500), 0);
        nb_pool_free(pool);
    }
}

static int leave_rounding_up(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return fegetround() == FE_TONEAREST ? fesetround(FE_UPWARD) : 1;
}
static const struct nb_kernel careless = {.struct_size = sizeof careless, .name = "careless", .run = leave_rounding_up};

/* The caller's own thread is for the caller to mend. */
Test(pool, threads_forget_the_rounding_mode_that_a_kernel_leaves) {
    struct nb_call call = {.struct_size = sizeof call, .rows = 3};
    struct nb_pool *pool = nb_pool_new(3, NULL);
    for (int again = 0; again < 3; again++) {
        cr_assert_eq(nb_pool_run(pool, &careless, &call), 0);
        fesetround(FE_TONEAREST);
    }
    nb_pool_free(pool);
}

Test(pool, cuts_phases_into_ranges_without_a_gap) {
    struct nb_call call = {.struct_size = sizeof call, .rows = UNITS};
    const int64_t ranges[] = {0, 1, 7, 999, 5000};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        cr_assert_eq(nb_run_in_ranges(&phased, &call, ranges[i]), 0);
        expect_all_once();
    }
}

/* What readings took, and which was the last one that was made and which was taken. */
static const double *played_s;
static int n_read;
static struct nb_cpu_times played(const struct nb_pool *p, double *took_s) {
    *took_s = played_s[n_read];
    return (struct nb_cpu_times){.others_s = n_read++};
}

Test(pool, of_readings_that_were_interrupted_the_shortest_is_taken) {
    static const struct {
        double took_s[8];
        int n_read, taken;
    } cases[] = {
        {{5e-6}, 1, 0}, {{300e-6, 400e-6, 5e-6}, 3, 2}, {{9e-4, 8e-4, 2e-4, 4e-4, 5e-4, 6e-4, 7e-4, 9e-4}, 8, 2}};
    const struct nb_pool one = {.n = 1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        played_s = cases[i].took_s;
        n_read = 0;
        cr_expect_eq(least_disturbed(&one, played).others_s, cases[i].taken, "case %zu", i);
        cr_expect_eq(n_read, cases[i].n_read, "case %zu", i);
    }
}
