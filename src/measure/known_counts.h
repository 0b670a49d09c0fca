// SPDX-License-Identifier: Apache-2.0
/* Exact instruction counts are taken once for each variant, formula and row length; cases that differ only in rows, data or threads share
 * them (of kernels with threads of their own not in threads). */
#pragma once

#include <stddef.h>

#include "src/core/case.h"
#include "src/core/json.h"

struct nb_known_count; /* a counter, and what decides it */

struct nb_known_counts {
    struct nb_known_count *items;
    size_t n;
};

/* The counter known for such a case, or null. */
const cJSON *nb_known_counts_find(const struct nb_known_counts *known, const struct nb_case *c);

/* Keeps the exact count among answer's counters, or adds the known one to them. */
void nb_known_counts_exchange(struct nb_known_counts *known, const struct nb_case *c, cJSON *answer);

void nb_known_counts_release(struct nb_known_counts *known);
