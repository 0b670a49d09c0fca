// SPDX-License-Identifier: Apache-2.0
/* A group's stay in one worker process after another: which of its cases go in, what comes back, who is to blame when a worker
 * dies. */
#ifndef NB_SESSION_H
#define NB_SESSION_H

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/core/case.h"
#include "src/measure/job.h"
#include "src/measure/journal.h"
#include "src/measure/process.h"
#include "src/measure/status.h"
#include "src/plan/plan.h"

/* ---- what the run knows ------------------------------------------------------------------------------------------ */

/* How far a run has come: by group, which cases are checked, which launches and counters are in the journal. */
struct nb_case_state {
    bool checked;
    enum nb_status status;
};

struct nb_group_state {
    struct nb_case_state *cases; /* as the plan's group has them */
    bool checked;                /* its check is in the journal */
    bool *launched;              /* by launch */
    bool counted;
    cJSON *copies;      /* candidates with their times, as in the check line */
    int64_t digests_at; /* where its row digests begin in the run's; -1: not checked in this process */
};

struct nb_run_state {
    const struct nb_plan *plan;
    struct nb_group_state *groups;
};

void nb_run_state_init(struct nb_run_state *s, const struct nb_plan *plan);
/* Takes over what DIR's journal holds. A journal of another plan is an error. */
int nb_run_state_read(struct nb_run_state *s, const char *dir);
void nb_run_state_release(struct nb_run_state *s);

/* The index of a key in a group, or -1. */
int nb_group_find(const struct nb_plan *plan, int group, const char *key);
const char *nb_group_key(const struct nb_plan *plan, int group, int index);
const struct nb_case *nb_group_case(const struct nb_plan *plan, int group, int index);
/* The fastest candidate with a pattern of loads and stores: its variant, or null. */
const char *nb_group_copy(const struct nb_group_state *g, int n_loads, int n_stores);

/* ---- instructions counted once ----------------------------------------------------------------------------------- */

/* Exact instruction counts are taken once for each variant, formula and row length; cases that differ only in rows, data or
 * threads share them (of kernels with threads of their own not in threads). */
struct nb_step_memory {
    struct nb_step {
        char *what;
        cJSON *counter;
    } * steps;
    size_t n;
};
/* The counter known for such a case, or null. */
const cJSON *nb_step_memory_find(const struct nb_step_memory *m, const struct nb_case *c);
/* Keeps the exact count among answer's counters, or adds the known one to them. */
void nb_step_memory_exchange(struct nb_step_memory *m, const struct nb_case *c, cJSON *answer);
void nb_step_memory_release(struct nb_step_memory *m);

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

struct nb_run_options {
    const char **plugins; /* files */
    int n_plugins;
    const char *max_width; /* text, or null */
    bool no_counters;
    double
        case_timeout_s; /* a worker without a step forward for longer (and a time that grows with the shape) is ended */
};

/* A run under way. */
struct nb_run {
    const struct nb_plan *plan;
    struct nb_journal *journal;
    const struct nb_run_options *options;
    struct nb_run_state state;
    struct nb_step_memory steps;
    struct nb_fork_server *fork_server; /* of whoever works alone; null: every worker is executed */
    pthread_mutex_t writing;            /* to the journal: checks run side by side */
    int digests_fd;                     /* one memory file for all groups: a descriptor each would be too many */
    int64_t digests_end;
    int cpus[NB_MAX_CPUS], n_cpus;
    double started_s;
    double done_s, total_s; /* as estimated: what a step weighs in the progress */
    bool failed;            /* the journal cannot be written */
};
void nb_run_write(struct nb_run *run, const cJSON *line);

struct nb_session {
    struct nb_run *run;
    struct nb_fork_server *fork_server; /* where its workers come from; null: they are executed */
    int group, launch;                  /* launch: -1 in checks and counter passes */
    int *members;                       /* indices of the group's cases that go in; owned */
    int n;
    int cpu;        /* how far its CPUs are behind the launch's, where several workers run at once */
    cJSON *answers; /* "case" lines, by arrival; owned */
    bool whole;     /* the journal line of a launch came */
};
void nb_session_init(struct nb_session *v, struct nb_run *run, int group, int launch);
void nb_session_release(struct nb_session *v);

/* The group's cases that may be timed. */
void nb_session_timed_members(struct nb_session *v);
/* Sends the members to a worker and takes its answers: cases into v->answers, failures and launches into the journal. */
void nb_session_worker(struct nb_session *v, const char *kind, struct nb_outcome *o);
/* Of a group's row digests. */
int64_t nb_session_digest_bytes(const struct nb_plan *plan, int group);
/* A failure line, and the case's status from now on. */
void nb_session_failure(struct nb_session *v, int member, enum nb_status status, const char *reason);
/* Drops the answered cases from the members; with take_status their statuses are the run's from now on. */
void nb_session_settle(struct nb_session *v, bool take_status);
void nb_session_leave_out(struct nb_session *v, int position);
/* All that is left fails: workers die without saying of which case. */
void nb_session_give_up(struct nb_session *v, enum nb_status status, const char *why);

#endif
