// SPDX-License-Identifier: Apache-2.0
/* Returns an error code. */
#define KERNEL_NAME "bad_error"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    return 7;
}
