// SPDX-License-Identifier: Apache-2.0
/* Two JSON values side by side, path by path. */
#ifndef NB_JSON_DIFFERENCES_H
#define NB_JSON_DIFFERENCES_H

#include <cjson/cJSON.h>

/* Calls found for every path ("cpu.model") at which two values differ. Objects are compared by their members, those of both sides;
 * all else as a whole. A side that has no such member is null. */
void nb_json_differences(const cJSON *a, const cJSON *b,
                         void (*found)(const char *path, const cJSON *a, const cJSON *b, void *arg), void *arg);

#endif
