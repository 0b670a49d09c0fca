// SPDX-License-Identifier: Apache-2.0
/* Results as JSON: of each reading every figure that its rules looked at, with the outcome. */
#include "src/claims/claims_document.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/experiment.h"
#include "src/claims/training.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/fingerprint.h"

enum { LARGEST_FILE = 1 << 28 };

static cJSON *ruled_json(const struct nb_ruled *r, const struct nb_findings *findings,
                         const struct nb_reading *reading) {
    cJSON *json = cJSON_CreateObject();
    nb_json_number(json, "value", r->value.value);
    nb_json_number(json, "low", r->value.low);
    nb_json_number(json, "high", r->value.high);
    nb_json_number(json, "rule", (double)(r->rule - reading->rules));
    nb_json_text(json, "outcome", nb_outcome_names[r->outcome]);
    if (r->reason) nb_json_text(json, "reason", r->reason);
    if (r->label) nb_json_text(json, "label", r->label);
    nb_json_text(json, "unit", r->unit);
    if (r->finding == NB_NO_FINDING) return json;
    const struct nb_finding *f = &findings->items[r->finding];
    nb_json_number(json, "launches", f->n_launches);
    if (f->evidence) nb_json_text(json, "evidence", f->evidence);
    cJSON *tags = cJSON_AddObjectToObject(json, "tags");
    for (size_t i = 0; i < f->n_tags; i++) nb_json_text(tags, f->tags[i].axis, f->tags[i].value);
    return json;
}

static cJSON *rule_json(const struct nb_rule *rule) {
    cJSON *json = cJSON_CreateObject();
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_rule_print(rule, &text);
    nb_json_text(json, "rule", text.text);
    nb_json_text(json, "form", nb_rule_form_names[rule->form]);
    nb_json_text(json, "figure", rule->figure);
    nb_json_text(json, "text", rule->text);
    nb_json_number(json, "published", rule->published.value);
    nb_json_number(json, "published_low", rule->published.low);
    nb_json_number(json, "published_high", rule->published.high);
    nb_json_number(json, "least", rule->least);
    nb_json_number(json, "most", rule->most);
    return json;
}

static cJSON *read_json(const struct nb_claim_result *result, const struct nb_read *read) {
    const struct nb_reading *reading = read->reading;
    const struct nb_experiment *e = &result->claim->experiments[reading->experiment];
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "id", reading->id);
    nb_json_text(json, "text", reading->text);
    nb_json_text(json, "kind", e->kind->name);
    nb_json_text(json, "under", reading->under);
    nb_json_text(json, "seen", reading->seen);
    cJSON_AddBoolToObject(json, "alternative", reading->alternative);
    nb_json_text(json, "verdict", nb_claim_verdict_names[read->verdict]);
    nb_json_text(json, "reason", read->reason);
    cJSON *rules = cJSON_AddArrayToObject(json, "expect"), *figures = cJSON_AddArrayToObject(json, "figures");
    for (size_t i = 0; i < reading->n_rules; i++) cJSON_AddItemToArray(rules, rule_json(&reading->rules[i]));
    for (size_t i = 0; i < read->rulings.n; i++)
        cJSON_AddItemToArray(figures,
                             ruled_json(&read->rulings.items[i], &result->findings[reading->experiment], reading));
    return json;
}

static cJSON *sensed_json(const struct nb_claim_result *result, size_t i) {
    const struct nb_sensed *s = &result->sensed[i];
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "axis", s->by->axis);
    nb_json_text(json, "value", s->value);
    nb_json_text(json, "reading", s->reading->id);
    nb_json_text(json, "verdict", nb_claim_verdict_names[s->verdict]);
    nb_json_number(json, "figures", (double)s->n);
    nb_json_number(json, "low", s->low);
    nb_json_number(json, "high", s->high);
    cJSON_AddBoolToObject(json, "decides", nb_sensitivity_decides(result, i));
    return json;
}

