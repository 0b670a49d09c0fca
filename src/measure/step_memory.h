// SPDX-License-Identifier: Apache-2.0
/* Exact instruction counts are taken once for each variant, formula and row length; cases that differ only in rows, data or
 * threads share them (of kernels with threads of their own not in threads). */
#ifndef NB_STEP_MEMORY_H
#define NB_STEP_MEMORY_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "src/core/case.h"

struct nb_step_memory {
    struct nb_step {
        char *what;
        cJSON *counter;
    } * steps;
    size_t n;
};
/* The counter known for such a case, or null. */
const cJSON *nb_step_memory_find(const struct nb_step_memory *m, const struct nb_case *c);
/* Keeps the exact count among answer's counters, or adds the known one to them. */
void nb_step_memory_exchange(struct nb_step_memory *m, const struct nb_case *c, cJSON *answer);
void nb_step_memory_release(struct nb_step_memory *m);

#endif
