// SPDX-License-Identifier: Apache-2.0
/* Pinned threads that run the phases of a call, each its own range of units, with a barrier between phases. */
#include "src/measure/pool.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/measure/faults.h"

enum { SPINS_BEFORE_YIELD = 20000 };
static const double SETTLE_S = 0.25; /* Intel's OpenMP spins for 0.2 s unless told otherwise */

struct task {
    const struct nb_kernel *kernel;
    const struct nb_call *call;
    int64_t begin, end; /* rows of a chunk; end < 0: all phases, whole */
};

struct nb_pool {
    int n;
    pthread_t *threads; /* n - 1 of them: thread 0 is the caller */
    struct task task;
    _Alignas(64) atomic_uint generation; /* a new task, or the end */
    _Alignas(64) atomic_int arrived;     /* at the barrier */
    _Alignas(64) atomic_uint barrier;
    _Alignas(64) atomic_int error;
    atomic_int parked, ending, asleep;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
};
struct member {
    struct nb_pool *pool;
    int index, cpu;
};

static void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* On fewer free cores than threads a spin would wait for its own victim: it yields after a while. */
static void spin(int *spins) {
    if (++*spins < SPINS_BEFORE_YIELD)
        pause_cpu();
    else
        sched_yield();
}

static bool has_own_threads(const struct nb_kernel *kernel) { return kernel->flags & NB_FLAG_OWN_THREADS; }

static void wait_at_barrier(struct nb_pool *p) {
    if (p->n == 1 || has_own_threads(p->task.kernel)) return;
    unsigned now = atomic_load_explicit(&p->barrier, memory_order_acquire);
    if (atomic_fetch_add_explicit(&p->arrived, 1, memory_order_acq_rel) == p->n - 1) {
        atomic_store_explicit(&p->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&p->barrier, now + 1, memory_order_release);
        return;
    }
    for (int spins = 0; atomic_load_explicit(&p->barrier, memory_order_acquire) == now;) spin(&spins);
}

/* Nothing can be said of its other calls, and whoever started this process looks for the case that it was at. */
static int call_program(const struct nb_kernel *kernel, const struct nb_program_calls *calls) {
    const int code = nb_kernel_program_run(kernel, calls);
    if (code == NB_PROGRAM_GONE) nb_faults_end("its process", nb_kernel_program_said(kernel));
    return code;
}

static int call_kernel(const struct nb_kernel *kernel, const struct nb_call *call, int phase, int64_t begin,
                       int64_t end) {
    if (!nb_kernel_is_of_program(kernel)) return kernel->run(call, phase, begin, end);
    return call_program(kernel, &(struct nb_program_calls){.calls = call, .n = 1, .amount = 1});
}

/* A kernel with threads of its own gets the whole from the caller. */
static void run_part(struct nb_pool *p, int phase, int64_t begin, int64_t end, int index) {
    const int n_parts = has_own_threads(p->task.kernel) ? 1 : p->n;
    int64_t n = end - begin, from = begin + n * index / n_parts, to = begin + n * (index + 1) / n_parts;
    if (from >= to) return;
    int code = call_kernel(p->task.kernel, p->task.call, phase, from, to);
    if (code) atomic_store_explicit(&p->error, code, memory_order_relaxed);
}

static void run_task(struct nb_pool *p, int index) {
    const struct task *t = &p->task;
    if (t->end >= 0) {
        run_part(p, 0, t->begin, t->end, index);
        wait_at_barrier(p);
        return;
    }
    int n_phases = nb_kernel_n_phases(t->kernel, t->call);
    for (int phase = 0; phase < n_phases; phase++) {
        run_part(p, phase, 0, nb_kernel_n_units(t->kernel, t->call, phase), index);
        wait_at_barrier(p);
    }
}

static void *thread_main(void *arg) {
    struct member self = *(struct member *)arg;
    free(arg);
    if (self.cpu >= 0) nb_cpu_pin(self.cpu);
    struct nb_pool *p = self.pool;
    const struct nb_fp_state state = nb_fp_state();
    for (unsigned seen = 0;;) {
        for (int spins = 0; atomic_load_explicit(&p->generation, memory_order_acquire) == seen;) {
            if (atomic_load_explicit(&p->parked, memory_order_relaxed)) {
                pthread_mutex_lock(&p->mutex);
                atomic_fetch_add(&p->asleep, 1);
                while (atomic_load(&p->parked)) pthread_cond_wait(&p->wake, &p->mutex);
                atomic_fetch_sub(&p->asleep, 1);
                pthread_mutex_unlock(&p->mutex);
            }
            spin(&spins);
        }
        seen++;
        if (atomic_load_explicit(&p->ending, memory_order_relaxed)) return NULL;
        run_task(p, self.index);
        nb_fp_state_set(state); /* as it was for the kernel that comes next */
    }
}

