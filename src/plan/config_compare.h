// SPDX-License-Identifier: Apache-2.0
/* What a config says about comparing our kernels with others, under its key "compare":
 *   { "ours": ["*_fast"],               globs on kernels; every other kernel of a comparison is compared with the best of these
 *     "confirm": { "launches": 16,      what looks behind is measured again in so many fresh processes,
 *                  "behind_percent": 5 } }   behind: slower by more than that, with the whole interval
 * With it cases of several ops do not share a group, and a budget drops whole comparisons. */
#ifndef NB_CONFIG_COMPARE_H
#define NB_CONFIG_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "src/core/json.h"

struct nb_compare_settings {
    char **ours; /* null: the config compares nothing */
    size_t n_ours;
    int confirm_launches; /* 0: nothing is measured again */
    double behind;        /* share: 0.05 */
};

/* settings: zeroed. -1 after nb_error. */
int nb_config_read_compare(const struct nb_jsonc *file, const cJSON *node, struct nb_compare_settings *settings);
/* {"ours":[..],"confirm_launches":16,"behind":0.05}, and back; null for a config that compares nothing. */
cJSON *nb_compare_settings_to_json(const struct nb_compare_settings *settings);
void nb_compare_settings_from_json(struct nb_compare_settings *settings, const cJSON *json);
void nb_compare_settings_copy(struct nb_compare_settings *to, const struct nb_compare_settings *from);
void nb_compare_settings_release(struct nb_compare_settings *settings);

#endif
