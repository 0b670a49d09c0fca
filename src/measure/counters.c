// SPDX-License-Identifier: Apache-2.0
/* The table of events, and for each a piece of work of known size that it must see. The bounds are wide where CPUs differ: they
 * distinguish a counter that counts from one that only says so. */
#include "src/measure/counters.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <papi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/registry.h"
#include "src/core/text.h"

/* What getrusage() and the thread's clock know. */
enum usage { USAGE_NONE, USAGE_CPU_NS, USAGE_FAULTS, USAGE_SWITCHES };

struct event {
    const char *name;
    bool software;      /* counted by the operating system: needs no performance counter */
    const char *papi;   /* PAPI's name */
    uint32_t perf_type; /* of perf_event_open(2) */
    uint64_t perf_config;
    enum usage usage;
    /* Work that must make it count: between low and high. */
    void (*known)(void *arg);
    double low, high;
    bool (*can_happen)(void); /* null: always; false: nothing to count can happen here, so nothing can be known */
};

/* An event opened in the calling thread. */
struct open_event {
    const struct event *event;
    int handle;   /* PAPI's event set, or a file descriptor */
    double start; /* getrusage */
};

struct source {
    const char *name, *software_name;
    /* 0, or -1 with the reason: what is missing and what would mend it. */
    int (*open)(struct open_event *o, const struct event *event, char *reason, size_t n);
    int (*begin)(struct open_event *o);
    int (*end)(struct open_event *o, double *count); /* since begin */
    void (*close)(struct open_event *o);
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
    cpu_set_t before;
    int cpus[2];
    bool can = widen(&before, cpus);
    for (int i = 0; i < 2 && can; i++) nb_cpu_pin(cpus[i]);
    sched_setaffinity(0, sizeof before, &before);
}

