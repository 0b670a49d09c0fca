// SPDX-License-Identifier: Apache-2.0
/* A gate as JSON: reports/schema/gate.schema.json describes it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/gate_report.h"
#include "src/accuracy_json.h"
#include "src/fingerprint.h"
#include "src/json.h"

static void add_interval(cJSON *object, const char *name, const struct nb_interval *i) {
    cJSON *json = cJSON_AddObjectToObject(object, name);
    nb_json_number(json, "value", i->value);
    nb_json_number(json, "low", i->low);
    nb_json_number(json, "high", i->high);
}

static void add_launches(cJSON *object, const char *name, const struct nb_gate_launch *launches, size_t n) {
    cJSON *array = cJSON_AddArrayToObject(object, name);
    for (size_t i = 0; i < n; i++) {
        cJSON *json = cJSON_CreateObject();
        nb_json_number(json, "ln_ratio", launches[i].ratio);
        nb_json_number(json, "ln_control", launches[i].control);
        nb_json_number(json, "ln_ratio_min", launches[i].ratio_min);
        nb_json_number(json, "order_effect", launches[i].order_effect);
        nb_json_number(json, "contaminated", launches[i].contaminated);
        cJSON_AddNumberToObject(json, "layout", launches[i].layout);
        cJSON_AddItemToArray(array, json);
    }
}

static void add_judgement(cJSON *json, const struct nb_gate_case *c) {
    const struct nb_gate_judgement *j = &c->judgement;
    add_interval(json, "ratio", &j->ratio);
    add_interval(json, "confirmed", &j->confirmed);
    add_interval(json, "control", &j->control);
    add_interval(json, "t_ratio", &j->t_ratio);
    nb_json_number(json, "ratio_min", j->ratio_min);
    nb_json_number(json, "order_effect", j->order_effect);
    nb_json_number(json, "contaminated", j->contaminated);
    nb_json_number(json, "launch_sd", j->launch_sd);
    nb_json_number(json, "smallest_effect", j->smallest_effect);
    nb_json_number(json, "layout_spread", j->layout_spread);
    cJSON_AddBoolToObject(json, "flagged", j->flagged);
}

static cJSON *case_to_json(const struct nb_gate_case *c) {
    cJSON *json = cJSON_CreateObject(), *builds = cJSON_CreateObject();
    nb_json_text(json, "key", c->key);
    nb_json_text(json, "variant", strchr(c->c.variant, ':') ? strchr(c->c.variant, ':') + 1 : c->c.variant);
    nb_json_text(json, "verdict", nb_verdict_name(c->verdict));
    nb_json_text(json, "reason", c->reason[0] ? c->reason : NULL);
    nb_json_number(json, "seconds", c->seconds);
    cJSON_AddItemToObject(json, "builds", builds);
    for (int b = 0; b < NB_N_BUILDS; b++) {
        cJSON *build = cJSON_AddObjectToObject(builds, nb_build_names[b]);
        nb_json_number(build, "call_ns", c->n_screen > 0 ? c->call_ns[b] : (double)NAN);
        nb_json_number(build, "instructions", c->instructions[b]);
        if (c->has_accuracy[b])
            cJSON_AddItemToObject(build, "accuracy", nb_accuracy_to_json(&c->accuracy[b], c->c.dtype));
    }
    if (c->n_screen == 0) return json;
    add_judgement(json, c);
    cJSON_AddBoolToObject(json, "chunked", c->chunked);
    add_launches(json, "screen", c->screen, c->n_screen);
    add_launches(json, "confirm", c->confirm, c->n_confirm);
    return json;
}

cJSON *nb_gate_to_json(const struct nb_gate *g) {
    cJSON *json = cJSON_CreateObject(), *rule = cJSON_CreateObject();
    nb_json_text(json, "schema", "1.0");
    nb_json_text(json, "program", "normbench");
    nb_json_text(json, "version", NB_VERSION);
    nb_json_number(json, "elapsed_s", g->elapsed_s);
    cJSON_AddNumberToObject(json, "layouts", g->builds.n_layouts);
    cJSON_AddItemToObject(json, "rule", rule);
    nb_json_number(rule, "fail_margin", g->plan.rule.fail_margin);
    nb_json_number(rule, "pass_margin", g->plan.rule.pass_margin);
    nb_json_number(rule, "run_level", g->plan.rule.run_level);
    nb_json_number(rule, "pass_level", g->plan.rule.pass_level);
    cJSON *cases = cJSON_AddArrayToObject(json, "cases");
    for (size_t i = 0; i < g->n_cases; i++) cJSON_AddItemToArray(cases, case_to_json(&g->cases[i]));
    cJSON_AddItemToObject(json, "fingerprint", nb_fingerprint());
    return json;
}
