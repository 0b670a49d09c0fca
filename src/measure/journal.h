// SPDX-License-Identifier: Apache-2.0
/* DIR/journal.jsonl: what a run has done so far, one JSON object a line, each line whole and on the disk before the
 * next is measured. Each ends with ,"sum":"0123456789abcdef"}, FNV-1a (64 bits) of the bytes before it. A line that is
 * torn or whose sum is wrong is as if it had not been written: readers leave it out and name it, `--resume` overwrites it with blanks and
 * measures again what is missing.
 * reports/schema/journal.schema.json is the binding description; in short ("?": may be left out, "|null": may be null):
 *
 *   {"type":"run","schema":"3.0","program":"normbench","version":"0.1.0","started":"2025-01-31T12:00:00Z","config":"quick",
 *    "argv":["normbench","run","quick"],
 *    "plan":{"hash","n_cases","launches","most_launches"?,"aim"?,"blocks","sample_ms","order_seed":"1"},     hash: of the plan before --shard
 *    "shard":[2,8] | null,
 *    "floors"?:[{"cpu","threads","cycles"}],                              of the probe, as known when the run began
 *    "plugins":[{"name","file"}],
 *    "kernels":[{"variant","op","pass","dtype","width","style","stats","stats_dtype","variance"}],
 *    "labels"?:[{"name","source"|null,"text"|null}],            what blocks of the config are called
 *    "groups":[{"index","part","family"?,"keys":[..],"reference":0,"labels"?:[[0],..]}],
 *       index: in the plan before --shard; reference: index in keys; labels: of each key, indices into labels; family: alike in
 *       groups of one width each that differ in nothing else, whose launches of one number stand next to each other in time
 *    "skips":[{"reason","count","key"?}],                       with a key: the case gets a record "skipped"
 *    "fingerprint":{..}}            first line, and the second, since nothing can be read without it
 *       nb_journal_add_plan() writes plan, kernels, groups and skips.
 *
 *   {"type":"check","group":0,"cases":[{"key","status","reason"?,"accuracy"?:{nb_accuracy_to_json},"summation_depth","column_summation_depth"?,"rows_judged"?,"calls"?,"row_local"}],
 *    "copies":[{"variant","ns"}],"elapsed_s":0.1}
 *       For a group one line with its cases, or several with different ones (a worker died between them), and one without cases that has
 *       the copies: the candidates that were tried as the copy, with the time of one call.
 *
 *   {"type":"launch","group":0,"launch":0,
 *    "cases":[{"key","copy":"variant of ITS copy"|null,"other_copy"?:"the runner-up's","sample_ns":[1234.5,null,..],"per_sample":8,"chunked":false,
 *              "preempted":[3,7],"probe"?:[2784,null,..]}],
 *    "copies":[{"variant","sample_ns":[..],"preempted":[..],"probe"?:[..]}],
 *    "noise":{"steal_ms","involuntary","voluntary","wall_s","cpu_s","cpu","threads"},"elapsed_s":0.4}
 *       sample_ns: one entry for each block, all arrays of a line equally long: the time of ONE call on the whole shape
 *       (chunked: scaled by rows), null where the sample failed or did not take part. per_sample: calls in a sample, rows when chunked.
 *       preempted: blocks whose sample saw an involuntary switch or a migration. probe: of each sample the slower nb_core_probe() of the two
 *       at its ends, from which its state follows (src/measure/core_state.h). wall_s and cpu_s are of the measuring thread. A case appears at
 *       most once for each group and launch.
 *
 *   {"type":"stop","group":0,"launches":14,"why":"aim"}
 *       The group gets no more launches; only where their number is not fixed ("most_launches" and "aim" in the plan), or where the budget
 *       left the group out: then there are fewer than the plan has at least, or none.
 *
 *   {"type":"counters","group":0,"cases":[{"key","counters":[{"name","value":1.0|null,"source","reason"?}]}],"elapsed_s"?:0.1}
 *       reason says why a value is null.
 *
 *   {"type":"failure","group":0,"launch":2|null,"key","status":"crashed","reason"}
 *       The first failure of a case decides its record. launch is null when it happened in the check or the counter
 * pass.
 *
 *   {"type":"resume","started":"..","argv":[..],"fingerprint":{..}}      each --resume, before it goes on
 *
 *   {"type":"answer","answer":{..}}      in the journal of PyTorch's answers (src/models/study.h) alone
 *
 *   {"type":"end","elapsed_s":90.1,"peak_memory_mib":200.5,"interrupted":2|null}     a signal's number; each way out of
 * a run
 *
 * group, launch and block count from 0; group is an index into the run line's groups. Numbers are finite or null;
 * 64-bit hashes and seeds are strings. */
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
