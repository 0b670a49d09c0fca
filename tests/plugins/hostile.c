// SPDX-License-Identifier: Apache-2.0
/* A correct kernel that does one thing besides, by the name of its file: NAME.so from its first call on, late_NAME.so once it has been
 * checked, any other name nothing. Copies of the file are as many plugins. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#define KERNEL_NAME "bad_hostile"
#include "plugin.h"

enum { FAR = 16 << 20 };
static volatile char sink;

/* ---- memory ---- */

static void read_behind(const struct nb_call *call) { sink = ((const volatile char *)call->x)[FAR]; }
static void read_before(const struct nb_call *call) { sink = ((const volatile char *)call->x)[-FAR]; }
static void write_behind(const struct nb_call *call) { ((volatile char *)call->y)[FAR] = 1; }
static void write_before(const struct nb_call *call) { ((volatile char *)call->y)[-FAR] = 1; }
/* An index of 32 bits that overflowed. */
static void overflow(const struct nb_call *call) { ((volatile float *)call->y)[INT32_MIN] = 1; }
static void change_x(const struct nb_call *call) { *(volatile float *)(uintptr_t)call->x += 1; }
static void change_gamma(const struct nb_call *call) { *(volatile float *)(uintptr_t)call->gamma += 1; }
/* As scratch, and back again. */
static void borrow_x(const struct nb_call *call) {
    volatile float *x = (float *)(uintptr_t)call->x;
    const float first = x[0];
    x[0] = 42;
    x[0] = first;
}
static void change_tuning(const struct nb_call *call) {
    struct nb_tuning *shared = (struct nb_tuning *)(uintptr_t)call->tuning;
    if (shared) shared->stream_bytes = 1;
}
static void write_pad(const struct nb_call *call) { row_y(call, call->rows - 1)[call->cols] = 1; }

/* Random words of the heap, which is the harness's too. */
static void write_heap(const struct nb_call *call) {
    char line[256];
    unsigned long begin = 0, end = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    (void)call;
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "[heap]") && sscanf(line, "%lx-%lx", &begin, &end) == 2) break;
    if (maps) fclose(maps);
    for (unsigned i = 0, r = 1; i < 20000 && end > begin; i++) {
        r = r * 1664525u + 1013904223u;
        *(volatile uint64_t *)(begin + r % (end - begin - 8)) = 0x4141414141414141u;
    }
}
static void overrun_heap(const struct nb_call *call) {
    volatile char *block = malloc(64);
    (void)call;
    for (int i = 0; i < 4096; i++) block[i] = 0x41;
    free((void *)(uintptr_t)block);
}
static void free_twice(const struct nb_call *call) {
    char *volatile block = malloc(64);
    (void)call;
    free(block);
    free(block);
}
static void free_x(const struct nb_call *call) { free((void *)(uintptr_t)call->x); }
static void unmap(const struct nb_call *call) { munmap((void *)((uintptr_t)call->y & ~(uintptr_t)4095), 4096); }
static void smash_stack(const struct nb_call *call) {
    volatile char here = 0;
    (void)call;
    for (int i = 0; i < 1 << 20; i++) (&here)[i] = 0x41;
}
static int deep(int n) { return n < 0 ? 0 : deep(n + 1) + (sink = (char)n); }
static void recurse(const struct nb_call *call) { sink = (char)deep(call->rows > 0); }
static void eat_memory(const struct nb_call *call) {
    (void)call;
    while (malloc(1 << 28)) continue;
    while (malloc(1 << 12)) continue;
}

/* ---- signals and the end of the process ---- */

