// SPDX-License-Identifier: Apache-2.0
/* Declares no phase at all. */
#include "kernel.h"

static int n_phases(const struct nb_call *call) {
    (void)call;
    return -1;
}
#define KERNEL_NAME "bad_phases"
#define KERNEL_FIELDS .n_phases = n_phases
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    return 0;
}
