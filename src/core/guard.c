// SPDX-License-Identifier: Apache-2.0
/* Signals and a timer lead back to before the call. The handlers stand only while it lasts. */
#include "src/core/guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "src/core/log.h"

static sigjmp_buf way_back;
static volatile sig_atomic_t inside, caught;

static void on_signal(int number) {
    caught = number;
    siglongjmp(way_back, 1);
}

/* Without it a run whose plugin calls exit(0) would look like one that went well. */
static void on_exit_inside(void) {
    if (!inside) return;
    nb_error("a plugin ended the program when it was asked about its kernels");
    _exit(2);
}

static void set_timer(double seconds) {
    long whole = (long)seconds, micro = (long)((seconds - (double)whole) * 1e6);
    struct itimerval timer = {.it_value = {whole, micro}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

const char *nb_guarded(void (*work)(void *arg), void *arg, double limit_s) {
    enum { N = 6 };
    static const int numbers[N] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    static unsigned char stack[64 * 1024]; /* a recursion without end leaves no other */
    static char why[64];
    static bool registered;
    struct sigaction before[N], action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack}, stack_before;
    if (!registered) registered = atexit(on_exit_inside) == 0;
    sigaltstack(&own, &stack_before);
    for (int i = 0; i < N; i++) sigaction(numbers[i], &action, &before[i]);
    caught = 0;
    if (sigsetjmp(way_back, 1) == 0) {
        inside = 1;
        set_timer(limit_s);
        work(arg);
    }
    set_timer(0);
    inside = 0;
    for (int i = 0; i < N; i++) sigaction(numbers[i], &before[i], NULL);
    sigaltstack(&stack_before, NULL);
    if (!caught) return NULL;
    if (caught == SIGALRM)
        snprintf(why, sizeof why, "no end within %g s", limit_s);
    else
        snprintf(why, sizeof why, "%s", strsignal(caught));
    return why;
}
