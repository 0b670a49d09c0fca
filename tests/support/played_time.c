// SPDX-License-Identifier: Apache-2.0
/* Nanoseconds in whole numbers, so that additions by threads and processes are atomic. */
#include "tests/support/played_time.h"

#include <assert.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/core/random.h"
#include "src/core/timer.h"

enum { MOST_LINES = 60, MOST_SPANS = 8, MOST_HUNG = 1024 };
static const char usual[] = "process 5e7\n"
                            "addition 0.3\n"
                            "multiply-add 0.04\n"
                            "conversion 0.1\n"
                            "probe 2000 contended=1.4\n"
                            "empty_call 500\n"
                            "check 5e7 50\n"
                            "trial 1e7\n"
                            "chunk 1e6\n"
                            "copy* 1000 1\n"
                            "* 2000 4\n";

/* What all processes share. */
struct page {
    _Atomic int64_t latest_ns;
    int32_t hung[MOST_HUNG]; /* a process that hangs, at its number modulo these */
    _Atomic uint64_t n_processes;
};

/* ---- table ---------------------------------------------------------------------------------------------------------- */

struct work {
    char pattern[100];
    double call_ns, element_ns, contended, others, spread, beside;
};
/* From from_s to until_s of every every_s; or, of slices and switches, length_s at the end of every every_s. */
struct span {
    double from_s, until_s, every_s;
    int cpu; /* of contention; -1: on any */
};
static struct table {
    struct work works[MOST_LINES];
    struct span contended[MOST_SPANS];
    int n_works, n_contended;
    char interrupted[100];
    int interrupts_at;
    double slice_every_s, slice_s, switch_every_s, load, reading_ns;
} table;

static _Noreturn void refuse(const char *line) {
    fprintf(stderr, "played time: no line of a table: %s\n", line);
    abort();
}

static void read_options(struct work *w, const char *line, const char *rest) {
    char name[20];
    double value;
    int n;
    for (; sscanf(rest, " %19[a-z]=%lf%n", name, &value, &n) == 2; rest += n) {
        if (strcmp(name, "contended") == 0)
            w->contended = value;
        else if (strcmp(name, "others") == 0)
            w->others = value;
        else if (strcmp(name, "spread") == 0)
            w->spread = value;
        else if (strcmp(name, "beside") == 0)
            w->beside = value;
        else
            refuse(line);
    }
    if (rest[strspn(rest, " ")]) refuse(line);
}

static void read_line(struct table *t, const char *line) {
    struct span s = {.cpu = -1};
    struct work w = {.contended = 1.3, .beside = 1};
    int n = 0;
    if (line[0] == '\0' || line[0] == '#') return;
    if (sscanf(line, "contended %lf %lf %lf cpu=%d", &s.from_s, &s.until_s, &s.every_s, &s.cpu) >= 3 &&
        t->n_contended < MOST_SPANS)
        t->contended[t->n_contended++] = s;
    else if (sscanf(line, "slice %lf %lf", &t->slice_every_s, &t->slice_s) == 2 ||
             sscanf(line, "switch %lf", &t->switch_every_s) == 1 || sscanf(line, "load %lf", &t->load) == 1 ||
             sscanf(line, "reading %lf", &t->reading_ns) == 1 ||
             sscanf(line, "interrupt %99s %d", t->interrupted, &t->interrupts_at) == 2)
        return;
    else if (t->n_works < MOST_LINES &&
             sscanf(line, "%99s %lf%n %lf%n", w.pattern, &w.call_ns, &n, &w.element_ns, &n) >= 2) {
        read_options(&w, line, line + n);
        t->works[t->n_works++] = w;
    } else {
        refuse(line);
    }
}

static void read_lines(struct table *t, const char *text) {
    char line[200];
    while (*text) {
        const size_t n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        read_line(t, line);
        text += n + (text[n] == '\n');
    }
}

void nb_played_table(const char *text) {
    table = (struct table){.reading_ns = 20, .load = 0.1};
    if (text) read_lines(&table, text);
    read_lines(&table, usual);
}

/* "gate_new" of "/tmp/gate_new.so". */
static void name_of(const char *file, char *name, size_t n) {
    const char *slash = file ? strrchr(file, '/') : NULL;
    snprintf(name, n, "%s", slash ? slash + 1 : file ? file : "");
    char *so = strstr(name, ".so");
    if (so) *so = '\0';
}

