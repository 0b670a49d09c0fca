// SPDX-License-Identifier: Apache-2.0
/* Names of relations and verdicts, and their JSON. */
#include "src/record/relations.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"

const char *nb_relation_name(enum nb_relation relation) {
    static const char *const names[NB_N_RELATIONS] = {"scale", "negate", "permute", "shift",   "row_order",
                                                      "batch", "ranges", "twice",   "squares", "sum"};
    return names[relation];
}

const char *nb_holds_name(enum nb_holds verdict) {
    static const char *const names[NB_N_HOLDS] = {"not_applicable", "passed", "failed"};
    return names[verdict];
}

/* A power, or a place, where -1 stands for none. */
static void add_index(cJSON *json, const char *name, int64_t value) {
    nb_json_number(json, name, value >= 0 ? (double)value : (double)NAN);
}

cJSON *nb_metamorphic_to_json(const struct nb_metamorphic *m) {
    cJSON *json = cJSON_CreateObject();
    for (int i = 0; i < NB_N_RELATIONS; i++) {
        cJSON *relation = cJSON_AddObjectToObject(json, nb_relation_name((enum nb_relation)i));
        nb_json_text(relation, "verdict", nb_holds_name(m->relations[i].verdict));
        nb_json_number(relation, "figure", m->relations[i].figure);
        if (m->relations[i].row >= 0) add_index(relation, "row", m->relations[i].row);
        if (m->relations[i].col >= 0) add_index(relation, "col", m->relations[i].col);
        if (*m->relations[i].reason) nb_json_text(relation, "reason", m->relations[i].reason);
    }
    nb_json_number(json, "order_noise_ulp", m->order_noise_ulp);
    add_index(json, "scale_up", m->scale_up);
    add_index(json, "scale_down", m->scale_down);
    cJSON_AddBoolToObject(json, "up_ended_by_input", m->up_ended_by_input);
    cJSON_AddBoolToObject(json, "down_ended_by_input", m->down_ended_by_input);
    return json;
}

static int64_t get_index(const cJSON *json, const char *name) {
    const double value = nb_json_get_number(json, name);
    return value >= 0 && value <= 0x1p53 ? (int64_t)value : -1;
}

static int relation_from_json(struct nb_metamorphic *m, int i, const cJSON *json) {
    const char *verdict = nb_json_get_text(json, "verdict");
    int v = 0;
    while (verdict && v < NB_N_HOLDS && strcmp(verdict, nb_holds_name((enum nb_holds)v)) != 0) v++;
    if (!verdict || v == NB_N_HOLDS)
        return nb_error("metamorphic: \"%s\" has no verdict", nb_relation_name((enum nb_relation)i));
    m->relations[i].verdict = (enum nb_holds)v;
    m->relations[i].figure = nb_json_get_number(json, "figure");
    m->relations[i].row = get_index(json, "row");
    m->relations[i].col = get_index(json, "col");
    return nb_json_copy_text(m->relations[i].reason, sizeof m->relations[i].reason, json, "reason");
}

int nb_metamorphic_from_json(struct nb_metamorphic *m, const cJSON *json) {
    *m = (struct nb_metamorphic){.order_noise_ulp = nb_json_get_number(json, "order_noise_ulp"),
                                 .scale_up = (int)get_index(json, "scale_up"),
                                 .scale_down = (int)get_index(json, "scale_down"),
                                 .up_ended_by_input = nb_json_get_bool(json, "up_ended_by_input"),
                                 .down_ended_by_input = nb_json_get_bool(json, "down_ended_by_input")};
    for (int i = 0; i < NB_N_RELATIONS; i++) {
        const char *name = nb_relation_name((enum nb_relation)i);
        if (relation_from_json(m, i, cJSON_GetObjectItemCaseSensitive(json, name)) != 0) return -1;
    }
    return 0;
}
