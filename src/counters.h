// SPDX-License-Identifier: Apache-2.0
/* Counters by a ladder with provenance: PAPI hardware events, PAPI software events, exact instruction counts by single stepping.
 * Taken in a pass of their own, never while timing. PAPI claims events in a virtual machine that it cannot count, so an event is
 * believed only after it has counted a known loop. */
#ifndef NB_COUNTERS_H
#define NB_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/record.h"

typedef void (*nb_work)(void *arg);

struct nb_counter_info {
    char name[48];    /* "instructions", "cycles", "task_clock_ns", "instructions_exact" ... */
    char source[24];  /* "papi", "papi_software", "single_step" */
    bool available;
    char reason[120]; /* why not, and what would mend it (no vPMU, perf_event_paranoid, seccomp) */
};
/* Probes once; returns the number written. */
size_t nb_counters_list(struct nb_counter_info *list, size_t max);
bool nb_counters_have_hardware(void);

/* Runs work(arg) `calls` times under each event set that can count; fills out[] (per call) with one entry for each counter of the
 * list but the exact ones, NaN with a reason where it cannot. Returns the number written. */
size_t nb_counters_measure(nb_work work, void *arg, int calls, struct nb_counter *out, size_t max);

/* Instructions that work(arg) retires, counted one by one with the trap flag (x86 only), less the harness's own. -1 with the
 * reason: another architecture, or more than `limit` instructions. Bit-stable. */
int64_t nb_single_step(nb_work work, void *arg, int64_t limit, char *reason, size_t n);

#endif
