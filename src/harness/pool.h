// SPDX-License-Identifier: Apache-2.0
/* The harness's threads: pinned, with barriers between the phases of a call. Thread 0 is the caller. Between calls the
 * others spin, since waking a thread takes longer than many a call; nb_pool_park() sends them to sleep while a kernel
 * with threads of its own has the cores, and the next call wakes them. */
#ifndef NB_POOL_H
#define NB_POOL_H

#include <stdint.h>

#include "kernels/kernel.h"

struct nb_pool;

/* n_threads pinned to cpus[0..n_threads); cpus null: not pinned. */
struct nb_pool *nb_pool_new(int n_threads, const int *cpus);
void nb_pool_free(struct nb_pool *pool);

/* Runs all phases of a call, the units of each split into equal ranges in order. Returns the first non-zero code. */
int nb_pool_run(struct nb_pool *pool, const struct nb_kernel *kernel, const struct nb_call *call);
/* Rows [begin, end) of a row_local kernel (one phase), split likewise. */
int nb_pool_run_rows(struct nb_pool *pool, const struct nb_kernel *kernel, const struct nb_call *call, int64_t begin,
                     int64_t end);
void nb_pool_park(struct nb_pool *pool);

/* Without threads: every phase in ranges of so many units, 0: whole; to prove that the cut changes nothing. */
int nb_run_in_ranges(const struct nb_kernel *kernel, const struct nb_call *call, int64_t range);

#endif
