// SPDX-License-Identifier: Apache-2.0
/* Changes its input once it has been checked. */
#define KERNEL_NAME "bad_late_change"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    if (is_late()) ((float *)(uintptr_t)call->x)[0] += 1;
    return 0;
}
