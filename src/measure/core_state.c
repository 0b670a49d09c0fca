// SPDX-License-Identifier: Apache-2.0
#include "src/measure/core_state.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/stats.h"
#include "src/core/timer.h"
#include "src/core/tuning.h"
#include "src/measure/job.h"
#include "src/measure/system.h"

const char *const nb_state_names[] = {"uncontended", "contended", "any", NULL};

/* A neighbour's is 1.2 to 2.5, what a quiet core has of its own below 1.03. */
bool nb_is_contended(double probe, double floor) { return floor > 0 && (probe > 1.10 * floor || probe < 0.93 * floor); }

enum nb_state nb_state_of_figure(const size_t n[NB_N_STATES], size_t enough) {
    const size_t all = n[NB_ANY_STATE];
    for (int s = NB_UNCONTENDED; s < NB_ANY_STATE; s++)
        if (n[s] > 0 && (n[s] >= enough || (all < enough && 4 * n[s] >= 3 * all))) return (enum nb_state)s;
    return NB_ANY_STATE;
}

/* ---- floors ------------------------------------------------------------------------------------------------------ */

static struct nb_floor *find(const struct nb_floors *f, int cpu, int threads) {
    for (size_t i = 0; i < f->n; i++)
        if (f->cpus[i].cpu == cpu && f->cpus[i].threads == threads) return &f->cpus[i];
    return NULL;
}
static struct nb_floor *find_or_add(struct nb_floors *f, int cpu, int threads) {
    struct nb_floor *known = find(f, cpu, threads);
    if (known) return known;
    struct nb_floor *added = NB_PUSH(f->cpus, f->n);
    *added = (struct nb_floor){.cpu = cpu, .threads = threads, .kept = NAN};
    return added;
}

static const double bin = 0.005, window = 0.04; /* logarithms */
static int bin_of(double cycles) {
    const double at = log(cycles) / bin;
    return at < 0 ? 0 : at >= NB_FLOOR_BINS ? NB_FLOOR_BINS - 1 : (int)at;
}

/* NaN: there is none. */
static double lowest_window(const struct nb_floor *c) {
    const int width = (int)(window / bin);
    uint64_t within = 0, below = 0;
    int begin = 0, end = 0;
    for (; end < NB_FLOOR_BINS && (within == 0 || 100 * within < c->n); end++) { /* the window is [begin, end) */
        within += c->n_in[end];
        if (end - begin == width) within -= c->n_in[begin++];
    }
    if (within == 0 || 100 * within < c->n) return NAN;
    while (c->n_in[begin] == 0) begin++;
    for (; 2 * (below + c->n_in[begin]) < within; begin++) below += c->n_in[begin];
    return exp((begin + 0.5) * bin);
}

static double cycles_of(const struct nb_floor *c) {
    const double own = lowest_window(c);
    return isnan(c->kept) || own < 1.03 * c->kept ? own : c->kept;
}

double nb_floors_get(const struct nb_floors *f, int cpu, int threads) {
    const struct nb_floor *c = find(f, cpu, threads);
    return c ? cycles_of(c) : (double)NAN;
}

/* "noise" of a line says where it was measured; null: it does not. */
static const struct nb_floor *find_of_line(const struct nb_floors *f, const cJSON *line) {
    const cJSON *noise = nb_json_get(line, "noise");
    return find(f, nb_json_get_index(noise, "cpu"), nb_json_get_index(noise, "threads"));
}

double nb_floors_of_line(const struct nb_floors *f, const cJSON *line) {
    const struct nb_floor *c = find_of_line(f, line);
    return c ? cycles_of(c) : (double)NAN;
}

double nb_floors_clock_of_line(const struct nb_floors *f, const cJSON *line) {
    const struct nb_floor *c = find_of_line(f, line);
    return c ? c->clock_ghz : 0;
}

static bool are_alike(double a, double b) { return a >= 1 && b >= 1 && fabs(log(a / b)) <= window; }

