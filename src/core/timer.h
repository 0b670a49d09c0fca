// SPDX-License-Identifier: Apache-2.0
/* All that the program learns of time: the clock, CPU times, what interrupted a thread, the probe of the core, the machine's load; and what it
 * waits for. Whatever depends on time asks here and nowhere else, so that tests link another file instead of timer.c
 * (tests/support/played_time.c) whose time moves by what they say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* CLOCK_MONOTONIC_RAW, which no adjustment of the system's time bends. */
double nb_now_s(void);
/* The same, asked of the system itself: code in this process that puts itself between the program and its C library cannot change the
 * answer. Some 0.1 to 1 us. */
double nb_system_now_s(void);
/* strftime() of now, UTC. */
void nb_utc_now(const char *format, char *out, size_t n);

/* By another clock: CPU time of a thread (CLOCK_THREAD_CPUTIME_ID, pthread_getcpuclockid()) or of the process (CLOCK_PROCESS_CPUTIME_ID), and
 * CLOCK_MONOTONIC, which programs with kernels go by. */
double nb_clock_s(clockid_t clock);

/* Of the calling thread: how often others took its CPU away or it gave it away, user and system time, and where it runs. Whole
 * numbers, so that a difference is none below 0. */
struct nb_thread_usage {
    int64_t involuntary, voluntary, cpu_us;
    int cpu;
};
struct nb_thread_usage nb_thread_usage(void);

/* Time that the hypervisor gave to others, over all CPUs, since the start of the system; NaN: not known. */
double nb_steal_ms(void);
/* Of the last 1, 5 and 15 minutes; NaN: not known. */
void nb_load_average(double average[3]);

/* A piece of arithmetic that fills the core, in cycles of its clock, which additions that wait for each other tell at once: some 1 us. It takes
 * a fifth longer and more while another tenant uses the core's other hyperthread or a slice of its time; the same at any clock. */
double nb_core_probe(void);
/* As many additions, a multiple of 20, of which each waits for the one before: a cycle each, whoever else uses the core. */
void nb_add_in_turn(int additions);

void nb_wait_s(double s);
/* How long that process was ready to run since its start while others had the CPUs: a busy machine is no silence of its own. 0: not known. */
double nb_waited_for_cpu_s(pid_t process);
/* Is it limit_s, or more, since since_s, at which that process of ours said something last? */
bool nb_is_overdue(pid_t process, double since_s, double limit_s);

/* Between two readings of the clock so many calls on so many elements each were made of a kernel (its variant, and the file that has it), or so
 * many of a piece of work by that name. The real clock knows. */
void nb_worked(const char *what, const char *file, double amount, double elements);
