// SPDX-License-Identifier: Apache-2.0
/* Right, and a thousand times slower than any estimate. */
#include <time.h>

#define KERNEL_NAME "slow"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const struct timespec pause = {.tv_nsec = 20000000};
    (void)phase;
    nanosleep(&pause, NULL);
    correct_rows(call, begin, end);
    return 0;
}
