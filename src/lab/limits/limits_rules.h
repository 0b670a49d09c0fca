// SPDX-License-Identifier: Apache-2.0
/* All rules of limits.h, a file for each group. */
#ifndef NB_LIMITS_RULES_H
#define NB_LIMITS_RULES_H

#include "src/lab/limits/limits.h"

extern const struct nb_limit_rule nb_range_rules[], nb_eps_rules[], nb_accumulation_rules[], nb_mean_rules[],
    nb_conditioning_rules[];
extern const size_t nb_n_range_rules, nb_n_eps_rules, nb_n_accumulation_rules, nb_n_mean_rules, nb_n_conditioning_rules;

/* In the order of the report; null behind the last. */
const struct nb_limit_rule *nb_limit_rule_at(size_t i);
const struct nb_limit_rule *nb_limit_rule_find(const char *id);

#endif
