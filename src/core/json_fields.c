// SPDX-License-Identifier: Apache-2.0
#include "src/core/json_fields.h"

#include <float.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"

enum { MAX_FIELDS = 32 };

static int check_text(const struct nb_jsonc *file, const cJSON *node, const char *key) {
    if (!cJSON_IsString(node) || !*node->valuestring)
        return nb_jsonc_wrong_type(file, node, key, "a text that is not empty");
    for (const char *p = node->valuestring; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return nb_error("%s:%d: \"%s\" has a control character in it", file->path, nb_jsonc_line(file, node), key);
    return 0;
}

int nb_field_text(const struct nb_jsonc *file, const cJSON *node, size_t most, char **out) {
    if (check_text(file, node, node->string) != 0) return -1;
    if (most > 0 && strlen(node->valuestring) > most)
        return nb_error("%s:%d: \"%s\" is longer than %zu characters", file->path, nb_jsonc_line(file, node),
                        node->string, most);
    *out = nb_strdup(node->valuestring);
    return 0;
}

int nb_strings_read(const struct nb_jsonc *file, const cJSON *node, struct nb_strings *out) {
    const bool list = cJSON_IsArray(node);
    if (list && !node->child)
        return nb_error("%s:%d: \"%s\" is an empty list; leave the key out", file->path, nb_jsonc_line(file, node),
                        node->string);
    for (const cJSON *item = list ? node->child : node; item; item = list ? item->next : NULL) {
        if (check_text(file, item, node->string) != 0) return -1;
        nb_strings_add(out, item->valuestring);
    }
    return 0;
}

static int read_number(const struct nb_jsonc *file, const cJSON *node, const struct nb_field *field, void *member) {
    const bool whole = field->kind == NB_FIELD_COUNT, bounded = field->low < field->high;
    double number;
    if (nb_jsonc_number(file, node, bounded ? field->low : -DBL_MAX, bounded ? field->high : DBL_MAX, whole, &number) !=
        0)
        return -1;
    if (field->kind == NB_FIELD_PERCENT) number /= 100;
    if (whole)
        *(int *)member = (int)number;
    else
        *(double *)member = number;
    return 0;
}

static int read_field(const struct nb_jsonc *file, const cJSON *node, const struct nb_field *field, void *into) {
    void *member = (char *)into + field->offset;
    switch (field->kind) {
    case NB_FIELD_TEXT:
        return nb_field_text(file, node, 0, member);
    case NB_FIELD_NUMBER:
    case NB_FIELD_PERCENT:
    case NB_FIELD_COUNT:
        return read_number(file, node, field, member);
    case NB_FIELD_BOOL:
        if (!cJSON_IsBool(node)) return nb_jsonc_wrong_type(file, node, field->name, "true or false");
        *(bool *)member = cJSON_IsTrue(node);
        return 0;
    case NB_FIELD_TEXTS:
        return nb_strings_read(file, node, member);
    case NB_FIELD_MEMBER:
        return field->read(file, node, member);
    case NB_FIELD_ELSEWHERE:
        return 0;
    default:
        return field->read(file, node, into);
    }
}

int nb_fields_read(const struct nb_jsonc *file, const cJSON *object, const struct nb_field *fields, size_t n,
                   const char *what, void *into) {
    uint32_t seen = 0;
    if (!cJSON_IsObject(object))
        return nb_jsonc_wrong_type(file, object, object->string ? object->string : what, "an object");
    for (const cJSON *node = object->child; node; node = node->next) {
        const char *names[MAX_FIELDS];
        size_t i = 0;
        while (i < n && strcmp(fields[i].name, node->string) != 0) i++;
        for (size_t j = 0; j < n; j++) names[j] = fields[j].name;
        if (i == n) return nb_jsonc_unknown_key(file, node, names, n);
        if (seen >> i & 1) return nb_jsonc_twice(file, node);
        seen |= 1u << i;
        if (read_field(file, node, &fields[i], into) != 0) return -1;
    }
    for (size_t i = 0; i < n; i++)
        if (fields[i].required && !(seen >> i & 1))
            return nb_error("%s:%d: %s needs \"%s\"", file->path, nb_jsonc_line(file, object), what, fields[i].name);
    return 0;
}
