// SPDX-License-Identifier: Apache-2.0
/* Never returns once it has been called often. */
#include <unistd.h>

#define KERNEL_NAME "bad_late_hang"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    static int n_calls;
    correct_rows(call, begin, end);
    for (n_calls++; n_calls > 20;) pause();
    return 0;
}
