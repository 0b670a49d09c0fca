// SPDX-License-Identifier: Apache-2.0
/* What was measured, as the file has it: the tuning first, then for each topic what speaks for it. */
#include <math.h>
#include <stdlib.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/registry.h"
#include "src/core/tuning_file.h"
#include "src/record/fingerprint.h"
#include "src/tune/tune_run.h"

static cJSON *number_or_null(double value) { return isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull(); }

/* A logarithm's interval as percent faster. */
static void add_gain(cJSON *json, const char *name, const struct nb_interval *ln) {
    cJSON *gain = cJSON_AddObjectToObject(json, name);
    cJSON_AddItemToObject(gain, "value", number_or_null(100 * expm1(ln->value)));
    cJSON_AddItemToObject(gain, "low", number_or_null(100 * expm1(ln->low)));
    cJSON_AddItemToObject(gain, "high", number_or_null(100 * expm1(ln->high)));
}

static void add_cpu(cJSON *json) {
    const struct nb_cpu *cpu = nb_cpu_light();
    cJSON *object = cJSON_AddObjectToObject(json, "cpu");
    char *identity = nb_tuning_cpu();
    nb_json_text(object, "identity", identity);
    nb_json_text(object, "vendor", cpu->vendor);
    nb_json_text(object, "model", cpu->model);
    cJSON_AddNumberToObject(object, "family", cpu->family);
    cJSON_AddNumberToObject(object, "model_number", cpu->model_number);
    cJSON_AddNumberToObject(object, "stepping", cpu->stepping);
    cJSON_AddNumberToObject(object, "l1d_bytes", (double)cpu->l1d_bytes);
    cJSON_AddNumberToObject(object, "l2_bytes", (double)cpu->l2_bytes);
    cJSON_AddNumberToObject(object, "l3_bytes", (double)cpu->l3_bytes);
    free(identity);
}

/* The setting that makes an arm what it is; of a default that is none of the settings its own value. */
static void add_setting(cJSON *json, const struct nb_tune_outcome *o, int arm, const struct nb_tuning *base) {
    struct nb_strbuf text = {0};
    const bool is_own = arm < NB_TUNE_SETTINGS && o->topic->settings[arm] && !nb_tuning_equal(&o->arms[arm], base);
    if (is_own)
        nb_strbuf_add(&text, o->topic->settings[arm]);
    else
        nb_strbuf_addf(&text, "%s=%lld", o->topic->field,
                       (long long)nb_tuning_get(base, nb_tuning_field_find(o->topic->field)));
    nb_json_text(json, "setting", text.text);
    nb_strbuf_release(&text);
}

static void add_trial(cJSON *trials, const struct nb_tune_outcome *o, size_t t, const struct nb_tuning *base) {
    const struct nb_tune_trial *trial = &o->trials[t];
    struct nb_strbuf key = {0};
    cJSON *json = cJSON_CreateObject();
    nb_case_key(&o->cases[t], &key);
    nb_json_text(json, "key", key.text);
    cJSON_AddNumberToObject(json, "size", (double)o->shapes[trial->shape].size);
    cJSON_AddNumberToObject(json, "launches", (double)trial->n_launches);
    cJSON *arms = cJSON_AddArrayToObject(json, "arms");
    for (int a = 0; a < trial->n_arms; a++) {
        cJSON *arm = cJSON_CreateObject();
        const struct nb_interval gain = nb_tune_gain(trial, a);
        add_setting(arm, o, a, base);
        cJSON_AddBoolToObject(arm, "default", a == trial->base_arm);
        add_gain(arm, "faster_percent", &gain);
        cJSON_AddItemToArray(arms, arm);
    }
    nb_strbuf_release(&key);
    cJSON_AddItemToArray(trials, json);
}

static void add_topic(cJSON *topics, const struct nb_tune_outcome *o, const struct nb_tuning *base) {
    const bool changed = o->verdict.candidate >= 0;
    struct nb_strbuf chosen = {0};
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "name", o->topic->name);
    nb_json_text(json, "field", o->topic->field);
    nb_json_text(json, "verdict", o->n_trials == 0 ? "not_measured" : changed ? "measured" : "default");
    if (changed) nb_tuning_print(&o->candidates[o->verdict.candidate].tuning, base, &chosen);
    nb_json_text(json, "setting", changed ? chosen.text : NULL);
    nb_json_text(json, "reason", o->reason[0] ? o->reason : NULL);
    add_gain(json, "faster_percent", &o->verdict.gain);
    cJSON_AddNumberToObject(json, "trials_that_differ", (double)o->verdict.n_trials);
    cJSON *trials = cJSON_AddArrayToObject(json, "trials");
    for (size_t t = 0; t < o->n_trials; t++) add_trial(trials, o, t, base);
    nb_strbuf_release(&chosen);
    cJSON_AddItemToArray(topics, json);
}

cJSON *nb_tune_run_to_json(const struct nb_tune_run *run, const char *measured) {
    const char *file = nb_registry_file(0);
    char hash[20] = "";
    cJSON *json = cJSON_CreateObject();
    if (file) nb_file_hash(file, hash);
    nb_json_text(json, "schema", NB_TUNING_SCHEMA);
    nb_json_text(json, "program", "normbench");
    nb_json_text(json, "version", NB_VERSION);
    nb_json_text(json, "measured", measured);
    nb_json_number(json, "elapsed_s", run->elapsed_s);
    add_cpu(json);
    nb_json_text(json, "kernels_hash", hash[0] ? hash : NULL);
    cJSON_AddNumberToObject(json, "launches", run->options.launches);
    cJSON_AddNumberToObject(json, "blocks", run->options.blocks);
    cJSON_AddItemToObject(json, "tuning", nb_tuning_to_json(&run->tuned));
    cJSON_AddItemToObject(json, "defaults", nb_tuning_to_json(&run->base));
    cJSON *topics = cJSON_AddArrayToObject(json, "topics");
    for (size_t i = 0; i < run->n_topics; i++) add_topic(topics, &run->topics[i], &run->base);
    return json;
}
