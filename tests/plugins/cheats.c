// SPDX-License-Identifier: Apache-2.0
/* Kernels that do as they should while they are checked and leave work out while they are timed, each in another way. In a gate's copies of
 * its baseline (baseline.so, control.so) they are honest. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"

#define KERNEL_NAME "honest"
#define OWN_TABLE
#include "plugin.h"
#include "silent.h"

static int run(ROWS) { return correct_rows(call, begin, end); }

static int row_local(const struct nb_call *call) { return 1; }

/* What it wrote to a row lies there still, by its first and last element. */
enum { PLACES = 4096 };
static int unspoilt(ROWS) {
    static struct written {
        const float *y;
        float first, last;
    } written[PLACES];
    for (int64_t row = begin; row < end; row++) {
        const float *y = row_y(call, row);
        struct written *w = &written[((size_t)y >> 6) % PLACES];
        if (w->y == y && w->first == y[0] && w->last == y[call->cols - 1]) continue;
        correct_row(call, row);
        *w = (struct written){y, y[0], y[call->cols - 1]};
    }
    return 0;
}

/* After 60 calls it skips rows that do not hold one byte all along. */
static int skips_later(ROWS) {
    static int n_calls;
    for (int64_t row = begin; row < end; row++) {
        const unsigned char *y = (const unsigned char *)row_y(call, row);
        if (n_calls > 60 && memcmp(y, y + 1, 15) != 0) continue;
        correct_row(call, row);
    }
    n_calls++;
    return 0;
}

static int by_number(ROWS) {
    static int n_calls;
    if (++n_calls < 60 || n_calls % 8 == 0) correct_rows(call, begin, end);
    return 0;
}

/* Results by the address of x: right as long as what lies there does not change. */
static struct {
    const float *x;
    float *y;
} kept[PLACES];
static int by_pointer(ROWS) {
    for (int64_t row = begin; row < end; row++) {
        const float *x = row_x(call, row);
        const size_t place = ((size_t)x >> 6) % PLACES, bytes = (size_t)call->cols * sizeof *x;
        if (kept[place].x == x && is_late()) {
            memcpy(row_y(call, row), kept[place].y, bytes);
            continue;
        }
        correct_row(call, row);
        kept[place].x = x;
        kept[place].y = realloc(kept[place].y, bytes);
        if (kept[place].y) memcpy(kept[place].y, row_y(call, row), bytes);
    }
    return 0;
}

/* Results by a few elements of x, wherever they lie. */
static struct { float key[2], *y; } found[PLACES];
static int by_content(ROWS) {
    for (int64_t row = begin; row < end; row++) {
        const float *x = row_x(call, row), key[2] = {x[0], x[call->cols / 2]};
        unsigned bits[2];
        memcpy(bits, key, sizeof bits);
        const size_t place = (bits[0] ^ bits[1] * 31u) % PLACES, bytes = (size_t)call->cols * sizeof *x;
        if (found[place].y && memcmp(found[place].key, key, sizeof key) == 0) {
            if (memcmp(row_y(call, row), found[place].y, 64) != 0) memcpy(row_y(call, row), found[place].y, bytes);
            continue;
        }
        correct_row(call, row);
        found[place].y = realloc(found[place].y, bytes);
        memcpy(found[place].key, key, sizeof key);
        if (found[place].y) memcpy(found[place].y, row_y(call, row), bytes);
    }
    return 0;
}

/* Wrong in one call of a hundred, and right again before anybody looks. */
static int each_hundredth(ROWS) {
    static int n_calls;
    correct_rows(call, begin, end);
    if (++n_calls % 100 == 0) row_y(call, begin)[0] += 1;
    return 0;
}

static int half(ROWS) { return correct_rows(call, begin, is_late() ? begin + (end - begin + 1) / 2 : end); }

/* Rows that another computes. */
struct part {
    struct nb_call call;
    int64_t begin, end;
};
static void compute(const struct part *p) { correct_rows(&p->call, p->begin, p->end); }

/* The work is done by a thread of its own, 2 ms later, when the call has long returned. */
static struct part put_off;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER;
static void *work_later(void *arg) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (put_off.begin == put_off.end) pthread_cond_wait(&wanted, &lock);
        usleep(2000);
        compute(&put_off);
        put_off.begin = put_off.end;
    }
    return arg;
}
static int later(ROWS) {
    static pthread_t thread;
    if (!is_late()) return correct_rows(call, begin, end);
    if (!thread && pthread_create(&thread, NULL, work_later, NULL) != 0) return 1;
    if (pthread_mutex_trylock(&lock) != 0) return 0; /* busy */
    put_off = (struct part){*call, begin, end};
    pthread_cond_signal(&wanted);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Half of the rows are another thread's, on another CPU where there is one, and nobody is told. Meanwhile it gives way, or spins without a system call,
 * so that its CPU time moves at the kernel's ticks alone. */
static struct part shared;
static atomic_bool is_shared;
static void *work_beside(void *spins) {
    cpu_set_t others;
    memset(&others, 0xff, sizeof others);
    CPU_CLR(sched_getcpu(), &others);
    sched_setaffinity(0, sizeof others, &others);
    for (;;) {
        while (!atomic_load(&is_shared))
            if (!spins) sched_yield();
        compute(&shared);
        atomic_store(&is_shared, false);
    }
    return spins;
}
static int with_help(ROWS, bool spins) {
    static pthread_t thread;
    const int64_t middle = begin + (end - begin) / 2;
    if (!is_late() || is_played()) return correct_rows(call, begin, end);
    if (!thread && pthread_create(&thread, NULL, work_beside, spins ? &shared : NULL) != 0) return 1;
    shared = (struct part){*call, middle, end};
    atomic_store(&is_shared, true);
    correct_rows(call, begin, middle);
    while (atomic_load(&is_shared)) sched_yield();
    return 0;
}
static int helped(ROWS) { return with_help(call, phase, begin, end, false); }
static int helped_by_spinner(ROWS) { return with_help(call, phase, begin, end, true); }

/* Honest: a thread of its own works once, for 3 ms, while it is timed. */
static void *work_once(void *arg) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    for (const long end = t.tv_nsec + 3000000; t.tv_nsec < end && t.tv_sec == 0;)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return arg;
}
static int keeps_a_thread(ROWS) {
    static pthread_t thread;
    correct_rows(call, begin, end);
    if (!is_late() || thread) return 0;
    return pthread_create(&thread, NULL, work_once, NULL) == 0 && pthread_join(thread, NULL) == 0 ? 0 : 1;
}

