// SPDX-License-Identifier: Apache-2.0
/* Figures that stand together on one side of a comparison, such as all shapes of one width, and what lies between two such sides. */
#ifndef NB_RULE_GROUPS_H
#define NB_RULE_GROUPS_H

#include "src/claims/finding.h"

struct nb_rule_group {                 /* zero-initialise */
    const struct nb_finding **figures; /* that have a value */
    size_t n;
    const char *missing; /* why another has none, or null */
};
void nb_rule_group_add(struct nb_rule_group *g, const struct nb_finding *f);
void nb_rule_group_release(struct nb_rule_group *g);

/* The median of the values, and of both ends of the intervals; NaN where there is no figure. */
struct nb_interval nb_rule_group_value(const struct nb_rule_group *g);

struct nb_rule_gap {
    struct nb_interval value;
    int n_launches;
};
/* a - b. Where both sides know their values launch by launch (seed by seed), differences are formed in each of them, between the
 * medians of both sides, and the interval is that of the differences: what a launch or seed does to both cancels. Else the bounds
 * are added, which holds whatever hangs together. */
struct nb_rule_gap nb_rule_gap_of(const struct nb_rule_group *a, const struct nb_rule_group *b);

#endif
