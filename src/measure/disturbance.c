// SPDX-License-Identifier: Apache-2.0
/* From getrusage() of the thread and /proc/stat of the machine. */
#include "src/measure/disturbance.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "src/core/timer.h"

/* Time that the hypervisor gave to others, over all CPUs (/proc/stat, in ticks). */
static double steal_ms(void) {
    unsigned long long user, nice, system, idle, iowait, irq, softirq, steal = 0;
    FILE *f = fopen("/proc/stat", "re");
    if (!f) return NAN;
    int n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq,
                   &softirq, &steal);
    fclose(f);
    return n == 8 ? 1000.0 * (double)steal / (double)sysconf(_SC_CLK_TCK) : NAN;
}

void nb_disturbance_begin(struct nb_noise *noise, struct rusage *before) {
    *noise = (struct nb_noise){.steal_ms = steal_ms(), .cpu = sched_getcpu()};
    getrusage(RUSAGE_THREAD, before);
    noise->wall_s = nb_now_s();
}

static double seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

void nb_disturbance_end(struct nb_noise *noise, const struct rusage *before) {
    struct rusage after;
    noise->wall_s = nb_now_s() - noise->wall_s;
    getrusage(RUSAGE_THREAD, &after);
    noise->cpu_s =
        seconds(after.ru_utime) + seconds(after.ru_stime) - seconds(before->ru_utime) - seconds(before->ru_stime);
    noise->involuntary = after.ru_nivcsw - before->ru_nivcsw;
    noise->voluntary = after.ru_nvcsw - before->ru_nvcsw;
    noise->steal_ms = steal_ms() - noise->steal_ms;
}
