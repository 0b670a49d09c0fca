// SPDX-License-Identifier: Apache-2.0
#include "src/core/timer.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

double nb_clock_s(clockid_t clock) {
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t microseconds(struct timeval t) { return 1000000 * (int64_t)t.tv_sec + t.tv_usec; }

struct nb_thread_usage nb_thread_usage(void) {
    struct rusage r;
    getrusage(RUSAGE_THREAD, &r);
    return (struct nb_thread_usage){.involuntary = r.ru_nivcsw,
                                    .voluntary = r.ru_nvcsw,
                                    .cpu_us = microseconds(r.ru_utime) + microseconds(r.ru_stime),
                                    .cpu = sched_getcpu()};
}

/* /proc/stat, in ticks. */
double nb_steal_ms(void) {
    unsigned long long user, nice, system, idle, iowait, irq, softirq, steal = 0;
    FILE *f = fopen("/proc/stat", "re");
    if (!f) return NAN;
    int n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq,
                   &softirq, &steal);
    fclose(f);
    return n == 8 ? 1000.0 * (double)steal / (double)sysconf(_SC_CLK_TCK) : NAN;
}

void nb_load_average(double average[3]) {
    const int n = getloadavg(average, 3);
    for (int i = n > 0 ? n : 0; i < 3; i++) average[i] = NAN;
}

/* Sums that do not wait for each other, six additions a round. */
static __attribute__((noinline)) void add_up(int rounds) {
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, step = 7;
    for (int i = 0; i < rounds; i += 4) {
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(step));
            a += step, b += step, c += step, d += step, e += step, f += step;
        }
    }
    __asm__ volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
}

__attribute__((noinline)) void nb_add_in_turn(int additions) {
    uint64_t sum = 1, step = 3;
    for (int i = 0; i < additions; i += 20) {
#pragma GCC unroll 20
        for (int j = 0; j < 20; j++) {
            __asm__ volatile("" : "+r"(sum), "+r"(step)); /* neither folded into one nor into a multiplication */
            sum += step;
        }
    }
    __asm__ volatile("" ::"r"(sum));
}

/* The cycles that as many rounds of sums take as there are sums in turn, a cycle each. */
static __attribute__((noinline)) double cycles_of(int amount) {
    __asm__ volatile("" : "+r"(amount));
    const double begin = nb_now_s();
    add_up(amount);
    const double between = nb_now_s();
    nb_add_in_turn(amount);
    return amount * (between - begin) / (nb_now_s() - between);
}

/* First in short: what a kernel has pushed out of the caches of this code, fetched in either half, is 80 ns of 1,000 or of 700. */
double nb_core_probe(void) {
    cycles_of(40);
    return cycles_of(2000);
}

void nb_wait_s(double s) {
    const struct timespec t = {(time_t)s, (long)(1e9 * (s - (double)(time_t)s))};
    nanosleep(&t, NULL);
}

/* /proc/PID/schedstat: ns on a CPU, ns in its queue, and how often it ran. */
double nb_waited_for_cpu_s(pid_t process) {
    char path[48];
    double waited_ns = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)process);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*u %lf", &waited_ns) != 1) waited_ns = 0;
    if (f) fclose(f);
    return 1e-9 * waited_ns;
}

bool nb_is_overdue(pid_t process, double since_s, double limit_s) { return nb_now_s() - since_s >= limit_s; }

void nb_worked(const char *what, const char *file, double amount, double elements) {}
