// SPDX-License-Identifier: Apache-2.0
/* Right, and a thousand times slower than any estimate. */
#include <time.h>

#define KERNEL_NAME "slow"
#include "plugin.h"

static int run(ROWS) {
    const struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL);
    correct_rows(call, begin, end);
    return 0;
}