static cJSON *claim_json(const struct nb_claim_result *result) {
    const struct nb_claim *c = result->claim;
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "id", c->id);
    nb_json_text(json, "title", c->title);
    nb_json_text(json, "statement", c->statement);
    nb_json_text(json, "scope", c->scope);
    cJSON *sources = cJSON_AddArrayToObject(json, "sources");
    for (size_t i = 0; i < c->n_sources; i++) {
        cJSON *source = nb_json_add_object(sources);
        nb_json_text(source, "cite", c->sources[i].cite);
        nb_json_text(source, "says", c->sources[i].says);
        nb_json_text(source, "note", c->sources[i].note);
    }
    nb_json_text(json, "verdict", nb_claim_verdict_names[result->verdict]);
    nb_json_text(json, "reason", result->reason);
    nb_json_text(json, "decided_by", result->main == NB_NO_READING ? NULL : c->readings[result->main].id);
    nb_json_text(json, "correction", c->correction);
    nb_json_text(json, "remark", c->remark);
    cJSON *changes = cJSON_AddArrayToObject(json, "changed_after_data");
    for (size_t i = 0; i < c->changed_after_data.n; i++)
        cJSON_AddItemToArray(changes, cJSON_CreateString(c->changed_after_data.items[i]));
    cJSON *readings = cJSON_AddArrayToObject(json, "readings");
    for (size_t i = 0; i < c->n_readings; i++) cJSON_AddItemToArray(readings, read_json(result, &result->reads[i]));
    cJSON *sensed = cJSON_AddArrayToObject(json, "sensitivity");
    for (size_t i = 0; i < result->n_sensed; i++) cJSON_AddItemToArray(sensed, sensed_json(result, i));
    return json;
}

static void add_counts(cJSON *json, const struct nb_claim_result *results, size_t n) {
    cJSON *counts = cJSON_AddObjectToObject(json, "counts");
    for (int v = 0; v < NB_N_CLAIM_VERDICTS; v++) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++) count += (int)results[i].verdict == v && !nb_claim_is_bug(results[i].claim->id);
        nb_json_number(counts, nb_claim_verdict_names[v], (double)count);
    }
    size_t n_bugs = 0, n_break = 0;
    for (size_t i = 0; i < n; i++) {
        if (!nb_claim_is_bug(results[i].claim->id)) continue;
        n_bugs++;
        n_break += results[i].verdict == NB_REPRODUCED || results[i].verdict == NB_PARTLY;
    }
    if (n_bugs == 0) return;
    nb_json_number(counts, "bug inputs", (double)n_bugs);
    nb_json_number(counts, "bug inputs that break a kernel", (double)n_break);
}

static void add_eager(cJSON *section, const struct nb_claims_about *about) {
    const struct nb_interval *d = &about->eager_us;
    cJSON *eager = cJSON_AddObjectToObject(section, "eager");
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_json_interval(eager, "dispatch_us", d);
    if (d->value > 0)
        nb_strbuf_addf(&text, "PyTorch on this CPU, one operator at a time: d = %.3g us an operation [%.3g, %.3g].",
                       d->value, d->low, d->high);
    else
        nb_strbuf_addf(&text, "What an operation costs PyTorch on this CPU is not known: %s.",
                       about->no_eager ? about->no_eager : "the run ended before");
    nb_json_text(eager, "sentence", text.text);
}

static void add_steps(cJSON *json, const struct nb_claim_result *results, size_t n,
                      const struct nb_claims_about *about) {
    cJSON *section = cJSON_CreateObject(), *models = cJSON_AddArrayToObject(section, "models");
    for (size_t i = 0; i < n; i++)
        for (size_t e = 0; e < results[i].claim->n_experiments; e++) {
            const struct nb_experiment *experiment = &results[i].claim->experiments[e];
            if (experiment->kind == &nb_experiment_step) nb_steps_to_json(experiment, about->measured, models);
        }
    if (cJSON_GetArraySize(models) == 0) {
        cJSON_Delete(section);
        return;
    }
    add_eager(section, about);
    if (about->measured->rates) cJSON_AddItemToObject(section, "rates", nb_rates_to_json(about->measured->rates));
    cJSON_AddItemToObject(json, "steps", section);
    cJSON_AddItemToObject(json, "recorded", nb_claims_readings());
}

