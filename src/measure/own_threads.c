// SPDX-License-Identifier: Apache-2.0
/* Threads are found in /proc/self/task: a library tells nobody which ones it started. */
#include "src/measure/own_threads.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/measure/fp_state.h"

struct threads {
    pid_t *ids;
    size_t n;
};

/* All of this process but the caller. */
static void list_threads(struct threads *t) {
    const pid_t self = gettid();
    DIR *folder = opendir("/proc/self/task");
    *t = (struct threads){0};
    for (struct dirent *e; folder && (e = readdir(folder)) != NULL;) {
        const pid_t id = (pid_t)atoi(e->d_name);
        if (id <= 0 || id == self) continue;
        t->ids = nb_realloc(t->ids, t->n + 1, sizeof *t->ids);
        t->ids[t->n++] = id;
    }
    if (folder) closedir(folder);
}

size_t nb_threads_others(void) {
    struct threads t;
    list_threads(&t);
    free(t.ids);
    return t.n;
}

static bool is_among(pid_t id, const struct threads *t) {
    for (size_t i = 0; i < t->n; i++)
        if (t->ids[i] == id) return true;
    return false;
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

static void allow(pid_t thread, const int *cpus, int n) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < n; i++) CPU_SET(cpus[i], &set);
    sched_setaffinity(thread, sizeof set, &set); /* a CPU that went offline meanwhile: as it was */
}

static void pin_new(const struct threads *before, const int *cpus, int n_cpus) {
    struct threads now;
    int n_new = 0, place = 0;
    list_threads(&now);
    for (size_t i = 0; i < now.n; i++) n_new += !is_among(now.ids[i], before);
    for (size_t i = 0; i < now.n; i++) {
        if (is_among(now.ids[i], before)) continue;
        const bool one_each = n_new < n_cpus;
        allow(now.ids[i], one_each ? &cpus[1 + place++] : cpus, one_each ? 1 : n_cpus);
    }
    free(now.ids);
}

static bool seen_before(const struct nb_entry *const *entries, size_t i, bool opens) {
    for (size_t j = 0; j < i; j++) {
        const struct nb_kernel *a = entries[i]->kernel, *b = entries[j]->kernel;
        if (opens ? a->open == b->open : a->close == b->close) return true;
    }
    return false;
}

int nb_kernels_open(const struct nb_entry *const *entries, size_t n, int n_threads, const int *cpus, char *reason,
                    size_t size) {
    const struct nb_fp_state state = nb_fp_state();
    struct threads before;
    int code = 0;
    for (size_t i = 0; i < n && code == 0; i++) {
        if (!entries[i]->kernel->open || seen_before(entries, i, true)) continue;
        list_threads(&before);
        if (cpus) allow(0, cpus, n_threads);
        code = entries[i]->kernel->open(n_threads);
        if (code != 0)
            snprintf(reason, size, "%.100s: open(%d) returned %d", entries[i]->kernel_id, n_threads, code);
        else if (cpus)
            pin_new(&before, cpus, n_threads);
        free(before.ids);
    }
    nb_fp_state_set(state);
    return code == 0 ? 0 : -1;
}

void nb_kernels_close(const struct nb_entry *const *entries, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (entries[i]->kernel->close && !seen_before(entries, i, false)) entries[i]->kernel->close();
}

/* ---- watching ------------------------------------------------------------------------------------------------------ */

/* "12 (name) R ..": the letter behind the name, which may itself hold anything. A thread that has ended counts as asleep. */
static bool is_running(pid_t id) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)id);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const bool has_line = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    const char *close = has_line ? strrchr(line, ')') : NULL;
    return close && close[1] == ' ' && close[2] == 'R';
}

static bool any_runs(void) {
    struct threads t;
    bool runs = false;
    list_threads(&t);
    for (size_t i = 0; i < t.n && !runs; i++) runs = is_running(t.ids[i]);
    free(t.ids);
    return runs;
}

/* Linux's number for the clock of a thread's CPU time, which is exact while the thread runs; the process's own is not. */
static clockid_t clock_of(pid_t thread) {
    enum { OF_THREAD = 4, SCHEDULED = 2 };
    return (clockid_t)(~(unsigned)thread << 3 | OF_THREAD | SCHEDULED);
}

double nb_threads_cpu_s(void) {
    struct threads t;
    struct timespec used;
    double sum = 0;
    list_threads(&t);
    for (size_t i = 0; i < t.n; i++)
        if (clock_gettime(clock_of(t.ids[i]), &used) == 0) sum += (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
    free(t.ids);
    return sum;
}

bool nb_threads_wait_asleep(double limit_s) {
    const double start = nb_now_s();
    const struct timespec nap = {.tv_nsec = 20000};
    while (any_runs()) {
        if (nb_now_s() - start > limit_s) return false;
        nanosleep(&nap, NULL);
    }
    return true;
}
