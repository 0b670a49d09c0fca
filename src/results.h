// SPDX-License-Identifier: Apache-2.0
/* A run's folder: journal.jsonl (appended while it runs, survives SIGKILL) and results.json (folded from the journal). */
#ifndef NB_RESULTS_H
#define NB_RESULTS_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdio.h>

#include "src/plan.h"
#include "src/record.h"

#define NB_SCHEMA_VERSION "1.0"

/* Lines of the journal, each one JSON object with a "type":
 *   run       schema, started, config, options, plan hash, launches, fingerprint, planned keys by group, skips
 *   check     group; cases: key, status, reason, accuracy, chain, row_local, twin
 *   launch    group, launch, cpu, noise; cases: key, status, calls, slots_ns (time of a call, by block), contaminated; twin's too
 *   counters  group; cases: key, counters
 *   failure   group, key, status, reason (a worker that died)
 *   end       elapsed, peak memory, interrupted or not */
struct nb_journal {
    FILE *file;
    char *path;
};
int nb_journal_create(struct nb_journal *j, const char *dir);
int nb_journal_append_to(struct nb_journal *j, const char *dir); /* --resume; a torn last line is cut off */
/* One line, written whole and flushed to the disk (fdatasync). */
int nb_journal_write(struct nb_journal *j, const cJSON *line);
void nb_journal_close(struct nb_journal *j);
/* Calls visit for every whole line; a torn last line is skipped with a note, anything else wrong is an error with its line. */
int nb_journal_read(const char *dir, int (*visit)(const cJSON *line, void *arg), void *arg);

struct nb_results {
    cJSON *meta;  /* everything but the records: schema, config, plan, fingerprint, skips, elapsed ... */
    struct nb_record *records;
    size_t n;
    char *dir;
};
/* Folds a journal: medians over launches, paired ratios, statuses; with nothing missing the plan's every key has a record. */
int nb_results_fold(struct nb_results *r, const char *dir);
int nb_results_write(const struct nb_results *r, const char *dir); /* temporary name, then rename */
int nb_results_read(struct nb_results *r, const char *dir);        /* results.json; folds the journal when it is missing */
int nb_results_merge(struct nb_results *r, const char *const *dirs, size_t n);
size_t nb_results_failed(const struct nb_results *r);
void nb_results_release(struct nb_results *r);

#endif
