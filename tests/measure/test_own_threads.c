// SPDX-License-Identifier: Apache-2.0
/* Kernels with threads of their own: opened once with the CPUs of the case, called whole by one thread while the harness's sleep, and
 * waited for when they spin on. */
#include "src/measure/pool.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/timer.h"
#include "tests/support/played_time.h"

static atomic_int opened, closed, ending, spinning, seen_spinning;
static int cpus_at_open;
static _Atomic(pid_t) helper_id;
static pthread_t helper;

static void *help(void *arg) {
    atomic_store(&helper_id, gettid());
    while (!atomic_load(&ending)) {
        atomic_store(&seen_spinning, atomic_load(&spinning));
        if (!atomic_load(&seen_spinning)) usleep(500);
    }
    return NULL;
}

static void begin_to_spin(void) {
    atomic_store(&spinning, 1);
    while (!atomic_load(&seen_spinning)) sched_yield();
}

/* Longer than any thread that is about to sleep waits for a CPU. */
static const double long_s = 60;

static int open_it(int n_threads) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    cpus_at_open = CPU_COUNT(&set);
    atomic_fetch_add(&opened, 1);
    if (n_threads < 1) return 7;
    atomic_store(&ending, 0);
    pthread_create(&helper, NULL, help, NULL);
    while (atomic_load(&helper_id) == 0) sched_yield();
    return 0;
}

static void close_it(void) {
    atomic_fetch_add(&closed, 1);
    atomic_store(&ending, 1);
    pthread_join(helper, NULL);
    atomic_store(&helper_id, 0);
}

/* What a call of the kernel with threads of its own met. */
static struct {
    int calls, others_awake;
    int64_t begin, end;
} met;

static int run_whole(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    met.calls++;
    met.begin = begin;
    met.end = end;
    met.others_awake += !nb_threads_wait_asleep(long_s);
    return 0;
}

static atomic_int parts;
static int run_part(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    atomic_fetch_add(&parts, begin < end);
    return 0;
}

static const struct nb_kernel own = {.struct_size = sizeof own,
                                     .name = "own",
                                     .run = run_whole,
                                     .flags = NB_FLAG_OWN_THREADS,
                                     .open = open_it,
                                     .close = close_it};
static const struct nb_kernel ordinary = {.struct_size = sizeof ordinary, .name = "ordinary", .run = run_part};
static const struct nb_entry own_entry = {.kernel = &own, .kernel_id = (char[]){"own:own"}},
                             ordinary_entry = {.kernel = &ordinary, .kernel_id = (char[]){"ordinary"}};

Test(own_threads, open_is_called_once_with_the_cpus_of_the_case) {
    const struct nb_entry *entries[] = {&ordinary_entry, &own_entry, &own_entry};
    int cpus[64];
    char reason[160];
    cpu_set_t set;
    const int n = nb_cpu_allowed(cpus, 64);
    cr_assert(n >= 1);
    cr_assert_eq(nb_kernels_open(entries, 3, 1, cpus, reason, sizeof reason), 0, "%s", reason);
    cr_assert_eq(opened, 1);
    cr_assert_eq(cpus_at_open, 1, "the CPUs that open() saw are the case's");
    cr_assert_eq(sched_getaffinity(helper_id, sizeof set, &set), 0);
    cr_assert(CPU_COUNT(&set) == 1 && CPU_ISSET(cpus[0], &set), "one thread for one CPU: they share it");
    nb_kernels_close(entries, 3);
    cr_assert_eq(closed, 1);
}

/* With one thread of its own. */
static const struct nb_entry *own_alone[] = {&own_entry};
static void open_own(void) {
    char reason[160];
    cr_assert_eq(nb_kernels_open(own_alone, 1, 1, NULL, reason, sizeof reason), 0, "%s", reason);
}
static void close_own(void) { nb_kernels_close(own_alone, 1); }

Test(own_threads, what_open_says_is_told) {
    char reason[160];
    cr_assert_eq(nb_kernels_open(own_alone, 1, 0, NULL, reason, sizeof reason), -1);
    cr_assert_str_eq(reason, "own:own: open(0) returned 7");
}

Test(own_threads, a_spinning_thread_is_seen) {
    open_own();
    cr_assert(nb_threads_wait_asleep(long_s));
    begin_to_spin();
    cr_assert(!nb_threads_wait_asleep(0.02));
    atomic_store(&spinning, 0);
    cr_assert(nb_threads_wait_asleep(long_s));
    close_own();
}

Test(own_threads, a_call_is_whole_and_has_the_cores) {
    struct nb_call call = {.struct_size = sizeof call, .rows = 100};
    for (int threads = 1; threads <= 3; threads++) {
        struct nb_pool *pool = nb_pool_new(threads, NULL);
        met.calls = 0;
        atomic_store(&parts, 0);
        cr_assert_eq(nb_pool_run(pool, &ordinary, &call), 0);
        cr_assert_eq(parts, threads);
        for (int i = 0; i < 5; i++) {
            nb_pool_make_ready(pool, &own);
            cr_assert_eq(nb_pool_run(pool, &own, &call), 0);
            cr_assert(met.begin == 0 && met.end == 100 && met.calls == i + 1);
            cr_assert_eq(met.others_awake, 0, "%d threads", threads);
        }
        cr_assert_eq(nb_pool_run(pool, &own, &call), 0, "without being made ready too");
        nb_pool_make_ready(pool, &ordinary);
        cr_assert_eq(nb_pool_run(pool, &ordinary, &call), 0);
        cr_assert_eq(nb_pool_run_rows(pool, &ordinary, &call, 10, 90), 0);
        cr_assert_eq(parts, 3 * threads);
        nb_pool_free(pool);
    }
}

Test(own_threads, an_arm_waits_for_threads_that_spin_on) {
    struct nb_call call = {.struct_size = sizeof call, .rows = 10};
    struct nb_pool *pool = nb_pool_new(2, NULL);
    open_own();
    nb_pool_make_ready(pool, &own);
    begin_to_spin();
    const double start = nb_now_s();
    nb_pool_make_ready(pool, &ordinary); /* gives up on it in the end */
    cr_assert(nb_now_s() - start > 0.2);
    cr_assert_eq(nb_pool_run(pool, &ordinary, &call), 0);
    atomic_store(&spinning, 0);
    nb_pool_free(pool);
    close_own();
}

Test(own_threads, their_work_is_told_from_the_pool_s) {
    struct nb_pool *pool = nb_pool_new(2, NULL);
    const struct nb_cpu_times alone = nb_pool_cpu_times(pool);
    open_own();
    nb_played_others(0.02);
    nb_played_work(0.5);
    close_own();
    const struct nb_cpu_times helped = nb_pool_cpu_times(pool);
    cr_expect_float_eq(helped.others_s - alone.others_s, 0.02, 1e-9);
    cr_expect(helped.pool_s - alone.pool_s >= 0.5);
    nb_pool_free(pool);
}
