// SPDX-License-Identifier: Apache-2.0
/* From a job to what its worker answers, for all that start workers: one at a time, side by side where nothing is timed, or a study of
 * kernels. (The groups of a run, whose cases may fail one by one, have sessions: session.h.) */
#pragma once

#include <cjson/cJSON.h>

#include "src/measure/job.h"
#include "src/measure/process.h"

/* Runs the job in a worker process of its own. What it answers ({"type":"answer",..}, less the type), owned; when it died without
 * {"status":"crashed","reason":".."}; null when it was not started, or ended by the user. An answer stands, whatever the kernel did to the
 * process afterwards. */
cJSON *nb_launcher_ask(const struct nb_job *job, double silence_s, struct nb_outcome *o);
/* Whether whoever has launches to make ends with this one: -1 after nb_error (no process can be started), the number of the user's signal,
 * or 0: go on. */
int nb_launcher_ends(const struct nb_outcome *o);
/* The CPUs of a launch, one for each thread: launches alternate between those that this process may use. For one thread then those to which
 * it may move, all beside the same memory. Returns how many were written: n_threads, or at most NB_MOST_MOVES. */
enum { NB_MOST_MOVES = 8 };
int nb_launcher_cpus(int *cpus, int n_threads, int launch);

/* ---- side by side ------------------------------------------------------------------------------------------------ */

enum { NB_MAX_SEATS = 64 };

/* Pieces of work, each done by whichever of several threads is free. */
struct nb_crew {
    int (*next)(void *arg, int seat);             /* the number of a piece; -1: there is none, or no use to go on */
    void (*work)(void *arg, int piece, int seat); /* side by side; next and settle: one at a time */
    void (*settle)(void *arg, int piece, int seat);
    void *arg;
};
/* Seats are numbered from 0, at most NB_MAX_SEATS; the caller has the first. Returns how many there were. */
int nb_crew_run(const struct nb_crew *crew, int n_seats);

/* ---- studies ----------------------------------------------------------------------------------------------------- */

/* A study: questions put to kernels that need many calls and no timing (worst-case searches, probes), each kernel in a worker
 * process of its own, so that one that crashes or hangs costs its own answer and nothing else. */
struct nb_study {
    const char *kind; /* of its jobs: "search", "probe" ... */
    const struct nb_case *cases;
    int n_cases;
    const char **plugins;
    int n_plugins;
    const cJSON *options; /* handed to the worker as it is; may be null */
    double budget_s; /* for all cases: each is given its share of what is left as option "budget_s"; 0: no such thing */
    double silence_s;  /* a worker without a step forward (nb_worker_at) for longer is ended */
    const char *label; /* of the progress line: "searching" */
    bool side_by_side; /* one worker on each CPU: answers come in any order, though never two at a time */
};

/* For each case (in order, unless side_by_side) take(i, answer, arg), which owns the answer: what the worker said
 * ({"type":"answer", ..}); when it died {"status":"crashed","reason":".."}; when the budget was used up before its turn
 * {"status":"not_run","reason":".."}. Returns 0, -1 after nb_error, or the number of the signal that ended it. */
int nb_study_run(const struct nb_study *study, void (*take)(int i, cJSON *answer, void *arg), void *arg);
