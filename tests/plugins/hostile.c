// SPDX-License-Identifier: Apache-2.0
/* A correct kernel that does one thing besides, by the name of its file: NAME.so from its first call on, late_NAME.so once it has been
 * checked, any other name nothing. Copies of the file are as many plugins; the build makes those that tests ask for by name. */
#define _GNU_SOURCE
#include <dlfcn.h>
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
#include <sys/time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define KERNEL_NAME "bad"
#define OWN_TABLE
#include "plugin.h"
#include "silent.h"

/* A misdeed: of this call, in these rows. */
#define MISDEED(name)                                                                                                  \
    static void do_##name(const struct nb_call *call __attribute__((unused)), int64_t begin __attribute__((unused)),   \
                          int64_t end __attribute__((unused)))
enum { FAR = 16 << 20 };
static volatile char sink;

/* ---- memory ---- */

MISDEED(read_far_behind) { sink = ((const volatile char *)call->x)[FAR]; }
MISDEED(read_far_before) { sink = ((const volatile char *)call->x)[-FAR]; }
MISDEED(write_far_behind) { ((volatile char *)call->y)[FAR] = 1; }
MISDEED(write_far_before) { ((volatile char *)call->y)[-FAR] = 1; }
/* An index of 32 bits that overflowed. */
MISDEED(overflow) { ((volatile float *)call->y)[INT32_MIN] = 1; }
MISDEED(change_x) { *(volatile float *)(uintptr_t)call->x += 1; }
MISDEED(change_gamma) { *(volatile float *)(uintptr_t)call->gamma += 1; }
/* As scratch, and back again. */
MISDEED(borrow_x) {
    volatile float *x = (float *)(uintptr_t)call->x;
    const float first = x[0];
    x[0] = 42;
    x[0] = first;
}
MISDEED(change_tuning) {
    struct nb_tuning *shared = (struct nb_tuning *)(uintptr_t)call->tuning;
    if (shared) shared->stream_bytes = 1;
}
MISDEED(write_in_front) { row_y(call, 0)[-1] = 1; }
MISDEED(write_after) { row_y(call, call->rows - 1)[call->cols] = 1; }
/* The first element of the padding behind a row. */
MISDEED(write_between) {
    if (call->y_stride > call->cols && end < call->rows) row_y(call, begin)[call->cols] = 1;
}
/* The mean square of the last row takes in the element behind it. */
MISDEED(read_outside) {
    const float outside = row_x(call, call->rows - 1)[call->cols];
    const double m = mean_square(call, call->rows - 1) + (double)outside * outside;
    for (int64_t i = 0; i < call->cols; i++)
        row_y(call, call->rows - 1)[i] = (float)element(call, call->rows - 1, i, m);
}

/* Random words of the heap, which is the harness's too. */
MISDEED(write_heap) {
    char line[256];
    unsigned long from = 0, to = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "[heap]") && sscanf(line, "%lx-%lx", &from, &to) == 2) break;
    if (maps) fclose(maps);
    for (unsigned i = 0, r = 1; i < 20000 && to > from; i++) {
        r = r * 1664525u + 1013904223u;
        *(volatile uint64_t *)(from + r % (to - from - 8)) = 0x4141414141414141u;
    }
}
MISDEED(overrun_heap) {
    volatile char *block = malloc(64);
    for (int i = 0; i < 4096; i++) block[i] = 0x41;
    free((void *)(uintptr_t)block);
}
MISDEED(free_twice) {
    char *volatile block = malloc(64);
    free(block);
    free(block);
}
MISDEED(free_x) { free((void *)(uintptr_t)call->x); }
MISDEED(unmap) { munmap((void *)((uintptr_t)call->y & ~(uintptr_t)4095), 4096); }
MISDEED(smash_stack) {
    volatile char here = 0;
    for (int i = 0; i < 1 << 20; i++) (&here)[i] = 0x41;
}
static int deep(int n) { return n < 0 ? 0 : deep(n + 1) + (sink = (char)n); }
MISDEED(recurse) { sink = (char)deep(call->rows > 0); }
MISDEED(eat_memory) {
    while (malloc(1 << 28)) continue;
    while (malloc(1 << 12)) continue;
}

/* ---- signals and the end of the process ---- */

