// SPDX-License-Identifier: Apache-2.0
/* Kernels whose library has threads of its own (NB_FLAG_OWN_THREADS): opened with the CPUs of their case and no others, so that the
 * threads that they start get as many CPUs as the harness's would; watched, so that no arm is timed while another's threads
 * still spin. */
#ifndef NB_OWN_THREADS_H
#define NB_OWN_THREADS_H

#include <stdbool.h>
#include <stddef.h>

#include "src/core/registry.h"

/* Calls open(n_threads) of the kernels, each function once, before the caller pins itself; entries may repeat. cpus: n_threads of
 * them, or null. Threads that come up meanwhile are pinned to cpus[1..n_threads), one each; to all of cpus when there are more
 * of them. The floating-point state is kept. -1 with the reason written. */
int nb_kernels_open(const struct nb_entry *const *entries, size_t n, int n_threads, const int *cpus, char *reason,
                    size_t size);
/* Their close(). */
void nb_kernels_close(const struct nb_entry *const *entries, size_t n);

/* How many threads this process has but the caller. */
size_t nb_threads_others(void);
/* Waits until every thread of this process but the caller sleeps, for at most limit_s. False: one still runs. */
bool nb_threads_wait_asleep(double limit_s);

/* CPU time that the threads of this process but the caller have used until now, in seconds; of those that live. */
double nb_threads_cpu_s(void);

#endif
