// SPDX-License-Identifier: Apache-2.0
/* The experiments by name, and their parameters. */
#include "src/claims/property.h"

#include <math.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"

const struct nb_property *const nb_properties[] = {
    &nb_property_broadcast,  &nb_property_cast_order,   &nb_property_coupling,         &nb_property_depth,
    &nb_property_descent,    &nb_property_design,       &nb_property_direction,        &nb_property_divide,
    &nb_property_eps_place,  &nb_property_fewer_ops,    &nb_property_gradient_balance, &nb_property_gradient_scale,
    &nb_property_invariance, &nb_property_moments,      &nb_property_normalized_shape, &nb_property_outlier,
    &nb_property_padding,    &nb_property_printed_rows, &nb_property_promotion,        &nb_property_quantized,
    &nb_property_root_forms, &nb_property_running,      &nb_property_same_result,      &nb_property_saturation,
    &nb_property_spread,     &nb_property_structure,    &nb_property_tokens,           NULL};

const struct nb_property *nb_property_find(const char *name) {
    for (size_t i = 0; nb_properties[i]; i++)
        if (strcmp(nb_properties[i]->name, name) == 0) return nb_properties[i];
    return NULL;
}

static const cJSON *item_at(const struct nb_property_call *call, const char *name, int i) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(call->params, name);
    if (cJSON_IsArray(node)) return cJSON_GetArrayItem(node, i);
    return i == 0 ? node : NULL;
}

double nb_param_number_at(const struct nb_property_call *call, const char *name, int i) {
    const cJSON *node = item_at(call, name, i);
    return cJSON_IsNumber(node) ? node->valuedouble : (double)NAN;
}

const char *nb_param_text_at(const struct nb_property_call *call, const char *name, int i) {
    const char *text = cJSON_GetStringValue(item_at(call, name, i));
    return text ? text : "";
}

double nb_param_number(const struct nb_property_call *call, const char *name) {
    return nb_param_number_at(call, name, 0);
}

const char *nb_param_text(const struct nb_property_call *call, const char *name) {
    return nb_param_text_at(call, name, 0);
}

int nb_param_count(const struct nb_property_call *call, const char *name) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(call->params, name);
    return cJSON_IsArray(node) ? cJSON_GetArraySize(node) : node != NULL;
}

/* Of one type: both numbers, both texts, both lists, or a single value and a list of such. */
static bool fits(const cJSON *given, const cJSON *fallback) {
    const cJSON *kind = cJSON_IsArray(fallback) ? fallback->child : fallback;
    const bool list = cJSON_IsArray(given);
    for (const cJSON *item = list ? given->child : given; item; item = list ? item->next : NULL)
        if (item->type != kind->type || (cJSON_IsNumber(item) && !isfinite(item->valuedouble))) return false;
    return list ? given->child && cJSON_IsArray(fallback) : true;
}

static int check_count(const struct nb_jsonc *file, const cJSON *given) {
    const bool list = cJSON_IsArray(given);
    for (const cJSON *item = list ? given->child : given; item; item = list ? item->next : NULL)
        if (item->valuedouble < 1 || item->valuedouble > NB_PROPERTY_MOST ||
            item->valuedouble != floor(item->valuedouble))
            return nb_error("%s:%d: \"%s\": %.10g is not a whole number from 1 to %d", file->path,
                            nb_jsonc_line(file, given), given->string, item->valuedouble, NB_PROPERTY_MOST);
    return 0;
}

static int read_param(const struct nb_property *p, const struct nb_jsonc *file, const cJSON *given, cJSON *out) {
    const char *names[64];
    for (size_t i = 0; i < p->n_params; i++) {
        names[i] = p->params[i].name;
        if (strcmp(given->string, names[i]) != 0) continue;
        const cJSON *fallback = cJSON_GetObjectItemCaseSensitive(out, names[i]);
        if (!fits(given, fallback))
            return nb_jsonc_wrong_type(file, given, given->string,
                                       cJSON_IsArray(fallback)    ? "one value of its kind, or a list of them"
                                       : cJSON_IsNumber(fallback) ? "a number"
                                                                  : "a text");
        if (p->params[i].count && check_count(file, given) != 0) return -1;
        cJSON_ReplaceItemInObjectCaseSensitive(out, names[i], cJSON_Duplicate(given, true));
        return 0;
    }
    return nb_jsonc_unknown_key(file, given, names, p->n_params);
}

int nb_property_params(const struct nb_property *p, const struct nb_jsonc *file, const cJSON *given, cJSON **out) {
    *out = cJSON_CreateObject();
    for (size_t i = 0; i < p->n_params; i++)
        cJSON_AddItemToObject(*out, p->params[i].name, cJSON_Parse(p->params[i].fallback));
    if (given && !cJSON_IsObject(given)) return nb_jsonc_wrong_type(file, given, "params", "an object");
    for (const cJSON *item = given ? given->child : NULL; item; item = item->next)
        if (read_param(p, file, item, *out) != 0) return -1;
    return 0;
}
