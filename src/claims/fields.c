// SPDX-License-Identifier: Apache-2.0
/* Compares the keys of an object with a table. */
#include "src/claims/fields.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/finding.h"
#include "src/core/json.h"
#include "src/core/log.h"

enum { MAX_FIELDS = 32 };

void nb_strings_release(struct nb_strings *s) {
    for (size_t i = 0; i < s->n; i++) free(s->items[i]);
    free(s->items);
    *s = (struct nb_strings){0};
}

static int read_text(const struct nb_jsonc *file, const cJSON *node, const char *key, char **out) {
    if (!cJSON_IsString(node) || !*node->valuestring)
        return nb_jsonc_wrong_type(file, node, key, "a text that is not empty");
    for (const char *p = node->valuestring; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return nb_error("%s:%d: \"%s\" has a control character in it", file->path, nb_jsonc_line(file, node), key);
    *out = nb_strdup(node->valuestring);
    return 0;
}

int nb_strings_read(const struct nb_jsonc *file, const cJSON *node, struct nb_strings *out) {
    const bool list = cJSON_IsArray(node);
    if (list && !node->child)
        return nb_error("%s:%d: \"%s\" is an empty list; leave the key out", file->path, nb_jsonc_line(file, node),
                        node->string);
    out->items = nb_alloc(list ? (unsigned)cJSON_GetArraySize(node) : 1, sizeof *out->items);
    for (const cJSON *item = list ? node->child : node; item; item = list ? item->next : NULL) {
        if (read_text(file, item, node->string, &out->items[out->n]) != 0) return -1;
        out->n++;
    }
    return 0;
}

static int read_field(const struct nb_jsonc *file, const cJSON *node, const struct nb_field *field, void *into) {
    void *member = (char *)into + field->offset;
    switch (field->kind) {
    case NB_FIELD_TEXT:
        return read_text(file, node, field->name, member);
    case NB_FIELD_NUMBER:
        if (!cJSON_IsNumber(node) || !isfinite(node->valuedouble))
            return nb_jsonc_wrong_type(file, node, field->name, "a number");
        memcpy(member, &node->valuedouble, sizeof(double));
        return 0;
    case NB_FIELD_BOOL:
        if (!cJSON_IsBool(node)) return nb_jsonc_wrong_type(file, node, field->name, "true or false");
        *(bool *)member = cJSON_IsTrue(node);
        return 0;
    case NB_FIELD_TEXTS:
        return nb_strings_read(file, node, member);
    case NB_FIELD_SELECTOR:
        return nb_selector_read(member, file, node);
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
