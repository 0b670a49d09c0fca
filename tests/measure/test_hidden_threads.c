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

Test(hidden_threads, help_in_block_after_block_is_found) {
    static const struct {
        int n;
        double share;
        int every, taken;
        bool found;
        const char *what;
    } cases[] = {{20, 1, 1, 20, true, "all of the time"},
                 {20, 0.05, 1, 20, true, "a little"},
                 {20, 0.009, 1, 20, false, "below a hundredth"},
                 {20, 0, 1, 20, false, "none"},
                 {20, 1, 3, 20, true, "in a third of the blocks"},
                 {20, 1, 4, 20, false, "in a quarter of the blocks"},
                 {20, 3, 10, 20, false, "for a moment"},
                 {20, 1, 4, 5, true, "calls so long that their arm takes part in every fourth block"},
                 {20, 1, 20, 5, false, "in one of their blocks alone"},
                 {1, 1, 1, 1, true, "in the only block"},
                 {2, 1, 1, 2, true, "in both"},
                 {2, 1, 2, 2, false, "in one of two"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect_eq(found(cases[i].n, cases[i].share, cases[i].every, cases[i].taken), cases[i].found, "%s",
                     cases[i].what);
}
