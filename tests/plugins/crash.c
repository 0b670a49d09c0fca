// SPDX-License-Identifier: Apache-2.0
/* Follows a null pointer. */
#define KERNEL_NAME "bad_crash"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)call, (void)phase, (void)begin, (void)end;
    volatile float *nowhere = NULL;
    *nowhere = 1;
    return 0;
}