static void crash(const struct nb_call *call) { *(volatile int *)NULL = (int)call->rows; }
static void jump(const struct nb_call *call) { ((void (*volatile)(const struct nb_call *))NULL)(call); }
static void trap(const struct nb_call *call) {
    (void)call;
    __builtin_trap();
}
static void divide(const struct nb_call *call) {
    (void)call;
    raise(SIGFPE);
}
static void give_up(const struct nb_call *call) {
    (void)call;
    abort();
}
static void end(const struct nb_call *call) {
    (void)call;
    exit(0);
}
static void end_at_once(const struct nb_call *call) {
    (void)call;
    _exit(0);
}
static void end_thread(const struct nb_call *call) {
    (void)call;
    pthread_exit(NULL);
}
static void stop(const struct nb_call *call) {
    (void)call;
    raise(SIGSTOP);
}
static void hang(const struct nb_call *call) {
    (void)call;
    for (;;) pause();
}
/* Nobody is to hear of what it reads. */
static sigjmp_buf behind_fault;
static void jump_back(int number) { siglongjmp(behind_fault, number); }
static void catch_faults(const struct nb_call *call) {
    signal(SIGSEGV, jump_back);
    if (sigsetjmp(behind_fault, 1) == 0) read_behind(call);
}
/* A millisecond from now, in whoever's turn. */
static void set_timer(const struct nb_call *call) {
    const struct itimerval soon = {.it_value = {.tv_usec = 1000}};
    (void)call;
    setitimer(ITIMER_REAL, &soon, NULL);
}
static void forbid_calls(const struct nb_call *call) {
    (void)call;
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
}
static void close_all(const struct nb_call *call) {
    (void)call;
    for (int fd = 3; fd < 1024; fd++) close(fd);
    raise(SIGSEGV);
}

/* ---- threads ---- */

static struct nb_call seen;
static atomic_bool has_written;
static void *write_on(void *arg) {
    for (;;) {
        for (int64_t row = 0; row < seen.rows; row++)
            memset(row_y(&seen, row), 0x41, (size_t)seen.cols * sizeof(float));
        has_written = true;
        usleep(50);
    }
    return arg;
}
static void *crash_later(void *arg) {
    usleep(500);
    *(volatile int *)NULL = 1;
    return arg;
}
static void start(void *(*work)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
}
static void keep_writing(const struct nb_call *call) {
    seen = *call;
    start(write_on);
    while (!has_written) usleep(10); /* or the thread might not get a turn */
}
static void crash_late(const struct nb_call *call) {
    (void)call;
    start(crash_later);
}

/* ---- results, and what is no fault ---- */

static void zeros(const struct nb_call *call) {
    for (int64_t row = 0; row < call->rows; row++) memset(row_y(call, row), 0, (size_t)call->cols * sizeof(float));
}
static void nans(const struct nb_call *call) { row_y(call, 0)[0] = NAN; }
static void round_up(const struct nb_call *call) {
    (void)call;
    fesetround(FE_UPWARD);
}
static void leave_a_child(const struct nb_call *call) {
    (void)call;
    if (fork() == 0) {
        sleep(1);
        _exit(0);
    }
}

// clang-format off
#define MISDEEDS(X) \
    X(read_behind) X(read_before) X(write_behind) X(write_before) X(overflow) X(change_x) X(change_gamma) X(borrow_x) \
    X(change_tuning) X(write_pad) X(write_heap) X(overrun_heap) X(free_twice) X(free_x) X(unmap) X(smash_stack) X(recurse) \
    X(eat_memory) X(crash) X(jump) X(trap) X(divide) X(give_up) X(end) X(end_at_once) X(end_thread) X(stop) X(hang) \
    X(catch_faults) X(set_timer) X(forbid_calls) X(close_all) X(keep_writing) X(crash_late) X(zeros) X(nans) X(round_up) \
    X(leave_a_child)
// clang-format on
static const struct {
    const char *name;
    void (*run)(const struct nb_call *call);
} misdeeds[] = {
#define X(name) {#name, name},
    MISDEEDS(X)
#undef X
};

/* Of the file's name; null: none. */
static void (*find_misdeed(bool *late))(const struct nb_call *call) {
    Dl_info info;
    const char *name = dladdr((const void *)&kernel, &info) ? strrchr(info.dli_fname, '/') : NULL;
    if (!name) return NULL;
    *late = strncmp(++name, "late_", 5) == 0;
    if (*late) name += 5;
    for (size_t i = 0; i < sizeof misdeeds / sizeof misdeeds[0]; i++)
        if (strncmp(name, misdeeds[i].name, strlen(misdeeds[i].name)) == 0 && name[strlen(misdeeds[i].name)] == '.')
            return misdeeds[i].run;
    return NULL;
}

/* Results are wrong and x is borrowed in each call; the rest is done once. */
static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end_row) {
    static void (*misdeed)(const struct nb_call *call);
    static bool is_known, late, done;
    (void)phase;
    correct_rows(call, begin, end_row);
    if (!is_known) misdeed = find_misdeed(&late);
    is_known = true;
    const bool is_due = is_late() || !late;
    if (misdeed && is_due && !done) {
        done = misdeed != zeros && misdeed != nans && misdeed != borrow_x;
        misdeed(call);
    }
    return 0;
}
