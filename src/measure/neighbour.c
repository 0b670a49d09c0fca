// SPDX-License-Identifier: Apache-2.0
#include "src/measure/neighbour.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/core/cpu.h"
#include "src/core/stats.h"
#include "src/core/timer.h"
#include "src/measure/core_state.h"
#include "src/measure/job.h"
#include "src/measure/system.h"

enum { PROBES = 5000 };

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

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
    pin(b->cpu);
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
    struct nb_floors floors = {0};
    const int n_allowed = nb_cpu_allowed(allowed, NB_MAX_CPUS);
    *n = (struct nb_neighbour){.cpu = n_allowed > 0 ? allowed[0] : 0};
    nb_floors_load(&floors);
    n->floor = nb_floors_get(&floors, n->cpu, 1);
    nb_floors_release(&floors);
    n->sibling = sibling_of(n->cpu, allowed, n_allowed);
    pthread_getaffinity_np(pthread_self(), sizeof before, &before);
    pin(n->cpu);
    n->now = median_probe();
    n->beside = n->sibling >= 0 ? probe_beside(n->sibling) : (double)NAN;
    pthread_setaffinity_np(pthread_self(), sizeof before, &before);
}
