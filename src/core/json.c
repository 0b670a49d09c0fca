// SPDX-License-Identifier: Apache-2.0
/* Printing JSON so that every number reads back bit for bit, and reaching into it without trusting its types. */
#include "src/core/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"

void nb_json_number(cJSON *object, const char *name, double value) {
    if (isfinite(value))
        cJSON_AddNumberToObject(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

double nb_json_get_number(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
}

void nb_json_text(cJSON *object, const char *name, const char *text) {
    if (text)
        cJSON_AddStringToObject(object, name, text);
    else
        cJSON_AddNullToObject(object, name);
}

const char *nb_json_get_text(const cJSON *object, const char *name) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

int nb_json_copy_text(char *field, size_t n, const cJSON *object, const char *name) {
    const char *text = nb_json_get_text(object, name);
    if (text && strlen(text) >= n) return nb_error("\"%s\" is longer than %zu bytes", name, n - 1);
    snprintf(field, n, "%s", text ? text : "");
    return 0;
}

bool nb_json_get_bool(const cJSON *object, const char *name) {
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}

void nb_json_exact(cJSON *object, const char *name, double value) {
    char text[64];
    if (isfinite(value))
        snprintf(text, sizeof text, "%a", value);
    else
        snprintf(text, sizeof text, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    cJSON_AddStringToObject(object, name, text);
}

double nb_json_get_exact(const cJSON *object, const char *name) {
    const char *text = nb_json_get_text(object, name);
    if (!text) return NAN;
    char *end;
    double value = strtod(text, &end);
    return end == text || *end ? (double)NAN : value;
}

void nb_json_uint64(cJSON *object, const char *name, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    cJSON_AddStringToObject(object, name, text);
}

/* ---- printing -----------------------------------------------------------------------------------------------------
 */

/* The shortest of 15 to 17 significant digits that reads back as the same double; 17 always do. */
static void print_number(double value, struct nb_strbuf *out) {
    char text[40] = "null";
    for (int digits = 15; isfinite(value) && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    nb_strbuf_add(out, text);
}

/* Bytes of the UTF-8 sequence at s, 0 when it is none (RFC 3629: no overlong forms, no surrogates, nothing above
 * U+10FFFF). */
static size_t utf8_length(const unsigned char *s) {
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90)) return 0;
    return n;
}

bool nb_json_is_utf8(const char *text) {
    for (size_t n; *text; text += n)
        if ((n = utf8_length((const unsigned char *)text)) == 0) return false;
    return true;
}

/* A byte that is no UTF-8 (a file name may hold it) becomes U+FFFD: another reader would refuse the whole file. */
void nb_json_print_text(const char *s, struct nb_strbuf *out) {
    nb_strbuf_add(out, "\"");
    while (*s) {
        size_t n = utf8_length((const unsigned char *)s);
        if (*s == '"' || *s == '\\')
            nb_strbuf_addf(out, "\\%c", *s);
        else if (*s == '\n')
            nb_strbuf_add(out, "\\n");
        else if ((unsigned char)*s < 0x20)
            nb_strbuf_addf(out, "\\u%04x", (unsigned)*s);
        else if (n == 0)
            nb_strbuf_add(out, "\xef\xbf\xbd");
        else
            nb_strbuf_addn(out, s, n);
        s += n ? n : 1;
    }
    nb_strbuf_add(out, "\"");
}

static bool is_container(const cJSON *json) { return cJSON_IsObject(json) || cJSON_IsArray(json); }

static bool holds_container(const cJSON *json) {
    const cJSON *child;
    cJSON_ArrayForEach(child, json) {
        if (is_container(child)) return true;
    }
    return false;
}

static void print_value(const cJSON *json, int indent, bool pretty, struct nb_strbuf *out);

static void print_container(const cJSON *json, int indent, bool pretty, struct nb_strbuf *out) {
    bool object = cJSON_IsObject(json), broken = pretty && holds_container(json);
    nb_strbuf_add(out, object ? "{" : "[");
    const cJSON *child;
    cJSON_ArrayForEach(child, json) {
        if (child != json->child) nb_strbuf_add(out, pretty && !broken ? ", " : ",");
        if (broken) nb_strbuf_addf(out, "\n%*s", indent + 2, "");
        if (object) {
            nb_json_print_text(child->string, out);
            nb_strbuf_add(out, pretty ? ": " : ":");
        }
        print_value(child, indent + 2, pretty, out);
    }
    if (broken) nb_strbuf_addf(out, "\n%*s", indent, "");
    nb_strbuf_add(out, object ? "}" : "]");
}

static void print_value(const cJSON *json, int indent, bool pretty, struct nb_strbuf *out) {
    if (is_container(json))
        print_container(json, indent, pretty, out);
    else if (cJSON_IsString(json))
        nb_json_print_text(json->valuestring, out);
    else if (cJSON_IsNumber(json))
        print_number(json->valuedouble, out);
    else
        nb_strbuf_add(out, cJSON_IsTrue(json) ? "true" : cJSON_IsFalse(json) ? "false" : "null");
}

void nb_json_print(const cJSON *json, struct nb_strbuf *out) { print_value(json, 0, false, out); }

void nb_json_print_pretty(const cJSON *json, int indent, struct nb_strbuf *out) {
    print_value(json, indent, true, out);
}
