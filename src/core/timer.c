// SPDX-License-Identifier: Apache-2.0
#include "src/core/timer.h"

#include <time.h>

double nb_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
