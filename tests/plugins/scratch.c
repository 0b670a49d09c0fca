// SPDX-License-Identifier: Apache-2.0
/* Writes one byte behind its scratch. */
#include "kernel.h"

static size_t scratch_bytes(const struct nb_call *call) {
    (void)call;
    return 100;
}
#define KERNEL_NAME "bad_scratch"
#define KERNEL_FIELDS .scratch_bytes = scratch_bytes
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    ((char *)call->scratch)[100] = 1;
    return 0;
}
