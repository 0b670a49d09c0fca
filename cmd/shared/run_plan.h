// SPDX-License-Identifier: Apache-2.0
/* From the command line of `run` to a plan: config, options, kernels; how a plan is shown, and how it is measured into a folder. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "cmd/shared/options.h"
#include "src/measure/journal.h"
#include "src/plan/plan.h"

struct nb_plan_request {
    const char *config;   /* null: the first of the usual ones */
    const char *usual[2]; /* configs that are taken together when none is named; null: quick, and none */
    struct nb_strings axes, filters, plugins;
    const char *kernels, *widths; /* short for --axis kernel=.. and width=.., or null */
    const char *
        dtypes; /* of those that the config names only these, or null; not --axis dtype=: inputs made for a dtype stay with it */
    bool untimed;       /* checks alone, whatever the config says */
    bool plugins_alone; /* with a plugin its kernels alone, unless kernels are named */
    bool plugins_join;  /* each kernel of a plugin is added to a preset, at its own dtype, pass and layout */
    const char *max_width;
    struct nb_plan_options options;
    int launches, blocks;    /* NB_AS_CONFIGURED, or of launches 0: checks alone */
    int most_launches;       /* with launches; 0: as many as these */
    double aim_percent;      /* 0: as configured */
    double kept_for_plugins; /* a share of the budget, where there are plugins: they are checked behind the run */
    bool changed;            /* any option of the plan was given */
};
enum { NB_AS_CONFIGURED = -1 };
#define NB_PLAN_REQUEST_INIT                                                                                           \
    { .launches = NB_AS_CONFIGURED, .blocks = NB_AS_CONFIGURED }

/* Rows of the table of options. */
#define NB_MAX_WIDTH_OPTION(q)                                                                                         \
    { "max-width", .text = &(q)->max_width, .given = &(q)->changed }
#define NB_LAUNCHES_OPTION(q)                                                                                          \
    { "launches", .count = &(q)->launches, .least = 0, .most = 1000, .given = &(q)->changed }
int nb_take_shard(void *plan_options, const char *value); /* I/N */
#define NB_SHARD_OPTION(q)                                                                                             \
    { "shard", .take = nb_take_shard, .to = &(q)->options, .given = &(q)->changed }
int nb_take_launches(void *request, const char *value); /* N, or N:M */
#define NB_CASES_OPTIONS(q)                                                                                            \
    {"axis", .texts = &(q)->axes, .given = &(q)->changed}, {"filter", .texts = &(q)->filters, .given = &(q)->changed}, \
        {"plugin", .texts = &(q)->plugins, .given = &(q)->changed}, NB_LOAD_TIMEOUT_OPTION,                            \
        {"peer", .take = nb_take_peer, .to = &(q)->plugins, .given = &(q)->changed},                                   \
        {"peer-lib", .take = nb_take_peer_library, .to = &(q)->plugins, .given = &(q)->changed},                       \
        {"budget", .number = &(q)->options.budget_s, .least = 1, .most = 1e7, .given = &(q)->changed},                 \
        NB_MAX_WIDTH_OPTION(q)
#define NB_PLAN_OPTIONS(q)                                                                                             \
    NB_CASES_OPTIONS(q), {"blocks", .count = &(q)->blocks, .least = 1, .most = 10000, .given = &(q)->changed},         \
        {"aim", .number = &(q)->aim_percent, .least = 0.1, .most = 100, .given = &(q)->changed}, {                     \
        "launches", .take = nb_take_launches, .to = (q), .given = &(q)->changed                                        \
    }

/* A block of a config for one kernel of a plugin, of its own pass, dtype and layouts, with a formula that it implements: on real rows, or
 * cold on rows that lie in memory. kernels: it, and those to be measured beside it. */
cJSON *nb_plugin_block(const struct nb_entry *e, const char *const *kernels, size_t n, bool cold);
/* The config as the options change it, without a kernel. -1 after nb_error. */
int nb_plan_request_config(const struct nb_plan_request *q, struct nb_config *config);
/* Loads kernels, reads the config, makes the plan. -1 after nb_error. */
int nb_plan_request_make(struct nb_plan_request *q, struct nb_config *config, struct nb_plan *plan);
void nb_plan_request_release(struct nb_plan_request *q);

/* The command line of a run that --resume goes on with, as its journal in dir holds it: of this command, and with no option that would
 * change the plan beside --resume, on a CPU of the same kind. False after nb_error, with the code that the command ends with in *exit_code. */
