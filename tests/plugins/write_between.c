// SPDX-License-Identifier: Apache-2.0
/* Writes the first element of the padding between two rows. */
#define KERNEL_NAME "bad_write_between"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    for (int64_t row = begin; row < end && row + 1 < call->rows; row++)
        if (call->y_stride > call->cols) row_y(call, row)[call->cols] = 1;
    return 0;
}
