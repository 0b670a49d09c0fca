// SPDX-License-Identifier: Apache-2.0
/* Reads /proc and /sys. Each file may be missing: containers and other kernels hide many. */
#include "src/measure/system.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/timer.h"

static int64_t read_number(const char *path) {
    char text[32], *end;
    nb_file_line(path, text, sizeof text);
    long long value = strtoll(text, &end, 10);
    return end > text ? value : -1;
}

/* What follows "key" and separators in a file of lines such as "MemTotal:   8 kB"; "" when no line begins so. */
static void read_field(const char *path, const char *key, char *text, size_t n) {
    FILE *f = fopen(path, "re");
    char line[512];
    text[0] = '\0';
    while (f && fgets(line, sizeof line, f)) {
        size_t m = strlen(key);
        if (strncmp(line, key, m) != 0 || !strchr(" \t:=", line[m])) continue;
        const char *value = line + m + strspn(line + m, " \t:=\"");
        snprintf(text, n, "%.*s", (int)strcspn(value, "\"\n"), value);
        break;
    }
    if (f) fclose(f);
}

static int64_t read_kilobytes(const char *key) {
    char text[32], *end;
    read_field("/proc/meminfo", key, text, sizeof text);
    long long value = strtoll(text, &end, 10);
    return end > text ? value * 1024 : -1;
}

/* "always [madvise] never" -> "madvise" */
static void keep_bracketed(char *text) {
    char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
    if (!close) return;
    size_t n = (size_t)(close - open) - 1;
    memmove(text, open + 1, n);
    text[n] = '\0';
}

static void read_boost(char *text, size_t n) {
    int64_t boost = read_number("/sys/devices/system/cpu/cpufreq/boost");
    int64_t no_turbo = read_number("/sys/devices/system/cpu/intel_pstate/no_turbo");
    text[0] = '\0';
    if (boost >= 0) snprintf(text, n, "%s", boost ? "on" : "off");
    if (no_turbo >= 0) snprintf(text, n, "%s", no_turbo ? "off" : "on");
}

void nb_system_read(struct nb_system *s) {
    struct utsname name;
    char path[128];
    int cpu = 0;
    *s = (struct nb_system){0};
    nb_cpu_allowed(&cpu, 1);
    read_field("/etc/os-release", "PRETTY_NAME", s->os, sizeof s->os);
    if (uname(&name) == 0) {
        snprintf(s->kernel, sizeof s->kernel, "%.20s %.70s", name.sysname, name.release);
        snprintf(s->architecture, sizeof s->architecture, "%.31s", name.machine);
    }
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu);
    nb_file_line(path, s->governor, sizeof s->governor);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    nb_file_line(path, s->siblings, sizeof s->siblings);
    read_boost(s->boost, sizeof s->boost);
    nb_file_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", s->clock_source,
                 sizeof s->clock_source);
    nb_file_line("/sys/kernel/mm/transparent_hugepage/enabled", s->huge_pages, sizeof s->huge_pages);
    keep_bracketed(s->huge_pages);
    read_field("/proc/cpuinfo", "microcode", s->microcode, sizeof s->microcode);
    s->aslr = (int)read_number("/proc/sys/kernel/randomize_va_space");
    s->memory_bytes = read_kilobytes("MemTotal");
}

void nb_load_read(struct nb_load *l) {
    nb_load_average(l->average);
    l->memory_available_bytes = read_kilobytes("MemAvailable");
}

/* What is too large for the machine is refused when it is asked for, instead of bringing the system's killer on, which, should it
 * come all the same, takes this process first. Not under a sanitizer: its shadow is larger than any machine. */
void nb_limit_memory(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct nb_load load;
    struct rlimit limit;
    nb_load_read(&load);
    if (load.memory_available_bytes > 0 && getrlimit(RLIMIT_DATA, &limit) == 0) {
        if ((rlim_t)load.memory_available_bytes < limit.rlim_cur) limit.rlim_cur = (rlim_t)load.memory_available_bytes;
        setrlimit(RLIMIT_DATA, &limit);
    }
#endif
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t written = write(fd, "1000", 4);
    (void)written; /* where it is not allowed, the system's choice stands */
    close(fd);
}
