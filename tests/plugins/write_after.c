// SPDX-License-Identifier: Apache-2.0
/* Writes the element behind y. */
#define KERNEL_NAME "bad_write_after"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    if (end == call->rows) row_y(call, end - 1)[call->cols] = 1;
    return 0;
}