void nb_floors_take(struct nb_floors *f, int cpu, int threads, const double *probes, size_t n) {
    assert(f && (probes || n == 0));
    struct nb_floor *c = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!(probes[i] >= 1)) continue;
        c = c ? c : find_or_add(f, cpu, threads);
        c->n++;
        c->n_in[bin_of(probes[i])] +=
            (i > 0 && are_alike(probes[i - 1], probes[i])) || (i + 1 < n && are_alike(probes[i], probes[i + 1]));
    }
}

static void add_probes(const cJSON *arms, double **probes, size_t *n) {
    const cJSON *arm, *probe;
    cJSON_ArrayForEach(arm, arms) {
        cJSON_ArrayForEach(probe, nb_json_get(arm, "probe")) * NB_PUSH(*probes, *n) =
            cJSON_IsNumber(probe) ? probe->valuedouble : (double)NAN;
    }
}

void nb_floors_take_line(struct nb_floors *f, const cJSON *line) {
    static const char *const lists[] = {"cases", "copies", "arms"};
    const cJSON *noise = nb_json_get(line, "noise");
    const int cpu = nb_json_get_index(noise, "cpu"), threads = nb_json_get_index(noise, "threads");
    double *probes freed = NULL;
    size_t n = 0;
    if (cpu < 0 || threads < 0) return;
    for (int i = 0; i < 3; i++) add_probes(nb_json_get(line, lists[i]), &probes, &n);
    nb_floors_take(f, cpu, threads, probes, n);
    const double clock_ghz = nb_json_get_number(nb_json_get(line, "core"), "clock_ghz");
    struct nb_floor *c = clock_ghz > 0 && isfinite(clock_ghz) ? find_or_add(f, cpu, threads) : NULL;
    if (c) c->clock_ghz = fmax(c->clock_ghz, clock_ghz);
}

void nb_floors_from_json(struct nb_floors *f, const cJSON *list) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        const double cycles = nb_json_get_number(item, "cycles");
        const int cpu = nb_json_get_index(item, "cpu"), threads = nb_json_get_index(item, "threads");
        if (!(cpu >= 0 && threads > 0 && cycles >= 1 && isfinite(cycles))) continue;
        struct nb_floor *c = find_or_add(f, cpu, threads);
        const int unmet = nb_json_get_index(item, "unmet");
        c->kept = cycles;
        c->unmet = unmet > 0 ? unmet : 0;
        const double clock_ghz = nb_json_get_number(item, "clock_ghz");
        c->clock_ghz = c->kept_ghz = clock_ghz > 0 && isfinite(clock_ghz) ? clock_ghz : 0;
    }
}

static cJSON *to_json(const struct nb_floors *f, bool with_unmet) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < f->n; i++) {
        if (isnan(cycles_of(&f->cpus[i]))) continue;
        cJSON *item = nb_json_add_object(list);
        nb_json_number(item, "cpu", f->cpus[i].cpu);
        nb_json_number(item, "threads", f->cpus[i].threads);
        nb_json_number(item, "cycles", round(cycles_of(&f->cpus[i])));
        if (f->cpus[i].clock_ghz > 0) nb_json_number(item, "clock_ghz", f->cpus[i].clock_ghz);
        if (with_unmet) nb_json_number(item, "unmet", f->cpus[i].unmet);
    }
    return list;
}
cJSON *nb_floors_to_json(const struct nb_floors *f) { return to_json(f, false); }