/* "process" and the like, which "*" does not mean. */
static bool is_kernel(const char *what) {
    const char *found = strstr(usual, what);
    return !found || (found > usual && found[-1] != '\n') || found[strlen(what)] != ' ';
}

static const struct work *find(const char *what, const char *file) {
    const bool any = is_kernel(what);
    char name[200], both[400];
    name_of(file, name, sizeof name);
    snprintf(both, sizeof both, "%s:%s", name, what);
    for (int i = 0; i < table.n_works; i++)
        if ((any || table.works[i].pattern[0] != '*') &&
            (fnmatch(table.works[i].pattern, what, 0) == 0 || fnmatch(table.works[i].pattern, both, 0) == 0))
            return &table.works[i];
    assert(!"a table with *");
    return NULL;
}

/* ---- clocks --------------------------------------------------------------------------------------------------------- */

static struct page *page;
static bool is_first;
static _Atomic int64_t begin_ns, now_ns, own_ns, others_ns, n_switches;
static _Atomic uint64_t n_works;
static uint64_t launch; /* the process's number, for what is the same in all its calls */
static int cpu = -1;

static void begin_at_the_latest(void) {
    is_first = false;
    atomic_store(&now_ns, atomic_load(&page->latest_ns));
    atomic_store(&begin_ns, atomic_load(&now_ns));
    atomic_store(&n_works, 0);
    launch = atomic_fetch_add(&page->n_processes, 1);
}

static void tell_all(int64_t mine_ns) {
    int64_t latest = atomic_load(&page->latest_ns);
    while (mine_ns > latest && !atomic_compare_exchange_weak(&page->latest_ns, &latest, mine_ns)) continue;
}

static bool is_at_end(double every_s, int64_t from_ns, int64_t until_ns) {
    return every_s > 0 && floor(1e-9 * (double)from_ns / every_s) < floor(1e-9 * (double)until_ns / every_s);
}

/* Time goes by. */
static void move(double ns, bool works) {
    int64_t took = llrint(ns);
    if (is_first) atomic_store(&now_ns, atomic_load(&page->latest_ns));
    if (works) {
        const int64_t from_ns = now_ns - begin_ns, until_ns = from_ns + took;
        const bool is_cut = is_at_end(table.slice_every_s, from_ns, until_ns);
        if (is_cut) took += llrint(1e9 * table.slice_s);
        n_switches += is_cut || is_at_end(table.switch_every_s, from_ns, until_ns);
    }
    tell_all(atomic_fetch_add(&now_ns, took) + took);
}

static void work(double ns) {
    atomic_fetch_add(&own_ns, llrint(ns));
    move(ns, true);
}

void nb_played_work(double s) { work(1e9 * s); }
void nb_played_others(double s) { atomic_fetch_add(&others_ns, llrint(1e9 * s)); }

static bool is_contended(void) {
    const double s = 1e-9 * (double)(now_ns - begin_ns);
    for (int i = 0; i < table.n_contended; i++) {
        const struct span *c = &table.contended[i];
        const double at_s = s - c->every_s * floor(s / c->every_s);
        if (at_s >= c->from_s && at_s < c->until_s && (c->cpu < 0 || c->cpu == sched_getcpu())) return true;
    }
    return false;
}

/* In (-1, 1), near 0 more often: a sum of four. */
static double drawn(uint64_t seed) {
    double sum = 0;
    for (int i = 0; i < 4; i++) sum += (double)((seed = nb_random_mix(seed)) >> 11) * 0x1p-53;
    return sum / 2 - 1;
}

static double took_ns(const struct work *w, double amount, double elements) {
    double ns = amount * (w->call_ns + w->element_ns * elements);
    if (is_contended()) ns *= w->contended;
    return ns * (1 + w->spread * (drawn(launch << 32 | n_works++) + drawn(~launch)) / 2);
}

/* ---- what timer.h says ------------------------------------------------------------------------------------------------ */

static void interrupt(const char *what) {
    static _Atomic int n;
    if (strcmp(what, table.interrupted) == 0 && ++n == table.interrupts_at) kill(getpid(), SIGINT);
}

