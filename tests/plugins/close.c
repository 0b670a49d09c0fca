// SPDX-License-Identifier: Apache-2.0
/* Closes what it did not open, and stays. */
#include <unistd.h>

#define KERNEL_NAME "bad_close"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    (void)call, (void)begin, (void)end;
    for (int fd = 3; fd < 64; fd++) close(fd);
    for (;;) pause();
    return 0;
}
