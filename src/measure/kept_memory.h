// SPDX-License-Identifier: Apache-2.0
/* Memory in huge pages that outlives a worker. Got anew, the half GiB of a cold case takes 0.2 s, and up to 1.5 s where a host takes back what its
 * guest has freed; and where its small pages lie makes times differ from launch to launch. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define NB_HUGE_PAGE ((size_t)2 << 20)

/* The parent's: a descriptor for one worker at a time, until it is returned; -1: there is none, or another has it. */
int nb_kept_memory_lend(void);
void nb_kept_memory_return(int fd);
/* The worker's. fd may be anything else, and is left open. */
void nb_kept_memory_take(int fd);
/* Puts it in place of the mapping at [start, start + bytes), both multiples of NB_HUGE_PAGE; it holds what the worker before left. Once.
 * false: there is none, and the mapping is as it was. */
bool nb_kept_memory_map(void *start, size_t bytes);