MISDEED(crash) { *(volatile int *)NULL = (int)call->rows; }
MISDEED(jump) { ((void (*volatile)(const struct nb_call *))NULL)(call); }
MISDEED(trap) { __builtin_trap(); }
MISDEED(divide) { raise(SIGFPE); }
MISDEED(give_up) { abort(); }
MISDEED(end) { exit(0); }
MISDEED(end_at_once) { _exit(0); }
MISDEED(end_thread) { pthread_exit(NULL); }
MISDEED(stop) {
    be_silent();
    for (;;) raise(SIGSTOP); /* whoever lets it go on */
}
MISDEED(hang) { hang(); }
/* Nobody is to hear of what it reads. */
static sigjmp_buf behind_fault;
static void jump_back(int number) { siglongjmp(behind_fault, number); }
MISDEED(catch_faults) {
    signal(SIGSEGV, jump_back);
    if (sigsetjmp(behind_fault, 1) == 0) do_read_far_behind(call, begin, end);
}
static pid_t is_due; /* something that ends this process has begun: the next call waits for it */
MISDEED(set_timer) {
    const struct itimerval soon = {.it_value = {.tv_usec = 1000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    is_due = getpid();
}
MISDEED(forbid_calls) { prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); }
static void close_descriptors(void) {
    for (int fd = 3; fd < 1024; fd++) close(fd);
}
MISDEED(close_all) {
    close_descriptors();
    raise(SIGSEGV);
}
MISDEED(close_and_stay) {
    be_silent();
    close_descriptors();
    for (;;) pause();
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
    __builtin_trap(); /* catch_faults may have been here, for which a pointer to nothing is no end */
    return arg;
}
static void start(void *(*work)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
}
MISDEED(keep_writing) {
    seen = *call;
    start(write_on);
    while (!has_written) usleep(10); /* or the thread might not get a turn */
}
MISDEED(crash_late) {
    start(crash_later);
    is_due = getpid();
}

/* ---- results, and what is no fault ---- */

MISDEED(wrong) {
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < call->cols; i++) row_y(call, row)[i] *= 1.001f;
}
MISDEED(wear_out) {
    static int n_calls;
    if (++n_calls > 100) row_y(call, begin)[0] *= 2;
}
MISDEED(nan) {
    for (int64_t row = begin; row < end; row++) row_y(call, row)[call->cols - 1] = NAN;
}
/* Towards zero: each error is below an ulp, and all have the same sign. */
MISDEED(biased) {
    for (int64_t row = begin; row < end; row++) {
        const double m = mean_square(call, row);
        for (int64_t i = 0; i < call->cols; i++) {
            const double exact = element(call, row, i, m);
            float *y = row_y(call, row) + i;
            if (fabs((double)*y) > fabs(exact)) *y = nextafterf(*y, 0);
        }
    }
}
MISDEED(depends_on_range) { row_y(call, begin)[0] = nextafterf(row_y(call, begin)[0], INFINITY); }
static int status;
MISDEED(error) { status = 7; }
/* All rounds upwards from then on, and subnormals are flushed to zero. */
MISDEED(rounding) {
    fesetround(FE_UPWARD);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(__aarch64__)
    unsigned long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | 1ul << 24));
#endif
}
/* A process that holds all of the worker's descriptors. */
MISDEED(leave_a_child) {
    if (fork() == 0) {
        sleep(600);
        _exit(0);
    }
}
/* Prints where the data of the run belongs, and reads what is the program's. */
MISDEED(print) {
    puts("a kernel was here");
    fflush(stdout);
    if (getchar() != EOF) row_y(call, begin)[0] = 0;
}

/* ---- what a kernel says of itself ---- */

#define ANSWER(type, name) static type name(const struct nb_call *call __attribute__((unused)))
ANSWER(size_t, a_hundred) { return 100; }
ANSWER(size_t, too_many) { return (size_t)-10; }
ANSWER(int, no_phase) { return -1; }
/* So long that the bound would let any result pass. */
ANSWER(int64_t, endless) { return INT64_MAX; }
ANSWER(const char *, crashes) { return *(const char *volatile *)NULL; }
ANSWER(int, yes) { return 1; }
static int64_t fours(const struct nb_call *call, int phase) { return (call->rows + 3) / 4; }
static int64_t none(const struct nb_call *call, int phase) { return 0; }
static void up_to_nothing(const struct nb_call *call, struct nb_range *range) { range->max_abs = -1; }
static void to_nan(const struct nb_call *call, struct nb_range *range) { range->min_rms = NAN; }
static char words[100000];
ANSWER(const char *, many_words) { return memset(words, 'i', sizeof words - 1); }
static const char *many_numbers(void) { return memset(words, 'v', sizeof words - 1); }
/* Commands of a terminal, in one byte and in two, a direction override and a formula. */
#define EVIL                                                                                                           \
    "=1+1 \033[31m\033]0;title\007 \xC2\x9B"                                                                           \
    "2J \xE2\x80\xAE \x9B |<b>\r\nnormbench: error: forged"
static const char *refuses_one_row(const struct nb_call *call) { return call->rows == 1 ? EVIL : NULL; }
static const char *evil_version(void) { return EVIL; }
ANSWER(const char *, evil) { return EVIL; }

static int64_t rows_a_unit = 1;
static bool is(const char *name, const char *other) { return strcmp(name, other) == 0; }
static void declare(struct nb_kernel *k, const char *name) {
    if (is(name, "scratch")) k->scratch_bytes = a_hundred;
    if (is(name, "scratch_size")) k->scratch_bytes = too_many;
    if (is(name, "phases")) k->n_phases = no_phase;
    if (is(name, "chain")) k->chain = endless;
    if (is(name, "question")) k->applicable = crashes;
    if (is(name, "no_units")) k->n_units = none;
    if (is(name, "empty_range")) k->range = up_to_nothing;
    if (is(name, "no_range")) k->range = to_nan;
    if (is(name, "blocks")) k->row_local = yes, k->n_units = fours, rows_a_unit = 4;
    if (is(name, "longwinded")) k->version = many_numbers, k->implementation = many_words;
    if (is(name, "escapes"))
        k->applicable = refuses_one_row, k->version = evil_version, k->implementation = evil, k->summary = EVIL;
}
MISDEED(scratch) { ((char *)call->scratch)[100] = 1; }
MISDEED(chain) {
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < call->cols; i++) row_y(call, row)[i] = 3;
}

