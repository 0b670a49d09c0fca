// SPDX-License-Identifier: Apache-2.0
#include "src/core/json.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/stats.h"

enum { MAX_FIELDS = 32 };

static int check_text(const struct nb_jsonc *file, const cJSON *node, const char *key) {
    if (!cJSON_IsString(node) || !*node->valuestring)
        return nb_jsonc_wrong_type(file, node, key, "a text that is not empty");
    for (const char *p = node->valuestring; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return nb_jsonc_error(file, node, "\"%s\" has a control character in it", key);
    return 0;
}

int nb_field_text(const struct nb_jsonc *file, const cJSON *node, size_t most, char **out) {
    if (check_text(file, node, node->string) != 0) return -1;
    if (most > 0 && strlen(node->valuestring) > most)
        return nb_jsonc_error(file, node, "\"%s\" is longer than %zu characters", node->string, most);
    *out = nb_strdup(node->valuestring);
    return 0;
}

int nb_strings_read(const struct nb_jsonc *file, const cJSON *node, struct nb_strings *out) {
    const bool list = cJSON_IsArray(node);
    if (list && !node->child)
        return nb_jsonc_error(file, node, "\"%s\" is an empty list; leave the key out", node->string);
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
    int result = 0; /* every mistake is said, not the first alone */
    if (!cJSON_IsObject(object))
        return nb_jsonc_wrong_type(file, object, object->string ? object->string : what, "an object");
    for (const cJSON *node = object->child; node; node = node->next) {
        const char *names[MAX_FIELDS];
        size_t i = 0;
        while (i < n && strcmp(fields[i].name, node->string) != 0) i++;
        for (size_t j = 0; j < n; j++) names[j] = fields[j].name;
        const bool is_twice = i < n && seen >> i & 1;
        if (i < n) seen |= 1u << i;
        if (i == n)
            result = nb_jsonc_unknown_key(file, node, names, n);
        else if (is_twice)
            result = nb_jsonc_twice(file, node);
        else if (read_field(file, node, &fields[i], into) != 0)
            result = -1;
    }
    for (size_t i = 0; i < n; i++)
        if (fields[i].required && !(seen >> i & 1))
            result = nb_jsonc_error(file, object, "%s needs \"%s\"", what, fields[i].name);
    return result;
}

/* ---- a struct as a JSON object: writing ---- */

static int64_t integer_at(const void *at, size_t size) {
    int32_t narrow;
    int64_t wide;
    assert(size == sizeof narrow || size == sizeof wide);
    if (size == sizeof narrow) return memcpy(&narrow, at, sizeof narrow), narrow;
    return memcpy(&wide, at, sizeof wide), wide;
}

/* The integer that null stands for. */
static int64_t none_of(const struct nb_member *m) { return m->kind == NB_MEMBER_INDEX ? -1 : 0; }

static void add_counts(cJSON *object, const struct nb_member *m, const int64_t *counts) {
    cJSON *list = cJSON_AddArrayToObject(object, m->name);
    for (size_t i = 0; i < m->size / sizeof *counts; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)counts[i]));
}

static const char *name_at(const struct nb_member *m, const void *at) {
    const int64_t index = integer_at(at, m->size);
    for (int64_t i = 0; m->names[i]; i++)
        if (i == index) return m->names[i];
    return NULL;
}

static void add_member(cJSON *object, const struct nb_member *m, const void *at) {
    switch (m->kind) {
    case NB_MEMBER_NUMBER:
    case NB_MEMBER_AMOUNT:
        nb_json_number(object, m->name, *(const double *)at);
        break;
    case NB_MEMBER_EXACT:
        nb_json_exact(object, m->name, *(const double *)at);
        break;
    case NB_MEMBER_COUNT:
        nb_json_number(object, m->name, (double)integer_at(at, m->size));
        break;
    case NB_MEMBER_INDEX:
    case NB_MEMBER_POSITIVE:
        if (integer_at(at, m->size) == none_of(m))
            cJSON_AddNullToObject(object, m->name);
        else
            nb_json_number(object, m->name, (double)integer_at(at, m->size));
        break;
    case NB_MEMBER_COUNTS:
        add_counts(object, m, at);
        break;
    case NB_MEMBER_UINT64:
        nb_json_uint64(object, m->name, *(const uint64_t *)at);
        break;
    case NB_MEMBER_BOOL:
        cJSON_AddBoolToObject(object, m->name, *(const bool *)at);
        break;
    case NB_MEMBER_TEXT:
        nb_json_text(object, m->name, *(const char *)at ? at : NULL);
        break;
    case NB_MEMBER_STRING:
    case NB_MEMBER_BORROWED:
        nb_json_text(object, m->name, *(const char *const *)at);
        break;
    case NB_MEMBER_NAME:
        nb_json_text(object, m->name, name_at(m, at));
        break;
    case NB_MEMBER_INTERVAL:
        nb_json_interval(object, m->name, at);
        break;
    case NB_MEMBER_OBJECT:
        nb_json_add_members(cJSON_AddObjectToObject(object, m->name), m->members, at);
        break;
    }
}

void nb_json_add_members(cJSON *object, const struct nb_member *members, const void *from) {
    for (const struct nb_member *m = members; m->name; m++) {
        add_member(object, m, (const char *)from + m->offset);
        cJSON *last = object->child->prev; /* of the first one: the last */
        if (m->optional && cJSON_IsNull(last)) cJSON_Delete(cJSON_DetachItemViaPointer(object, last));
    }
}

cJSON *nb_json_of_members(const struct nb_member *members, const void *from) {
    cJSON *object = cJSON_CreateObject();
    nb_json_add_members(object, members, from);
    return object;
}

