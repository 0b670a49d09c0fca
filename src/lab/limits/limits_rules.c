// SPDX-License-Identifier: Apache-2.0
/* The groups one after another. */
#include "src/lab/limits/limits_rules.h"

#include <string.h>

const struct nb_limit_rule *nb_limit_rule_at(size_t i) {
    const struct {
        const struct nb_limit_rule *rules;
        size_t n;
    } groups[] = {{nb_range_rules, nb_n_range_rules},
                  {nb_eps_rules, nb_n_eps_rules},
                  {nb_accumulation_rules, nb_n_accumulation_rules},
                  {nb_mean_rules, nb_n_mean_rules},
                  {nb_conditioning_rules, nb_n_conditioning_rules}};
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        if (i < groups[g].n) return &groups[g].rules[i];
        i -= groups[g].n;
    }
    return NULL;
}

const struct nb_limit_rule *nb_limit_rule_find(const char *id) {
    for (size_t i = 0; nb_limit_rule_at(i); i++)
        if (strcmp(nb_limit_rule_at(i)->id, id) == 0) return nb_limit_rule_at(i);
    return NULL;
}
