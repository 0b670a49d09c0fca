// SPDX-License-Identifier: Apache-2.0
/* The table of events, and for each a piece of work of known size that it must see. The bounds are wide where CPUs differ: they
 * distinguish a counter that counts from one that only says so. */
#include "src/measure/counters.h"

#include <assert.h>
#include <math.h>
#include <papi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/random.h"

/* What getrusage() and the thread's clock know. */
enum usage { USAGE_NONE, USAGE_CPU_NS, USAGE_FAULTS, USAGE_SWITCHES };

struct event {
    const char *name;
    bool software;    /* counted by the operating system: needs no performance counter */
    const char *papi; /* PAPI's name */
    enum usage usage;
    /* Work that must make it count: between low and high. */
    void (*known)(void *arg);
    double low, high;
    bool (*can_happen)(void); /* null: always; false: nothing to count can happen here, so nothing can be known */
};

/* An event opened in the calling thread. */
struct open_event {
    const struct event *event;
    bool by_usage; /* through getrusage(), else through PAPI */
    int set;       /* PAPI's */
};

/* ---- events and work that they must count ------------------------------------------------------------------------ */

enum { LOOP_TURNS = 1000000, BRANCHES = 100000, PAGES = 64, SLEEPS = 3 };
#define SPIN_NS 2000000.0

/* Two instructions a turn on x86-64 and aarch64. */
static void known_loop(void *arg) {
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
    struct nb_random bits = nb_random_stream(1, 0);
    for (uint64_t i = 0; i < BRANCHES; i++)
        if (nb_random_bits(bits, i) & 1) __asm__ volatile("" : : : "memory");
}

/* One load in each page of memory larger than the last-level cache, in random order: misses every cache and the TLB. */
static void known_misses(void *arg) {
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
    double end = thread_ns() + SPIN_NS;
    while (thread_ns() < end) continue;
}

static void known_faults(void *arg) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    madvise((void *)memory, PAGES * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PAGES; i++) memory[i * page] = 1;
    munmap((void *)memory, PAGES * page);
}

static void known_sleeps(void *arg) {
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
    bool can = widen(&before, cpus);
    for (int i = 0; i < 2 && can; i++) {
        CPU_ZERO(&there);
        CPU_SET((unsigned)cpus[i], &there);
        sched_setaffinity(0, sizeof there, &there);
    }
    sched_setaffinity(0, sizeof before, &before);
}

static const struct event events[] = {
    {"instructions", false, "PAPI_TOT_INS", USAGE_NONE, known_loop, 1.99 * LOOP_TURNS, 2.05 * LOOP_TURNS, NULL},
    {"cycles", false, "PAPI_TOT_CYC", USAGE_NONE, known_loop, 0.2 * LOOP_TURNS, 100.0 * LOOP_TURNS, NULL},
    {"branch_misses", false, "PAPI_BR_MSP", USAGE_NONE, known_branches, BRANCHES / 20.0, 2.0 * BRANCHES, NULL},
    {"l1d_misses", false, "PAPI_L1_DCM", USAGE_NONE, known_misses, 100, 1e9, NULL},
    {"llc_misses", false, "PAPI_L3_TCM", USAGE_NONE, known_misses, 100, 1e9, NULL},
    {"dtlb_misses", false, "PAPI_TLB_DM", USAGE_NONE, known_misses, 100, 1e9, NULL},
    {"task_clock_ns", true, "perf::TASK-CLOCK", USAGE_CPU_NS, known_spin, 0.9 * SPIN_NS, 10 * SPIN_NS, NULL},
    {"page_faults", true, "perf::PAGE-FAULTS", USAGE_FAULTS, known_faults, PAGES, 100 * PAGES, NULL},
    {"context_switches", true, "perf::CONTEXT-SWITCHES", USAGE_SWITCHES, known_sleeps, SLEEPS, 1e6, NULL},
    {"cpu_migrations", true, "perf::CPU-MIGRATIONS", USAGE_NONE, known_migration, 1, 1e6, can_migrate},
};
static const size_t n_events = sizeof events / sizeof events[0];

/* ---- PAPI -------------------------------------------------------------------------------------------------------- */

