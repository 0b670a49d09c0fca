// SPDX-License-Identifier: Apache-2.0
/* A run's results: folded from the journal, kept in DIR/results.json, merged from the shards of one plan. */
#ifndef NB_RESULTS_H
#define NB_RESULTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/measure/journal.h" /* the journal's lines, and their writer */
#include "src/record/record.h"

#define NB_RESULTS_FILE "results.json"
#define NB_CHECKS_FOLDER "checks" /* of a run's folder: what else its plugins' kernels were checked on */

struct nb_results {
    /* Everything but the records, as results.json has it (reports/schema/results.schema.json):
     *   schema, program, version, started, config, argv, shard, plan {hash, n_cases, launches, blocks, sample_ms,
     * order_seed}, plugins, fingerprint, skips [{reason, count, key?}], resumed [{started, argv, fingerprint}],
     * elapsed_s, peak_memory_mib, interrupted (signal or null), complete (no planned case or launch is missing), counts
     * {status: n}, and in merged results: merged [{shard, started, elapsed_s, machine}], machines [{fingerprint,
     * differs: [..]}], missing_shards [..]. */
    cJSON *meta;
    struct nb_record *records; /* by group, then as planned; skipped cases last, by key */
    size_t n;
    char *dir;
};
/* Folds a journal: medians over launches, paired ratios, statuses. Every planned case has a record: one without a line
 * of its own is "not_run". The first failures of each kernel in DIR/checks are added, as groups of their own. */
int nb_results_fold(struct nb_results *r, const char *dir);
/* The text of results.json. */
void nb_results_print(const struct nb_results *r, struct nb_strbuf *out);
int nb_results_write(const struct nb_results *r, const char *dir); /* temporary name, then rename */
/* results.json; folds the journal when results.json is missing or older. */
int nb_results_read(struct nb_results *r, const char *dir);
/* The folders of the shards of one plan, each once, to the results of one run. A shard that is missing is an error that
 * names it; with partial it is a warning, and kept in meta "missing_shards". */
int nb_results_merge(struct nb_results *r, const char *const *dirs, size_t n, bool partial);
bool nb_results_outdated(const char *dir); /* the journal is newer than results.json, or alone */
size_t nb_results_failed(const struct nb_results *r);
void nb_results_count(struct nb_results *r); /* meta "counts" from the records */
void nb_results_release(struct nb_results *r);

#endif
