// SPDX-License-Identifier: Apache-2.0
/* The state of folding a journal: what the "run" line planned, and what the later lines have left for each case so far. */
#ifndef NB_FOLD_PLAN_H
#define NB_FOLD_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "src/core/text.h"
#include "src/record/results.h"

/* A case within a group. The reference case of a group that was split is an arm of each part, and one record. */
struct nb_fold_arm {
    const char *key; /* of the record, or of the run line */
    size_t record;   /* NB_NOWHERE: another shard reports it */
    bool reported;   /* this arm's figures are the record's */
    bool checked;
    int *seen; /* the launches it took part in */
    int n_seen;
    struct nb_launches launches;
    char copy[NB_VARIANT_MAX];
    bool chunked;
    double per_sample;
};
struct nb_fold_group {
    struct nb_fold_arm *arms;
    size_t n, reference;
    int index; /* in the whole plan */
};
struct nb_fold {
    struct nb_results *results; /* records with identity, status NB_NOT_RUN or NB_SKIPPED */
    cJSON *run;                 /* the first line; null until it came */
    struct nb_fold_group *groups;
    size_t n_groups;
    int launches;            /* planned */
    struct nb_text_map keys; /* -> index of the record */
    cJSON *resumed, *ends;   /* later lines, in order */
};

/* Takes in the "run" line: groups, arms, and a record for every planned or skipped key. -1 after nb_error. */
int nb_fold_plan(struct nb_fold *f, const cJSON *run);
void nb_fold_release(struct nb_fold *f); /* not the results */

/* normbench replay 'KEY' [--plugin 'FILE'] [--tuning 'TEXT'], quoted for a POSIX shell; owned. file and tuning may be null. */
char *nb_replay_command(const char *key, const char *file, const char *tuning);

#endif
