// SPDX-License-Identifier: Apache-2.0
/* The start of a process for a worker, and the memory files that it is handed. */
#ifndef NB_SPAWN_H
#define NB_SPAWN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/measure/job.h"

/* A file in memory with these bytes; contents null: zeros. -1: none to be had. */
int nb_memory_file(const char *name, const void *contents, size_t bytes);
/* Executes this program as a worker that finds fds[i] at NB_FD_JOB + i (negative: none). seed: how far its stack is moved. 0, or an
 * error number. */
int nb_spawn_worker(pid_t *pid, const int fds[NB_N_WORKER_FDS], uint64_t seed);

#endif
