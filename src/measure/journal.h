// SPDX-License-Identifier: Apache-2.0
/* DIR/journal.jsonl: what a run has done so far, one JSON object a line, each line whole and on the disk before the
 * next is measured. Each ends with ,"sum":"0123456789abcdef"}, FNV-1a (64 bits) of the bytes before it. A line that is
 * torn or whose sum is wrong is as if it had not been written: readers leave it out and name it, `--resume` overwrites it with blanks and
 * measures again what is missing.
 *
 * Lines are of the types run (the first, and the second, since nothing can be read without it), check, launch, stop, counters, failure (the
 * first of a case decides its record), resume, answer (of PyTorch, src/models/study.h) and end: reports/schema/journal.schema.json. */
#pragma once

#include <cjson/cJSON.h>

#include "src/measure/core_state.h"
#include "src/plan/plan.h"

#define NB_SCHEMA_VERSION "3.0" /* of journals, results and judgements of stress, the one that is read */
#define NB_JOURNAL_FILE "journal.jsonl"

struct nb_journal {
    int fd;
    char *path; /* null: closed */
};
/* A new journal in dir (made when missing). A journal or a results.json that is there already is an error. */
int nb_journal_create(struct nb_journal *j, const char *dir);
/* --resume: continues the journal of dir, whose damaged lines are taken out. A journal that another process is writing is
 * an error. */
int nb_journal_append_to(struct nb_journal *j, const char *dir);
/* One line, the "run" line twice, written whole and flushed to the disk (fdatasync); after a failed write (disk full) nothing of it
 * stays. */
int nb_journal_write(struct nb_journal *j, const cJSON *line);
/* {"type":"answer","answer":..}: of a job that is no launch of a run. */
int nb_journal_write_answer(struct nb_journal *j, const cJSON *answer);
void nb_journal_close(struct nb_journal *j);
/* Calls visit for every whole line, in order, for the "run" line once; damaged ones are left out with a warning that names them. visit
 * returns 0 to go on, 1 to stop early, -1 after nb_error. */
int nb_journal_read(const char *dir, int (*visit)(const cJSON *line, void *arg), void *arg);
/* The floors of the run's CPUs: from its "run" line and all of its launches. -1 after nb_error. */
int nb_journal_floors(const char *dir, struct nb_floors *f);

/* The members of a "run" line that follow from the plan: plan, shard, kernels, groups, skips. shard counts from 1, 0:
 * all. The registry must hold the kernels of the plan. */
void nb_journal_add_plan(cJSON *run, const struct nb_plan *plan, int shard, int n_shards);

/* What a case has from its kernel: variant, op, pass, dtype, width, style, stats, stats_dtype, variance; of a copy also
 * copy_loads and copy_stores. Reading normalizes the case. */
void nb_kernel_fields_to_json(cJSON *object, const struct nb_case *c);
int nb_kernel_fields_from_json(struct nb_case *c, const cJSON *object);
