// SPDX-License-Identifier: Apache-2.0
/* Threads that help a kernel while it is timed, told by CPU times of blocks. */
#include "src/measure/hidden_threads.h"

#include <criterion/criterion.h>

/* n blocks in which the pool works for a ms, and others for `share` of it in every `every`th block. */
static bool found(int n, double share, int every, int taken) {
    struct nb_cpu_times now = {.pool_s = 1, .others_s = 5};
    struct nb_hidden_threads hidden = nb_hidden_threads_begin(now);
    for (int block = 0; block < n; block++) {
        now.pool_s += 1e-3;
        now.others_s += block % every == 0 ? share * 1e-3 : 0;
        nb_hidden_threads_block(&hidden, now);
    }
    return nb_hidden_threads_found(&hidden, taken);
}

Test(hidden_threads, in_block_after_block_is_found) {
    cr_expect(found(20, 1, 1, 20));
    cr_expect(found(20, 0.05, 1, 20));
    cr_expect(found(20, 1, 3, 20));
}
Test(hidden_threads, for_a_moment_is_none) {
    cr_expect_not(found(20, 3, 20, 20));
    cr_expect_not(found(20, 3, 10, 20));
    cr_expect_not(found(20, 1, 4, 20), "in a quarter of the blocks");
}
Test(hidden_threads, below_a_hundredth_is_none) {
    cr_expect_not(found(20, 0.009, 1, 20));
    cr_expect_not(found(20, 0, 1, 20));
}
/* Calls so long that their arm takes part in every fourth block: help in each of them. */
Test(hidden_threads, of_long_calls_is_found) {
    cr_expect(found(20, 1, 4, 5));
    cr_expect(found(20, 1, 5, 4));
    cr_expect_not(found(20, 1, 20, 5), "in one block alone");
}
Test(hidden_threads, in_launches_of_one_or_two_blocks_is_found) {
    cr_expect(found(1, 1, 1, 1));
    cr_expect(found(2, 1, 1, 2));
    cr_expect_not(found(2, 1, 2, 2), "in one of two");
}
