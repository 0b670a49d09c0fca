// SPDX-License-Identifier: Apache-2.0
/* The inside of a worker process: reads a job from a file descriptor, answers in JSON lines on another. */
#ifndef NB_WORKER_H
#define NB_WORKER_H

/* The hidden subcommand. Returns the process's exit code. */
int nb_worker_main(int argc, char **argv);

#endif
