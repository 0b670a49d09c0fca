// SPDX-License-Identifier: Apache-2.0
/* Ends the process as if all were well. */
#include <stdlib.h>

#define KERNEL_NAME "bad_exit"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    exit(0);
}
