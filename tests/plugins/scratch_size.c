// SPDX-License-Identifier: Apache-2.0
/* Wants more scratch than there are addresses. */
#include "kernel.h"

static size_t scratch_bytes(const struct nb_call *call) {
    (void)call;
    return (size_t)-10;
}
#define KERNEL_NAME "bad_scratch_size"
#define KERNEL_FIELDS .scratch_bytes = scratch_bytes
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    return 0;
}
