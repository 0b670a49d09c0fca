// SPDX-License-Identifier: Apache-2.0
/* Sentences with file, line, key and mend. */
#include "src/plan/config_errors.h"

#include <math.h>

#include "src/core/log.h"
#include "src/core/text.h"

static const char *type_name(const cJSON *node) {
    if (cJSON_IsString(node)) return "a text";
    if (cJSON_IsNumber(node)) return "a number";
    if (cJSON_IsBool(node)) return "true or false";
    if (cJSON_IsNull(node)) return "null";
    return cJSON_IsArray(node) ? "a list" : "an object";
}

int nb_config_wrong_type(const struct nb_jsonc *file, const cJSON *node, const char *key, const char *wanted) {
    return nb_error("%s:%d: \"%s\" is %s; it must be %s", file->path, nb_jsonc_line(file, node), key, type_name(node),
                    wanted);
}

int nb_config_unknown_key(const struct nb_jsonc *file, const cJSON *node, const char *const *names, size_t n) {
    const char *nearest = nb_nearest(node->string, names, n);
    nb_error("%s:%d: unknown key \"%s\"%s%s%s", file->path, nb_jsonc_line(file, node), node->string,
             nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
    if (nearest) return -1;
    struct nb_strbuf all = {0};
    for (size_t i = 0; i < n; i++) nb_strbuf_addf(&all, "%s %s", i ? "," : "", names[i]);
    nb_note("valid keys here:%s", all.text);
    nb_strbuf_release(&all);
    return -1;
}

int nb_config_twice(const struct nb_jsonc *file, const cJSON *node) {
    return nb_error("%s:%d: key \"%s\" is given twice", file->path, nb_jsonc_line(file, node), node->string);
}

int nb_config_read_number(const struct nb_jsonc *file, const cJSON *node, double low, double high, bool whole,
                          double *value) {
    if (!cJSON_IsNumber(node)) return nb_config_wrong_type(file, node, node->string, "a number");
    *value = node->valuedouble;
    if (*value >= low && *value <= high && (!whole || floor(*value) == *value)) return 0;
    return nb_error("%s:%d: \"%s\": %.10g is not a %snumber from %g to %.16g", file->path, nb_jsonc_line(file, node),
                    node->string, *value, whole ? "whole " : "", low, high);
}