struct nb_pool *nb_pool_new(int n_threads, const int *cpus) {
    struct nb_pool *p = aligned_alloc(64, (sizeof *p + 63) / 64 * 64);
    if (!p) return NULL;
    *p = (struct nb_pool){.n = n_threads, .parked = 1, .threads = nb_alloc((unsigned)n_threads, sizeof(pthread_t))};
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->wake, NULL);
    for (int i = 1; i < n_threads; i++) {
        struct member *m = nb_alloc(1, sizeof *m);
        *m = (struct member){p, i, cpus ? cpus[i] : -1};
        if (pthread_create(&p->threads[i], NULL, thread_main, m) != 0) {
            free(m);
            p->n = i;
            nb_pool_free(p);
            nb_error("thread %d of %d cannot be started", i + 1, n_threads);
            return NULL;
        }
    }
    if (cpus) nb_cpu_pin(cpus[0]);
    return p;
}

void nb_pool_park(struct nb_pool *p) {
    atomic_store(&p->parked, 1);
    while (atomic_load(&p->asleep) < p->n - 1) sched_yield();
}

static void wake(struct nb_pool *p) {
    if (!atomic_load_explicit(&p->parked, memory_order_relaxed)) return;
    pthread_mutex_lock(&p->mutex);
    atomic_store(&p->parked, 0);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->mutex);
}

void nb_pool_free(struct nb_pool *p) {
    if (!p) return;
    atomic_store(&p->ending, 1);
    wake(p);
    atomic_fetch_add_explicit(&p->generation, 1, memory_order_release);
    for (int i = 1; i < p->n; i++) pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->mutex);
    free(p->threads);
    free(p);
}

void nb_pool_make_ready(struct nb_pool *p, const struct nb_kernel *kernel) {
    const bool own = has_own_threads(kernel);
    if (!own && !atomic_load(&p->parked)) return;
    nb_pool_park(p);
    nb_threads_wait_asleep(SETTLE_S);
    if (own) return;
    wake(p);
    while (atomic_load(&p->asleep) > 0) sched_yield();
}

static int run(struct nb_pool *p, struct task task) {
    p->task = task;
    atomic_store_explicit(&p->error, 0, memory_order_relaxed);
    if (has_own_threads(task.kernel)) {
        if (!atomic_load(&p->parked)) nb_pool_park(p);
    } else if (p->n > 1) {
        wake(p);
        atomic_fetch_add_explicit(&p->generation, 1, memory_order_release);
    }
    run_task(p, 0);
    return atomic_load_explicit(&p->error, memory_order_relaxed);
}

int nb_pool_run(struct nb_pool *pool, const struct nb_kernel *kernel, const struct nb_call *call) {
    return run(pool, (struct task){kernel, call, 0, -1});
}

int nb_pool_run_program(struct nb_pool *pool, const struct nb_kernel *kernel, const struct nb_program_calls *calls) {
    if (!atomic_load(&pool->parked)) nb_pool_park(pool);
    return call_program(kernel, calls);
}

int nb_pool_run_rows(struct nb_pool *pool, const struct nb_kernel *kernel, const struct nb_call *call, int64_t begin,
                     int64_t end) {
    return run(pool, (struct task){kernel, call, begin, end});
}

/* Of each unit its probe. */
static int probe_cores(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) ((double *)call->y)[i] = nb_core_probe();
    return 0;
}

int nb_pool_threads(const struct nb_pool *pool) { return pool->n; }

double nb_pool_probe(struct nb_pool *pool) {
    static const struct nb_kernel probe = {.struct_size = sizeof probe, .run = probe_cores};
    if (pool->n == 1) return nb_core_probe();
    double *cycles freed = nb_alloc((unsigned)pool->n, sizeof *cycles), slowest = 0;
    nb_pool_run(pool, &probe, &(struct nb_call){.struct_size = sizeof(struct nb_call), .rows = pool->n, .y = cycles});
    for (int i = 0; i < pool->n; i++) slowest = fmax(slowest, cycles[i]);
    return slowest;
}

/* took_s: by the clock on the wall. */
static struct nb_cpu_times read_cpu_times(const struct nb_pool *p, double *took_s) {
    const double begin_s = nb_now_s();
    struct nb_cpu_times times = {.pool_s = nb_clock_s(CLOCK_THREAD_CPUTIME_ID)};
    for (int i = 1; i < p->n; i++) {
        clockid_t id;
        if (pthread_getcpuclockid(p->threads[i], &id) == 0) times.pool_s += nb_clock_s(id);
    }
    times.others_s = nb_clock_s(CLOCK_PROCESS_CPUTIME_ID) - times.pool_s;
    *took_s = nb_now_s() - begin_s;
    return times;
}

/* What the pool's own threads run between the reading of their clocks and of the process's would be taken for the others': one reading in
 * thousands is interrupted there, by a neighbour of a virtual machine for hundreds of us (Zen 3, KVM; undisturbed, it takes 1.4 us). */
