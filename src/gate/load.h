// SPDX-License-Identifier: Apache-2.0
/* Processes that disturb a measurement on purpose, so that it can be seen what the disturbance does. */
#ifndef NB_LOAD_H
#define NB_LOAD_H

#include <sys/types.h>

#define NB_MAX_HOGS 4

struct nb_hogs {
    pid_t pids[NB_MAX_HOGS];
    int n;
};
/* One that computes without end. */
void nb_hogs_start_cpu(struct nb_hogs *h);
/* Two that stream through memory for 0.05 to 1 s and rest as long, at random. */
void nb_hogs_start_memory(struct nb_hogs *h);
void nb_hogs_stop(struct nb_hogs *h);

#endif
