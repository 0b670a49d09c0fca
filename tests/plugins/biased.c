// SPDX-License-Identifier: Apache-2.0
/* Rounds every result towards zero: each error is below an ulp, and all have the same sign. */
#define KERNEL_NAME "bad_biased"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t row = begin; row < end; row++) {
        const double m = mean_square(call, row);
        for (int64_t i = 0; i < call->cols; i++) {
            const double exact = element(call, row, i, m);
            const float rounded = (float)exact;
            row_y(call, row)[i] = fabs((double)rounded) > fabs(exact) ? nextafterf(rounded, 0) : rounded;
        }
    }
    return 0;
}
