// SPDX-License-Identifier: Apache-2.0
/* How many calls an arm costs whose call is longer than a sample, that it is timed all the same, and that one which only begins slowly is no
 * such arm; that each block is on a set of buffers of its own, of which there are several, and on a CPU that is uncontended where there is one. */
#include "src/measure/measure.h"

#include <criterion/criterion.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/timer.h"
#include "src/measure/core_state.h"
#include "src/measure/launcher.h"
#include "tests/support/played_time.h"

enum { BLOCKS = 20, SETS = 3, ALL = 1 << 30 };
static int calls_made, n_slow;
static double slow_s;

static int take_a_while(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (begin < end && end == call->rows) nb_played_work(calls_made++ < n_slow ? slow_s : 1e-6);
    return 0;
}

static int64_t one_unit(const struct nb_call *call, int phase) { return call->rows; }

static struct nb_arm arms[2]; /* of a launch */
static double sample_ns[2][BLOCKS];
static struct nb_noise noise;
static char table[100] = "* 0 0\nreading 0";

/* Arms of a kernel on sets of tensors with so many rows; each set's number is where its x points. */
static void launch(const struct nb_kernel *kernel, int n_arms, int n_sets, int64_t rows,
                   const struct nb_measure_options *options) {
    static const int numbers[SETS] = {0, 1, 2};
    static bool preempted[2][BLOCKS];
    static int position[2][BLOCKS];
    const struct nb_entry entry = {.kernel = kernel};
    const struct nb_case c = {.op = NB_OP_RMSNORM, .shape = {.rows = rows, .cols = 8}, .threads = 1};
    struct nb_call calls[SETS];
    for (int s = 0; s < SETS; s++)
        calls[s] = (struct nb_call){.struct_size = sizeof calls[s], .rows = rows, .cols = 8, .x = &numbers[s]};
    for (int a = 0; a < n_arms; a++) {
        for (int b = 0; b < BLOCKS; b++) sample_ns[a][b] = NAN;
        arms[a] = (struct nb_arm){&entry, .c = &c, .calls = calls, .sample_ns = sample_ns[a]};
        arms[a].preempted = preempted[a];
        arms[a].position = position[a];
    }
    nb_played_table(table);
    struct nb_pool *pool = nb_pool_new(1, NULL);
    nb_measure_group(arms, n_arms, n_sets, pool, options, &noise);
    nb_pool_free(pool);
}

/* The samples that one arm got in a launch of 20 blocks whose first `slow` calls take so long, the others a us; calls_made says how many
 * calls they took. */
static int samples_of(double call_s, int slow, bool with_probes) {
    static const struct nb_kernel kernel = {
        .name = "slow", .variant = "slow", .run = take_a_while, .n_units = one_unit};
    const struct nb_measure_options options = {
        .blocks = BLOCKS, .sample_s = 5e-4, .seed = 1, .probed = with_probes, .floor = NAN};
    int n = 0;
    calls_made = 0;
    slow_s = call_s;
    n_slow = slow;
    launch(&kernel, 1, 1, 1, &options);
    double *probe freed = arms[0].probe;
    cr_expect_eq(probe != NULL, with_probes);
    for (int b = 0; b < BLOCKS; b++) {
        const double ns = sample_ns[0][b];
        if (probe) cr_expect_eq(isfinite(probe[b]), isfinite(ns));
        if (isnan(ns)) continue;
        cr_expect(slow < ALL || fabs(ns - 1e9 * call_s) < 1, "a sample is the time of one call");
        n++;
    }
    return n;
}

Test(slow_arms, a_call_of_many_samples_takes_part_in_few_blocks) {
    for (int with_probes = 0; with_probes < 2; with_probes++) {
        cr_expect_eq(samples_of(1e-3, ALL, with_probes), BLOCKS, "two samples long");
        cr_expect_eq(calls_made, 4 + 2 * BLOCKS, "each sample, and both tries, after a call that warms: %d",
                     calls_made);
    }
    cr_expect_eq(samples_of(0.1, ALL, false), 4, "200 samples long");
    cr_expect_eq(calls_made, 2 + 4, "the choice of the sample, and a call for each of four: %d", calls_made);
}

Test(slow_arms, a_first_call_that_waits_makes_no_short_samples) {
    cr_expect_eq(samples_of(2e-3, 2, false), BLOCKS, "the call that warms and the first that is timed");
    cr_expect_gt(arms[0].per_sample, 16);
}

static int a_microsecond_a_row(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    nb_played_work(1e-6 * (double)(end - begin));
    return 0;
}
static int are_local(const struct nb_call *call) { return call->rows > 0; }

/* What a sample of 60 us has of a call with so many rows; whole: calls. */
static int64_t sample_of_rows(int64_t rows, bool cold, bool *whole) {
    static const struct nb_kernel kernel = {.struct_size = sizeof kernel,
                                            .name = "rows",
                                            .variant = "rows",
                                            .run = a_microsecond_a_row,
                                            .n_units = one_unit,
                                            .row_local = are_local};
    const struct nb_measure_options options = {.blocks = 1, .sample_s = 60e-6, .cold = cold, .seed = 1};
    launch(&kernel, 1, 1, rows, &options);
    *whole = !arms[0].chunked;
    return arms[0].per_sample;
}

Test(slow_arms, a_call_of_many_samples_goes_by_rows) {
    bool whole;
    cr_expect(sample_of_rows(20, false, &whole) >= 2 && whole);
    cr_expect(sample_of_rows(70, false, &whole) == 1 && whole);
    cr_expect(sample_of_rows(1000, false, &whole) == 1 && whole, "some rows of what lies in a cache are no call");
    const int64_t rows = sample_of_rows(2000, false, &whole);
    cr_expect(rows > 40 && rows < 120 && !whole, "%lld rows", (long long)rows);
}