/* Events through PAPI. PAPI_query_event() is never asked: in a virtual machine it says yes to what cannot be added. */

/* 0, or -1 with the reason; the library is initialised on the first call. */
static int initialise(char *reason, size_t n) {
    static int state; /* 0: not tried, 1: works, -1: failed */
    if (state == 0) {
        PAPI_set_debug(PAPI_QUIET);
        state = PAPI_library_init(PAPI_VER_CURRENT) == PAPI_VER_CURRENT ? 1 : -1;
    }
    if (state < 0) snprintf(reason, n, "PAPI does not start; is its library of another version than its header?");
    return state < 0 ? -1 : 0;
}

/* Why PAPI's component for the kernel's events is off, when it is. */
static const char *component_reason(void) {
    int id = PAPI_get_component_index("perf_event");
    const PAPI_component_info_t *info = id >= 0 ? PAPI_get_component_info(id) : NULL;
    return info && info->disabled ? info->disabled_reason : NULL;
}

/* What keeps every such event from being counted comes before PAPI's own word. */
static int explain(const struct event *event, int error, char *reason, size_t n) {
    char level[16];
    const char *hypervisor = nb_cpu_light()->hypervisor, *why = component_reason();
    if (nb_file_line("/proc/sys/kernel/perf_event_paranoid", level, sizeof level) && atoi(level) > 2)
        return nb_reason(reason, n, "perf_event_paranoid is %s; run `sysctl kernel.perf_event_paranoid=2` as root",
                         level);
    if (hypervisor[0] && !event->software)
        return nb_reason(
            reason, n, "this %s virtual machine has no performance counters; it needs a vPMU (QEMU: -cpu host,pmu=on)",
            hypervisor);
    return nb_reason(reason, n, "PAPI: %.80s", why ? why : PAPI_strerror(error));
}

static void close_event(struct open_event *o) {
    if (o->by_usage) return;
    PAPI_cleanup_eventset(o->set);
    PAPI_destroy_eventset(&o->set);
}

/* 0, or -1 with the reason: what is missing and what would mend it. */
static int open_papi(struct open_event *o, const struct event *event, char *reason, size_t n) {
    int code = 0, error;
    char name[64];
    if (initialise(reason, n) != 0) return -1;
    *o = (struct open_event){.event = event, .set = PAPI_NULL};
    snprintf(name, sizeof name, "%s", event->papi);
    error = PAPI_event_name_to_code(name, &code);
    if (error == PAPI_OK) error = PAPI_create_eventset(&o->set);
    if (error == PAPI_OK && (error = PAPI_add_event(o->set, code)) != PAPI_OK) close_event(o);
    return error == PAPI_OK ? 0 : explain(event, error, reason, n);
}

/* ---- getrusage: the accounts that every process may read ----------------------------------------------------------- */

static double usage_now(enum usage usage) {
    struct rusage r;
    if (usage == USAGE_CPU_NS) return thread_ns();
    if (getrusage(RUSAGE_THREAD, &r) != 0) return NAN;
    return (double)(usage == USAGE_FAULTS ? r.ru_minflt + r.ru_majflt : r.ru_nvcsw + r.ru_nivcsw);
}

/* An event that it does not know leaves PAPI's reason. */
static int open_event(struct open_event *o, const struct event *event, bool by_usage, char *reason, size_t n) {
    if (!by_usage) return open_papi(o, event, reason, n);
    *o = (struct open_event){.event = event, .by_usage = true};
    return event->usage == USAGE_NONE ? -1 : 0;
}

/* ---- the ladder -------------------------------------------------------------------------------------------------- */

/* The ladder: for each event the first source that opens it and then counts its known work right. What was found is kept, since
 * probing takes some hundredths of a second. */

#define MAX_EVENTS (NB_MAX_COUNTERS - 1)

struct found {
    bool by_usage; /* the source */
    struct nb_counter counter;
};

static const char *source_name(const struct event *e, bool by_usage) {
    return by_usage ? "getrusage" : e->software ? "papi_software" : "papi";
}