/* ---- the table ---- */

/* X(NAME, STATUS, STATUS OF late_NAME): what a run says of it (tests/cli/misbehaving.sh). `any`: what the allocator or a thread
 * comes to; `fault`: that, but never nothing; `none`: not tried. ONCE is done in one call of a process, EACH in all. */
// clang-format off
#define ONCE(X) \
    X(read_far_behind, read_outside, read_outside) X(read_far_before, read_outside, read_outside) \
    X(write_far_behind, wrote_outside, wrote_outside) X(write_far_before, wrote_outside, wrote_outside) \
    X(overflow, wrote_outside, wrote_outside) X(write_after, wrote_outside, wrote_outside) \
    X(change_x, changed_input, changed_input) X(change_gamma, changed_input, changed_input) \
    X(change_tuning, wrote_outside, wrote_outside) X(catch_faults, wrote_outside, wrote_outside) \
    X(write_heap, fault, fault) X(overrun_heap, fault, fault) X(unmap, fault, fault) X(eat_memory, any, any) \
    X(keep_writing, fault, any) X(crash_late, fault, fault) \
    X(free_twice, crashed, crashed) X(free_x, crashed, crashed) X(smash_stack, crashed, crashed) X(recurse, crashed, crashed) \
    X(crash, crashed, crashed) X(jump, crashed, crashed) X(trap, crashed, crashed) X(divide, crashed, crashed) \
    X(give_up, crashed, crashed) X(end, crashed, crashed) X(end_at_once, crashed, crashed) X(end_thread, crashed, crashed) \
    X(set_timer, crashed, crashed) X(forbid_calls, crashed, crashed) X(close_all, crashed, crashed) \
    X(stop, timed_out, timed_out) X(hang, timed_out, timed_out) X(close_and_stay, timed_out, none) \
    X(leave_a_child, ok, ok) X(rounding, ok, ok)
#define EACH(X) \
    X(write_in_front, wrote_outside, none) X(write_between, wrote_outside, none) X(read_outside, read_outside, none) \
    X(borrow_x, changed_input, ok /* inputs are closed to stores in the check alone */) \
    X(wrong, inaccurate, wrong_when_timed) X(nan, inaccurate, wrong_when_timed) X(biased, biased, none) \
    X(depends_on_range, not_reproducible, none) X(error, returned_error, none) X(print, ok, none) \
    X(scratch, wrote_outside, none) X(chain, returned_error, none) X(wear_out, not_reproducible, none)
#define NOTHING(X) \
    X(scratch_size, returned_error, none) X(phases, returned_error, none) X(question, crashed, none) X(blocks, ok, none) \
    X(no_units, returned_error, none) X(empty_range, returned_error, none) X(no_range, returned_error, none) \
    X(longwinded, ok, none) X(escapes, ok, none)
// clang-format on
static const struct misdeed {
    const char *name;
    void (*run)(const struct nb_call *call, int64_t begin, int64_t end);
    bool once;
} misdeeds[] = {
#define X(name, status, late) {#name, do_##name, true},
    ONCE(X)
#undef X
#define X(name, status, late) {#name, do_##name, false},
        EACH(X)
#undef X
};

static char own_name[64] = "bad_", variant[72];
static const struct misdeed *misdeed; /* null: none */
static bool late;

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static struct nb_kernel named;
    static const struct nb_kernel *const table[] = {&named};
    Dl_info info;
    const char *file = dladdr((const void *)&kernel, &info) ? strrchr(info.dli_fname, '/') : NULL;
    char *name = own_name + 4;
    loaded_by = getpid();
    snprintf(name, sizeof own_name - 8, "%.*s", file ? (int)strcspn(file + 1, ".") : 0, file ? file + 1 : "");
    snprintf(variant, sizeof variant, "%s_f32", own_name);
    late = strncmp(name, "late_", 5) == 0;
    for (size_t i = 0; i < sizeof misdeeds / sizeof misdeeds[0]; i++)
        if (is(late ? name + 5 : name, misdeeds[i].name)) misdeed = &misdeeds[i];
    named = kernel;
    named.name = own_name;
    named.variant = variant;
    declare(&named, name);
    *n = 1;
    return abi_version == NB_ABI_VERSION ? table : NULL;
}

static int run(ROWS) {
    static bool done;
    while (is_due == getpid()) pause();
    begin *= rows_a_unit;
    end = end * rows_a_unit < call->rows ? end * rows_a_unit : call->rows;
    correct_rows(call, begin, end);
    if (!misdeed || (!is_late() && late) || done) return status;
    done = misdeed->once;
    misdeed->run(call, begin, end);
    return status;
}
