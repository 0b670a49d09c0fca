// SPDX-License-Identifier: Apache-2.0
/* Timing to JSON and back: the figures, then the verdicts, then the evidence for them. */
#include "src/record/timing_json.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "src/core/json.h"
#include "src/core/log.h"

static void add_interval(cJSON *json, const char *name, const struct nb_interval *interval) {
    cJSON *object = cJSON_AddObjectToObject(json, name);
    nb_json_number(object, "value", interval->value);
    nb_json_number(object, "low", interval->low);
    nb_json_number(object, "high", interval->high);
}

static void add_attainable(cJSON *json, const struct nb_attainable *a) {
    cJSON *object = cJSON_AddObjectToObject(json, "attainable");
    add_interval(object, "time_ns", &a->time_ns);
    add_interval(object, "share", &a->share);
    nb_json_text(object, "bound", a->bound[0] ? a->bound : NULL);
    nb_json_number(object, "core_ns", a->core_ns);
}

cJSON *nb_timing_to_json(const struct nb_timing *t) {
    cJSON *json = cJSON_CreateObject();
    add_interval(json, "time_ns", &t->time_ns);
    add_interval(json, "roof", &t->roof);
    nb_json_text(json, "copy", t->copy[0] ? t->copy : NULL);
    add_attainable(json, &t->attainable);
    add_interval(json, "vs_reference", &t->vs_reference);
    nb_json_text(json, "reference", t->reference);
    nb_json_number(json, "gbytes_per_s", t->gbytes_per_s);
    nb_json_number(json, "min_ns", t->min_ns);
    cJSON_AddBoolToObject(json, "suspect", t->suspect);
    cJSON_AddBoolToObject(json, "noisy", t->noisy);
    nb_json_text(json, "noise", t->noise[0] ? t->noise : NULL);
    cJSON *evidence = cJSON_AddObjectToObject(json, "evidence");
    nb_json_number(evidence, "n_launches", t->n_launches);
    nb_json_number(evidence, "n_samples", t->n_samples);
    nb_json_number(evidence, "n_contaminated", t->n_contaminated);
    cJSON_AddBoolToObject(evidence, "chunked", t->chunked);
    nb_json_number(evidence, "per_sample", t->per_sample);
    nb_json_number(evidence, "steal_ms", t->steal_ms);
    nb_json_number(evidence, "involuntary", t->involuntary);
    nb_json_number(evidence, "wall_per_cpu", t->wall_per_cpu);
    nb_json_number(evidence, "copy_drift", t->copy_drift);
    return json;
}

static struct nb_interval get_interval(const cJSON *json, const char *name) {
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(json, name);
    return (struct nb_interval){nb_json_get_number(object, "value"), nb_json_get_number(object, "low"),
                                nb_json_get_number(object, "high")};
}

static int get_int(const cJSON *json, const char *name, int *value) {
    double number = nb_json_get_number(json, name);
    if (!(number >= 0 && number <= INT_MAX && number == floor(number)))
        return nb_error("timing: \"%s\" is not a count", name);
    *value = (int)number;
    return 0;
}

static int attainable_from_json(struct nb_attainable *a, const cJSON *json) {
    *a = (struct nb_attainable){.time_ns = get_interval(json, "time_ns"),
                                .share = get_interval(json, "share"),
                                .core_ns = nb_json_get_number(json, "core_ns")};
    return nb_json_copy_text(a->bound, sizeof a->bound, json, "bound");
}

int nb_timing_from_json(struct nb_timing *t, const cJSON *json) {
    const cJSON *evidence = cJSON_GetObjectItemCaseSensitive(json, "evidence");
    const char *reference = nb_json_get_text(json, "reference");
    *t = (struct nb_timing){
        .time_ns = get_interval(json, "time_ns"),
        .roof = get_interval(json, "roof"),
        .vs_reference = get_interval(json, "vs_reference"),
        .gbytes_per_s = nb_json_get_number(json, "gbytes_per_s"),
        .min_ns = nb_json_get_number(json, "min_ns"),
        .suspect = nb_json_get_bool(json, "suspect"),
        .noisy = nb_json_get_bool(json, "noisy"),
        .chunked = nb_json_get_bool(evidence, "chunked"),
        .per_sample = nb_json_get_number(evidence, "per_sample"),
        .steal_ms = nb_json_get_number(evidence, "steal_ms"),
        .involuntary = nb_json_get_number(evidence, "involuntary"),
        .wall_per_cpu = nb_json_get_number(evidence, "wall_per_cpu"),
        .copy_drift = nb_json_get_number(evidence, "copy_drift"),
    };
    if (nb_json_copy_text(t->copy, sizeof t->copy, json, "copy") != 0) return -1;
    if (nb_json_copy_text(t->noise, sizeof t->noise, json, "noise") != 0) return -1;
    if (attainable_from_json(&t->attainable, cJSON_GetObjectItemCaseSensitive(json, "attainable")) != 0) return -1;
    if (get_int(evidence, "n_launches", &t->n_launches) != 0 || get_int(evidence, "n_samples", &t->n_samples) != 0 ||
        get_int(evidence, "n_contaminated", &t->n_contaminated) != 0)
        return -1;
    t->reference = nb_strdup(reference ? reference : "");
    return 0;
}
