// SPDX-License-Identifier: Apache-2.0
/* Lines in the order of what happened: a session, then launches and verdicts. */
#include "reports/gate/trials_record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reports/gate/gate_trials_report.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/fingerprint.h"

static const char *const arm_names[] = {"baseline", "control", "copy", "injected"};

static void write_line(const struct nb_trials_record *r, cJSON *line) {
    struct nb_strbuf text = {0};
    nb_json_print(line, &text);
    fprintf(r->samples, "%s\n", text.text);
    nb_strbuf_release(&text);
    cJSON_Delete(line);
}

static cJSON *begin_line(const struct nb_trials_record *r, const char *type) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", type);
    nb_json_text(line, "session", r->session);
    return line;
}

static cJSON *plan_to_json(const struct nb_gate *g, const struct nb_trial_plan *plan) {
    const struct nb_gate_rule *rule = &g->plan.rule;
    cJSON *json = cJSON_CreateObject(), *effects = cJSON_AddArrayToObject(json, "effects_percent");
    for (int i = 0; i < plan->n_effects; i++) cJSON_AddItemToArray(effects, cJSON_CreateNumber(plan->effects[i]));
    cJSON_AddNumberToObject(json, "trials", plan->trials);
    cJSON_AddNumberToObject(json, "powered", plan->powered);
    cJSON_AddNumberToObject(json, "screen_launches", g->plan.screen_launches);
    cJSON_AddNumberToObject(json, "confirm_launches", g->plan.confirm_launches);
    cJSON_AddNumberToObject(json, "blocks", g->plan.blocks);
    nb_json_number(json, "sample_ms", g->plan.sample_ms);
    nb_json_uint64(json, "seed", g->plan.seed);
    nb_json_number(json, "fail_margin", rule->fail_margin);
    nb_json_number(json, "pass_margin", rule->pass_margin);
    nb_json_number(json, "run_level", rule->run_level);
    nb_json_number(json, "pass_level", rule->pass_level);
    return json;
}

int nb_trials_record_open(struct nb_trials_record *r, const struct nb_gate *g, const struct nb_trial_plan *plan,
                          const char *dir) {
    const time_t now = time(NULL);
    struct tm utc;
    *r = (struct nb_trials_record){.g = g};
    if (nb_dir_make(dir) != 0) return -1;
    char *path = nb_path_join(dir, "samples.jsonl");
    r->samples = fopen(path, "we");
    if (!r->samples) nb_error("%s: %s", path, strerror(errno));
    free(path);
    if (!r->samples) return -1;
    strftime(r->session, sizeof r->session, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    cJSON *line = begin_line(r, "session");
    nb_json_text(line, "schema", "2.0");
    cJSON_AddItemToObject(line, "plan", plan_to_json(g, plan));
    cJSON_AddItemToObject(line, "fingerprint", nb_fingerprint());
    write_line(r, line);
    return 0;
}

/* ---- launches and verdicts --------------------------------------------------------------------------------------------- */

static void record_launch(const struct nb_trial_launch *launch, void *arg) {
    const struct nb_trials_record *r = arg;
    cJSON *line = begin_line(r, "launch"), *arms, *arm, *item;
    cJSON_AddNumberToObject(line, "trial", launch->trial);
    nb_json_text(line, "load", nb_load_names[launch->load]);
    nb_json_text(line, "case", r->g->cases[launch->case_index].key);
    cJSON_AddNumberToObject(line, "stage", launch->stage);
    cJSON_AddNumberToObject(line, "launch", launch->launch);
    cJSON_AddNumberToObject(line, "layout", launch->layout);
    nb_json_number(line, "at_s", round(1e3 * launch->at_s) / 1e3);
    cJSON_ArrayForEach(item, launch->line) if (strcmp(item->string, "type") != 0)
        cJSON_AddItemToObject(line, item->string, cJSON_Duplicate(item, 1));
    int i = 0;
    arms = cJSON_GetObjectItemCaseSensitive(line, "arms");
    cJSON_ArrayForEach(arm, arms) {
        nb_json_text(arm, "arm", arm_names[i < 3 ? i : 3]);
        cJSON_AddNumberToObject(arm, "effect_percent", i < launch->n_arms ? launch->effects[i] : 0);
        i++;
    }
    write_line(r, line);
}

static cJSON *result_to_json(cJSON *json, const struct nb_gate *g, const struct nb_trial_result *result) {
    cJSON_AddNumberToObject(json, "trial", result->trial);
    nb_json_text(json, "load", nb_load_names[result->load]);
    nb_json_text(json, "case", g->cases[result->case_index].key);
    cJSON_AddNumberToObject(json, "effect_percent", result->effect);
    nb_json_text(json, "verdict", nb_verdict_name(result->verdict));
    nb_json_number(json, "ratio", result->ratio);
    nb_json_number(json, "launch_sd", result->launch_sd);
    nb_json_number(json, "smallest_effect", result->smallest_effect);
    nb_json_number(json, "seconds", result->seconds);
    return json;
}

static void record_verdict(const struct nb_trial_result *result, void *arg) {
    const struct nb_trials_record *r = arg;
    write_line(r, result_to_json(begin_line(r, "verdict"), r->g, result));
}

struct nb_trial_recorder nb_trials_recorder(struct nb_trials_record *r) {
    return (struct nb_trial_recorder){.launch = record_launch, .verdict = record_verdict, .arg = r};
}

int nb_trials_record_close(struct nb_trials_record *r) {
    const bool failed = ferror(r->samples) != 0;
    if (fclose(r->samples) != 0 || failed) return nb_error("samples.jsonl: %s: not all was written", strerror(errno));
    return 0;
}

int nb_trials_write(const struct nb_gate *g, const struct nb_trial_plan *plan, const struct nb_trials *t,
                    const char *dir) {
    struct nb_strbuf text = {0};
    cJSON *json = nb_gate_trials_to_json(plan, t), *results;
    nb_json_text(json, "schema", "2.0");
    cJSON_AddItemToObject(json, "plan", plan_to_json(g, plan));
    results = cJSON_AddArrayToObject(json, "results");
    for (size_t i = 0; i < t->n; i++)
        cJSON_AddItemToArray(results, result_to_json(cJSON_CreateObject(), g, &t->results[i]));
    cJSON_AddItemToObject(json, "fingerprint", nb_fingerprint());
    char *path = nb_path_join(dir, "trials.json");
    nb_json_print_pretty(json, 0, &text);
    nb_strbuf_add(&text, "\n");
    const int result = nb_file_write(path, text.text, text.len);
    free(path);
    nb_strbuf_release(&text);
    cJSON_Delete(json);
    return result;
}
