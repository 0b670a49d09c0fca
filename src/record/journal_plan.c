// SPDX-License-Identifier: Apache-2.0
/* What the first line of a journal says about the plan: enough to fold the rest without the kernels that it names. */
#include "src/core/json.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/record/journal.h"
#include "src/record/record.h"

/* Cases that get a record of their own: the reference of a group that was split is repeated in its later parts. */
static size_t count_cases(const struct nb_plan *plan) {
    size_t n = 0;
    for (size_t i = 0; i < plan->n_groups; i++) n += plan->groups[i].n - (plan->groups[i].part > 0);
    return n;
}

static void add_head(cJSON *run, const struct nb_plan *plan, int shard, int n_shards) {
    cJSON *json = cJSON_AddObjectToObject(run, "plan");
    nb_json_text(json, "hash", plan->hash);
    nb_json_number(json, "n_cases", (double)count_cases(plan));
    nb_json_number(json, "launches", plan->launches);
    nb_json_number(json, "blocks", plan->blocks);
    nb_json_number(json, "sample_ms", plan->sample_ms);
    nb_json_uint64(json, "order_seed", plan->order_seed);
    if (plan->compare.ours) cJSON_AddItemToObject(json, "compare", nb_compare_settings_to_json(&plan->compare));
    if (n_shards > 0)
        cJSON_AddItemToObject(run, "shard", cJSON_CreateIntArray((const int[]){shard, n_shards}, 2));
    else
        cJSON_AddNullToObject(run, "shard");
}

/* Each variant once, in the order of its first case. */
static void add_kernel(cJSON *kernels, struct nb_text_map *known, const struct nb_case *c) {
    if (nb_text_map_find(known, c->variant) != NB_NOWHERE) return;
    cJSON *json = cJSON_CreateObject();
    nb_kernel_fields_to_json(json, c);
    nb_text_map_add(known, nb_json_get_text(json, "variant"), 0);
    cJSON_AddItemToArray(kernels, json);
}

/* A skipped case has no struct nb_case in the plan; its variant is what the key begins with. */
static void add_skipped_kernel(cJSON *kernels, struct nb_text_map *known, const char *key) {
    struct nb_case c = {0};
    if (nb_case_parse(&c, key) != 0) return;
    const struct nb_entry *entry = nb_registry_find(c.variant);
    if (!entry) return;
    nb_case_set_entry(&c, entry);
    add_kernel(kernels, known, &c);
}

/* Of each key, indices into the run line's labels. */
static void add_labels(cJSON *json, const struct nb_plan *plan, const struct nb_group *group) {
    cJSON *lists = cJSON_AddArrayToObject(json, "labels");
    for (size_t i = 0; i < group->n; i++) {
        const struct nb_label_set *set = &plan->case_labels[group->cases[i]];
        cJSON *list = cJSON_CreateArray();
        for (size_t j = 0; j < set->n; j++) cJSON_AddItemToArray(list, cJSON_CreateNumber((double)set->at[j]));
        cJSON_AddItemToArray(lists, list);
    }
}

static void add_group(cJSON *groups, const struct nb_plan *plan, const struct nb_group *group) {
    cJSON *json = cJSON_CreateObject();
    nb_json_number(json, "index", (double)group->index);
    nb_json_number(json, "part", group->part);
    if (group->single_width) nb_json_number(json, "family", (double)group->family);
    cJSON *keys = cJSON_AddArrayToObject(json, "keys");
    for (size_t i = 0; i < group->n; i++) cJSON_AddItemToArray(keys, cJSON_CreateString(plan->keys[group->cases[i]]));
    nb_json_number(json, "reference", (double)group->reference);
    if (plan->labels.n > 0) add_labels(json, plan, group);
    cJSON_AddItemToArray(groups, json);
}

static void add_skip(cJSON *skips, const struct nb_skip *skip) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "reason", skip->reason);
    nb_json_number(json, "count", (double)skip->n);
    if (skip->key) nb_json_text(json, "key", skip->key);
    cJSON_AddItemToArray(skips, json);
}

void nb_journal_add_plan(cJSON *run, const struct nb_plan *plan, int shard, int n_shards) {
    add_head(run, plan, shard, n_shards);
    cJSON *kernels = cJSON_AddArrayToObject(run, "kernels");
    struct nb_text_map known = {0};
    for (size_t i = 0; i < plan->n_cases; i++) add_kernel(kernels, &known, &plan->cases[i]);
    if (plan->labels.n > 0) cJSON_AddItemToObject(run, "labels", nb_labels_to_json(&plan->labels));
    cJSON *groups = cJSON_AddArrayToObject(run, "groups"), *skips = cJSON_AddArrayToObject(run, "skips");
    for (size_t i = 0; i < plan->n_groups; i++) add_group(groups, plan, &plan->groups[i]);
    for (size_t i = 0; i < plan->n_skips; i++) {
        if (plan->skips[i].key) add_skipped_kernel(kernels, &known, plan->skips[i].key);
        add_skip(skips, &plan->skips[i]);
    }
    nb_text_map_release(&known);
}
