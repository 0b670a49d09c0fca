// SPDX-License-Identifier: Apache-2.0
/* Journals made by hand for the tests of journal, fold and merge, as text. */
#pragma once

#include "src/claims/claims.h"
#include "src/record/record.h"

#define KEY_RMS "rmsnorm_a_v256_f32/shape:4x8"
#define KEY_LN "layernorm_a_v256_f32/shape:4x8"
#define KEY_PLUGIN "mine:rmsnorm_b_v256_f32/shape:4x8"

/* A "run" line of n kernels: groups and skips are the JSON of these members, shard "null" or "[1,2]". */
char *run_line_of(const char *const *variants, int n, const char *groups, const char *skips, const char *shard,
                  int launches);
/* Of the kernels of the keys above. */
char *run_line(const char *groups, const char *skips, const char *shard, int launches);
/* A "check" line of n cases, all of them ok. */
void add_check(struct nb_strbuf *out, int group, const char *const *keys, int n);
/* A "launch" line of n cases with `blocks` samples each, NAN where there is none. */
void add_launch(struct nb_strbuf *out, int group, int launch, const char *const *keys, int n, const double *sample_ns,
                int blocks);
void add_end(struct nb_strbuf *out);
/* A whole small journal: group 0 with KEY_RMS (reference), KEY_LN and KEY_PLUGIN, checked, six launches, counters, end. */
char *small_journal(void);

/* The journal with the sum that each whole line ends with, in place of another. */
char *summed(const char *journal);
void put_journal(const char *dir, const char *journal);
void change_journal(const char *dir, const char *old, const char *new);
/* A new folder with this journal; releases `text`. */
char *folder_of(struct nb_strbuf *text);
char *folder_with(const char *journal);
/* results.json, whose sums are made to fit; as one line. */
void put_results(const char *dir, cJSON *results);
/* What it folds to; and a folder, whose results are the caller's. */
struct nb_results folded(const char *journal);
struct nb_results results_of(const char *dir);
/* A claim, by its text, on the run in that folder; findings stay in the result. */
enum nb_claim_verdict claim_on_run(const char *text, const char *dir, struct nb_claim *claim,
                                   struct nb_claim_result *result);
/* The first finding of that name with all the tags, "axis=value;axis=value"; there must be one. */
const struct nb_finding *finding_of(const struct nb_findings *f, const char *name, const char *tags);
