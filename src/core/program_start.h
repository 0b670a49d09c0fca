// SPDX-License-Identifier: Apache-2.0
/* A program with kernels, as a process: which files are one, and how it is started. */
#ifndef NB_PROGRAM_START_H
#define NB_PROGRAM_START_H

#include <stdbool.h>
#include <sys/types.h>

/* Is the file to be started, and not loaded? Python sources, and executable files that are no shared objects. */
bool nb_kernel_program_is(const char *file);
/* Starts it with its end of a socket, and this file in memory, as the protocol says (cmd/guide/protocol.md); it is killed when this process
 * ends. *socket: our end. -1 with errno: it cannot be started; one that cannot be executed says so itself, and ends. */
pid_t nb_program_start(const char *file, int memory, int *socket);

#endif
