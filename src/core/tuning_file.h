// SPDX-License-Identifier: Apache-2.0
/* The file in which `normbench tune` keeps what it found: one for each kind of CPU, since a home may be shared by many machines.
 * reports/schema/tuning.schema.json describes it. */
#ifndef NB_TUNING_FILE_H
#define NB_TUNING_FILE_H

#include <cjson/cJSON.h>
#include <stdbool.h>

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

/* ---- the choice ---- */

/* Which tuning this process takes, and why: the defaults for the CPU, in their place what the file says, in its place what the user
 * says. */

/* What --tuning takes: "default" (no file), FIELD=VALUE (nb_tuning_parse) or "default,FIELD=VALUE"; null: nothing is said. What is
 * chosen is used from now on (nb_tuning_use). A file that is broken or another CPU's is left aside with a warning. -1 after
 * nb_error: the text is none, or wants instructions that the CPU does not have. */
int nb_tuning_choose(const char *option);
/* The same, unless something was chosen already; a text that is none is warned of, and the defaults are taken. */
void nb_tuning_choose_once(const char *option);

/* What was chosen, for records (as reports/schema has it):
 *   source    "defaults", "file"; with an option "option"
 *   file      the file that was read, or null
 *   measured  when that was made, or null
 *   replay    what --tuning must say to have the same anywhere, or null: the defaults, which need nothing said
 *   fields    all of them */
cJSON *nb_tuning_choice_to_json(void);
/* The text "replay" alone; owned, or null. */
char *nb_tuning_replay(void);

#endif