/* The arm's tokens over those of the list: a training's is of the workload's own size, and a reading on a CPU of fewer. */
static double share_of(const cJSON *model, const cJSON *measured) {
    const struct nb_model_workload *w = nb_model_workload_find(nb_json_get_string(measured, "workload"));
    struct nb_model_arm arm;
    char reason[200];
    if (!w || nb_model_arm_parse(&arm, NULL, nb_json_get_string(measured, "arm"), reason, sizeof reason)) return NAN;
    nb_model_arm_complete(&arm, w);
    const double own = (double)w->batch * w->sequence, tokens = nb_json_get_number(model, "tokens");
    return (double)arm.batch * arm.sequence / (nb_json_get_bool(model, "training") ? own : tokens);
}

/* Forward and backward of LayerNorm's step in PyTorch, times its threads, beside the sum of its operations on one. */
static void add_check(cJSON *checks, const cJSON *model, const cJSON *measured) {
    const bool training = nb_json_get_bool(model, "training");
    const cJSON *part = nb_json_find(nb_json_get(model, "parts"), "part", training ? "passes" : "step");
    const double share = share_of(model, measured), threads = nb_json_get_number(measured, "threads");
    const double passes = nb_json_get_interval(measured, "forward").value +
                          (training ? nb_json_get_interval(measured, "backward").value : 0);
    const double sum = share * nb_json_get_interval(part, "seconds").value;
    cJSON *check = nb_json_add_object(checks);
    nb_json_text(check, "model", nb_json_get_text(model, "model"));
    nb_json_text(check, "arm", nb_json_get_text(measured, "arm"));
    nb_json_number(check, "threads", threads);
    nb_json_number(check, "share", share);
    nb_json_number(check, "sum_s", sum);
    nb_json_number(check, "torch_s", passes);
    nb_json_number(check, "ratio", passes * threads / sum);
}

/* Of each model that was summed and timed; unfused norms beside the printed class, fused ones beside PyTorch's. */
static void add_checks(cJSON *json) {
    cJSON *steps = nb_json_get(json, "steps");
    const cJSON *training = nb_json_get(json, "training"), *model, *measured;
    if (!steps || !nb_json_is(training, "device", "cpu")) return;
    cJSON *checks = cJSON_AddArrayToObject(steps, "checks");
    cJSON_ArrayForEach(model, nb_json_get(steps, "models")) {
        const char *style = nb_json_is(model, "style", "fused") ? "nn" : "printed";
        const char *list = nb_json_get_bool(model, "training") ? "steps" : "inference";
        const char *name = nb_json_get_string(model, "model"), *end = strstr(name, "-inference");
        const size_t length = end ? (size_t)(end - name) : strlen(name);
        cJSON_ArrayForEach(measured, nb_json_get(training, list)) {
            const char *workload = nb_json_get_string(measured, "workload");
            if (strlen(workload) == length && strncmp(workload, name, length) == 0 &&
                nb_json_is(model, "norm", "rmsnorm") && nb_json_is(measured, "norm", "layernorm") &&
                nb_json_is(measured, "style", style))
                add_check(checks, model, measured);
        }
    }
}

