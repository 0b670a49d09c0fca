// SPDX-License-Identifier: Apache-2.0
/* One launch of one group: arms interleaved in blocks, each timed for a slot, over the same buffers.
 *
 * A short call is repeated until a slot is full; a long one is cut into rows where row_local() allows it, and one cursor walks
 * the rows for all arms, so that none meets rows its neighbour has just warmed. The order of arms in a block is random and
 * balanced: each order is followed by its reverse. */
#ifndef NB_MEASURE_H
#define NB_MEASURE_H

#include <stdint.h>

#include "src/buffers.h"
#include "src/pool.h"
#include "src/registry.h"

struct nb_arm {
    const struct nb_entry *entry;
    struct nb_case c;
    struct nb_call call;
    bool chunked;
    int64_t calls_per_slot;   /* whole calls */
    int64_t rows_per_slot;    /* chunked */
    double *slot_ns;          /* per block: time of one call on the whole shape (chunked: scaled by rows) */
    unsigned char *contaminated; /* per block: an involuntary switch or a migration in the slot */
    int error;                /* what run() returned, when not 0 */
};

struct nb_noise {
    double steal_ms, wall_s, cpu_s;
    long involuntary, voluntary;
    int cpu;
};

struct nb_measure_options {
    int blocks;
    double slot_s;
    uint64_t seed;
    double cold_bytes; /* cold: sets rotate over at least this many bytes; 0: hot */
    volatile int32_t *current_arm; /* which arm runs, for the parent, when a worker dies */
};

/* sets: n_sets copies of the group's buffers (1 when hot). Fills slot_ns of each arm. */
int nb_measure_group(struct nb_arm *arms, int n_arms, struct nb_buffers *sets, int n_sets, struct nb_pool *pool,
                     const struct nb_measure_options *options, struct nb_noise *noise);

#endif