static struct nb_cpu_times least_disturbed(const struct nb_pool *p,
                                           struct nb_cpu_times (*read)(const struct nb_pool *p, double *took_s)) {
    const double at_once_s = 5e-6 + 2e-6 * p->n;
    double least_s = INFINITY, took_s;
    struct nb_cpu_times best = {0};
    for (int i = 0; i < 8 && least_s > at_once_s; i++) {
        const struct nb_cpu_times times = read(p, &took_s);
        if (took_s < least_s) best = times, least_s = took_s;
    }
    return best;
}

struct nb_cpu_times nb_pool_cpu_times(const struct nb_pool *p) {
    return least_disturbed(p, read_cpu_times);
}

void nb_say_returned(char *text, size_t n, const struct nb_kernel *kernel, int code) {
    const char *said = nb_kernel_is_of_program(kernel) ? nb_kernel_program_said(kernel) : "";
    snprintf(text, n, "run() returned %d%s%s", code, *said ? ": " : "", said);
}

int nb_run_in_ranges(const struct nb_kernel *kernel, const struct nb_call *call, int64_t range) {
    int n_phases = nb_kernel_n_phases(kernel, call);
    for (int phase = 0; phase < n_phases; phase++) {
        int64_t n_units = nb_kernel_n_units(kernel, call, phase);
        int64_t step = range > 0 && range < n_units ? range : n_units;
        for (int64_t begin = 0; begin < n_units; begin += step) {
            int code = call_kernel(kernel, call, phase, begin, begin + step < n_units ? begin + step : n_units);
            if (code) return code;
        }
    }
    return 0;
}

/* ---- threads of libraries ---------------------------------------------------------------------------------------- */

/* Threads are found in /proc/self/task: a library tells nobody which ones it started. */

struct threads {
    pid_t *ids;
    size_t n;
};

/* An emulator's own thread is started before all others but the first, again in each fork, and is no library's. */
static void leave_out_emulators(struct threads *t) {
    size_t first = t->n;
    for (size_t i = 0; i < t->n; i++)
        if (t->ids[i] != getpid() && (first == t->n || t->ids[i] < t->ids[first])) first = i;
    if (first < t->n) t->ids[first] = t->ids[--t->n];
}

/* All of this process but the caller. */
static void list_threads(struct threads *t) {
    const pid_t self = gettid();
    DIR *folder = opendir("/proc/self/task");
    *t = (struct threads){0};
    for (struct dirent *e; folder && (e = readdir(folder)) != NULL;) {
        const pid_t id = (pid_t)atoi(e->d_name);
        if (id <= 0 || id == self) continue;
        *NB_PUSH(t->ids, t->n) = id;
    }
    if (folder) closedir(folder);
    if (nb_cpu_emulator()) leave_out_emulators(t);
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
    const char *close = nb_file_line(path, line, sizeof line) ? strrchr(line, ')') : NULL;
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

bool nb_threads_wait_asleep(double limit_s) {
    const double start = nb_now_s();
    while (any_runs()) {
        if (nb_now_s() - start > limit_s) return false;
        nb_wait_s(20e-6);
    }
    return true;
}

/* ---- threads that work unseen ---- */

/* A moment's work that goes on beside the pool's reaches into half of the parts at most, up to 20 ms of it. Help in fewer than half of a
 * launch leaves the medians over its blocks where they are. */
enum { FEWEST_PARTS = 8 };
static const double part_s = 16e-3 /* of one thread, and of another that spins beside it 8 ms: two ticks of 4 */;

static const double least_s = 20e-6 /* the two clocks are not read at once */, least_share = 0.01;
static bool is_helped(const struct nb_cpu_times *from, const struct nb_cpu_times *to) {
    return to->others_s - from->others_s > fmax(least_s, least_share * (to->pool_s - from->pool_s));
}

struct nb_hidden_threads nb_hidden_threads_begin(struct nb_cpu_times now, int n_threads) {
    return (struct nb_hidden_threads){.first = now, .part = now, .last = now, .part_s = part_s * n_threads};
}
void nb_hidden_threads_round(struct nb_hidden_threads *hidden, struct nb_cpu_times now) {
    const struct nb_cpu_times *from = &hidden->part;
    hidden->last = now;
    if (now.pool_s - from->pool_s + now.others_s - from->others_s < hidden->part_s) return;
    hidden->parts++;
    hidden->helped += is_helped(from, &now);
    hidden->part = now;
}
bool nb_hidden_threads_undecided(const struct nb_hidden_threads *hidden) {
    return hidden->parts < FEWEST_PARTS && is_helped(&hidden->first, &hidden->last);
}
bool nb_hidden_threads_found(const struct nb_hidden_threads *hidden) {
    return hidden->parts >= FEWEST_PARTS && 2 * hidden->helped > hidden->parts;
}
