// SPDX-License-Identifier: Apache-2.0
/* The clock and its cost. */
#include "src/core/timer.h"

#include <time.h>

double nb_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double nb_clock_cost_s(void) {
    double least = 1;
    for (int i = 0; i < 1000; i++) {
        double begin = nb_now_s(), cost = nb_now_s() - begin;
        if (cost > 0 && cost < least) least = cost;
    }
    return least;
}
