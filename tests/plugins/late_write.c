// SPDX-License-Identifier: Apache-2.0
/* Writes behind y, once, after it has been checked. */
#define KERNEL_NAME "bad_late_write"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    static bool written;
    correct_rows(call, begin, end);
    if (written || !is_late()) return 0;
    row_y(call, call->rows - 1)[call->cols] = 1;
    written = true;
    return 0;
}
