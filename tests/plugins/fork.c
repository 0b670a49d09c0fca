// SPDX-License-Identifier: Apache-2.0
/* Leaves a process behind that holds all of the worker's descriptors. */
#include <unistd.h>

#define KERNEL_NAME "bad_fork"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    static int n_calls;
    if (n_calls++ == 0 && fork() == 0) {
        sleep(600);
        _exit(0);
    }
    correct_rows(call, begin, end);
    return 0;
}
