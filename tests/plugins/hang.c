// SPDX-License-Identifier: Apache-2.0
/* Never returns. */
#define KERNEL_NAME "bad_hang"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)call, (void)phase, (void)begin, (void)end;
    for (volatile int forever = 1; forever;) continue;
    return 0;
}
