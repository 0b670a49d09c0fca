// SPDX-License-Identifier: Apache-2.0
#include "src/claims/training_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"

double nb_training_median(const cJSON *arm, const char *name) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(arm, name), *item;
    double *values = nb_alloc((unsigned)cJSON_GetArraySize(list) + 1, sizeof *values);
    size_t n = 0;
    cJSON_ArrayForEach(item, list) if (cJSON_IsNumber(item)) values[n++] = item->valuedouble;
    const double median = n > 0 ? nb_median(values, n) : (double)NAN;
    free(values);
    return median;
}

double nb_training_time_ratio(const cJSON *arm, const cJSON *against, const void *part) {
    const cJSON *a = cJSON_GetObjectItemCaseSensitive(arm, part), *b = cJSON_GetObjectItemCaseSensitive(against, part);
    double *values = nb_alloc((unsigned)cJSON_GetArraySize(a) + 1, sizeof *values);
    size_t n = 0;
    a = a ? a->child : NULL;
    for (b = b ? b->child : NULL; a && b; a = a->next, b = b->next)
        if (cJSON_IsNumber(a) && cJSON_IsNumber(b) && a->valuedouble > 0 && b->valuedouble > 0)
            values[n++] = log(a->valuedouble / b->valuedouble);
    const double ratio = n > 0 ? exp(nb_median(values, n)) : (double)NAN;
    free(values);
    return ratio;
}

double nb_training_norm_share(const cJSON *arm, const cJSON *against, const void *part) {
    (void)against;
    return nb_training_median(arm, "norm") / nb_training_median(arm, part);
}

double nb_training_median_time(const cJSON *arm, const cJSON *against, const void *part) {
    (void)against;
    return nb_training_median(arm, part);
}

double nb_training_number(const cJSON *arm, const cJSON *against, const void *name) {
    (void)against;
    return nb_json_get_number(arm, name);
}

double nb_training_number_ratio(const cJSON *arm, const cJSON *against, const void *name) {
    return nb_json_get_number(arm, name) / nb_json_get_number(against, name);
}

/* NAN where a step has none: it failed. */
static double mean_of(const cJSON *arm, const char *name) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(arm, name), *item;
    double sum = 0;
    int n = 0;
    cJSON_ArrayForEach(item, list) {
        sum += cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
        n++;
    }
    return n > 0 ? sum / n : (double)NAN;
}

double nb_training_mean_of(const cJSON *arm, const cJSON *against, const void *name) {
    (void)against;
    return mean_of(arm, name);
}

double nb_training_mean_ratio(const cJSON *arm, const cJSON *against, const void *name) {
    return mean_of(arm, name) / mean_of(against, name);
}

double nb_training_failed_share(const cJSON *arm, const cJSON *against, const void *context) {
    (void)against, (void)context;
    return nb_json_get_number(arm, "failed_steps") / nb_json_get_number(arm, "wanted_steps");
}

/* ---- curves ---- */

double nb_training_layers_value(const cJSON *arm, const cJSON *against, const void *context) {
    const struct nb_training_layers_question *l = context;
    int n;
    double *v = nb_training_layers(arm, l->place, l->gradient, l->last, &n), low = INFINITY, high = -INFINITY;
    double result = NAN;
    (void)against;
    for (int i = 0; v && i < n; i++) {
        low = fmin(low, v[i]);
        high = fmax(high, v[i]);
    }
    if (v && n > 0 && isfinite(low)) {
        const double first = v[0], last = v[n - 1];
        result = l->what == NB_LAYERS_LAST     ? last
                 : l->what == NB_LAYERS_DRIFT  ? fmax(last / first, first / last)
                 : l->what == NB_LAYERS_SPREAD ? high / low
                                               : first / last;
    }
    free(v);
    return result;
}

double *nb_training_layers(const cJSON *arm, const char *place, bool gradient, bool last, int *n) {
    double *values = NULL;
    const cJSON *curve;
    *n = 0;
    cJSON_ArrayForEach(curve, cJSON_GetObjectItemCaseSensitive(arm, "curves")) {
        const char *name = nb_json_get_text(curve, "place");
        const cJSON *std = cJSON_GetObjectItemCaseSensitive(curve, "std");
        const int size = cJSON_GetArraySize(std);
        int layer, length = 0;
        if (!name || nb_json_get_bool(curve, "gradient") != gradient || size < 1 ||
            sscanf(name, "layer%d.%n", &layer, &length) != 1 || length == 0 || strcmp(name + length, place) != 0 ||
            layer < 0 || layer > 9999)
            continue;
        if (layer >= *n) {
            values = nb_realloc(values, (unsigned)layer + 1, sizeof *values);
            while (*n <= layer) values[(*n)++] = NAN;
        }
        const cJSON *item = cJSON_GetArrayItem(std, last ? size - 1 : 0);
        values[layer] = cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
    }
    return values;
}