bool nb_journaled_argv_read(struct nb_strings *saved, const char *dir, const char *command,
                            const struct nb_output_options *o, const struct nb_plan_request *q, int *exit_code);
/* Says by which signal the command was ended, and how to go on: with the run in dir, or (null) by starting anew. Returns the exit code. */
int nb_ended_by(int signal, const char *command, const char *dir);
/* Opens the journal of a run in dir. A new one begins with the members of `plan` (taken over) beside the moment, the command line and the
 * fingerprint. One that is resumed must have begun with the same plan, on the same CPU, with the same program, files of kernels and tuning:
 * -1 after nb_error names what differs. */
int nb_run_begin(struct nb_journal *journal, const char *dir, bool resume, cJSON *plan, int argc, char **argv);

/* ---- a plan measured into a folder with a journal ------------------------------------------------------------------- */

struct nb_measuring {
    const struct nb_plan_request *request;
    const struct nb_plan *plan;
    const char *config;       /* its name */
    const char *out, *resume; /* folder to make, or to go on with; both null: a new one below results/ */
    bool no_counters;
    bool confirms;                         /* what looks behind will be measured again after it */
    const char *whole;                     /* of a part: the folder that --resume takes; null: the run's own */
    bool silent;                           /* no note says how much there is to do */
    double case_timeout_s, late_timeout_s; /* as struct nb_run_options */
    int argc;                              /* what the journal keeps, so that --resume can make the plan again */
    char **argv;
};

/* What all runs of a command have in common, of its options. */
struct nb_measuring nb_measuring_of(const struct nb_plan_request *q, const struct nb_output_options *o, int argc,
                                    char **argv);
/* The folder, of which a default one is made; owned, null after nb_error. */
char *nb_measuring_folder(const struct nb_measuring *m);
/* Where nothing is known of this CPU and the plan times calls of the size at which it matters: measures where stores past the
 * caches begin, and keeps it as `normbench tune` does; not with kernels of fewer widths than the CPU has (max_width, null:
 * all). 0, or the number of the signal that ended it. */
int nb_first_use(const struct nb_plan *plan, const char *max_width);
/* Opens the journal in dir and runs the plan; one that is resumed must be what it was, with the same builds on the same CPU. Returns 0, -1
 * after nb_error, or the number of the signal that ended it. began: there is a journal to be read. */
int nb_measuring_run(const struct nb_measuring *m, const char *dir, bool *began);
/* Another plan of the run in dir, without counters, in DIR/BELOW, where a run that is resumed goes on with what is there. The same, -1 also
 * where it did not begin; began may be null. */
int nb_measuring_beside(const struct nb_measuring *first, const struct nb_plan *plan, const char *config,
                        const char *dir, const char *below, bool *began);
/* The journal of what else is measured for the run in dir, in DIR/BELOW, likewise. -1 after nb_error. */
int nb_measuring_begin(const struct nb_measuring *m, const char *dir, const char *below, struct nb_journal *journal);

/* Of a run that has ended in dir: the kernels of its plugins that were right there are checked on the rows of `stress` too, in DIR/checks,
 * whose failures nb_results_fold() adds to the run's. budget_s: drops cases until the estimate fits; 0: none. holds: it also leaves out what
 * there is no time for in fact; else all is checked that was planned, so that what is found does not depend on how busy the machine is. As
 * nb_run_plan(): 0, -1 after nb_error, or the signal that ended it. */
int nb_measuring_check_plugins(const struct nb_measuring *m, double budget_s, bool holds, const char *dir);

/* What nb_probe_kernel() says of each case, in workers that may be silent for so long; null where one was not asked. As nb_run_plan(). */
int nb_probe_cases(const struct nb_case *cases, int n, const struct nb_strings *plugins, double silence_s,
                   cJSON **answers);

/* `normbench claims --model`: what would RMSNorm save in a step of a reader's own model, here? model: a preset or a file; tokens 0: its own; format:
 * table (null too), markdown, json; m: without a plan, its kernels are loaded. Returns the exit code. */
int nb_model_question_run(const struct nb_measuring *m, const char *model, int tokens, const char *format);

/* --list, or a plan without cases, which is shown with its reasons: true, with the exit code. An empty selection is a mistake, unless
 * it is this machine alone that refuses. */
bool nb_plan_only_shown(const struct nb_plan *plan, const struct nb_config *config, bool list, const char *format,
                        int *exit_code);
