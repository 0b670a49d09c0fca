// SPDX-License-Identifier: Apache-2.0
/* Does a case fit a filter, a list of values, a partial block? */
#ifndef NB_MATCH_H
#define NB_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "src/core/case.h"
#include "src/core/registry.h"
#include "src/plan/config.h"

struct nb_filters {
    const char *const *texts;
    size_t n;
};
/* A filter is any stretch of the key as it stands, or a glob on the whole key or on its first parts ("rmsnorm_*_f32/shape:64x*"
 * need not have the rest). No filters: everything matches. */
bool nb_filters_match(const struct nb_filters *filters, const char *key);

/* eps and k, which people write in several ways, in one: cases of equal meaning get equal keys. */
struct nb_case nb_case_canonical(const struct nb_case *c);

/* Is the kernel's value of a selecting axis in the list? Kernel names and plugins are globs; "all" is everything but, for the
 * op, a copy. */
bool nb_list_selects(const struct nb_values *list, const struct nb_axis *axis, const struct nb_entry *entry);
/* The first exclude of the block that names no axis whose list the case is not in; null: the case stays. */
const struct nb_block *nb_block_excludes(const struct nb_block *block, const struct nb_case *c,
                                         const struct nb_entry *entry);

#endif
