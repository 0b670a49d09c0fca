// SPDX-License-Identifier: Apache-2.0
/* Every result is a thousandth too large. */
#define KERNEL_NAME "bad_wrong"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < call->cols; i++) row_y(call, row)[i] *= 1.001f;
    return 0;
}
