// SPDX-License-Identifier: Apache-2.0
/* Writes the element in front of y. */
#define KERNEL_NAME "bad_write_before"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    if (begin == 0) row_y(call, 0)[-1] = 1;
    return 0;
}
