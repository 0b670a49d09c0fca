// SPDX-License-Identifier: Apache-2.0
/* What one case left behind. A figure that was not measured is NaN here and null in JSON, with the reason beside it. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/accuracy/accuracy.h"
#include "src/accuracy/evidence.h"
#include "src/core/case.h"
#include "src/core/json.h"
#include "src/measure/counters.h"
#include "src/measure/journal.h"
#include "src/measure/lines.h"
#include "src/measure/metamorphic.h"
#include "src/measure/status.h"
#include "src/measure/timing.h"
#include "src/plan/cells.h"

/* The reason of a case that the budget left out while the run went on, of its status or, where it had been checked, of its timing. */
#define NB_OVER_BUDGET "over the budget, by what the cases before it took"

struct nb_record {
    char *key;
    struct nb_case c; /* from the key; the kernel's fields from the record itself */
    enum nb_status status;
    char *reason; /* what exactly, or null */
    bool has_accuracy, has_evidence, has_timing;
    struct nb_accuracy accuracy;
    struct nb_evidence evidence; /* what grades rest on */
    struct nb_timing timing;
    /* Owned, since most records have neither: null but of checks after which nothing is timed; n_counters of them, or null. */
    struct nb_metamorphic *metamorphic;
    struct nb_counter *counters;
    int n_counters;
    struct nb_strings labels; /* names that blocks of the config gave it */
    char *timing_reason;      /* why has_timing is false although nothing failed, or null */
    int group;                /* in the whole plan; cases of one group were interleaved */
    int machine;              /* index into the results' machines; 0 unless shards of several machines were merged */
    struct nb_facts facts;    /* its texts are owned */
    char *replay;             /* the command line that runs this case alone */
    double bytes;             /* compulsory */
};

/* Would it have been timed, or timed more often, with more time? */
bool nb_record_is_over_budget(const struct nb_record *r);
/* JSON both ways, with its sum, which is not checked; every key is described in reports/schema/results.schema.json. -1 after nb_error. */
cJSON *nb_record_to_json(const struct nb_record *r);
int nb_record_from_json(struct nb_record *r, const cJSON *json);
/* Once each: the figures of a check, as results and the journal's line of it have them; the counters, likewise: -1 after nb_error. */
void nb_record_take_check(struct nb_record *r, const struct nb_check_line *line);
int nb_record_take_counters(struct nb_record *r, const cJSON *json);
bool nb_record_has_label(const struct nb_record *r, const char *label);
void nb_record_release(struct nb_record *r);

/* normbench replay 'KEY' [OPTIONS] [--plugin 'FILE'] [--tuning 'TEXT'], quoted for a POSIX shell, to be run in any folder; owned. All but the
 * key may be null. */
struct nb_replay {
    const char *key, *options, *file, *tuning;
};
char *nb_replay_command(const struct nb_replay *q);

/* ---- a run's results: folded from the journal, kept in DIR/results.json, merged from the shards of one plan ---- */

#define NB_RESULTS_FILE "results.json"
#define NB_CHECKS_FOLDER "checks" /* of a run's folder: what else its plugins' kernels were checked on */

struct nb_results {
    /* Everything but the records, as reports/schema/results.schema.json has it. */
    cJSON *meta;
    struct nb_record *records; /* by group, then as planned; skipped cases last, by key */
    size_t n;
    char *dir;
};
/* results.json; folds the journal when results.json is missing or older. */
int nb_results_read(struct nb_results *r, const char *dir);
bool nb_results_outdated(const char *dir); /* the journal is newer than results.json, or alone */
/* Folds a journal: medians over launches, paired ratios, statuses. Every planned case has a record: one without a line
 * of its own is "not_run". The first failures of each kernel in DIR/checks are added, as groups of their own. */
int nb_results_fold(struct nb_results *r, const char *dir);
/* The folders of the shards of one plan, each once, to the results of one run. A shard that is missing is an error that
 * names it; with partial it is a warning, and kept in meta "missing_shards". */
int nb_results_merge(struct nb_results *r, const char *const *dirs, size_t n, bool partial);
/* The text of results.json. */
void nb_results_print(const struct nb_results *r, struct nb_strbuf *out);
int nb_results_write(const struct nb_results *r, const char *dir); /* temporary name, then rename */
size_t nb_results_failed(const struct nb_results *r);
void nb_results_count(struct nb_results *r); /* meta "counts" from the records */
void nb_results_release(struct nb_results *r);

/* Two runs side by side. A report, and no gate: they were not measured at the same time, and on a shared machine times of minutes
 * apart differ by tens of percent with nothing changed.
 *
 * What may be ranked are ratios that were measured in pairs inside each run: the time over that of the copy, and over that
 * of the group's reference case. Their quotient between the runs has an interval from both runs' intervals, which are independent
 * (recovery of variances on the logarithms: Zou & Donner 2008), at 95 % for each case alone. */

enum { NB_BEFORE, NB_AFTER, NB_N_SIDES };

struct nb_difference {
    char *path, *values[NB_N_SIDES]; /* "cpu.model"; "-" where a side does not say; owned */
    bool forbids_times;              /* times of these machines say nothing about the kernels */
};

enum nb_change {
    NB_CHANGE_REFUSED, /* not ranked; refused says why */
    NB_CHANGE_NOT_SHOWN,
    NB_CHANGE_SLOWER,
    NB_CHANGE_FASTER,
    NB_CHANGE_MIXED, /* slower by the copy and faster by the reference, or the other way round */
    NB_N_CHANGES
};
const char *nb_change_name(enum nb_change c);

struct nb_compared {
    const struct nb_record *sides[NB_N_SIDES]; /* borrowed; null: only the other run has it */
    /* After / before: above 1 is slower, NaN where the reason says why. */
    struct nb_interval time, to_copy, to_reference;
    char time_reason[80], copy_reason[80], reference_reason[80], refused[200];
    enum nb_change change;
    bool status_differs, accuracy_differs;
};

struct nb_run_noise { /* what is known of the load */
    size_t n_timed, n_noisy;
    double preempted;    /* share of the samples that saw a switch or a migration; NaN: no samples */
    double wall_per_cpu; /* median over cases */
    double steal_ms;     /* of the case with the most */
};
struct nb_run_noise nb_run_noise_of(const struct nb_results *r);

struct nb_comparison {
    const struct nb_results *runs[NB_N_SIDES]; /* borrowed */
    struct nb_difference *differences;         /* CPU, system, build, kernels, libraries, plan */
    size_t n_differences;
    struct nb_run_noise noise[NB_N_SIDES];
    bool same_cpu, same_plan;  /* same_plan: measured in the same way; the cases may differ */
    struct nb_compared *cases; /* of both runs, then of the first alone, then of the second alone */
    size_t n, n_common, n_only[NB_N_SIDES], n_changes[NB_N_CHANGES], n_inaccurate;
    size_t *order; /* indices of the common cases: ranked ones, slowed most first, then the others */
};

/* -1 after nb_error: no case is left of either run. */
int nb_comparison_make(struct nb_comparison *c, const struct nb_results *before, const struct nb_results *after,
                       const struct nb_filters *filters);
void nb_comparison_release(struct nb_comparison *c);
/* The ratio that ranks the case: to the copy, else to the reference; its value is NaN where neither is known. */
const struct nb_interval *nb_compared_rank(const struct nb_compared *c);
/* Was everything in both runs, on one kind of CPU, by one plan, and ranked? */
bool nb_comparison_is_whole(const struct nb_comparison *c);
