// SPDX-License-Identifier: Apache-2.0
/* The mean square of the last row takes in the element behind it. */
#define KERNEL_NAME "bad_read_outside"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    if (end < call->rows) return 0;
    const float outside = row_x(call, end - 1)[call->cols];
    const double m = mean_square(call, end - 1) + (double)outside * outside;
    for (int64_t i = 0; i < call->cols; i++) row_y(call, end - 1)[i] = (float)element(call, end - 1, i, m);
    return 0;
}
