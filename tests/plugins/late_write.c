// SPDX-License-Identifier: Apache-2.0
/* Writes behind y, once, when it has been called often. */
#define KERNEL_NAME "bad_late_write"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    static int n_calls;
    correct_rows(call, begin, end);
    if (n_calls++ == 20) row_y(call, call->rows - 1)[call->cols] = 1;
    return 0;
}