void nb_floors_release(struct nb_floors *f) {
    free(f->cpus);
    *f = (struct nb_floors){0};
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* Beside the tuning; owned. Null: nothing is kept. */
static char *path_of_file(void) {
    char *tuning freed = nb_tuning_path();
    return tuning ? nb_textf("%s.probe", tuning) : NULL;
}

void nb_floors_forget(void) {
    char *path freed = path_of_file();
    if (path) remove(path);
}

void nb_floors_load(struct nb_floors *f) {
    char *path freed = path_of_file();
    size_t len;
    char *text freed = path && nb_path_exists(path) ? nb_file_read(path, 1 << 20, &len) : NULL;
    cJSON *json released_by(nb_json_release) = text ? cJSON_Parse(text) : NULL;
    if (json) nb_floors_from_json(f, json);
}

/* Takes in what this run found, where it has enough probes to tell; true: the file would change. */
static bool learn(struct nb_floor *c) {
    const double own = lowest_window(c);
    if (c->n < 1000 || isnan(own)) return false;
    const bool is_first = isnan(c->kept), is_met = is_first || own < 1.03 * c->kept;
    const bool is_news =
        is_first || own < 0.97 * c->kept || !is_met || c->unmet > 0 || c->clock_ghz > 1.005 * c->kept_ghz;
    c->unmet = is_met ? 0 : c->unmet + 1;
    if (c->unmet >= NB_FLOOR_UNMET) *c = (struct nb_floor){c->cpu, c->threads, .kept = own, .clock_ghz = c->clock_ghz};
    return is_news;
}

void nb_floors_keep(struct nb_floors *f) {
    bool any = false;
    for (size_t i = 0; i < f->n; i++) any |= learn(&f->cpus[i]);
    char *path freed = any ? path_of_file() : NULL;
    if (!path) return;
    cJSON *json released_by(nb_json_release) = to_json(f, true);
    nb_tuning_file_write(path, json);
}

/* ---- a neighbour of our own ---- */

enum { PROBES = 5000 };

static double median_probe(void) {
    static double probes[PROBES];
    for (int i = 0; i < PROBES; i++) probes[i] = nb_core_probe();
    return nb_median(probes, PROBES);
}

struct busy {
    int cpu;
    atomic_bool runs, ends;
};
static void *fill_core(void *arg) {
    struct busy *b = arg;
    nb_cpu_pin(b->cpu);
    for (atomic_store(&b->runs, true); !atomic_load(&b->ends);) nb_core_probe();
    return NULL;
}

static double probe_beside(int sibling) {
    struct busy b = {.cpu = sibling};
    pthread_t thread;
    if (pthread_create(&thread, NULL, fill_core, &b) != 0) return NAN;
    while (!atomic_load(&b.runs)) sched_yield();
    const double beside = median_probe();
    atomic_store(&b.ends, true);
    pthread_join(thread, NULL);
    return beside;
}

/* Of "0,16" or "0-1" the first that is allowed and another; -1: none. */
static int sibling_of(int cpu, const int *allowed, int n_allowed) {
    struct nb_system system;
    nb_system_read(&system);
    for (const char *at = system.siblings; *at;) {
        char *end;
        const int first = (int)strtol(at, &end, 10), last = *end == '-' ? (int)strtol(end + 1, &end, 10) : first;
        for (int i = 0; i < n_allowed; i++)
            if (allowed[i] != cpu && allowed[i] >= first && allowed[i] <= last) return allowed[i];
        if (end == at) break;
        at = *end == ',' ? end + 1 : end;
    }
    return -1;
}

void nb_neighbour_measure(struct nb_neighbour *n) {
    int allowed[NB_MAX_CPUS];
    cpu_set_t before;
    struct nb_floors floors released_by(nb_floors_release) = {0};
    const int n_allowed = nb_cpu_allowed(allowed, NB_MAX_CPUS);
    *n = (struct nb_neighbour){.cpu = n_allowed > 0 ? allowed[0] : 0};
    nb_floors_load(&floors);
    n->floor = nb_floors_get(&floors, n->cpu, 1);
    n->sibling = sibling_of(n->cpu, allowed, n_allowed);
    pthread_getaffinity_np(pthread_self(), sizeof before, &before);
    nb_cpu_pin(n->cpu);
    n->now = median_probe();
    n->beside = n->sibling >= 0 ? probe_beside(n->sibling) : (double)NAN;
    pthread_setaffinity_np(pthread_self(), sizeof before, &before);
}
