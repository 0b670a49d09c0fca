// SPDX-License-Identifier: Apache-2.0
#include "src/core/timer.h"

#include <sys/syscall.h>
#include <time.h>

double nb_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double nb_system_now_s(void) {
    struct timespec t;
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_clock_gettime), "D"(CLOCK_MONOTONIC_RAW), "S"(&t)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long number __asm__("x8") = SYS_clock_gettime, clock __asm__("x0") = CLOCK_MONOTONIC_RAW;
    register struct timespec *where __asm__("x1") = &t;
    __asm__ volatile("svc 0" : "+r"(clock) : "r"(number), "r"(where) : "memory");
#else
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
#endif
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void nb_utc_now(const char *format, char *out, size_t n) {
    time_t now = time(NULL);
    struct tm t;
    gmtime_r(&now, &t);
    strftime(out, n, format, &t);
}
