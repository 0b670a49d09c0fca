// SPDX-License-Identifier: Apache-2.0
/* A fork server: a process that has loaded all kernels and plugins and brings forth workers by fork(), so that a library which takes half a
 * second to load (PyTorch's registers some thousand operators) does so once, not in each of some hundred workers. A worker of it has
 * threads, buffers and stack of its own as any other; what workers of one fork server have in common is where libraries lie in memory. So
 * the launches of a group never share one: a fork server lasts for one round over the groups.
 *
 * Over a socket (SOCK_SEQPACKET): the fork server sends a byte once it is ready; it gets a byte with a worker's descriptors, sends its pid_t and, when
 * it has ended, its int wait status; the worker stays a zombie until the byte that asks for the next. */
#ifndef NB_SPAWN_H
#define NB_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/measure/job.h"

/* A file in memory with these bytes; contents null: zeros. -1: none to be had. */
int nb_memory_file(const char *name, const void *contents, size_t bytes);
/* Executes this program as a worker that finds fds[i] at NB_FD_JOB + i (negative: none). seed: how far its stack is moved. 0, or an
 * error number. */
int nb_spawn_worker(pid_t *pid, const int fds[NB_N_WORKER_FDS], uint64_t seed);

/* ---- fork server ------------------------------------------------------------------------------------------------- */

/* Waits for its end: a wait status. */
struct nb_fork_server {
    const char **plugins; /* borrowed, as the rest of what its job holds */
    int n_plugins;
    const char *max_width;
    uint64_t seed; /* of where its stack begins; another one with each start */
    pid_t pid;     /* 0: none runs */
    int socket;
    bool refused; /* it cannot be had: a library that starts threads when it is loaded, no memory ... */
};

/* Does loading these take so long that it is worth one? */
bool nb_fork_server_pays(const char *const *plugins, int n_plugins);
/* Ends the one that runs; the next birth starts another, at other addresses. */
void nb_fork_server_renew(struct nb_fork_server *n);

/* A worker with these descriptors (as nb_spawn_worker), one at a time. False: not from here. */
bool nb_fork_server_spawn(struct nb_fork_server *n, const int fds[NB_N_WORKER_FDS], pid_t *pid);
bool nb_fork_server_child_ended(const struct nb_fork_server *n);
/* The start of a worker process: this program is executed again, or a fork server forks. */
int nb_fork_server_child_status(struct nb_fork_server *n);

#endif