Test(slow_arms, a_cold_call_of_two_samples_goes_by_rows) {
    bool whole;
    cr_expect(sample_of_rows(100, true, &whole) == 1 && whole, "most of the rows are no sample");
    const int64_t rows = sample_of_rows(1000, true, &whole);
    cr_expect(rows > 40 && rows < 120 && !whole, "%lld rows", (long long)rows);
}

static int n_stays, stays[64], calls_in[64]; /* on which sets calls were made without leaving them, and how many */

static int note_set(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const int set = *(const int *)call->x;
    nb_played_work(1e-5);
    if (n_stays == 0 || stays[n_stays - 1] != set) {
        cr_assert_lt(n_stays, 64);
        stays[n_stays++] = set;
    }
    return calls_in[n_stays - 1]++, 0;
}

Test(slow_arms, each_block_is_on_the_next_set_and_its_first_arm_calls_twice_to_warm_it) {
    enum { N_BLOCKS = 2 * SETS };
    static const struct nb_kernel kernel = {.name = "notes", .variant = "notes", .run = note_set, .n_units = one_unit};
    const struct nb_measure_options options = {.blocks = N_BLOCKS, .sample_s = 1e-3, .seed = 1};
    n_stays = 0;
    memset(calls_in, 0, sizeof calls_in);
    launch(&kernel, 2, SETS, 1, &options);
    cr_assert_eq(n_stays, 1 + N_BLOCKS, "the choice of the samples, and the blocks");
    for (int b = 0; b <= N_BLOCKS; b++) {
        cr_expect_eq(stays[b], b % SETS);
        if (b > 0) cr_expect_eq(calls_in[b], 2 + 1 + arms[0].per_sample + arms[1].per_sample);
    }
}

/* Calls of a us in blocks of 1 ms, of which the probe takes 2000 cycles, 2800 on that CPU while it is contended; -1: on all. Returns how many
 * samples were uncontended. */
static int uncontended_beside(int contended_cpu, const int *cpus, int n_cpus) {
    enum { FLOOR = 2000 };
    static const struct nb_kernel kernel = {
        .name = "slow", .variant = "slow", .run = take_a_while, .n_units = one_unit};
    const struct nb_measure_options options = {
        .blocks = BLOCKS, .sample_s = 1e-3, .seed = 1, .probed = true, .floor = FLOOR, .cpus = cpus, .n_cpus = n_cpus};
    int n = 0;
    snprintf(table, sizeof table, "* 0 0\nreading 20\ncontended 0 1 1 cpu=%d", contended_cpu);
    n_slow = 0;
    nb_cpu_pin(cpus[0]);
    launch(&kernel, 1, 1, 1, &options);
    double *probe freed = arms[0].probe;
    for (int b = 0; b < BLOCKS; b++) n += isfinite(sample_ns[0][b]) && !nb_is_contended(probe[b], FLOOR);
    return n;
}

Test(slow_arms, a_block_leaves_a_cpu_that_a_neighbour_uses) {
    int cpus[2];
    if (nb_cpu_allowed(cpus, 2) < 2) cr_skip_test("one CPU");
    cr_expect_eq(uncontended_beside(cpus[0], cpus, 2), BLOCKS);
    cr_expect_eq(sched_getcpu(), cpus[1]);
    cr_expect_eq(uncontended_beside(cpus[1], cpus, 2), BLOCKS);
    cr_expect_eq(sched_getcpu(), cpus[0], "nothing to flee from");
    cr_expect_eq(uncontended_beside(cpus[0], cpus, 1), 0, "one that may not move");
    cr_expect_eq(sched_getcpu(), cpus[0]);
}

Test(slow_arms, where_all_cpus_are_contended_a_block_is_timed_all_the_same) {
    int cpus[2];
    const int n_cpus = nb_cpu_allowed(cpus, 2);
    const double begin_s = nb_now_s();
    cr_expect_eq(uncontended_beside(-1, cpus, n_cpus), 0);
    for (int b = 0; b < BLOCKS; b++) cr_expect(isfinite(sample_ns[0][b]));
    cr_expect_gt(nb_now_s() - begin_s, BLOCKS * NB_QUIET_S, "so long each has looked");
    cr_expect_lt(noise.wall_s, BLOCKS * 2e-3, "asleep for most of it, which nobody else did to it: %g s", noise.wall_s);
}

Test(slow_arms, launches_begin_on_each_cpu_and_one_thread_may_go_on_to_others) {
    int allowed[NB_MAX_CPUS], cpus[NB_MAX_CPUS];
    const int n = nb_cpu_allowed(allowed, NB_MAX_CPUS);
    for (int launch = 0; launch < 3; launch++) {
        const int n_cpus = nb_launcher_cpus(cpus, 1, launch);
        cr_expect(n_cpus >= 1 && n_cpus <= n && n_cpus <= NB_MOST_MOVES, "%d of %d", n_cpus, n);
        cr_expect_eq(cpus[0], allowed[launch % n]);
        for (int i = 1; i < n_cpus; i++)
            for (int j = 0; j < i; j++) cr_expect_neq(cpus[i], cpus[j]);
        cr_expect_eq(nb_launcher_cpus(cpus, 2, launch), 2, "two threads stay where they are");
        cr_expect(cpus[0] == allowed[launch % n] && cpus[1] == allowed[(launch + 1) % n]);
    }
}
