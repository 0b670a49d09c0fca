// SPDX-License-Identifier: Apache-2.0
/* A question to code that crashes, hangs or recurses without end leaves the program where it was. */
#include "src/core/foreign.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void answer(void *arg) { *(int *)arg = 42; }
static void stop(void *arg) {
    (void)arg;
    abort();
}
static void divide(void *arg) {
    (void)arg;
    raise(SIGFPE);
}
static void hang(void *arg) {
    (void)arg;
    for (;;) pause();
}
Test(guard, lets_an_answer_through) {
    int value = 0;
    cr_assert_null(nb_guarded(answer, &value, 1));
    cr_assert_eq(value, 42);
}

Test(guard, survives_what_happens_instead_of_an_answer) {
    for (int i = 0; i < 2; i++) {
        cr_assert_str_eq(nb_guarded(stop, NULL, 1), "Aborted");
        cr_assert_str_eq(nb_guarded(divide, NULL, 1), "Floating point exception");
        cr_assert_str_eq(nb_guarded(hang, NULL, 0.05), "no end within 0.05 s");
    }
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
    cr_assert_str_eq(nb_guarded(recurse, &room, 5), "Segmentation fault");
}
#endif

Test(guard, gives_the_signals_back) {
    struct sigaction before, after;
    sigaction(SIGSEGV, NULL, &before);
    nb_guarded(stop, NULL, 1);
    sigaction(SIGSEGV, NULL, &after);
    cr_assert(before.sa_handler == after.sa_handler);
}
