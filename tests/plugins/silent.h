// SPDX-License-Identifier: Apache-2.0
/* For plugins, where time is played (tests/support/played_time.h): what hangs says that this process will be silent for an hour, which does not
 * pass there, and what other threads do is what a table says. */
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static inline int is_played(void) { return getenv("NORMBENCH_PLAYED_PAGE") != NULL; }

static inline void be_silent(void) {
    const char *page = getenv("NORMBENCH_PLAYED_PAGE");
    const int fd = page ? open(page, O_WRONLY | O_CLOEXEC) : -1;
    const int32_t who[] = {getpid(), getpgrp()}; /* what it is waited for by */
    for (int i = 0; i < 2 && fd >= 0; i++)
        if (pwrite(fd, &who[i], sizeof who[i], 8 + 4 * (who[i] % 1024)) < 0) abort();
    if (fd >= 0) close(fd);
}
/* What waits longer than that, or by the system's clock, waits for ever. */
static inline _Noreturn void hang(void) {
    be_silent();
    for (;;) pause();
}
