// SPDX-License-Identifier: Apache-2.0
/* A comparison as JSON: reports/schema/compare.schema.json describes it. */
#include <math.h>

#include "reports/run/compare_report.h"
#include "reports/run/summary.h"
#include "src/core/json.h"

static const char *const sides[NB_N_SIDES] = {"before", "after"};

static void add_run(cJSON *json, const struct nb_comparison *c, int side) {
    const struct nb_results *r = c->runs[side];
    const struct nb_run_noise *noise = &c->noise[side];
    const char *started = nb_meta_text(r, "started");
    cJSON *run = cJSON_AddObjectToObject(json, sides[side]);
    nb_json_text(run, "folder", r->dir);
    nb_json_text(run, "config", nb_meta_text(r, "config"));
    nb_json_text(run, "started", *started ? started : NULL);
    cJSON_AddNumberToObject(run, "timed", (double)noise->n_timed);
    cJSON_AddNumberToObject(run, "noisy", (double)noise->n_noisy);
    nb_json_number(run, "contaminated", noise->contaminated);
    nb_json_number(run, "wall_per_cpu", noise->wall_per_cpu);
}

static void add_differences(cJSON *json, const struct nb_comparison *c) {
    cJSON *list = cJSON_AddArrayToObject(json, "differences");
    for (size_t i = 0; i < c->n_differences; i++) {
        const struct nb_difference *d = &c->differences[i];
        cJSON *one = cJSON_CreateObject();
        nb_json_text(one, "path", d->path);
        for (int side = 0; side < NB_N_SIDES; side++) nb_json_text(one, sides[side], d->values[side]);
        cJSON_AddBoolToObject(one, "forbids_times", d->forbids_times);
        cJSON_AddItemToArray(list, one);
    }
}

static void add_ratio(cJSON *json, const char *name, const struct nb_interval *i, const char *reason) {
    cJSON *ratio = cJSON_AddObjectToObject(json, name);
    nb_json_number(ratio, "value", i->value);
    nb_json_number(ratio, "low", i->low);
    nb_json_number(ratio, "high", i->high);
    nb_json_text(ratio, "reason", reason[0] ? reason : NULL);
}

static void add_accuracy(cJSON *json, const struct nb_compared *c) {
    cJSON *accuracy = cJSON_AddObjectToObject(json, "accuracy");
    cJSON_AddBoolToObject(accuracy, "differs", c->accuracy_differs);
    for (int side = 0; side < NB_N_SIDES; side++) {
        const struct nb_record *r = c->sides[side];
        cJSON *one = cJSON_AddObjectToObject(accuracy, sides[side]);
        nb_json_text(one, "status", nb_status_name(r->status));
        nb_json_number(one, "max_ulp", r->has_accuracy ? r->accuracy.max_ulp : (double)NAN);
        nb_json_number(one, "mean_ulp", r->has_accuracy ? r->accuracy.mean_ulp : (double)NAN);
        nb_json_number(one, "bias_u", r->has_accuracy ? r->accuracy.bias_u : (double)NAN);
    }
}

static cJSON *case_to_json(const struct nb_compared *c) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "key", c->sides[NB_BEFORE]->key);
    nb_json_text(json, "change", nb_change_name(c->change));
    nb_json_text(json, "refused", c->refused[0] ? c->refused : NULL);
    add_ratio(json, "to_roof", &c->to_roof, c->roof_reason);
    add_ratio(json, "to_reference", &c->to_reference, c->reference_reason);
    add_ratio(json, "time", &c->time, c->time_reason);
    add_accuracy(json, c);
    return json;
}

void nb_compare_add_json(const struct nb_comparison *c, struct nb_strbuf *out) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "schema", "1.0");
    nb_json_text(json, "program", "normbench");
    nb_json_text(json, "version", NB_VERSION);
    cJSON_AddBoolToObject(json, "whole", nb_comparison_is_whole(c));
    cJSON_AddBoolToObject(json, "same_cpu", c->same_cpu);
    cJSON_AddBoolToObject(json, "same_plan", c->same_plan);
    for (int side = 0; side < NB_N_SIDES; side++) add_run(json, c, side);
    add_differences(json, c);
    cJSON *cases = cJSON_AddArrayToObject(json, "cases"), *only = cJSON_AddObjectToObject(json, "only");
    for (size_t i = 0; i < c->n_common; i++) cJSON_AddItemToArray(cases, case_to_json(&c->cases[c->order[i]]));
    for (int side = 0; side < NB_N_SIDES; side++) {
        cJSON *keys = cJSON_AddArrayToObject(only, sides[side]);
        for (size_t i = c->n_common; i < c->n; i++)
            if (c->cases[i].sides[side]) cJSON_AddItemToArray(keys, cJSON_CreateString(c->cases[i].sides[side]->key));
    }
    nb_json_print_pretty(json, 0, out);
    nb_strbuf_add(out, "\n");
    cJSON_Delete(json);
}