/* Runs work under an open event. NaN: the source failed. */
static double count(struct open_event *o, nb_work work, void *arg, int calls) {
    long long value = 0;
    const double start = o->by_usage ? usage_now(o->event->usage) : 0;
    if (!o->by_usage && PAPI_start(o->set) != PAPI_OK) return NAN;
    for (int i = 0; i < calls; i++) work(arg);
    if (o->by_usage) return usage_now(o->event->usage) - start;
    return PAPI_stop(o->set, &value) == PAPI_OK ? (double)value : (double)NAN;
}

/* 0, or -1 with the reason. */
static int believe(struct open_event *o, char *reason, size_t n) {
    const struct event *e = o->event;
    const char *source = source_name(e, o->by_usage);
    if (e->can_happen && !e->can_happen()) return 0;
    const double value = count(o, e->known, NULL, 1);
    if (isnan(value)) return nb_reason(reason, n, "%s opens it but cannot count", source);
    if (value >= e->low && value <= e->high) return 0;
    return nb_reason(reason, n, "%s counted %.0f in work that makes %.0f at least", source, value, e->low);
}

/* Of the reasons along the ladder the last one said stands: it names the cause nearest to the machine. */
static void probe_event(struct found *f, const struct event *e) {
    char *const reason = f->counter.reason;
    bool available = false;
    *f = (struct found){.counter.value = NAN};
    snprintf(f->counter.name, sizeof f->counter.name, "%s", e->name);
    for (int i = 0; i < (e->software ? 2 : 1) && !available; i++) {
        struct open_event open;
        const bool by_usage = f->by_usage = i == 1;
        snprintf(f->counter.source, sizeof f->counter.source, "%s", source_name(e, by_usage));
        if (open_event(&open, e, by_usage, reason, sizeof f->counter.reason) != 0) continue;
        available = believe(&open, reason, sizeof f->counter.reason) == 0;
        close_event(&open);
    }
    if (available) *reason = '\0';
}

static const struct found *probe(void) {
    static struct found found[MAX_EVENTS];
    static bool probed;
    assert(n_events <= MAX_EVENTS);
    for (size_t i = 0; i < n_events && !probed; i++) probe_event(&found[i], &events[i]);
    probed = true;
    return found;
}

size_t nb_counters_list(struct nb_counter *list, size_t max) {
    const struct found *found = probe();
    size_t n = 0;
    for (; n < n_events && n < max; n++) list[n] = found[n].counter;
    if (n == max) return n;
    list[n] = (struct nb_counter){.name = "instructions_exact", .value = NAN, .source = "single_step"};
    nb_single_step_probe(list[n].reason, sizeof list[n].reason);
    return n + 1;
}

bool nb_counters_have_hardware(void) {
    const struct found *found = probe();
    for (size_t i = 0; i < n_events; i++)
        if (!events[i].software && !found[i].counter.reason[0]) return true;
    return false;
}

static void nothing(void *arg) { __asm__ volatile("" : : "r"(arg) : "memory"); }

static void measure_event(const struct found *f, const struct event *e, nb_work work, void *arg, int calls,
                          struct nb_counter *out) {
    struct open_event open;
    *out = f->counter;
    if (out->reason[0] || open_event(&open, e, f->by_usage, out->reason, sizeof out->reason) != 0) return;
    const double without = count(&open, nothing, NULL, calls), with = count(&open, work, arg, calls);
    close_event(&open);
    if (isnan(with) || isnan(without))
        snprintf(out->reason, sizeof out->reason, "%s stopped counting", out->source);
    else
        out->value = fmax(0, with - without) / calls;
}

size_t nb_counters_measure(nb_work work, void *arg, int calls, struct nb_counter *out, size_t max) {
    const struct found *found = probe();
    assert(calls > 0);
    size_t n = n_events < max ? n_events : max;
    for (size_t i = 0; i < n; i++) measure_event(&found[i], &events[i], work, arg, calls, &out[i]);
    return n;
}

#define C(KIND, field) NB_MEMBER(KIND, struct nb_counter, field)
const struct nb_member nb_counter_members[] = {C(TEXT, name), C(NUMBER, value), C(TEXT, source),
                                               NB_MEMBER_OPTIONAL(TEXT, struct nb_counter, reason), NB_MEMBERS_END};
