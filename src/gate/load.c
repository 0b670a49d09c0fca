// SPDX-License-Identifier: Apache-2.0
/* Children that die with their parent. */
#include "src/gate/load.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/timer.h"

enum { STREAM_BYTES = 64 << 20 };

static _Noreturn void compute(uint64_t seed) {
    volatile uint64_t state = seed;
    for (;;) state = nb_random_mix(state);
}

static double uniform(uint64_t *state) { return (double)(nb_random_next(state) >> 11) * 0x1p-53; }

static void rest(double seconds) {
    const struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&t, NULL);
}

static _Noreturn void stream(uint64_t seed) {
    unsigned char *memory = malloc(STREAM_BYTES);
    if (!memory) _exit(1);
    for (;;) {
        const double until = nb_now_s() + 0.05 + 0.95 * uniform(&seed);
        while (nb_now_s() < until) memset(memory, (int)(seed & 0xff), STREAM_BYTES);
        rest(0.05 + 0.95 * uniform(&seed));
    }
}

static void start(struct nb_hogs *h, void (*work)(uint64_t)) {
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_IGN); /* the parent ends it */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(0);
        work((uint64_t)getpid());
    }
    if (pid < 0)
        nb_warn("a process that loads the machine cannot be started");
    else
        h->pids[h->n++] = pid;
}

void nb_hogs_start_cpu(struct nb_hogs *h) { start(h, compute); }

void nb_hogs_start_memory(struct nb_hogs *h) {
    start(h, stream);
    start(h, stream);
}

void nb_hogs_stop(struct nb_hogs *h) {
    for (int i = 0; i < h->n; i++) kill(h->pids[i], SIGKILL);
    for (int i = 0; i < h->n; i++) waitpid(h->pids[i], NULL, 0);
    h->n = 0;
}
