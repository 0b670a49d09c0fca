// SPDX-License-Identifier: Apache-2.0
/* What `normbench tune` finds out: for each question the fields of struct nb_tuning that answer it, the settings that are tried, and
 * the kernels and shapes on which they are. A new question is a new entry of the table.
 *
 * The whole measurement: every topic's trials, launches round robin over all of them, then a verdict for each topic: is an arrangement better
 * than the default by more than noise? */
#ifndef NB_TUNE_RUN_H
#define NB_TUNE_RUN_H

#include <cjson/cJSON.h>
#include <stddef.h>

struct nb_tune_options {
    int launches, blocks;
    double sample_ms;
};

/* *file: what is kept (reports/schema/tuning.schema.json), owned; *n_measured: topics with a trial. -1 after nb_error, or the number of the
 * signal that ended it; nothing is written then. The kernels must be loaded. */
int nb_tune_run(const struct nb_tune_options *options, cJSON **file, size_t *n_measured);

#endif
