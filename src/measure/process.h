// SPDX-License-Identifier: Apache-2.0
/* One worker process from outside: start, read its lines, end it when it is silent for too long or the user says so. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/measure/answers.h"
#include "src/measure/job.h"
#include "src/measure/status.h"

/* ---- fork server ------------------------------------------------------------------------------------------------- */

/* A fork server: a process that has loaded all kernels and plugins and makes workers by fork(), so that a library which takes half a
 * second to load (PyTorch's registers some thousand operators) does so once, not in each of some hundred workers. A worker of it has
 * threads, buffers and stack of its own as any other; what workers of one fork server have in common is where libraries lie in memory. So
 * the launches of a group never share one: a fork server lasts for one round over the groups.
 *
 * Its answers (src/measure/answers.h) are ints: 0 once it is ready; for each byte with a worker's descriptors that it gets the worker's
 * pid and, when that has ended, its wait status. The worker stays a zombie until the byte that asks for the next. */
struct nb_fork_server {
    const char **plugins; /* borrowed, as the rest of what its job holds */
    int n_plugins;
    uint64_t seed; /* of where its stack begins; another one with each start */
    pid_t pid;     /* 0: none runs */
    int socket;
    struct nb_answers answers;
    int word; /* the last that it said */
    bool has_word;
    bool refused; /* it cannot be had: a library that starts threads when it is loaded, no memory ... */
};

/* Peers take seconds to load; the built-in kernels alone 8 of the 50 ms of a launch. Other plugins may do anything when they are loaded. */
bool nb_fork_server_pays(const char *const *plugins, int n_plugins);
/* Ends the one that runs; the next worker starts another, at other addresses. */
void nb_fork_server_renew(struct nb_fork_server *n);

/* ---- a worker ---------------------------------------------------------------------------------------------------- */

enum nb_ending {
    NB_ENDED_WELL,
    NB_ENDED_BADLY,     /* exit code not 0 */
    NB_ENDED_BY_SIGNAL, /* its own fault */
    NB_ENDED_SILENT,    /* no step forward within the time allowed: ended by us */
    NB_ENDED_BY_USER,   /* nb_interrupted() */
    NB_NOT_STARTED,
};

struct nb_outcome {
    enum nb_ending ending;
    int signal, exit_code;
    double silence_s;                         /* that it was allowed */
    int current;                              /* the case it was at, or -1 */
    bool had_company;                         /* other workers have called kernels of programs that it was lent */
    char fault_status[32], fault_reason[128]; /* its last words, "" without */
};

/* Runs `job` in a process that the fork server makes; null, or one that cannot: this program is executed again. take() receives (and
 * owns) every line but faults, once the worker has ended; one that was killed from outside is run a second time, and the lines of the first
 * are dropped. digests_fd: -1 for none. A worker without a step forward for silence_s is ended. Returns once it has ended,
 * and with it all that its kernels started. */
void nb_process_run(struct nb_fork_server *fork_server, const struct nb_job *job, int digests_fd, double silence_s,
                    void (*take)(cJSON *line, void *arg), void *arg, struct nb_outcome *outcome);

/* What the end of a worker says of the case it was at. */
enum nb_status nb_outcome_blame(const struct nb_outcome *o, char *reason, size_t n);

/* Ctrl-C, SIGTERM and SIGHUP (unless ignored, as under nohup) from now on end the run in order, the second of its kind at once.
 * nb_interrupted: the signal's number once one came, else 0. */
void nb_watch_interrupts(void);
int nb_interrupted(void);
