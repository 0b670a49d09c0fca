// SPDX-License-Identifier: Apache-2.0
/* Files of schema 1 say some things by other words than today's. They are read all the same: their members and the names of kernels
 * in their texts are renamed before anything looks at them. */
#ifndef NB_OLD_NAMES_H
#define NB_OLD_NAMES_H

#include <stdbool.h>

#include <cjson/cJSON.h>

/* Can this version read a file of this schema ("1.1"), as it is or renamed? */
bool nb_schema_readable(const char *schema);

/* Renames in a document of the schema with this major number, all the way down. Does nothing to one of today's. */
void nb_rename_old(cJSON *json, int schema_major);

#endif