void nb_worked(const char *what, const char *file, double amount, double elements) {
    static atomic_bool has_candidate;
    const struct work *w = find(what, file);
    char name[200];
    name_of(file, name, sizeof name);
    if (strcmp(name, "candidate") == 0) has_candidate = true;
    const double ns = took_ns(w, amount, elements) * (has_candidate ? w->beside : 1);
    atomic_fetch_add(&others_ns, llrint(w->others * ns));
    work(ns);
    interrupt(what);
}

double nb_now_s(void) {
    if (is_first) {
        atomic_store(&now_ns, atomic_load(&page->latest_ns));
    } else if (table.reading_ns > 0) {
        work(table.reading_ns);
    }
    return 1e-9 * (double)atomic_load(&now_ns);
}

double nb_system_now_s(void) { return nb_now_s(); }

void nb_utc_now(const char *format, char *out, size_t n) {
    time_t now = time(NULL);
    struct tm t;
    gmtime_r(&now, &t);
    strftime(out, n, format, &t);
}

/* All work is of the thread that asks. What a program says of its calls is held against the real clock, by which it goes. */
double nb_clock_s(clockid_t clock) {
    const double own_s = 1e-9 * (double)atomic_load(&own_ns);
    struct timespec t;
    if (clock == CLOCK_MONOTONIC && clock_gettime(clock, &t) == 0) return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    return clock == CLOCK_THREAD_CPUTIME_ID    ? own_s
           : clock == CLOCK_PROCESS_CPUTIME_ID ? own_s + 1e-9 * (double)atomic_load(&others_ns)
                                               : 0;
}

struct nb_thread_usage nb_thread_usage(void) {
    if (cpu < 0) cpu = sched_getcpu(); /* where it stays, whatever happens */
    return (struct nb_thread_usage){.involuntary = n_switches, .cpu_us = own_ns / 1000, .cpu = cpu};
}

double nb_steal_ms(void) { return 0; }

void nb_load_average(double average[3]) {
    for (int i = 0; i < 3; i++) average[i] = table.load;
}

/* In cycles of 0.3 ns, as long as an addition takes. */
double nb_core_probe(void) {
    const double cycles = took_ns(find("probe", NULL), 1, 0);
    work(0.3 * cycles);
    return cycles;
}

void nb_add_in_turn(int additions) {}

/* Others get the CPU for a moment. */
void nb_wait_s(double s) {
    const struct timespec t = {.tv_nsec = (long)(1e9 * fmin(s, 1e-3))};
    nanosleep(&t, NULL);
    move(1e9 * s, false);
}

double nb_waited_for_cpu_s(pid_t process) { return 0; }

bool nb_is_overdue(pid_t process, double since_s, double limit_s) {
    enum { SAID_S = 3600 }; /* tests/plugins/silent.h */
    return limit_s < SAID_S && page->hung[process % MOST_HUNG] == process;
}

/* ---- start ------------------------------------------------------------------------------------------------------------ */

/* The first process keeps it open for reading alone, out of the way of the program's own descriptors: what it forks may write to all it finds. */
static int open_page(void) {
    static const char variable[] = "NORMBENCH_PLAYED_PAGE";
    char path[64];
    const char *named = getenv(variable);
    int fd = named ? open(named, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) return fd;
    is_first = true;
    fd = memfd_create("played-time", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(struct page)) != 0) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int kept = open(path, O_RDONLY | O_CLOEXEC), away = fcntl(kept, F_DUPFD_CLOEXEC, 200);
    if (away >= 0) close(kept);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), away >= 0 ? away : kept);
    setenv(variable, path, 1);
    return fd;
}

static __attribute__((constructor)) void begin(void) {
    const char *named = getenv("NORMBENCH_PLAYED");
    if (!getenv("XDG_CACHE_HOME"))
        setenv("NORMBENCH_TUNING", "none", 0); /* the user's cache keeps nothing of what is played */
    static char text[8192];
    const int fd = open_page();
    page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) abort();
    close(fd);
    const bool first = is_first;
    begin_at_the_latest();
    is_first = first;
    if (first) atomic_store(&page->latest_ns, 1000000000); /* no time is 0 */
    FILE *f = named ? fopen(named, "re") : NULL;
    if (named && !f) refuse(named);
    text[f ? fread(text, 1, sizeof text - 1, f) : 0] = '\0';
    if (f) fclose(f);
    nb_played_table(text);
    pthread_atfork(NULL, NULL, begin_at_the_latest);
}