#define READ_MISSES(cache)                                                                                             \
    ((cache) | (uint64_t)PERF_COUNT_HW_CACHE_OP_READ << 8 | (uint64_t)PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

static const struct event events[] = {
    {"instructions", false, "PAPI_TOT_INS", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, USAGE_NONE, known_loop,
     1.99 * LOOP_TURNS, 2.05 * LOOP_TURNS, NULL},
    {"cycles", false, "PAPI_TOT_CYC", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, USAGE_NONE, known_loop,
     0.2 * LOOP_TURNS, 100.0 * LOOP_TURNS, NULL},
    {"branch_misses", false, "PAPI_BR_MSP", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, USAGE_NONE, known_branches,
     BRANCHES / 20.0, 2.0 * BRANCHES, NULL},
    {"l1d_misses", false, "PAPI_L1_DCM", PERF_TYPE_HW_CACHE, READ_MISSES(PERF_COUNT_HW_CACHE_L1D), USAGE_NONE,
     known_misses, 100, 1e9, NULL},
    {"llc_misses", false, "PAPI_L3_TCM", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, USAGE_NONE, known_misses, 100,
     1e9, NULL},
    {"dtlb_misses", false, "PAPI_TLB_DM", PERF_TYPE_HW_CACHE, READ_MISSES(PERF_COUNT_HW_CACHE_DTLB), USAGE_NONE,
     known_misses, 100, 1e9, NULL},
    {"task_clock_ns", true, "perf::TASK-CLOCK", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, USAGE_CPU_NS, known_spin,
     0.9 * SPIN_NS, 10 * SPIN_NS, NULL},
    {"page_faults", true, "perf::PAGE-FAULTS", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, USAGE_FAULTS,
     known_faults, PAGES, 100 * PAGES, NULL},
    {"context_switches", true, "perf::CONTEXT-SWITCHES", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES,
     USAGE_SWITCHES, known_sleeps, SLEEPS, 1e6, NULL},
    {"cpu_migrations", true, "perf::CPU-MIGRATIONS", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, USAGE_NONE,
     known_migration, 1, 1e6, can_migrate},
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

static void papi_close(struct open_event *o) {
    PAPI_cleanup_eventset(o->handle);
    PAPI_destroy_eventset(&o->handle);
}

/* Why PAPI's component for the kernel's events is off, when it is. */
static const char *component_reason(void) {
    int id = PAPI_get_component_index("perf_event");
    const PAPI_component_info_t *info = id >= 0 ? PAPI_get_component_info(id) : NULL;
    return info && info->disabled ? info->disabled_reason : NULL;
}

static int papi_open(struct open_event *o, const struct event *event, char *reason, size_t n) {
    int code = 0, error;
    char name[64];
    if (initialise(reason, n) != 0) return -1;
    *o = (struct open_event){.event = event, .handle = PAPI_NULL};
    snprintf(name, sizeof name, "%s", event->papi);
    error = PAPI_event_name_to_code(name, &code);
    if (error == PAPI_OK) error = PAPI_create_eventset(&o->handle);
    if (error == PAPI_OK && (error = PAPI_add_event(o->handle, code)) != PAPI_OK) papi_close(o);
    if (error == PAPI_OK) return 0;
    const char *why = component_reason();
    return nb_reason(reason, n, "PAPI: %.80s", why ? why : PAPI_strerror(error));
}

static int papi_begin(struct open_event *o) { return PAPI_start(o->handle) == PAPI_OK ? 0 : -1; }

static int papi_end(struct open_event *o, double *count) {
    long long value = 0;
    if (PAPI_stop(o->handle, &value) != PAPI_OK) return -1;
    *count = (double)value;
    return 0;
}

static const struct source source_papi = {"papi", "papi_software", papi_open, papi_begin, papi_end, papi_close};

/* ---- the kernel's own events, and getrusage ---------------------------------------------------------------------- */

/* Events from the operating system: perf_event_open(2), and below it the accounts that every process may read. */

/* ---- perf_event_open ---- */

/* The setting that governs who may count; 100 when it cannot be read. */
static int paranoid_level(void) {
    char level[16];
    return nb_file_line("/proc/sys/kernel/perf_event_paranoid", level, sizeof level) ? atoi(level) : 100;
}

static void explain_perf(int error, bool software, char *reason, size_t n) {
    const char *hypervisor = nb_cpu_light()->hypervisor;
    int level = paranoid_level();
    if (error == EACCES || error == EPERM) {
        if (level > 2 && level != 100)
            snprintf(reason, n, "perf_event_paranoid is %d; run `sysctl kernel.perf_event_paranoid=2` as root", level);
        else
            snprintf(reason, n,
                     "perf_event_open is forbidden (seccomp?); a container needs --cap-add PERFMON or another "
                     "seccomp profile");
    } else if (error == ENOSYS) {
        snprintf(reason, n, "the kernel or a seccomp filter has no perf_event_open");
    } else if (hypervisor[0] && !software) {
        snprintf(reason, n,
                 "this %s virtual machine has no performance counters; it needs a vPMU (QEMU: -cpu host,pmu=on)",
                 hypervisor);
    } else {
        snprintf(reason, n, "the kernel has no such event on this CPU (%s)", strerror(error));
    }
}

/* Switches and migrations happen in the kernel: user mode alone sees none of them. */
static bool happens_in_kernel(const struct event *event) {
    return event->software &&
           (event->perf_config == PERF_COUNT_SW_CONTEXT_SWITCHES || event->perf_config == PERF_COUNT_SW_CPU_MIGRATIONS);
}

/* User mode only, as PAPI counts; software events are counted in the kernel too where that is allowed. */
static int perf_open(struct open_event *o, const struct event *event, char *reason, size_t n) {
    struct perf_event_attr attr = {.type = event->perf_type,
                                   .size = sizeof attr,
                                   .config = event->perf_config,
                                   .disabled = 1,
                                   .exclude_kernel = !event->software,
                                   .exclude_hv = 1};
    long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0 && (errno == EACCES || errno == EPERM)) {
        if (happens_in_kernel(event) && paranoid_level() == 2)
            return nb_reason(reason, n, "perf_event_paranoid is 2; run `sysctl kernel.perf_event_paranoid=1` as root");
        attr.exclude_kernel = 1;
        fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    }
    *o = (struct open_event){.event = event, .handle = (int)fd};
    if (fd < 0) explain_perf(errno, event->software, reason, n);
    return fd < 0 ? -1 : 0;
}

static int perf_begin(struct open_event *o) {
    return ioctl(o->handle, PERF_EVENT_IOC_RESET, 0) == 0 && ioctl(o->handle, PERF_EVENT_IOC_ENABLE, 0) == 0 ? 0 : -1;
}

static int perf_end(struct open_event *o, double *count) {
    uint64_t value;
    if (ioctl(o->handle, PERF_EVENT_IOC_DISABLE, 0) != 0) return -1;
    if (read(o->handle, &value, sizeof value) != (ssize_t)sizeof value) return -1;
    *count = (double)value;
    return 0;
}

static void perf_close(struct open_event *o) { close(o->handle); }

static const struct source source_perf_event = {"perf_event", "perf_software", perf_open,
                                                perf_begin,   perf_end,        perf_close};

/* ---- getrusage ---- */

static int usage_now(enum usage usage, double *value) {
    struct rusage r;
    if (getrusage(RUSAGE_THREAD, &r) != 0) return -1;
    *value = usage == USAGE_CPU_NS   ? thread_ns()
             : usage == USAGE_FAULTS ? (double)(r.ru_minflt + r.ru_majflt)
                                     : (double)(r.ru_nvcsw + r.ru_nivcsw);
    return 0;
}

/* An event that it does not know leaves the reason of the source before. */
static int usage_open(struct open_event *o, const struct event *event, char *reason, size_t n) {
    *o = (struct open_event){.event = event};
    return event->usage == USAGE_NONE ? -1 : 0;
}

static int usage_begin(struct open_event *o) { return usage_now(o->event->usage, &o->start); }

static int usage_end(struct open_event *o, double *count) {
    if (usage_now(o->event->usage, count) != 0) return -1;
    *count -= o->start;
    return 0;
}

static void usage_close(struct open_event *o) { (void)o; }

static const struct source source_getrusage = {"getrusage", "getrusage", usage_open,
                                               usage_begin, usage_end,   usage_close};

/* ---- the ladder -------------------------------------------------------------------------------------------------- */

/* The ladder: for each event the first source that opens it and then counts its known work right. What was found is kept, since
 * probing takes some hundredths of a second. */

#define MAX_EVENTS (NB_MAX_COUNTERS - 1)

struct found {
    const struct source *source; /* null: none */
    struct nb_counter info;
};

static const struct source *const ladder[] = {&source_papi, &source_perf_event, &source_getrusage};
enum { N_RUNGS = sizeof ladder / sizeof ladder[0] };

static const char *source_name(const struct source *s, const struct event *e) {
    return e->software ? s->software_name : s->name;
}

/* Runs work under an open event; -1: the source failed. */
static int count(const struct source *s, struct open_event *o, nb_work work, void *arg, int calls, double *value) {
    if (s->begin(o) != 0) return -1;
    for (int i = 0; i < calls; i++) work(arg);
    return s->end(o, value);
}

/* 0, or -1 with the reason. */
static int believe(const struct source *s, struct open_event *o, char *reason, size_t n) {
    double value = 0;
    if (o->event->can_happen && !o->event->can_happen()) return 0;
    if (count(s, o, o->event->known, NULL, 1, &value) != 0)
        return nb_reason(reason, n, "%s opens it but cannot count", source_name(s, o->event));
    if (value >= o->event->low && value <= o->event->high) return 0;
    return nb_reason(reason, n, "%s counted %.0f in work that makes %.0f at least", source_name(s, o->event), value,
                     o->event->low);
}

/* Of the reasons along the ladder the last one said stands: it names the cause nearest to the machine. */
static void probe_event(struct found *f, const struct event *e) {
    *f = (struct found){.info = {.value = NAN}};
    snprintf(f->info.name, sizeof f->info.name, "%s", e->name);
    for (int i = 0; i < N_RUNGS && !f->source; i++) {
        struct open_event open;
        if (!e->software && ladder[i] == &source_getrusage) continue;
        snprintf(f->info.source, sizeof f->info.source, "%s", source_name(ladder[i], e));
        if (ladder[i]->open(&open, e, f->info.reason, sizeof f->info.reason) != 0) continue;
        if (believe(ladder[i], &open, f->info.reason, sizeof f->info.reason) == 0) f->source = ladder[i];
        ladder[i]->close(&open);
    }
    if (f->source) f->info.reason[0] = '\0';
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
    for (; n < n_events && n < max; n++) list[n] = found[n].info;
    if (n == max) return n;
    list[n] = (struct nb_counter){.name = "instructions_exact", .value = NAN, .source = "single_step"};
    if (nb_single_step_probe(list[n].reason, sizeof list[n].reason) == 0) list[n].reason[0] = '\0';
    n++;
    return n;
}

bool nb_counters_have_hardware(void) {
    const struct found *found = probe();
    for (size_t i = 0; i < n_events; i++)
        if (!events[i].software && found[i].source) return true;
    return false;
}

static void nothing(void *arg) { __asm__ volatile("" : : "r"(arg) : "memory"); }

static void measure_event(const struct found *f, const struct event *e, nb_work work, void *arg, int calls,
                          struct nb_counter *out) {
    struct open_event open;
    double with = NAN, without = NAN;
    *out = f->info;
    if (!f->source || f->source->open(&open, e, out->reason, sizeof out->reason) != 0) return;
    bool counted = count(f->source, &open, nothing, NULL, calls, &without) == 0 &&
                   count(f->source, &open, work, arg, calls, &with) == 0;
    f->source->close(&open);
    if (counted)
        out->value = fmax(0, with - without) / calls;
    else
        snprintf(out->reason, sizeof out->reason, "%s stopped counting", f->info.source);
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

struct nb_known_count {
    char *what;
    cJSON *counter;
};

/* A library that is opened for more threads takes another way through the same call. */
static bool has_own_threads(const struct nb_case *c) {
    const struct nb_entry *entry = nb_registry_find(c->variant);
    return entry && entry->kernel->flags & NB_FLAG_OWN_THREADS;
}

/* The case with everything that the count does not depend on at its default. */
static char *what_decides(const struct nb_case *c) {
    struct nb_case plain = *c;
    struct nb_case defaults;
    nb_case_init(&defaults);
    plain.seed = defaults.seed;
    if (!has_own_threads(c)) plain.threads = defaults.threads;
    plain.cache = defaults.cache;
    plain.pad = defaults.pad;
    memcpy(plain.data, defaults.data, sizeof plain.data);
    memset(plain.shape.text, 0, sizeof plain.shape.text);
    char *key freed = nb_case_key(&plain);
    return nb_textf("%s %u %lld", key, c->shape.layout, (long long)c->shape.cols);
}

const cJSON *nb_known_counts_find(const struct nb_known_counts *known, const struct nb_case *c) {
    char *what freed = what_decides(c);
    const cJSON *found = NULL;
    for (size_t i = 0; i < known->n && !found; i++)
        if (strcmp(known->items[i].what, what) == 0) found = known->items[i].counter;
    return found;
}

void nb_known_counts_exchange(struct nb_known_counts *known, const struct nb_case *c, cJSON *answer) {
    cJSON *counters = nb_json_get(answer, "counters"), *counter;
    cJSON_ArrayForEach(counter, counters) {
        const char *name = nb_json_get_text(counter, "name");
        if (!name || strcmp(name, "instructions_exact") != 0) continue;
        *NB_PUSH(known->items, known->n) = (struct nb_known_count){what_decides(c), cJSON_Duplicate(counter, 1)};
        return;
    }
    const cJSON *found = nb_known_counts_find(known, c);
    if (found) cJSON_AddItemToArray(counters, cJSON_Duplicate(found, 1));
}

void nb_known_counts_release(struct nb_known_counts *known) {
    for (size_t i = 0; i < known->n; i++) {
        free(known->items[i].what);
        cJSON_Delete(known->items[i].counter);
    }
    free(known->items);
    *known = (struct nb_known_counts){0};
}
