// SPDX-License-Identifier: Apache-2.0
/* Counters by a ladder with provenance. Each event is taken from the first source that can count it:
 *   papi, papi_software        PAPI's presets, and perf's software events through PAPI
 *   perf_event, perf_software  the same events from the kernel itself: PAPI 7.0 turns itself off on a CPU newer than it knows
 *   getrusage                  the process's own accounts, where perf events are forbidden
 *   single_step                exact instruction counts, src/measure/single_step.c
 * Taken in a pass of their own, never while timing, in the calling thread only. A source claims events in a virtual machine that
 * it cannot count, so an event is believed only after it has counted work of a known size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/kernel_fields.h"

typedef void (*nb_work)(void *arg);

struct nb_counter {
    char name[48];   /* "instructions", "cycles", "task_clock_ns", "instructions_exact" ... */
    double value;    /* NaN: not measured */
    char source[24]; /* of the ladder; of the last rung tried when it is not available */
    char reason
        [120]; /* why not, and what would mend it (no vPMU, perf_event_paranoid, seccomp); "": it can be counted */
};
#define NB_MAX_COUNTERS 16
extern const struct nb_member nb_counter_members[];

/* All that there are, without values. Probes once; returns the number written. */
size_t nb_counters_list(struct nb_counter *list, size_t max);
/* Can instructions or cycles be counted at full speed? */
bool nb_counters_have_hardware(void);

/* Runs work(arg) `calls` times under each event that can be counted; fills out[] (per call, less what the same number of empty
 * calls count) with one entry for each counter of the list but the exact ones, NaN with a reason where it cannot. Returns the
 * number written. */
size_t nb_counters_measure(nb_work work, void *arg, int calls, struct nb_counter *out, size_t max);

/* ---- exact instruction counts without a performance counter: the CPU's trap flag raises a signal after every instruction ---- */

/* Instructions that work(arg) retires in this thread, its own return included, counted one by one with the trap flag (x86-64 only);
 * a repeated string instruction counts once. work runs once before, uncounted, so that symbols are bound and pages are there.
 * -1 with the reason: another architecture, more than `limit` instructions (work still ends, at full speed), or a
 * debugger that takes the traps. About 10 microseconds an instruction. Bit-stable as long as the work is. */
int64_t nb_single_step(nb_work work, void *arg, int64_t limit, char *reason, size_t n);
/* Of one call's work, all of it by this thread. Phases and units are asked for before: what a call costs the harness is no work of the
 * kernel. Left of it are some instructions a phase. */
int64_t nb_single_step_kernel(const struct nb_kernel *kernel, const struct nb_call *call, int64_t limit, char *reason,
                              size_t n);
/* Does it count a loop of known length right? 0, or -1 with the reason. */
int nb_single_step_probe(char *reason, size_t n);

/* Exact instruction counts are taken once for each variant, formula and row length; cases that differ only in rows, data or threads share
 * them (of kernels with threads of their own not in threads). */

struct nb_known_count; /* a counter, and what decides it */

struct nb_known_counts {
    struct nb_known_count *items;
    size_t n;
};

/* The counter known for such a case, or null. */
const cJSON *nb_known_counts_find(const struct nb_known_counts *known, const struct nb_case *c);

/* Keeps the exact count among answer's counters, or adds the known one to them. */
void nb_known_counts_exchange(struct nb_known_counts *known, const struct nb_case *c, cJSON *answer);

void nb_known_counts_release(struct nb_known_counts *known);
