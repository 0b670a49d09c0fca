// SPDX-License-Identifier: Apache-2.0
/* The worst rows with what reproduces them: a file and a key, and for short rows the numbers themselves. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/lab/stress/row_search.h"
#include "src/lab/stress/trial.h"

enum { SHORT_ROW = 16 };

static cJSON *row_to_json(const double *x, int64_t n) {
    const struct nb_row_look look = nb_row_look(x, n);
    cJSON *json = cJSON_CreateObject();
    nb_json_number(json, "mean", look.mean);
    nb_json_number(json, "variance", look.variance);
    nb_json_number(json, "kurtosis", look.kurtosis);
    nb_json_number(json, "max_abs", look.max_abs);
    return json;
}

static void add_exact_row(cJSON *json, const double *x, int64_t n) {
    cJSON *values = cJSON_AddArrayToObject(json, "x");
    for (int64_t i = 0; i < n; i++) {
        char text[40];
        snprintf(text, sizeof text, "%a", x[i]);
        cJSON_AddItemToArray(values, cJSON_CreateString(text));
    }
}

static void add_witness(cJSON *json, const struct nb_found_row *c, int objective) {
    cJSON *witness = cJSON_AddObjectToObject(json, "witness");
    struct nb_row_worst w = c->score.worst[objective < NB_N_MEASURES ? objective : (int)NB_BY_SCALED];
    if (!nb_row_is_ordinary(&c->score))
        w = (struct nb_row_worst){0, c->score.strange_col, c->score.strange_got, c->score.strange_want};
    nb_json_number(witness, "col", (double)w.col);
    nb_json_exact(witness, "x", w.col >= 0 ? c->x[w.col] : (double)NAN);
    nb_json_exact(witness, "got", w.got);
    nb_json_exact(witness, "want", w.want);
}

/* A name of its own for each case, kernel and objective: what a path may not hold is left out, the key's hash is added. */
static void name_file(const struct nb_case *c, const char *dir, int objective, struct nb_strbuf *path) {
    struct nb_strbuf key = {0};
    nb_case_key(c, &key);
    nb_strbuf_addf(path, "%s/", dir);
    for (const char *p = c->variant; *p; p++) nb_strbuf_addn(path, *p == ':' || *p == '/' ? "-" : p, 1);
    nb_strbuf_addf(path, "-%08x-%s.npy", nb_hash32_text(key.text), nb_objective_name(objective));
    nb_strbuf_release(&key);
}

static void add_files(cJSON *json, const struct nb_row_search *h, const struct nb_found_row *c, int objective,
                      const char *dir) {
    struct nb_strbuf path = {0}, key = {0}, replay = {0};
    struct nb_case of = h->t->c;
    of.eps = c->eps;
    if (c->eps != h->t->c.eps) snprintf(of.eps_text, sizeof of.eps_text, "%.17g", c->eps);
    name_file(&of, dir, objective, &path);
    if (path.len < NB_DATA_MAX && nb_trial_write_row(h->t, c->x, path.text) == 0) {
        nb_trial_key(&of, path.text, of.seed, 1, &key);
        nb_trial_replay(h->t, key.text, &replay);
        nb_json_text(json, "file", path.text);
        nb_json_text(json, "key", key.text);
        nb_json_text(json, "replay", replay.text);
    }
    nb_strbuf_release(&path);
    nb_strbuf_release(&key);
    nb_strbuf_release(&replay);
}

static cJSON *found_to_json(const struct nb_row_search *h, int objective, const char *dir) {
    const struct nb_found_row *c = &h->found[objective];
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "objective", nb_objective_name(objective));
    if (isinf(c->value))
        nb_json_exact(json, "value", c->value);
    else
        nb_json_number(json, "value", c->value);
    nb_json_text(json, "generator", c->generator);
    nb_json_uint64(json, "seed", c->seed);
    nb_json_number(json, "eps", c->eps);
    cJSON_AddBoolToObject(json, "violation", c->score.worst[NB_BY_BOUND].value > 1);
    for (int m = 0; m < NB_N_MEASURES; m++) nb_json_number(json, nb_measure_names[m], c->score.worst[m].value);
    nb_json_number(json, "nan", (double)c->score.n_nan);
    nb_json_number(json, "inf", (double)c->score.n_inf);
    nb_json_number(json, "zero", (double)c->score.n_zero);
    nb_json_text(json, "loss", nb_loss_names[c->score.loss]);
    nb_json_number(json, "gain_u", c->score.gain_u);
    nb_json_number(json, "sum_error_u", c->score.sum_error_u);
    cJSON_AddItemToObject(json, "row", row_to_json(c->x, h->cols));
    add_witness(json, c, objective);
    if (h->cols <= SHORT_ROW) add_exact_row(json, c->x, h->cols);
    if (dir) add_files(json, h, c, objective, dir);
    return json;
}

/* One object for each objective that has a worst row; files go to witness_dir, where that is not null. */
static cJSON *report_rows(struct nb_row_search *h, const char *witness_dir) {
    cJSON *all = cJSON_CreateArray();
    for (int q = 0; q < NB_N_OBJECTIVES; q++)
        if (h->found[q].x) cJSON_AddItemToArray(all, found_to_json(h, q, witness_dir));
    return all;
}

/* ---- The searches in turn, each with its part of the budget; the last starts from what the others found ---- */

static const double default_budget_s = 2;

static double number_or(const cJSON *options, const char *name, double fallback) {
    const double value = nb_json_get_number(options, name);
    return value > 0 ? value : fallback;
}

static void search(struct nb_row_search *h, const cJSON *options, cJSON *attempts) {
    const cJSON *eps = cJSON_GetObjectItemCaseSensitive(options, "eps_range");
    const cJSON *low = cJSON_GetArrayItem(eps, 0), *high = cJSON_GetArrayItem(eps, 1);
    const bool both = cJSON_IsNumber(low) && cJSON_IsNumber(high);
    nb_row_search_stage(h, 0.4);
    nb_row_search_greedy(h, attempts);
    nb_row_search_stage(h, 0.5);
    nb_row_search_orders(h);
    nb_row_search_stage(h, 0.75);
    nb_row_search_zoom(h, both ? low->valuedouble : 0, both ? high->valuedouble : 0);
    nb_row_search_stage(h, 1);
    nb_row_search_climb(h);
}

cJSON *nb_worst_case(struct nb_trial *t, const cJSON *options) {
    const double start = nb_now_s();
    const int64_t first_call = t->calls;
    struct nb_row_search h;
    if (nb_row_search_init(&h, t, number_or(options, "budget_s", default_budget_s),
                           (int64_t)number_or(options, "budget_calls", 0)) != 0)
        return NULL;
    cJSON *attempts = cJSON_CreateArray(), *all = NULL;
    search(&h, options, attempts);
    if (!h.failed) {
        all = report_rows(&h, nb_json_get_text(options, "witness_dir"));
        cJSON *summary = cJSON_CreateObject();
        nb_json_text(summary, "objective", "search");
        nb_json_number(summary, "calls", (double)(t->calls - first_call));
        nb_json_number(summary, "seconds", nb_now_s() - start);
        cJSON_AddItemToObject(summary, "attempts", attempts);
        cJSON_AddItemToArray(all, summary);
        attempts = NULL;
    }
    cJSON_Delete(attempts);
    nb_row_search_release(&h);
    return all;
}
