// SPDX-License-Identifier: Apache-2.0
/* The shards of one plan to one run. */
#ifndef NB_MERGE_H
#define NB_MERGE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/record/record.h"

/* The folders of the shards of one plan, each once, to the results of one run. A shard that is missing is an error that
 * names it; with partial it is a warning, and kept in meta "missing_shards". */
int nb_results_merge(struct nb_results *r, const char *const *dirs, size_t n, bool partial);
/* Of what a run with --shard left: its document names the shard and the plan. */
struct nb_shard {
    const char *dir, *hash; /* borrowed; of the plan */
    int i, n;               /* "i of n", from 1 */
    size_t at;              /* the caller's */
};
int nb_shard_read(struct nb_shard *s, const char *dir, const cJSON *document); /* -1 after nb_error: is none */
/* Sorts them by number. -1 after nb_error: they are of different plans, one is there twice, or one is missing; with partial that is a
 * warning. missing: an array for their numbers. */
int nb_shards_check(struct nb_shard *shards, size_t n, bool partial, cJSON *missing);
/* The index in machines ([{"fingerprint", "differs"}]) of this fingerprint, which is added when none is equal. "differs" names every path
 * whose value is not that of the first machine: "cpu.model: \"A\", first machine \"B\"". */
int nb_machine_index(cJSON *machines, const cJSON *fingerprint);

#endif
