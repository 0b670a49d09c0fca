// SPDX-License-Identifier: Apache-2.0
/* From the command line of `run` to a plan: config, options, kernels; how a plan is shown, and how it is measured into a folder. */
#ifndef NB_RUN_PLAN_H
#define NB_RUN_PLAN_H

#include <stdbool.h>
#include <stdio.h>

#include "cmd/shared/options.h"
#include "src/measure/journal.h"
#include "src/plan/plan.h"

/* The options that decide the plan. */
enum nb_request_option {
    NB_REQUEST_AXIS,
    NB_REQUEST_FILTER,
    NB_REQUEST_THREADS,
    NB_REQUEST_MAX_WIDTH,
    NB_REQUEST_PLUGIN,
    NB_REQUEST_PEER,
    NB_REQUEST_PEER_LIB,
    NB_REQUEST_BUDGET,
    NB_REQUEST_SHARD,
    NB_REQUEST_LAUNCHES,
    NB_REQUEST_BLOCKS,
    NB_REQUEST_KERNEL,
    NB_REQUEST_WIDTH,
    NB_REQUEST_DTYPE, /* not --axis dtype=: inputs made for a dtype stay with it */
};

struct nb_plan_request {
    const char *config;   /* null: the first of the usual ones */
    const char *usual[2]; /* configs that are taken together when none is named; null: quick, and none */
    struct nb_texts axes, filters, plugins;
    struct nb_texts short_forms; /* "threads=1,2": what --threads, --kernel and --width stand for; items owned */
    const char *dtypes;          /* of those that the config names only these; or null */
    bool untimed;                /* checks alone, whatever the config says */
    bool plugins_alone;          /* with a plugin its kernels alone, unless kernels are named */
    const char *max_width;
    struct nb_plan_options options;
    int launches, blocks; /* 0: as the config says */
    bool check_only;      /* --launches 0 */
    bool touched;         /* any of the above was given */
};

int nb_plan_request_set(struct nb_plan_request *q, int option, const char *value);
/* The config as the options change it, without a kernel. -1 after nb_error. */
int nb_plan_request_config(const struct nb_plan_request *q, struct nb_config *config);
/* Loads kernels, reads the config, makes the plan. -1 after nb_error. */
int nb_plan_request_make(struct nb_plan_request *q, struct nb_config *config, struct nb_plan *plan);
void nb_plan_request_release(struct nb_plan_request *q);
/* The first line that a run, or a resumed one, writes into its journal. */
struct nb_first_line {
    const struct nb_plan *plan;
    const char *config; /* its name */
    const struct nb_plan_request *request;
    int argc;
    char **argv;
    bool resumed;
};
int nb_journal_begin(struct nb_journal *journal, const struct nb_first_line *first);
/* strftime() of now, UTC. */
void nb_utc_now(const char *format, char *out, size_t n);

/* The command line that a journal holds. */
struct nb_journaled_argv {
    int argc;
    char **argv;
};
int nb_journaled_argv_read(struct nb_journaled_argv *saved, const char *dir);
void nb_journaled_argv_release(struct nb_journaled_argv *saved);

/* ---- a plan measured into a folder with a journal ------------------------------------------------------------------- */

struct nb_measuring {
    const struct nb_plan_request *request;
    const struct nb_plan *plan;
    const char *config;       /* its name */
    const char *out, *resume; /* folder to make, or to go on with; both null: a new one below results/ */
    bool no_counters;
    bool confirms; /* what looks behind will be measured again after it */
    double case_timeout_s;
    int argc; /* what the journal keeps, so that --resume can make the plan again */
    char **argv;
};

/* The folder; owned. */
char *nb_measuring_folder(const struct nb_measuring *m);
/* Opens the journal in dir and runs the plan. Returns 0, -1 after nb_error, or the number of the signal that ended it. began: there is
 * a journal to be read. */
int nb_measuring_run(const struct nb_measuring *m, const char *dir, bool *began);

/* --list, or a plan without cases, which is shown with its reasons: true, with the exit code. An empty selection is a mistake, unless
 * it is this machine alone that refuses. */
bool nb_plan_only_shown(const struct nb_plan *plan, const struct nb_config *config, bool list, const char *format,
                        int *exit_code);

#endif