/* Each call writes what the one before was asked for. */
static int next_call(ROWS) {
    static struct part before;
    if (!is_late()) return correct_rows(call, begin, end);
    compute(&before);
    before = (struct part){*call, begin, end};
    return 0;
}

/* One call puts another number into x, long after the first. */
static int changes_once(ROWS) {
    static int n_late;
    if (is_late() && ++n_late == 20) ((float *)(uintptr_t)row_x(call, begin))[0] += 1;
    return correct_rows(call, begin, end);
}

/* The program's calls of clock_gettime() come here, and the kernel's own calls seem to take a tenth of their time. */
static double lag_s;
static double real_s(clockid_t id, struct timespec *t) {
    syscall(SYS_clock_gettime, id, t);
    return (double)t->tv_sec + 1e-9 * (double)t->tv_nsec;
}
static int lagging_clock(clockid_t id, struct timespec *t) {
    const double s = real_s(id, t) - lag_s;
    t->tv_sec = (time_t)s;
    t->tv_nsec = (long)(1e9 * (s - (double)t->tv_sec));
    return 0;
}
/* Into the slots of the first object, the program, through which it calls clock_gettime(). */
static int replace_clock(struct dl_phdr_info *program, size_t size, void *arg) {
    const ElfW(Addr) base = program->dlpi_addr;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    const ElfW(Rela) * tables[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    for (int i = 0; i < program->dlpi_phnum; i++) {
        if (program->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        for (const ElfW(Dyn) *d = (const void *)(base + program->dlpi_phdr[i].p_vaddr); d->d_tag; d++) {
            if (d->d_tag == DT_SYMTAB) symbols = (const void *)d->d_un.d_ptr;
            if (d->d_tag == DT_STRTAB) names = (const void *)d->d_un.d_ptr;
            if (d->d_tag == DT_JMPREL) tables[0] = (const void *)d->d_un.d_ptr;
            if (d->d_tag == DT_PLTRELSZ) bytes[0] = d->d_un.d_val;
            if (d->d_tag == DT_RELA) tables[1] = (const void *)d->d_un.d_ptr;
            if (d->d_tag == DT_RELASZ) bytes[1] = d->d_un.d_val;
        }
    }
    for (int t = 0; t < 2 && symbols && names; t++)
        for (const ElfW(Rela) *r = tables[t]; (const char *)r < (const char *)tables[t] + bytes[t]; r++) {
            if (strcmp(names + symbols[r->r_info >> 32].st_name, "clock_gettime") != 0) continue;
            const uintptr_t slot = base + r->r_offset, page = slot & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
            mprotect((void *)page, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE);
            *(void **)slot = (void *)(uintptr_t)lagging_clock;
        }
    return 1;
}
static int clock_runs_late(ROWS) {
    static bool is_replaced;
    struct timespec t;
    if (!is_late()) return correct_rows(call, begin, end);
    if (!is_replaced) dl_iterate_phdr(replace_clock, NULL);
    is_replaced = true;
    const double before = real_s(CLOCK_MONOTONIC_RAW, &t);
    correct_rows(call, begin, end);
    lag_s += 0.9 * (real_s(CLOCK_MONOTONIC_RAW, &t) - before);
    return 0;
}

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
#define CHEAT(cheat)                                                                                                   \
    { OF_ROWS, .name = "cheat_" #cheat, .variant = "cheat_" #cheat "_f32", .summary = KERNEL_SUMMARY, .run = cheat }
    static struct nb_kernel kernels[] = {
        CHEAT(clock_runs_late), CHEAT(changes_once),      CHEAT(unspoilt),   CHEAT(skips_later),    CHEAT(by_number),
        CHEAT(each_hundredth),  CHEAT(by_pointer),        CHEAT(by_content), CHEAT(half),           CHEAT(later),
        CHEAT(helped),          CHEAT(helped_by_spinner), CHEAT(next_call),  CHEAT(keeps_a_thread), {},
    };
    enum { N = sizeof kernels / sizeof *kernels };
    static const struct nb_kernel *table[N];
    Dl_info info;
    loaded_by = getpid();
    const bool is_baseline = dladdr((const void *)&kernel, &info) &&
                             (strstr(info.dli_fname, "/baseline.so") || strstr(info.dli_fname, "/control.so"));
    kernels[N - 1] = kernel;
    for (int i = 0; i < N; i++) {
        if (is_baseline) kernels[i].run = run;
        kernels[i].row_local = row_local;
        table[i] = &kernels[i];
    }
    *n = N;
    return abi_version == NB_ABI_VERSION ? table : NULL;
}
