// SPDX-License-Identifier: Apache-2.0
/* Labels are few, so that they are looked for one after another. */
#include "src/plan/labels.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"

size_t nb_labels_add(struct nb_labels *labels, const char *name, const char *source, const char *text) {
    size_t at = 0;
    while (at < labels->n && strcmp(labels->items[at].name, name) != 0) at++;
    if (at == labels->n) {
        labels->items = nb_realloc(labels->items, ++labels->n, sizeof *labels->items);
        labels->items[at] = (struct nb_label){.name = nb_strdup(name)};
    }
    struct nb_label *label = &labels->items[at];
    if (!label->source && source) label->source = nb_strdup(source);
    if (!label->text && text) label->text = nb_strdup(text);
    return at;
}

cJSON *nb_labels_to_json(const struct nb_labels *labels) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < labels->n; i++) {
        cJSON *label = cJSON_CreateObject();
        nb_json_text(label, "name", labels->items[i].name);
        nb_json_text(label, "source", labels->items[i].source);
        nb_json_text(label, "text", labels->items[i].text);
        cJSON_AddItemToArray(list, label);
    }
    return list;
}

void nb_labels_release(struct nb_labels *labels) {
    for (size_t i = 0; i < labels->n; i++) {
        free(labels->items[i].name);
        free(labels->items[i].source);
        free(labels->items[i].text);
    }
    free(labels->items);
    *labels = (struct nb_labels){0};
}

void nb_label_set_add(struct nb_label_set *set, size_t label) {
    for (size_t i = 0; i < set->n; i++)
        if (set->at[i] == label) return;
    set->at = nb_realloc(set->at, set->n + 1, sizeof *set->at);
    set->at[set->n++] = label;
}

void nb_label_set_release(struct nb_label_set *set) {
    free(set->at);
    *set = (struct nb_label_set){0};
}
