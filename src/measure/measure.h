// SPDX-License-Identifier: Apache-2.0
/* One launch of one group: arms interleaved in blocks, each timed for a sample, over the same buffers.
 *
 * A short call is repeated until a sample is full; one of two samples and more is cut into rows where row_local() allows it, and one
 * cursor walks the rows for all arms, so that none meets rows its neighbour has just warmed. The order of arms in a
 * block is random and balanced: each order is followed by its reverse.
 *
 * A kernel that leaves work out while it is timed must not look fast. Before a call one random element of its outputs gets random bits, and
 * before a block two rows of x change places; behind a sample the rows concerned must have the bits that were checked. A kernel that
 * wants to know whether it may skip a row would have to read all of x and y. It costs a store a call, and below 1 % of the time. Nor may one
 * have work done by threads that it does not declare: the CPU time of all threads of the process is looked at (pool.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/core/kernel_fields.h"
#include "src/measure/buffers.h"
#include "src/measure/paired.h"
#include "src/measure/pool.h"

/* In place of a row that is wrong: the process's clock differed from the system's; a thread has worked that nobody has declared. */
enum { NB_WRONG_CLOCK = -1, NB_WRONG_HELPED = -2 };
const char *nb_wrong_deed(int64_t wrong_row); /* "changed the process's clock"; null: it is a row */

struct nb_arm {
    const struct nb_entry *entry;
    const struct nb_case *c;
    int home;              /* the first of the sets of buffers that it goes through */
    struct nb_call *calls; /* one for each of them */
    bool chunked;          /* a sample takes rows, not calls */
    int64_t per_sample;    /* whole calls, or rows when chunked */
    int extra_percent; /* an injected slowdown (with even_samples): more rows than it is credited with, or time behind its calls */
    int every;             /* takes part in every so many blocks */
    bool needs_no_warming; /* its calls are that long */
    double *sample_ns;     /* by block: time of one call on the whole shape (chunked: scaled by rows) */
    bool *preempted;       /* by block: an involuntary switch or a migration in the sample */
    int *position;         /* by block: how many arms came before */
    double *probe; /* by block: the slower probe at the sample's ends, in cycles; null: none; the caller frees it */
    int error;     /* what run() returned, when not 0: the arm is left out from then on */
    enum nb_damage
        damage; /* to the margins of the buffers watched, seen behind a sample of this arm: left out likewise */
    char where[120];

    const uint64_t
        *digests; /* what a call's outputs must be (nb_take_digests()): samples are spot-checked; may be null */
    struct nb_outputs *outputs; /* one for each of those sets */
    int64_t spoils_every;       /* before every so many calls an element of the outputs is spoilt; 0: none is */
    int64_t spoilt_row;         /* the last one, as nb_output_digest() counts rows */
    int spoilt_set;
    bool is_wrong;     /* a sample left the outputs of wrong_row wrong: left out from then on */
    int64_t wrong_row; /* or one of those above: what it did, or (NB_WRONG_HELPED) an arm of its launch did */
    void *graph; /* on a device: the calls of a sample; null: they cannot be captured, and are enqueued one by one */
};

struct nb_measure_options {
    int blocks;
    double sample_s;
    uint64_t seed;
    struct nb_buffers *watched; /* the arms' homes, whose margins are looked at behind each sample; may be null */
    int n_watched;
    bool cold;                          /* every call, not every block, on the next set of buffers, none warmed first */
    const struct nb_device_api *device; /* whose events time the calls; null: the clock of the host does */
    /* All arms take the sample that the first one chose: arms of one kernel, so that nothing but its code differs. With
     * extra_percent in any arm it is of rows wherever the kernel allows it, by the hundred. */
    bool even_samples;
    /* Of arms that write elsewhere than to sets of buffers: called before and behind each sample, outside of its time; may be null. */
    void (*before)(struct nb_arm *arm), (*behind)(struct nb_arm *arm);
    bool probed;                           /* the core is probed before and behind each sample */
    double floor;                          /* what the probe takes on an uncontended core; NaN: not known */
    const int *cpus;                       /* where the thread may go on while its core is contended, its own first */
    int n_cpus;                            /* 0: nowhere else */
    volatile int32_t *current_arm, *beats; /* which arm runs and that it goes on, for whoever watches; may be null */
};

/* May a part of the rows be a call of its own? */
bool nb_measure_goes_by_rows(const struct nb_kernel *kernel, const struct nb_call *call);

/* Is any of them another process's? */
bool nb_arms_have_program(const struct nb_arm *arms, int n_arms);

/* Chooses each arm's sample, then fills its sample_ns. */
void nb_measure_group(struct nb_arm *arms, int n_arms, int n_sets, struct nb_pool *pool,
                      const struct nb_measure_options *options, struct nb_noise *noise);

/* One more untimed sample of the arm on poisoned rows of y or dx: true when they hold the bits that were checked before (digests of
 * nb_take_digests()). first_row: where it differs, as nb_digests_differ() says. */
bool nb_measure_recheck(struct nb_arm *arm, struct nb_buffers *set, struct nb_pool *pool, const uint64_t *digests,
                        int64_t *first_row);

/* Of a kernel in another process: nanoseconds of a call of nothing at all in its place, in samples as the arm's; else NaN. */
double nb_measure_empty_ns(struct nb_arm *arm, int n_sets, struct nb_pool *pool);

/* Fastest of a few calls on the whole shape, in seconds: for choosing, never for reporting. */
double nb_measure_quickly(struct nb_arm *arm, struct nb_pool *pool, double budget_s);
