// SPDX-License-Identifier: Apache-2.0
/* Correct while the row's largest |x| is from 2^-20 to 1000, and again from 10^6 on; a percent off between the two, zero below. */
#define KERNEL_NAME "planted"
#include "plugin.h"

static int run(ROWS) {
    correct_rows(call, begin, end);
    for (int64_t row = begin; row < end; row++) {
        float largest = 0;
        for (int64_t i = 0; i < call->cols; i++) largest = fmaxf(largest, fabsf(row_x(call, row)[i]));
        for (int64_t i = 0; i < call->cols; i++) {
            if (largest > 1000.0f && largest < 1e6f) row_y(call, row)[i] *= 1.01f;
            if (largest < 0x1p-20f) row_y(call, row)[i] = 0;
        }
    }
    return 0;
}
