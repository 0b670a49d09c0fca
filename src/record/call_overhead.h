// SPDX-License-Identifier: Apache-2.0
/* What a call costs before it touches a row: the time a of the line t = a + b * bytes through one kernel's calls on a ladder of row
 * counts, timed in one run. A peer is called through layers that ours are not; what they cost says nothing of its rows, so it is
 * shown by itself. copy_null, which does nothing, has the harness's own share. */
#pragma once

#include "src/record/record.h"

/* Calls of at most so many bytes count: all of them in the first cache of any CPU. */
#define NB_OVERHEAD_MAX_BYTES 32768

struct nb_overhead_point {
    double bytes;
    struct nb_interval ns; /* of one call; without an interval it weighs as if it were known to 5 % */
};

struct nb_overhead {
    struct nb_interval ns; /* a, with its 95 % interval; NaN: see reason */
    double ns_per_byte;    /* b */
    double worst_residual; /* largest |t - (a + b bytes)| / t */
    char reason[96];       /* "" when a is known */
};

struct nb_kernel_overhead {
    const struct nb_record *record; /* one of those the line was laid through */
    struct nb_overhead overhead;
};
/* Of every kernel and formula that has a ladder: hot calls that differ in the number of rows alone, on one machine; owned array.
 * Returns how many. */
size_t nb_overheads(const struct nb_record *records, size_t n, struct nb_kernel_overhead **out);
