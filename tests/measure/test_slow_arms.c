// SPDX-License-Identifier: Apache-2.0
/* How many calls an arm costs whose call is longer than a sample, that it is timed all the same, and that one which only begins slowly is no
 * such arm. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "src/measure/measure.h"

enum { BLOCKS = 20, ALL = 1 << 30 };
static int calls_made, n_slow;
static long call_ns;
static int64_t per_sample; /* of the launch */
static bool with_probes;

static int sleep_a_while(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    if (begin == end || end < call->rows) return 0;
    if (calls_made++ >= n_slow) return 0;
    const struct timespec t = {.tv_nsec = call_ns};
    nanosleep(&t, NULL);
    return 0;
}

static int64_t one_unit(const struct nb_call *call, int phase) {
    (void)phase;
    return call->rows;
}

/* The samples that one arm got in a launch of 20 blocks whose first `slow` calls take so long, the others next to nothing; calls_made says
 * how many calls they took. */
static int samples_of(long ns, int slow) {
    static const struct nb_kernel kernel = {.name = "slow", .run = sleep_a_while, .n_units = one_unit};
    static const struct nb_entry entry = {.kernel = &kernel};
    const struct nb_case c = {.op = NB_OP_RMSNORM, .shape = {.rows = 1, .cols = 8}, .threads = 1};
    struct nb_call call = {.struct_size = sizeof call, .rows = 1, .cols = 8};
    double sample_ns[BLOCKS];
    bool contaminated[BLOCKS];
    int position[BLOCKS], n = 0;
    struct nb_arm arm = {.entry = &entry,
                         .c = &c,
                         .calls = &call,
                         .sample_ns = sample_ns,
                         .contaminated = contaminated,
                         .position = position};
    const struct nb_measure_options options = {
        .blocks = BLOCKS, .sample_s = 5e-4, .seed = 1, .clock_ghz = with_probes ? 3 : 0};
    struct nb_noise noise;
    for (int b = 0; b < BLOCKS; b++) sample_ns[b] = NAN;
    calls_made = 0;
    call_ns = ns;
    n_slow = slow;
    struct nb_pool *pool = nb_pool_new(1, NULL);
    nb_measure_group(&arm, 1, 1, pool, &options, &noise);
    nb_pool_free(pool);
    for (int b = 0; b < BLOCKS; b++) {
        if (isnan(sample_ns[b])) continue;
        cr_expect(slow < ALL || sample_ns[b] >= (double)ns, "a sample is the time of one call");
        n++;
    }
    per_sample = arm.per_sample;
    cr_expect_eq(arm.shared != NULL, with_probes);
    cr_expect_eq(noise.probe_cycles > 0, with_probes, "NaN without");
    free(arm.shared);
    return n;
}

Test(slow_arms, a_call_of_many_samples_takes_part_in_few_blocks) {
    cr_expect_eq(samples_of(1000000, ALL), BLOCKS, "two samples long");
    cr_expect_eq(calls_made, 4 + 2 * BLOCKS, "each sample, and both tries, after a call that warms");
    cr_expect_eq(samples_of(100000000, ALL), 4, "200 samples long");
    cr_expect_eq(calls_made, 2 + 4, "the choice of the sample, and a call for each of four");
}

Test(slow_arms, probes_of_the_core_change_no_sample) {
    with_probes = true;
    cr_expect_eq(samples_of(1000000, ALL), BLOCKS);
    cr_expect_eq(calls_made, 4 + 2 * BLOCKS);
}

Test(slow_arms, a_first_call_that_waits_makes_no_short_samples) {
    cr_expect_eq(samples_of(2000000, 2), BLOCKS, "the call that warms and the first that is timed");
    cr_expect_gt(per_sample, 16);
}
