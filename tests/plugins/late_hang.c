// SPDX-License-Identifier: Apache-2.0
/* Never returns once it has been checked. */
#include <unistd.h>

#define KERNEL_NAME "bad_late_hang"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    while (is_late()) pause();
    return 0;
}
