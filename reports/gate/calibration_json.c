// SPDX-License-Identifier: Apache-2.0
/* A calibration as JSON: reports/schema/calibration.schema.json describes it. Ratios are logarithms where a name begins with ln. */
#include <math.h>
#include <stdlib.h>

#include "reports/gate/calibration_report.h"
#include "src/core/case.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/record/fingerprint.h"

static void add_interval(cJSON *object, const char *name, const struct nb_interval *i) {
    cJSON *json = cJSON_AddObjectToObject(object, name);
    nb_json_number(json, "value", i->value);
    nb_json_number(json, "low", i->low);
    nb_json_number(json, "high", i->high);
}

static void add_noise(cJSON *group, const struct nb_calibration *c) {
    cJSON *json = cJSON_AddObjectToObject(group, "noise");
    cJSON_AddNumberToObject(json, "launches", (double)c->n_launches);
    nb_json_number(json, "ln_launch_sd", c->launch_sd);
    nb_json_number(json, "ln_launch_sd_high", c->launch_sd_high);
    nb_json_number(json, "ln_within_sd", c->within_sd);
    nb_json_number(json, "ln_between_sd", c->between_sd);
    nb_json_number(json, "ln_same_code_sd", c->same_sd);
    nb_json_number(json, "ln_fastest_sd", c->min_sd);
    nb_json_text(json, "tighter", isfinite(c->min_sd) ? c->min_sd < c->launch_sd ? "fastest" : "median" : NULL);
    nb_json_number(json, "contaminated", c->contaminated);
    nb_json_number(json, "overhead_s", c->overhead_s);
    nb_json_number(json, "sample_s", c->sample_s);
    add_interval(json, "ln_order_effect", &c->order_effect);
    cJSON *bias = cJSON_AddObjectToObject(json, "ln_bias");
    for (int t = 0; t < NB_N_REPLICAS; t++) add_interval(bias, nb_replica_names[t], &c->bias[t]);
}

static void add_plan(cJSON *json, const struct nb_gate_design *plan) {
    cJSON_AddNumberToObject(json, "screen_launches", plan->screen_launches);
    cJSON_AddNumberToObject(json, "confirm_launches", plan->confirm_launches);
    cJSON_AddNumberToObject(json, "blocks", plan->blocks);
}

static void add_power(cJSON *json, const struct nb_gate_power *power) {
    nb_json_number(json, "pass_without_change", power->pass_same);
    nb_json_number(json, "regression_without_change", power->regression_same);
    nb_json_number(json, "regression_with_effect", power->regression_effect);
    nb_json_number(json, "pass_with_effect", power->pass_effect);
}

static cJSON *group_to_json(const struct nb_calibration_run *run, const struct nb_calibration_group *group,
                            const struct nb_calibration_findings *f) {
    cJSON *json = cJSON_CreateObject(), *cases;
    nb_json_text(json, "op", nb_op_name(group->c->op));
    nb_json_text(json, "pass", nb_pass_name(group->c->pass));
    nb_json_text(json, "dtype", nb_dtype_names[group->c->dtype]);
    nb_json_text(json, "shape", group->c->shape.text);
    cJSON_AddNumberToObject(json, "n_cases", (double)group->n_all);
    cases = cJSON_AddArrayToObject(json, "launched");
    for (size_t i = 0; i < group->n_cases; i++)
        cJSON_AddItemToArray(cases, cJSON_CreateString(run->g->cases[group->cases[i]].key));
    nb_json_text(json, "refused", group->refused[0] ? group->refused : NULL);
    add_noise(json, &group->noise);
    cJSON *usual = cJSON_AddObjectToObject(json, "usual_plan");
    add_plan(usual, &f->usual);
    add_power(usual, &f->usual_power);
    nb_json_number(usual, "smallest_effect", f->smallest_effect);
    nb_json_text(usual, "cannot_be_gated", f->hopeless[0] ? f->hopeless : NULL);
    if (!f->wanted.is_found) {
        cJSON_AddNullToObject(json, "wanted_plan");
        return json;
    }
    cJSON *wanted = cJSON_AddObjectToObject(json, "wanted_plan");
    add_plan(wanted, &f->wanted.plan);
    add_power(wanted, &f->wanted.power);
    nb_json_number(wanted, "seconds_without_change", f->wanted.seconds_same);
    nb_json_number(wanted, "seconds_with_effect", f->wanted.seconds_effect);
    return json;
}

cJSON *nb_calibration_to_json(const struct nb_calibration_report *report) {
    const struct nb_calibration_run *run = report->run;
    const struct nb_gate_rule *rule = &run->g->plan.rule;
    cJSON *json = cJSON_CreateObject(), *groups;
    nb_json_text(json, "schema", "2.0");
    nb_json_text(json, "program", "normbench");
    nb_json_text(json, "version", NB_VERSION);
    nb_json_text(json, "config", report->config);
    nb_json_number(json, "elapsed_s", run->elapsed_s);
    cJSON_AddNumberToObject(json, "launches", run->launches);
    cJSON_AddNumberToObject(json, "blocks", run->g->plan.blocks);
    nb_json_number(json, "sample_ms", run->g->plan.sample_ms);
    nb_json_number(json, "fail_margin", rule->fail_margin);
    nb_json_number(json, "pass_margin", rule->pass_margin);
    nb_json_number(json, "effect", report->effect);
    groups = cJSON_AddArrayToObject(json, "groups");
    for (size_t i = 0; i < run->n_groups; i++)
        cJSON_AddItemToArray(groups, group_to_json(run, &run->groups[i], &report->findings[i]));
    if (report->noisiest >= 0)
        add_plan(cJSON_AddObjectToObject(json, "recommended"), &report->findings[report->noisiest].wanted.plan);
    else
        cJSON_AddNullToObject(json, "recommended");
    cJSON_AddItemToObject(json, "fingerprint", nb_fingerprint());
    return json;
}

int nb_calibration_write(const struct nb_calibration_report *report, const char *dir) {
    struct nb_strbuf text = {0};
    cJSON *json = nb_calibration_to_json(report);
    char *path = nb_path_join(dir, "calibration.json");
    nb_json_print_pretty(json, 0, &text);
    nb_strbuf_add(&text, "\n");
    const int result = nb_file_write(path, text.text, text.len);
    free(path);
    nb_strbuf_release(&text);
    cJSON_Delete(json);
    return result;
}
