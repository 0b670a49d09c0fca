// SPDX-License-Identifier: Apache-2.0
/* The searches in turn, each with its part of the budget; the last starts from what the others found. */
#include "src/lab/stress/adversary.h"

#include <math.h>

#include "src/core/json.h"
#include "src/core/timer.h"
#include "src/lab/stress/hunt.h"

static const double default_budget_s = 2;

static double number_or(const cJSON *options, const char *name, double fallback) {
    const double value = nb_json_get_number(options, name);
    return value > 0 ? value : fallback;
}

static void search(struct nb_hunt *h, const cJSON *options, cJSON *attempts) {
    const cJSON *eps = cJSON_GetObjectItemCaseSensitive(options, "eps_range");
    const cJSON *low = cJSON_GetArrayItem(eps, 0), *high = cJSON_GetArrayItem(eps, 1);
    const bool both = cJSON_IsNumber(low) && cJSON_IsNumber(high);
    nb_hunt_stage(h, 0.4);
    nb_hunt_greedy(h, attempts);
    nb_hunt_stage(h, 0.5);
    nb_hunt_orders(h);
    nb_hunt_stage(h, 0.75);
    nb_hunt_zoom(h, both ? low->valuedouble : 0, both ? high->valuedouble : 0);
    nb_hunt_stage(h, 1);
    nb_hunt_climb(h);
}

cJSON *nb_worst_case(struct nb_trial *t, const cJSON *options) {
    const double start = nb_now_s();
    const int64_t first_call = t->calls;
    struct nb_hunt h;
    if (nb_hunt_init(&h, t, number_or(options, "budget_s", default_budget_s),
                     (int64_t)number_or(options, "budget_calls", 0)) != 0)
        return NULL;
    cJSON *attempts = cJSON_CreateArray(), *all = NULL;
    search(&h, options, attempts);
    if (!h.failed) {
        all = nb_hunt_report(&h, nb_json_get_text(options, "witness_dir"));
        cJSON *summary = cJSON_CreateObject();
        nb_json_text(summary, "objective", "search");
        nb_json_number(summary, "calls", (double)(t->calls - first_call));
        nb_json_number(summary, "seconds", nb_now_s() - start);
        cJSON_AddItemToObject(summary, "attempts", attempts);
        cJSON_AddItemToArray(all, summary);
        attempts = NULL;
    }
    cJSON_Delete(attempts);
    nb_hunt_release(&h);
    return all;
}