cJSON *nb_claims_document(const struct nb_claim_result *results, size_t n, const struct nb_claims_about *about) {
    assert(about && (results || n == 0));
    cJSON *json = nb_json_document(NB_CLAIMS_SCHEMA);
    nb_json_text(json, "started", about->started);
    cJSON *argv = cJSON_AddArrayToObject(json, "argv");
    for (int i = 0; i < about->argc; i++) cJSON_AddItemToArray(argv, cJSON_CreateString(about->argv[i]));
    cJSON_AddBoolToObject(json, "quick", about->quick);
    cJSON_AddBoolToObject(json, "complete", about->complete);
    nb_json_number(json, "elapsed_s", about->elapsed_s);
    cJSON *folders = cJSON_AddObjectToObject(json, "folders");
    for (int i = 0; i < NB_N_CLAIMS_PLANS; i++) nb_json_text(folders, nb_claims_plan_names[i], about->folders[i]);
    cJSON_AddItemToObject(json, "fingerprint", nb_fingerprint());
    add_counts(json, results, n);
    if (about->measured) add_steps(json, results, n, about);
    if (about->measured && about->measured->training)
        cJSON_AddItemToObject(json, "training", nb_training_to_json(about->measured->training));
    add_checks(json);
    cJSON *claims = cJSON_AddArrayToObject(json, "claims");
    for (size_t i = 0; i < n; i++) cJSON_AddItemToArray(claims, claim_json(&results[i]));
    nb_json_add_sum(json);
    return json;
}

int nb_claims_document_write(const cJSON *document, const char *dir) {
    char *path freed = nb_path_join(dir, NB_CLAIMS_FILE);
    int result = nb_dir_make(dir);
    if (result == 0) result = nb_json_write(document, path);
    return result;
}

static bool has_claims(const cJSON *document, const char *path) {
    const cJSON *claims = nb_json_get(document, "claims"), *claim;
    bool all = cJSON_IsArray(claims);
    if (!all) nb_error("%s: \"claims\" is not a list: it holds no verdicts; run `normbench claims` again", path);
    cJSON_ArrayForEach(claim, claims) {
        if (!all || (nb_json_get_text(claim, "id") && nb_json_get_text(claim, "verdict"))) continue;
        nb_error("%s: a claim without \"%s\"; run `normbench claims` again", path,
                 nb_json_get_text(claim, "id") ? "verdict" : "id");
        all = false;
    }
    return all;
}

cJSON *nb_claims_document_read(const char *where) {
    const size_t n = strlen(where);
    const bool is_file = n > 5 && strcmp(where + n - 5, ".json") == 0;
    char *path freed = is_file ? nb_strdup(where) : nb_path_join(where, NB_CLAIMS_FILE);
    char *text freed = nb_file_read(path, LARGEST_FILE, NULL);
    cJSON *json = text && nb_json_is_utf8(text) ? cJSON_Parse(text) : NULL;
    if (text && !json) nb_error("%s: is not JSON in UTF-8", path);
    static const char mend[] = "`normbench claims --resume` makes it again";
    if (json && (nb_json_check_schema(json, path, NB_CLAIMS_SCHEMA) != 0 || !has_claims(json, path) ||
                 nb_json_check_sum(json, path, "it", mend) != 0)) {
        cJSON_Delete(json);
        json = NULL;
    }
    return json;
}

/* A file of configs/ as it stands there; null after nb_error. */
static cJSON *read_shared(const char *file) {
    struct nb_jsonc read released_by(nb_jsonc_release) = {0};
    char *path freed = nb_jsonc_find(file);
    if (!path) nb_error("there is no configs/%s", file);
    if (!path || nb_jsonc_read(&read, path) != 0) return NULL;
    cJSON *root = read.root;
    read.root = NULL;
    return root;
}

cJSON *nb_claims_table_read(const char *name) {
    char *file freed = nb_textf("claims/tables/%s.json", name);
    return read_shared(file);
}

cJSON *nb_claims_readings(void) {
    char *dir freed = nb_jsonc_find("models/readings");
    struct nb_strings names released_by(nb_strings_release) = nb_dir_list(dir, ".json");
    cJSON *all = cJSON_CreateArray();
    for (size_t i = 0; i < names.n; i++) {
        char *file freed = nb_textf("models/readings/%s.json", names.items[i]);
        cJSON *readings = read_shared(file);
        if (readings) cJSON_AddItemToArray(all, readings);
    }
    return all;
}
