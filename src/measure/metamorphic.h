// SPDX-License-Identifier: Apache-2.0
/* Tries the relations of a case (relations.h) on its kernel. */
#ifndef NB_METAMORPHIC_H
#define NB_METAMORPHIC_H

#include "src/accuracy/oracle.h"
#include "src/core/registry.h"
#include "src/record/relations.h"

/* Calls the kernel some dozens of times on a few of the case's rows. The process may die of it. */
void nb_metamorphic_check(const struct nb_case *c, const struct nb_entry *entry, const struct nb_oracle *oracle,
                          struct nb_metamorphic *out);

#endif
