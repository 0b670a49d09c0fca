// SPDX-License-Identifier: Apache-2.0
/* The file in which `normbench tune` keeps what it found: one for each kind of CPU, since a home may be shared by many machines.
 * reports/schema/tuning.schema.json describes it. */
#ifndef NB_TUNING_FILE_H
#define NB_TUNING_FILE_H

#include <cjson/cJSON.h>

#include "src/core/tuning.h"

#define NB_TUNING_SCHEMA "1.0"

/* Sound values for the CPU at hand: what CPUID and the sizes of its caches say, nothing measured. */
void nb_tuning_default(struct nb_tuning *t);

/* "AuthenticAMD-26-36-0-1f2e3d4c": vendor, family, model, stepping, and a hash of features, caches and brand; owned. Virtual CPUs
 * of one brand may be of several kinds, which is why the brand alone is none. */
char *nb_tuning_cpu(void);
/* $NORMBENCH_TUNING, else $XDG_CACHE_HOME/normbench/tuning-CPU.json, else the same under $HOME/.cache; owned. Null: the environment
 * says "none", or names no home. */
char *nb_tuning_path(void);

/* The file as JSON, owned: its schema, its CPU and its fields are what they must be. Null after nb_error, which says what is wrong
 * with it. */
cJSON *nb_tuning_file_read(const char *path);
/* Makes the folders too. */
int nb_tuning_file_write(const char *path, const cJSON *json);

#endif
