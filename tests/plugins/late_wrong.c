// SPDX-License-Identifier: Apache-2.0
/* Gives another result once it has been called often. */
#define KERNEL_NAME "bad_late_wrong"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    static int n_calls;
    correct_rows(call, begin, end);
    if (n_calls++ > 20) row_y(call, begin)[0] += 1;
    return 0;
}
