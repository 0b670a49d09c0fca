// SPDX-License-Identifier: Apache-2.0
/* What a kernel says of a call, asked where the program must go on whatever it does: while planning. A plugin that crashes or
 * hangs at the question is not asked again, and its cases are planned as if it had said yes, so that a worker meets the same and
 * their records tell. */
#ifndef NB_ASK_H
#define NB_ASK_H

#include <stdbool.h>

#include "src/core/registry.h"

/* Null: yes; else the reason why not, good until the next question. */
const char *nb_ask_applicable(const struct nb_entry *entry, const struct nb_call *call);
bool nb_ask_row_local(const struct nb_entry *entry, const struct nb_call *call);

#endif
