// SPDX-License-Identifier: Apache-2.0
/* Code that crashes, hangs, ends its process, forks or writes to what is not its own leaves the program where it was. */
#include "src/core/guard.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/plugins/silent.h"

static void answer(void *arg) { *(int *)arg = 42; }
static void stop(void *arg) {
    *(int *)arg = 1;
    abort();
}
static void stay(void *arg) { hang(); }
static void leave(void *arg) { exit(0); }
static void close_all(void *arg) { close_range(3, ~0u, 0); }
static void write_to_all(void *arg) {
    for (int fd = 3; fd < 1024; fd++)
        if (write(fd, "junk", 4) < 0) continue;
}
/* The child holds the guard's end of the socket. */
static void fork_and_leave(void *arg) {
    *(pid_t *)arg = 0;
    if (fork() == 0)
        for (;;) pause();
    _exit(3);
}

Test(guard, lets_an_answer_through) {
    int value = 0;
    cr_assert_null(nb_guarded(answer, &value, sizeof value, 10));
    cr_assert_eq(value, 42);
}

Test(guard, says_what_happened_instead_of_an_answer) {
    int value = 7;
    for (int i = 0; i < 2; i++) {
        cr_expect_str_eq(nb_guarded(stop, &value, sizeof value, 10), "was ended by signal 6 (Aborted)");
        cr_expect_eq(value, 7, "half an answer is none");
        cr_expect_str_eq(nb_guarded(stay, NULL, 0, 0.05), "did not end within 0.05 s");
        cr_expect_str_eq(nb_guarded(leave, NULL, 0, 10), "ended the process with exit code 0");
        cr_expect_str_eq(nb_guarded(close_all, NULL, 0, 10), "ended the process with exit code 0");
        cr_expect_str_eq(nb_guarded(write_to_all, NULL, 0, 10), "wrote to a descriptor that is not its own");
        cr_expect_str_eq(nb_guarded(fork_and_leave, &value, sizeof value, 10), "ended the process with exit code 3");
    }
    cr_assert_null(nb_guarded(answer, &value, sizeof value, 10), "another guard answers");
    cr_assert_eq(value, 42);
}

static int always(void) { return 15; }

Test(guard, is_not_waited_for_after_a_signal) {
    nb_guard_ends_when(always);
    cr_expect_str_eq(nb_guarded(stay, NULL, 0, 1e6), "was interrupted");
}

/* A sanitizer's frames have no room for an overflow of their own. */
#if !defined(__SANITIZE_ADDRESS__)
static void (*volatile again)(void *arg);
static void recurse(void *arg) {
    char room[4096];
    room[0] = *(char *)arg;
    again(room);
    *(volatile char *)room = 1;
}

Test(guard, survives_a_stack_that_overflows) {
    char room = 0;
    again = recurse;
    cr_assert_str_eq(nb_guarded(recurse, &room, 1, 10), "was ended by signal 11 (Segmentation fault)");
}
#endif

static int begun;
static void begin(void) { begun++; }
static void begin_again(void *arg) { begun++; }
static void count_begun(void *arg) { *(int *)arg = begun; }

Test(guard, keeps_what_it_did_until_it_ends) {
    int value = 0;
    nb_guard_begins_with(begin);
    cr_assert_null(nb_guarded(count_begun, &value, sizeof value, 10));
    cr_assert_eq(value, 1);
    cr_assert_eq(begun, 0, "not here");
    cr_assert_null(nb_guarded(begin_again, NULL, 0, 10));
    cr_assert_null(nb_guarded(count_begun, &value, sizeof value, 10));
    cr_assert_eq(value, 2);
    nb_guard_end();
    cr_assert_null(nb_guarded(count_begun, &value, sizeof value, 10));
    cr_assert_eq(value, 1, "a new one begins anew");
}
