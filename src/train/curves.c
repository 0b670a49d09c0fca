// SPDX-License-Identifier: Apache-2.0
/* Places are added as they are first told of. */
#include "src/train/curves.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"

double nb_standard_deviation(const float *values, int64_t n) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)values[i];
    const double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += ((double)values[i] - mean) * ((double)values[i] - mean);
    return sqrt(squares / (double)n);
}

static struct nb_curve *curve_of(struct nb_curves *c, const char *place, bool gradient) {
    for (int i = 0; i < c->n; i++)
        if (c->items[i].gradient == gradient && strcmp(c->items[i].place, place) == 0) return &c->items[i];
    c->items = nb_realloc(c->items, (unsigned)c->n + 1, sizeof *c->items);
    struct nb_curve *one = &c->items[c->n++];
    *one = (struct nb_curve){.gradient = gradient};
    snprintf(one->place, sizeof one->place, "%s", place);
    one->std = nb_alloc((unsigned)c->most_records, sizeof *one->std);
    for (int r = 0; r < c->most_records; r++) one->std[r] = NAN;
    return one;
}

/* Of a tensor that comes in parts the widest part counts. */
static void keep(struct nb_curves *c, const char *place, bool gradient, double std) {
    struct nb_curve *one = curve_of(c, place, gradient);
    double *at = &one->std[c->n_records - 1];
    if (isnan(*at) || !(std <= *at)) *at = std;
}

static void see_activation(void *context, const char *place, const float *values, int64_t n) {
    keep(context, place, false, nb_standard_deviation(values, n));
}
static void see_gradient(void *context, const char *place, const float *values, int64_t n) {
    struct nb_curves *c = context;
    keep(c, place, true, nb_standard_deviation(values, n) / c->scale);
}

void nb_curves_init(struct nb_curves *c, int most_records) {
    *c = (struct nb_curves){.most_records = most_records,
                            .steps = nb_alloc((unsigned)most_records + 1, sizeof *c->steps),
                            .scale = 1,
                            .observer = {.activation = see_activation, .gradient = see_gradient}};
    c->observer.context = c;
}

void nb_curves_begin(struct nb_curves *c, int step, double loss_scale) {
    assert(c->n_records < c->most_records);
    c->steps[c->n_records++] = step;
    c->scale = loss_scale;
}

void nb_curves_to_json(const struct nb_curves *c, cJSON *json) {
    cJSON_AddItemToObject(json, "recorded_steps", cJSON_CreateIntArray(c->steps, c->n_records));
    cJSON *list = cJSON_AddArrayToObject(json, "curves");
    for (int i = 0; i < c->n; i++) {
        cJSON *one = cJSON_CreateObject(), *std = cJSON_CreateArray();
        nb_json_text(one, "place", c->items[i].place);
        cJSON_AddBoolToObject(one, "gradient", c->items[i].gradient);
        for (int r = 0; r < c->n_records; r++)
            cJSON_AddItemToArray(std, isfinite(c->items[i].std[r]) ? cJSON_CreateNumber(c->items[i].std[r])
                                                                   : cJSON_CreateNull());
        cJSON_AddItemToObject(one, "std", std);
        cJSON_AddItemToArray(list, one);
    }
}

void nb_curves_release(struct nb_curves *c) {
    for (int i = 0; i < c->n; i++) free(c->items[i].std);
    free(c->items);
    free(c->steps);
    *c = (struct nb_curves){0};
}
