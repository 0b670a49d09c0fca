// SPDX-License-Identifier: Apache-2.0
/* Which tuning this process takes, and why: the defaults for the CPU, in their place what the file says, in its place what the user
 * says. */
#ifndef NB_TUNING_CHOICE_H
#define NB_TUNING_CHOICE_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "src/core/tuning.h"

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
