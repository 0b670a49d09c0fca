// SPDX-License-Identifier: Apache-2.0
/* Counters: what is counted is right, what cannot be counted is NaN with a reason and never 0. */
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "src/measure/counters.h"

static struct nb_counter counter_named(const struct nb_counter *list, size_t n, const char *name) {
    size_t i = 0;
    while (i < n && strcmp(list[i].name, name) != 0) i++;
    cr_assert_lt(i, n, "no counter %s", name);
    return list[i];
}

static void touch_pages(void *arg) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = *(size_t *)arg;
    volatile char *memory = mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(memory != MAP_FAILED);
    madvise((void *)memory, n * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < n; i++) memory[i * page] = 1;
    munmap((void *)memory, n * page);
}

Test(counters, each_is_listed_with_a_source_and_what_is_missing_with_a_reason) {
    struct nb_counter list[NB_MAX_COUNTERS], again[NB_MAX_COUNTERS];
    size_t n = nb_counters_list(list, NB_MAX_COUNTERS);
    bool hardware = false;
    cr_assert_geq(n, 5);
    for (size_t i = 0; i < n; i++) {
        cr_expect_gt(strlen(list[i].name), 0);
        cr_expect_gt(strlen(list[i].source), 0);
        hardware = hardware || (!list[i].reason[0] && strcmp(list[i].name, "instructions") == 0);
        for (size_t k = 0; k < i; k++) cr_expect_str_neq(list[i].name, list[k].name);
    }
    if (hardware) cr_expect(nb_counters_have_hardware());
    cr_expect_str_eq(list[n - 1].name, "instructions_exact");
    cr_expect_eq(nb_counters_list(again, NB_MAX_COUNTERS), n);
    cr_expect_eq(memcmp(list, again, n * sizeof list[0]), 0, "probed once");
    cr_expect_eq(nb_counters_list(again, 2), 2);
}

Test(counters, what_is_measured_is_there_and_what_is_not_is_nan) {
    struct nb_counter list[NB_MAX_COUNTERS], out[NB_MAX_COUNTERS];
    size_t pages = 40, n_list = nb_counters_list(list, NB_MAX_COUNTERS);
    size_t n = nb_counters_measure(touch_pages, &pages, 50, out, NB_MAX_COUNTERS);
    cr_assert_eq(n, n_list - 1);
    for (size_t i = 0; i < n; i++) {
        cr_expect_str_eq(out[i].name, list[i].name);
        cr_expect_str_eq(out[i].source, list[i].source);
        cr_expect_eq(isnan(out[i].value), list[i].reason[0] != '\0', "%s: %g", out[i].name, out[i].value);
        cr_expect_eq(isnan(out[i].value), out[i].reason[0] != '\0', "%s: %s", out[i].name, out[i].reason);
        if (!isnan(out[i].value)) cr_expect_geq(out[i].value, 0);
    }
    struct nb_counter faults = counter_named(out, n, "page_faults"), clock = counter_named(out, n, "task_clock_ns");
    if (!isnan(faults.value)) cr_expect(faults.value >= 40 && faults.value < 60, "%g page faults", faults.value);
    if (!isnan(clock.value)) cr_expect_gt(clock.value, 40);
    cr_expect_eq(nb_counters_measure(touch_pages, &pages, 1, out, 3), 3);
}

static char reason[200];

#if defined(__x86_64__)
static bool stepping_works(void) { return nb_single_step_probe(reason, sizeof reason) == 0; }

/* Written in assembler, so that no compiler option changes how many there are: 1 + 3 n + 1. */
__attribute__((naked, noinline)) static void loop(void *arg __attribute__((unused))) {
    __asm__("mov (%rdi), %rcx\n1: lea (%rax), %rax\n dec %rcx\n jnz 1b\n ret");
}

Test(single_step, a_loop_of_known_length_is_counted_exactly) {
    if (!stepping_works()) cr_skip("%s", reason);
    for (int64_t turns = 1; turns < 2000; turns *= 3)
        cr_expect_eq(nb_single_step(loop, &turns, 20000, reason, sizeof reason), 2 + 3 * turns, "%ld turns",
                     (long)turns);
}

Test(single_step, beyond_the_limit_there_is_a_reason_and_the_work_is_done) {
    int64_t turns = 100000;
    if (!stepping_works()) cr_skip("%s", reason);
    cr_expect_eq(nb_single_step(loop, &turns, 1000, reason, sizeof reason), -1);
    cr_expect_str_eq(reason, "more than 1000 instructions");
    turns = 10;
    cr_expect_eq(nb_single_step(loop, &turns, 32, reason, sizeof reason), 32);
    cr_expect_eq(nb_single_step(loop, &turns, 31, reason, sizeof reason), -1);
}

static volatile sig_atomic_t seen;
static void see(int signal) { seen = signal; }

Test(single_step, the_handlers_and_masks_of_before_stand_again) {
    int64_t turns = 3;
    stack_t before, after;
    sigset_t mask, trap;
    if (!stepping_works()) cr_skip("%s", reason);
    signal(SIGTRAP, see);
    cr_assert_eq(sigaltstack(NULL, &before), 0);
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    sigprocmask(SIG_BLOCK, &trap, NULL);
    cr_expect_eq(nb_single_step(loop, &turns, 100, reason, sizeof reason), 11, "also when the signal was blocked");
    sigprocmask(SIG_BLOCK, NULL, &mask);
    cr_expect(sigismember(&mask, SIGTRAP));
    sigprocmask(SIG_UNBLOCK, &trap, NULL);
    raise(SIGTRAP);
    cr_expect_eq(seen, SIGTRAP);
    cr_assert_eq(sigaltstack(NULL, &after), 0);
    cr_expect_eq(after.ss_sp, before.ss_sp, "no signal stack is left behind");
    cr_expect_eq(after.ss_flags, before.ss_flags);
}
#endif

static volatile int questions;
static int64_t ask_at_length(const struct nb_call *call, int phase) {
    for (int i = 0; i < 1000; i++) questions++;
    return call->rows;
}
static int store_one(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    ((float *)call->y)[0] = 1;
    return 0;
}

/* Some kernels compute how many units they have. */
Test(counters, an_exact_count_is_of_the_work_and_not_of_what_the_kernel_is_asked) {
    const struct nb_kernel kernel = {
        .struct_size = sizeof kernel, .name = "asks", .run = store_one, .n_units = ask_at_length};
    float y;
    const struct nb_call call = {.struct_size = sizeof call, .rows = 1, .cols = 1, .y = &y};
    const int64_t n = nb_single_step_kernel(&kernel, &call, 100000, reason, sizeof reason);
    if (n < 0 && nb_single_step_probe(reason, sizeof reason) != 0) cr_skip_test("%s", reason);
    cr_expect(n > 0 && n < 500, "%lld instructions", (long long)n);
    cr_expect_gt(questions, 0);
}
