// SPDX-License-Identifier: Apache-2.0
#include "src/models/step.h"

#include <math.h>

#include "src/core/json.h"
#include "src/core/names.h"
#include "src/core/timer.h"
#include "src/record/fingerprint.h"

static cJSON *model_json(const struct nb_model_step *s) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "name", s->name);
    nb_json_text(json, "title", s->title);
    nb_json_text(json, "source", s->source);
    nb_json_text(json, "work", s->training ? "training" : "inference");
    nb_json_text(json, "dtype", nb_dtype_names[s->dtype]);
    nb_json_number(json, "tokens", s->tokens);
    nb_json_number(json, "context", s->context > 0 ? s->context : (double)NAN);
    nb_json_number(json, "parameters", s->parameters);
    nb_json_number(json, "operations", (double)s->n_operations);
    return json;
}

static void add_interval(cJSON *json, const char *name, struct nb_interval value) {
    nb_json_interval(json, name, &value);
}

/* Savings that readers ask about, and which cost of dispatch each would need. */
static void add_dispatch(cJSON *json, const struct nb_step_side *side) {
    static const double cuts[] = {0.01, 0.05, 0.10, 0.25};
    cJSON *list = cJSON_AddArrayToObject(json, "dispatch");
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        const struct nb_interval d = nb_step_dispatch_for(side, cuts[i]);
        cJSON *one = nb_json_add_object(list);
        nb_json_number(one, "cut", cuts[i]);
        cJSON_AddBoolToObject(one, "never", isinf(d.value));
        add_interval(one, "seconds", d);
    }
}

static void add_norms(cJSON *json, const struct nb_norm_times *norms) {
    cJSON *list = cJSON_AddArrayToObject(json, "norms");
    for (size_t i = 0; i < norms->n; i++) {
        const struct nb_norm_time *t = &norms->items[i];
        cJSON *one = nb_json_add_object(list);
        nb_json_text(one, "pass", nb_pass_names[t->pass]);
        nb_json_text(one, "of", norms->pair.of[t->pass]);
        nb_json_text(one, "against", norms->pair.against[t->pass]);
        nb_json_number(one, "rows", (double)t->rows);
        nb_json_number(one, "cols", (double)t->cols);
        nb_json_number(one, "timed_rows", (double)t->timed_rows);
        add_interval(one, "against_s", t->against_s);
        add_interval(one, "ratio", t->ratio);
        nb_json_text(one, "reason", t->reason);
    }
}

static void add_pair(cJSON *pairs, const struct nb_step_about *a, const struct nb_norm_times *norms) {
    const struct nb_step_side side = nb_step_sum(a->step, NB_PART_STEP, a->rates, norms, NULL);
    cJSON *json = nb_json_add_object(pairs);
    nb_json_text(json, "style", norms->pair.style);
    nb_json_text(json, "of", norms->pair.of[NB_FORWARD]);
    nb_json_text(json, "against", norms->pair.against[NB_FORWARD]);
    add_interval(json, "cut", nb_step_cut(&side, 0));
    add_interval(json, "share", nb_step_share(&side));
    add_interval(json, "saved_s", side.saved_s);
    add_interval(json, "step_s", nb_step_seconds(&side, 0));
    add_interval(json, "products_s", side.products_s);
    add_interval(json, "norms_s", side.norms_s);
    add_interval(json, "moved_s", side.moved_s);
    nb_json_number(json, "flops", side.flops);
    nb_json_number(json, "bytes", side.bytes);
    nb_json_number(json, "dispatches", side.dispatches);
    nb_json_number(json, "norm_dispatches", side.norm_dispatches);
    nb_json_number(json, "of_norm_dispatches", side.of_norm_dispatches);
    nb_json_number(json, "limit", nb_step_cut_limit(&side));
    nb_json_text(json, "reason", side.reason);
    add_dispatch(json, &side);
    add_norms(json, norms);
}

cJSON *nb_step_document(const struct nb_step_about *about) {
    cJSON *json = cJSON_CreateObject(), *argv, *pairs;
    char now[32];
    nb_utc_now("%Y-%m-%dT%H:%M:%SZ", now, sizeof now);
    nb_json_text(json, "schema", NB_SCHEMA_VERSION);
    nb_json_text(json, "program", "normbench");
    nb_json_text(json, "version", NB_VERSION);
    nb_json_text(json, "ended", now);
    argv = cJSON_AddArrayToObject(json, "argv");
    for (int i = 0; i < about->argc; i++) cJSON_AddItemToArray(argv, cJSON_CreateString(about->argv[i]));
    cJSON_AddBoolToObject(json, "complete", about->complete);
    nb_json_number(json, "elapsed_s", about->elapsed_s);
    cJSON_AddItemToObject(json, "model", model_json(about->step));
    pairs = cJSON_AddArrayToObject(json, "pairs");
    for (size_t i = 0; i < about->n_norms; i++) add_pair(pairs, about, &about->norms[i]);
    cJSON_AddItemToObject(json, "rates", nb_rates_to_json(about->rates));
    cJSON_AddItemToObject(json, "fingerprint", nb_fingerprint());
    return json;
}
