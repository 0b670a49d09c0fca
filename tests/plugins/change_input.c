// SPDX-License-Identifier: Apache-2.0
/* Writes to x. */
#define KERNEL_NAME "bad_change_input"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    for (int64_t row = begin; row < end; row++) ((float *)(uintptr_t)row_x(call, row))[0] += 1;
    return 0;
}
