// SPDX-License-Identifier: Apache-2.0
/* One worker process from outside: start, read its lines, end it when it is silent for too long or the user says so. */
#ifndef NB_PROCESS_H
#define NB_PROCESS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/measure/job.h"
#include "src/measure/spawn.h"
#include "src/measure/status.h"

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
    int current;                              /* the case it was at, or -1 */
    char fault_status[32], fault_reason[128]; /* its last words, "" without */
};

/* Runs `job` in a fresh process of this program; take() receives (and owns) every line but faults. Returns once it has ended, and
 * with it all that its kernels started. */
void nb_process_run(const struct nb_job *job, int digests_fd, double silence_s, uint64_t seed,
                    void (*take)(cJSON *line, void *arg), void *arg, struct nb_outcome *outcome);

/* The same in a process that the fork server brings forth; null, or one that cannot: as above. */
void nb_process_run_from(struct nb_fork_server *fork_server, const struct nb_job *job, int digests_fd, double silence_s,
                         uint64_t seed, void (*take)(cJSON *line, void *arg), void *arg, struct nb_outcome *outcome);

/* What the end of a worker says of the case it was at. */
enum nb_status nb_outcome_blame(const struct nb_outcome *o, char *reason, size_t n);

/* Ctrl-C, SIGTERM and SIGHUP (unless ignored, as under nohup) from now on end the run in order, the second of its kind at once.
 * nb_interrupted: the signal's number once one came, else 0. */
void nb_watch_interrupts(void);
int nb_interrupted(void);

#endif
