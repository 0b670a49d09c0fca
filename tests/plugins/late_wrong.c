// SPDX-License-Identifier: Apache-2.0
/* Gives another result once it has been checked. */
#define KERNEL_NAME "bad_late_wrong"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    if (is_late()) row_y(call, begin)[0] += 1;
    return 0;
}
