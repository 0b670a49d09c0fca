// SPDX-License-Identifier: Apache-2.0
/* What `normbench tune` finds out: for each question the fields of struct nb_tuning that answer it, the settings that are tried, and
 * the kernels and shapes on which they are. A new question is a new entry of the table.
 *
 * The whole measurement: every topic's trials, launches round robin over all of them, then a verdict for each topic: is an arrangement better
 * than the default by more than noise? */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/cpu.h"

/* What makes a difference: ln of 1 %. */
#define NB_TUNE_MARGIN 0.01

/* The fewest that give an interval of 95 %. */
enum { NB_TUNE_LAUNCHES = 6 };

struct nb_tune_options {
    bool first_use; /* the questions alone that a first use on a CPU asks */
    int launches, blocks;
    double sample_ms;
};

/* Bytes of the smallest call that a first use looks at. */
int64_t nb_tune_first_size(const struct nb_cpu *cpu);

/* *file: what is kept (reports/schema/tuning.schema.json), owned; *n_measured: topics with a trial that gave figures. -1 after nb_error, or
 * the number of the signal that ended it; nothing is written then. The kernels must be loaded. */
int nb_tune_run(const struct nb_tune_options *options, cJSON **file, size_t *n_measured);
