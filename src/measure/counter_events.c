// SPDX-License-Identifier: Apache-2.0
/* The table of events, and for each a piece of work of known size that it must see. The bounds are wide where CPUs differ: they
 * tell a counter that counts from one that only says so. */
#include "src/measure/counter_source.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/random.h"

enum { LOOP_TURNS = 1000000, BRANCHES = 100000, PAGES = 64, SLEEPS = 3 };
#define SPIN_NS 2000000.0

/* Two instructions a turn on x86-64 and aarch64. */
static void known_loop(void *arg) {
    (void)arg;
    long turns = LOOP_TURNS;
#if defined(__x86_64__)
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
#elif defined(__aarch64__)
    __asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(turns) : : "cc");
#else
    for (volatile long i = 0; i < turns; i++) continue;
#endif
}

/* Branches on random bits: about half are mispredicted. The empty statement keeps the compiler from a conditional move. */
static void known_branches(void *arg) {
    (void)arg;
    struct nb_random bits = nb_random_stream(1, 0);
    for (uint64_t i = 0; i < BRANCHES; i++)
        if (nb_random_bits(bits, i) & 1) __asm__ volatile("" : : : "memory");
}

/* One load in each page of memory larger than the last-level cache, in random order: misses every cache and the TLB. */
static void known_misses(void *arg) {
    (void)arg;
    const size_t page = 4096, largest = (size_t)256 << 20;
    size_t bytes = 2 * (size_t)nb_cpu_light()->l3_bytes;
    if (bytes < (size_t)16 << 20) bytes = (size_t)16 << 20;
    if (bytes > largest) bytes = largest;
    volatile char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    madvise((void *)memory, bytes, MADV_NOHUGEPAGE);
    struct nb_random places = nb_random_stream(2, 0);
    for (size_t i = 0; i < bytes; i += page) memory[i] = 1;
    for (uint64_t i = 0; i < bytes / page; i++) {
        uint64_t place = nb_random_bits(places, i);
        (void)memory[place % (bytes / page) * page + (place >> 32) % 64 * 64];
    }
    munmap((void *)memory, bytes);
}

static double thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void known_spin(void *arg) {
    (void)arg;
    double end = thread_ns() + SPIN_NS;
    while (thread_ns() < end) continue;
}

static void known_faults(void *arg) {
    (void)arg;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    madvise((void *)memory, PAGES * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PAGES; i++) memory[i * page] = 1;
    munmap((void *)memory, PAGES * page);
}

static void known_sleeps(void *arg) {
    (void)arg;
    for (int i = 0; i < SLEEPS; i++) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* Every CPU that the process could be given, beyond those it is pinned to. False: not even two. */
static bool widen(cpu_set_t *before, int cpus[2]) {
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof *before, before) != 0) return false;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    return nb_cpu_allowed(cpus, 2) == 2 && cpus[1] < CPU_SETSIZE;
}

static bool can_migrate(void) {
    cpu_set_t before;
    int cpus[2];
    bool can = widen(&before, cpus);
    sched_setaffinity(0, sizeof before, &before);
    return can;
}

static void known_migration(void *arg) {
    cpu_set_t before, there;
    int cpus[2];
    (void)arg;
    bool can = widen(&before, cpus);
    for (int i = 0; i < 2 && can; i++) {
        CPU_ZERO(&there);
        CPU_SET((unsigned)cpus[i], &there);
        sched_setaffinity(0, sizeof there, &there);
    }
    sched_setaffinity(0, sizeof before, &before);
}

#define READ_MISSES(cache)                                                                                             \
    ((cache) | (uint64_t)PERF_COUNT_HW_CACHE_OP_READ << 8 | (uint64_t)PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

const struct nb_event nb_events[] = {
    {"instructions", false, "PAPI_TOT_INS", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, NB_USAGE_NONE, known_loop,
     1.99 * LOOP_TURNS, 2.05 * LOOP_TURNS, NULL},
    {"cycles", false, "PAPI_TOT_CYC", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, NB_USAGE_NONE, known_loop,
     0.2 * LOOP_TURNS, 100.0 * LOOP_TURNS, NULL},
    {"branch_misses", false, "PAPI_BR_MSP", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, NB_USAGE_NONE,
     known_branches, BRANCHES / 20.0, 2.0 * BRANCHES, NULL},
    {"l1d_misses", false, "PAPI_L1_DCM", PERF_TYPE_HW_CACHE, READ_MISSES(PERF_COUNT_HW_CACHE_L1D), NB_USAGE_NONE,
     known_misses, 100, 1e9, NULL},
    {"llc_misses", false, "PAPI_L3_TCM", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, NB_USAGE_NONE, known_misses,
     100, 1e9, NULL},
    {"dtlb_misses", false, "PAPI_TLB_DM", PERF_TYPE_HW_CACHE, READ_MISSES(PERF_COUNT_HW_CACHE_DTLB), NB_USAGE_NONE,
     known_misses, 100, 1e9, NULL},
    {"task_clock_ns", true, "perf::TASK-CLOCK", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, NB_USAGE_CPU_NS,
     known_spin, 0.9 * SPIN_NS, 10 * SPIN_NS, NULL},
    {"page_faults", true, "perf::PAGE-FAULTS", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, NB_USAGE_FAULTS,
     known_faults, PAGES, 100 * PAGES, NULL},
    {"context_switches", true, "perf::CONTEXT-SWITCHES", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES,
     NB_USAGE_SWITCHES, known_sleeps, SLEEPS, 1e6, NULL},
    {"cpu_migrations", true, "perf::CPU-MIGRATIONS", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, NB_USAGE_NONE,
     known_migration, 1, 1e6, can_migrate},
};
const size_t nb_n_events = sizeof nb_events / sizeof nb_events[0];