/* ---- reading ---- */

static int refuse(const char *what, const struct nb_member *m, const char *wanted) {
    return nb_error("%s: \"%s\" is not %s", what, m->name, wanted);
}

static bool is_none(const cJSON *item) { return !item || cJSON_IsNull(item); }

static bool is_count(double value, double most) { return value >= 0 && value <= most && value == floor(value); }

static int get_count(const cJSON *object, const struct nb_member *m, void *at, const char *what) {
    const cJSON *item = nb_json_get(object, m->name);
    const bool none = m->kind != NB_MEMBER_COUNT && is_none(item);
    const double value = none ? (double)none_of(m) : cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
    if (!none && !is_count(value, m->size == sizeof(int32_t) ? INT32_MAX : 0x1p53)) return refuse(what, m, "a count");
    const int64_t wide = (int64_t)value;
    const int32_t narrow = (int32_t)wide; /* the same where it is a narrow one */
    if (m->size == sizeof narrow)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &wide, sizeof wide);
    return 0;
}

static int get_number(const cJSON *object, const struct nb_member *m, double *at, const char *what) {
    const cJSON *item = nb_json_get(object, m->name);
    *at = nb_json_get_number(object, m->name);
    if (!is_none(item) && !cJSON_IsNumber(item)) return refuse(what, m, "a number or null");
    return m->kind == NB_MEMBER_AMOUNT && *at < 0 ? refuse(what, m, "a number from 0, or null") : 0;
}

static int get_interval(const cJSON *object, const struct nb_member *m, struct nb_interval *at, const char *what) {
    static const char *const bounds[] = {"value", "low", "high"};
    const cJSON *item = nb_json_get(object, m->name);
    bool is_one = is_none(item) || cJSON_IsObject(item);
    for (int i = 0; i < 3; i++) {
        const cJSON *bound = nb_json_get(item, bounds[i]);
        is_one &= is_none(bound) || (cJSON_IsNumber(bound) && bound->valuedouble >= 0);
    }
    *at = nb_json_get_interval(object, m->name);
    return is_one ? 0 : refuse(what, m, "an object of \"value\", \"low\" and \"high\", each a number from 0, or null");
}

static int get_counts(const cJSON *object, const struct nb_member *m, int64_t *counts, const char *what) {
    const cJSON *list = nb_json_get(object, m->name), *item;
    const int n = (int)(m->size / sizeof *counts);
    if (cJSON_GetArraySize(list) != n) return nb_error("%s: \"%s\" does not hold %d counts", what, m->name, n);
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsNumber(item) || !is_count(item->valuedouble, 0x1p53))
            return nb_error("%s: \"%s\" has an entry that is not a count", what, m->name);
        *counts++ = (int64_t)item->valuedouble;
    }
    return 0;
}

static int get_uint64(const cJSON *object, const struct nb_member *m, uint64_t *at, const char *what) {
    const char *text = nb_json_get_text(object, m->name);
    char *end = NULL;
    errno = 0;
    if (text && *text >= '0' && *text <= '9') *at = strtoull(text, &end, 10);
    return end && !*end && errno == 0 ? 0 : refuse(what, m, "a text of 64 bits in decimals");
}

static int get_name(const cJSON *object, const struct nb_member *m, void *at, const char *what) {
    const char *text = nb_json_get_text(object, m->name);
    uint32_t index = 0;
    assert(m->size == sizeof index);
    while (text && m->names[index] && strcmp(m->names[index], text) != 0) index++;
    if (!text || !m->names[index]) return refuse(what, m, "a name that is known");
    memcpy(at, &index, sizeof index);
    return 0;
}

static int get_member(const cJSON *object, const struct nb_member *m, void *at, const char *what) {
    const char *text;
    switch (m->kind) {
    case NB_MEMBER_NUMBER:
    case NB_MEMBER_AMOUNT:
        return get_number(object, m, at, what);
    case NB_MEMBER_EXACT:
        *(double *)at = nb_json_get_exact(object, m->name);
        return 0;
    case NB_MEMBER_COUNT:
    case NB_MEMBER_INDEX:
    case NB_MEMBER_POSITIVE:
        return get_count(object, m, at, what);
    case NB_MEMBER_COUNTS:
        return get_counts(object, m, at, what);
    case NB_MEMBER_UINT64:
        return get_uint64(object, m, at, what);
    case NB_MEMBER_BOOL:
        *(bool *)at = nb_json_get_bool(object, m->name);
        return 0;
    case NB_MEMBER_TEXT:
        return nb_json_copy_text(at, m->size, object, m->name);
    case NB_MEMBER_STRING:
        text = nb_json_get_text(object, m->name);
        *(char **)at = text ? nb_strdup(text) : NULL;
        return 0;
    case NB_MEMBER_BORROWED:
        *(const char **)at = nb_json_get_text(object, m->name);
        return 0;
    case NB_MEMBER_NAME:
        return get_name(object, m, at, what);
    case NB_MEMBER_INTERVAL:
        return get_interval(object, m, at, what);
    case NB_MEMBER_OBJECT:
        if (m->optional && !nb_json_get(object, m->name)) return 0; /* an earlier program's */
        return nb_json_get_members(nb_json_get(object, m->name), m->members, at, what);
    }
    return 0;
}

int nb_json_get_members(const cJSON *object, const struct nb_member *members, void *to, const char *what) {
    for (const struct nb_member *m = members; m->name; m++)
        if (get_member(object, m, (char *)to + m->offset, what) != 0) return -1;
    return 0;
}
