// SPDX-License-Identifier: Apache-2.0
/* A group's session: one worker process after another, in each of its stages. Which of the group's cases go in, what comes back, and who is
 * to blame when something goes wrong: where cases share a process, none is blamed for it; each is tried in a process of its own, and called
 * what it is there. What the sessions of a run share, and what its journal says of them, is struct nb_run. */
#pragma once

#include <pthread.h>

#include "src/core/cpu.h"
#include "src/core/text.h"
#include "src/measure/counters.h"
#include "src/measure/journal.h"
#include "src/measure/launcher.h"
#include "src/measure/schedule.h"
#include "src/measure/status.h"
#include "src/plan/plan.h"

struct nb_run_options {
    const char **plugins; /* files */
    int n_plugins;
    bool no_counters;
    /* A worker without a step forward for longer (and a time that grows with the shape) is ended. */
    double case_timeout_s;
    double late_timeout_s; /* no longer than this behind the end of the budget; 0: as before it */
};

struct nb_case_state {
    bool checked, journaled; /* it has a status; which is in the journal */
    enum nb_status status;
};

struct nb_group_state {
    struct nb_case_state *cases; /* as the plan's group has them */
    bool *launched;              /* by launch and case */
    bool apart; /* its cases fail together, though each is right alone: never two in one process again */
    bool stop_written;
    cJSON *copies;      /* candidates with their times, as in the check line: geometric means over the trials */
    int copy_trials;    /* that these are of; NB_COPY_TRIALS: no more to come */
    double copies_s;    /* that the trials took */
    int64_t digests_at; /* where its row digests begin in the run's; -1: not checked in this process */
};

struct nb_run {
    const struct nb_plan *plan;
    struct nb_journal *journal;
    const struct nb_run_options *options;
    struct nb_group_state *groups;
    struct nb_known_counts known_counts;
    bool *calls_many;                   /* of the plan's cases: the smallest of its kernel, which is called on and on */
    struct nb_fork_server *fork_server; /* of whoever works alone; null: every worker is executed */
    pthread_mutex_t shared;             /* journal and digests: checks run side by side */
    int digests_fd;                     /* one memory file for all groups: a descriptor each would be too many */
    int64_t digests_end;
    int n_cpus;
    double started_s;
    double silent_s;               /* for which kernels that hung were waited for */
    struct nb_strings hung;        /* their variants */
    double used_s;                 /* by what the journal held already, of all stages */
    int n_rounds, n_rounds_served; /* of launches; those in which there was one */
    struct nb_schedule schedule;
    bool failed; /* the journal cannot be written */
};

/* The state of every group, as DIR's journal leaves it. Of *run plan, journal, options and digests_fd (-1) are set. -1 after nb_error;
 * released in either case. */
int nb_run_init(struct nb_run *run, const char *dir);
void nb_run_release(struct nb_run *run);
/* How many checks are under way at once: at least one. */
int nb_checks_at_once(const struct nb_plan *plan, int n_cpus);
/* Is something of the group to come that the journal does not hold yet? */
bool nb_run_is_due(const struct nb_run *run, int group);
/* A line of the journal; takes it over. */
void nb_run_write(struct nb_run *run, cJSON *line);

/* The stages of a group. Each returns 0, or -1 after nb_error: then no worker can be started. */

/* Checks all its cases; 1: but for those that the end of the budget kept from beginning. cpu: how far its CPUs are
 * behind a launch's, since checks run side by side; each has a fork server of its own, or none. One whose check is
 * in the journal already is checked for its digests alone. */
int nb_session_check(struct nb_run *run, int group, int cpu, struct nb_fork_server *fork_server);
/* The next trial of the copies from which its own are chosen, if they are not known yet, with nothing else running. After NB_COPY_TRIALS of
 * them the fastest for each pattern of loads and stores is known. */
int nb_session_copies(struct nb_run *run, int group);
int nb_session_launch(struct nb_run *run, int group, int launch);
/* Its pass of counters; why_not: there is none, for this reason. */
int nb_session_count(struct nb_run *run, int group, const char *why_not);

/* ---- a whole run (launch.c): first every group is checked, one on each CPU at a time; what is timed comes after that, one process at a time:
 * the copies, then launches in rounds over the groups (schedule.h), so that a group's launches are spread over the run, then the counters ---- */

/* Seconds that it will take on this machine with so many launches of each group. */
double nb_run_estimate_s(const struct nb_plan *plan, int launches, bool no_counters);
/* What DIR's journal already holds is not run again. Returns 0, -1 after nb_error, or the number of the signal that ended it;
 * in each case the journal has its end line. */
int nb_run_plan(const struct nb_plan *plan, struct nb_journal *journal, const char *dir,
                const struct nb_run_options *options);
