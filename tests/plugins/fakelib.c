// SPDX-License-Identifier: Apache-2.0
/* A peer's adapter whose library is this file (a given one that is called .so is loaded, and no more): an RMSNorm with threads of its
 * own, started by open(), which spin for a while after each call as OpenMP's do. It fails when it is called before open() or for a part
 * of the work, and says how many threads it was opened with. FAKELIB_LOG names a file that gets a line with each loading, and with each
 * process that takes it down in order; FAKELIB_THREAD: loading starts a thread; FAKELIB_CRASHES: two threads crash. */
#define KERNEL_NAME "rmsnorm"
#define KERNEL_FIELDS                                                                                                  \
    .flags = NB_FLAG_OWN_THREADS, .n_units = one_unit, .open = start, .close = stop, .applicable = refuse_gaps,        \
    .version = say_version, .implementation = say_implementation
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/peers/peer.h"

static int start(int n_threads);
static void stop(void);
static int64_t one_unit(const struct nb_call *call, int phase);
static const char *refuse_gaps(const struct nb_call *call);
static const char *say_version(void);
static const char *say_implementation(const struct nb_call *call);

#include "plugin.h"

enum { MAX_THREADS = 16, NOT_OPEN = 11, NOT_WHOLE, NO_THREADS };

struct team {
    pthread_t threads[MAX_THREADS];
    int n;
    const struct nb_call *call;
    atomic_int generation, done, ending;
    pthread_mutex_t mutex;
    pthread_cond_t begun;
};
static struct team team = {.mutex = PTHREAD_MUTEX_INITIALIZER, .begun = PTHREAD_COND_INITIALIZER};
static char library[256];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void work(int index) {
    const int64_t rows = team.call->rows;
    correct_rows(team.call, rows * index / team.n, rows * (index + 1) / team.n);
}

static void *member(void *arg) {
    const int index = (int)(intptr_t)arg;
    for (int seen = 0;;) {
        for (double start = now(); atomic_load(&team.generation) == seen && now() - start < 0.002;) sched_yield();
        pthread_mutex_lock(&team.mutex);
        while (atomic_load(&team.generation) == seen && !atomic_load(&team.ending))
            pthread_cond_wait(&team.begun, &team.mutex);
        pthread_mutex_unlock(&team.mutex);
        if (atomic_load(&team.ending)) return NULL;
        seen++;
        work(index);
        atomic_fetch_add(&team.done, 1);
    }
}

static void signal_all(atomic_int *what) {
    pthread_mutex_lock(&team.mutex);
    atomic_fetch_add(what, 1);
    pthread_cond_broadcast(&team.begun);
    pthread_mutex_unlock(&team.mutex);
}

static int start(int n_threads) {
    if (n_threads > MAX_THREADS) return NO_THREADS;
    for (int i = 1; i < n_threads; i++)
        if (pthread_create(&team.threads[i], NULL, member, (void *)(intptr_t)i) != 0) return NO_THREADS;
    team.n = n_threads;
    return 0;
}

static void stop(void) {
    signal_all(&team.ending);
    for (int i = 1; i < team.n; i++) pthread_join(team.threads[i], NULL);
    team.n = 0;
    atomic_store(&team.ending, 0);
}

static int run(ROWS) {
    if (begin == end) return 0;
    if (team.n == 0) return NOT_OPEN;
    if (begin != 0 || end != 1) return NOT_WHOLE;
    if (team.n > 1 && getenv("FAKELIB_CRASHES")) abort();
    team.call = call;
    atomic_store(&team.done, 0);
    if (team.n > 1) signal_all(&team.generation);
    work(0);
    while (atomic_load(&team.done) < team.n - 1) sched_yield();
    return 0;
}

static int64_t one_unit(const struct nb_call *call, int phase) { return 1; }

static const char *say_version(void) { return library; }

static const char *say_implementation(const struct nb_call *call) {
    static char text[64];
    snprintf(text, sizeof text, "rows among %d", team.n);
    return text;
}

/* As libraries do that take rows next to each other only. */
static const char *refuse_gaps(const struct nb_call *call) {
    return call->x_stride == call->cols ? NULL : "rows must lie next to each other";
}

static void *sleeper(void *arg) {
    pause();
    return arg;
}

static void add_to_log(const char *what) {
    const char *name = getenv("FAKELIB_LOG");
    FILE *f = name ? fopen(name, "a") : NULL;
    if (f) fprintf(f, "%s by %ld\n", what, (long)getpid());
    if (f) fclose(f);
}

static __attribute__((destructor)) void take_down(void) { add_to_log("taken down"); }

static int use(const char *path, char *reason, size_t n) {
    pthread_t thread;
    add_to_log("loaded");
    if (getenv("FAKELIB_THREAD") && pthread_create(&thread, NULL, sleeper, NULL) != 0) return -1;
    if (path && strstr(path, "broken")) {
        snprintf(reason, n, "%s is no library of ours", path);
        return -1;
    }
    if (path && strstr(path, ".so") && !dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        snprintf(reason, n, "%s", dlerror());
        return -1;
    }
    snprintf(library, sizeof library, "fakelib 1.0%s", path ? ", given" : "");
    return 0;
}

const struct nb_peer *normbench_peer(void) {
    static const struct nb_peer peer = {
        .struct_size = sizeof peer, .library = "/nowhere/fakelib.so", .use = use, .version = say_version};
    return &peer;
}
