// SPDX-License-Identifier: Apache-2.0
/* Events from the operating system: perf_event_open(2), and below it the accounts that every process may read. */
#include "src/measure/counter_source.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/core/cpu.h"

/* ---- perf_event_open ---- */

/* The setting that governs who may count; 100 when it cannot be read. */
static int paranoid_level(void) {
    FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    int level = 100;
    if (f && fscanf(f, "%d", &level) != 1) level = 100;
    if (f) fclose(f);
    return level;
}

static void explain_perf(int error, bool software, char *reason, size_t n) {
    const char *hypervisor = nb_cpu_light()->hypervisor;
    int level = paranoid_level();
    if (error == EACCES || error == EPERM) {
        if (level > 2 && level != 100)
            snprintf(reason, n, "perf_event_paranoid is %d; `sysctl kernel.perf_event_paranoid=2` as root mends it",
                     level);
        else
            snprintf(reason, n,
                     "perf_event_open is forbidden (seccomp?); a container needs --cap-add PERFMON or another "
                     "seccomp profile");
    } else if (error == ENOSYS) {
        snprintf(reason, n, "the kernel or a seccomp filter has no perf_event_open");
    } else if (hypervisor[0] && !software) {
        snprintf(reason, n,
                 "this %s virtual machine has no performance counters; it needs a vPMU (QEMU: -cpu host,pmu=on)",
                 hypervisor);
    } else {
        snprintf(reason, n, "the kernel has no such event on this CPU (%s)", strerror(error));
    }
}

/* Switches and migrations happen in the kernel: user mode alone sees none of them. */
static bool happens_in_kernel(const struct nb_event *event) {
    return event->software &&
           (event->perf_config == PERF_COUNT_SW_CONTEXT_SWITCHES || event->perf_config == PERF_COUNT_SW_CPU_MIGRATIONS);
}

/* User mode only, as PAPI counts; software events are counted in the kernel too where that is allowed. */
static int perf_open(struct nb_open_event *o, const struct nb_event *event, char *reason, size_t n) {
    struct perf_event_attr attr = {.type = event->perf_type,
                                   .size = sizeof attr,
                                   .config = event->perf_config,
                                   .disabled = 1,
                                   .exclude_kernel = !event->software,
                                   .exclude_hv = 1};
    long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0 && (errno == EACCES || errno == EPERM)) {
        if (happens_in_kernel(event) && paranoid_level() == 2) {
            snprintf(reason, n, "perf_event_paranoid is 2; `sysctl kernel.perf_event_paranoid=1` as root mends it");
            return -1;
        }
        attr.exclude_kernel = 1;
        fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    }
    *o = (struct nb_open_event){.event = event, .handle = (int)fd};
    if (fd < 0) explain_perf(errno, event->software, reason, n);
    return fd < 0 ? -1 : 0;
}

static int perf_begin(struct nb_open_event *o) {
    return ioctl(o->handle, PERF_EVENT_IOC_RESET, 0) == 0 && ioctl(o->handle, PERF_EVENT_IOC_ENABLE, 0) == 0 ? 0 : -1;
}

static int perf_end(struct nb_open_event *o, double *count) {
    uint64_t value;
    if (ioctl(o->handle, PERF_EVENT_IOC_DISABLE, 0) != 0) return -1;
    if (read(o->handle, &value, sizeof value) != (ssize_t)sizeof value) return -1;
    *count = (double)value;
    return 0;
}

static void perf_close(struct nb_open_event *o) { close(o->handle); }

const struct nb_counter_source nb_source_perf_event = {"perf_event", "perf_software", perf_open,
                                                       perf_begin,   perf_end,        perf_close};

/* ---- getrusage ---- */

static int usage_now(enum nb_usage usage, double *value) {
    struct rusage r;
    struct timespec t;
    if (usage == NB_USAGE_CPU_NS) {
        if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return -1;
        *value = (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
        return 0;
    }
    if (getrusage(RUSAGE_THREAD, &r) != 0) return -1;
    *value = (double)(usage == NB_USAGE_FAULTS ? r.ru_minflt + r.ru_majflt : r.ru_nvcsw + r.ru_nivcsw);
    return 0;
}

/* An event that it does not know leaves the reason of the source before. */
static int usage_open(struct nb_open_event *o, const struct nb_event *event, char *reason, size_t n) {
    (void)reason, (void)n;
    *o = (struct nb_open_event){.event = event};
    return event->usage == NB_USAGE_NONE ? -1 : 0;
}

static int usage_begin(struct nb_open_event *o) { return usage_now(o->event->usage, &o->start); }

static int usage_end(struct nb_open_event *o, double *count) {
    if (usage_now(o->event->usage, count) != 0) return -1;
    *count -= o->start;
    return 0;
}

static void usage_close(struct nb_open_event *o) { (void)o; }

const struct nb_counter_source nb_source_getrusage = {"getrusage", "getrusage", usage_open,
                                                      usage_begin, usage_end,   usage_close};
