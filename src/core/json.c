// SPDX-License-Identifier: Apache-2.0
/* Printing JSON so that every number reads back bit for bit, and reaching into it without trusting its types. */
#include "src/core/json.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/stats.h"
#include "src/core/utf8.h"

void nb_json_number(cJSON *object, const char *name, double value) {
    if (isfinite(value))
        cJSON_AddNumberToObject(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

double nb_json_get_number(const cJSON *object, const char *name) {
    const cJSON *item = nb_json_get(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
}

int nb_json_get_index(const cJSON *object, const char *name) {
    const double value = nb_json_get_number(object, name);
    return value >= 0 && value <= INT_MAX && floor(value) == value ? (int)value : -1;
}

void nb_json_copy(cJSON *object, const cJSON *from, const char *name) {
    const cJSON *item = nb_json_get(from, name);
    cJSON_AddItemToObject(object, name, item ? cJSON_Duplicate(item, true) : cJSON_CreateNull());
}
void nb_json_text(cJSON *object, const char *name, const char *text) {
    if (text)
        cJSON_AddStringToObject(object, name, text);
    else
        cJSON_AddNullToObject(object, name);
}

const char *nb_json_get_text(const cJSON *object, const char *name) {
    return cJSON_GetStringValue(nb_json_get(object, name));
}

const char *nb_json_get_string(const cJSON *object, const char *name) {
    const char *text = nb_json_get_text(object, name);
    return text ? text : "";
}

bool nb_json_is(const cJSON *object, const char *name, const char *text) {
    return strcmp(nb_json_get_string(object, name), text) == 0;
}

bool nb_json_same_text(const cJSON *a, const cJSON *b, const char *name) {
    return nb_json_is(a, name, nb_json_get_string(b, name));
}

const cJSON *nb_json_find(const cJSON *array, const char *member, const char *text) {
    const cJSON *object;
    cJSON_ArrayForEach(object, array) {
        const char *own = nb_json_get_text(object, member);
        if (own && text && strcmp(own, text) == 0) return object;
    }
    return NULL;
}

cJSON *nb_json_document(const char *schema) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "schema", schema);
    nb_json_text(json, "program", "normbench");
    nb_json_text(json, "version", NB_VERSION);
    return json;
}

int nb_json_check_schema(const cJSON *json, const char *path, const char *ours) {
    const char *schema = nb_json_get_text(json, "schema");
    if (!schema) return nb_error("%s: has no \"schema\": normbench did not write it", path);
    if (strcmp(schema, ours) == 0) return 0;
    return nb_error("%s: has schema %s, and this version reads only %s; make it again", path, schema, ours);
}

static void print_sum(const cJSON *object, char out[17]) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    const cJSON *member;
    nb_strbuf_add(&text, "{");
    cJSON_ArrayForEach(member, object) {
        if (strcmp(member->string, "sum") == 0 || strcmp(member->string, "records") == 0) continue;
        if (text.len > 1) nb_strbuf_add(&text, ",");
        nb_json_print_text(member->string, &text);
        nb_strbuf_add(&text, ":");
        nb_json_print(member, &text);
    }
    nb_strbuf_add(&text, "}");
    snprintf(out, 17, "%016" PRIx64, nb_hash(NB_HASH_EMPTY, text.text, text.len));
}

void nb_json_add_sum(cJSON *object) {
    char sum[17];
    print_sum(object, sum);
    cJSON_DeleteItemFromObjectCaseSensitive(object, "sum");
    nb_json_text(object, "sum", sum);
}

/* A number beyond all doubles is read as infinity, and printed as null is. */
static bool is_finite(const cJSON *json) {
    bool finite = !cJSON_IsNumber(json) || isfinite(json->valuedouble);
    for (const cJSON *item = json->child; item && finite; item = item->next) finite = is_finite(item);
    return finite;
}

int nb_json_check_sum(const cJSON *object, const char *path, const char *part, const char *mend) {
    char sum[17];
    print_sum(object, sum);
    if (nb_json_is(object, "sum", sum) && is_finite(object)) return 0;
    return nb_error("%s: %s was changed after it was written, or is not of this program: its \"sum\" is %s; %s", path,
                    part, cJSON_HasObjectItem(object, "sum") ? "of something else" : "missing", mend);
}

int nb_json_copy_text(char *field, size_t n, const cJSON *object, const char *name) {
    const char *text = nb_json_get_text(object, name);
    if (text && strlen(text) >= n) return nb_error("\"%s\" is longer than %zu bytes", name, n - 1);
    snprintf(field, n, "%s", text ? text : "");
    return 0;
}

bool nb_json_get_bool(const cJSON *object, const char *name) { return cJSON_IsTrue(nb_json_get(object, name)); }

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

void nb_json_interval(cJSON *object, const char *name, const struct nb_interval *interval) {
    cJSON *json = cJSON_AddObjectToObject(object, name);
    nb_json_number(json, "value", interval->value);
    nb_json_number(json, "low", interval->low);
    nb_json_number(json, "high", interval->high);
}

struct nb_interval nb_json_get_interval(const cJSON *object, const char *name) {
    const cJSON *json = nb_json_get(object, name);
    return (struct nb_interval){nb_json_get_number(json, "value"), nb_json_get_number(json, "low"),
                                nb_json_get_number(json, "high")};
}

cJSON *nb_json_add_object(cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(array, object);
    return object;
}

void nb_json_uint64(cJSON *object, const char *name, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    cJSON_AddStringToObject(object, name, text);
}

/* ---- printing ---- */

bool nb_json_is_utf8(const char *text) {
    uint32_t code;
    for (size_t n; *text; text += n)
        if ((n = nb_utf8_decode(text, &code)) == 0) return false;
    return true;
}

/* A byte that is no UTF-8 (a file name may hold it) becomes U+FFFD: another reader would refuse the whole file. Control characters are
 * escaped, also those that JSON need not escape: the text may be shown by a terminal. */
void nb_json_print_text(const char *s, struct nb_strbuf *out) {
    nb_strbuf_add(out, "\"");
    while (*s) {
        uint32_t code = 0;
        size_t n = nb_utf8_decode(s, &code);
        if (*s == '"' || *s == '\\')
            nb_strbuf_addf(out, "\\%c", *s);
        else if (*s == '\n')
            nb_strbuf_add(out, "\\n");
        else if (n == 0)
            nb_strbuf_add(out, "\xef\xbf\xbd");
        else if (nb_utf8_is_command(code))
            nb_strbuf_addf(out, "\\u%04x", code);
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
    else if (cJSON_IsNumber(json) && isfinite(json->valuedouble)) {
        char text[32];
        nb_exact_text(json->valuedouble, text);
        nb_strbuf_add(out, text);
    } else
        nb_strbuf_add(out, cJSON_IsTrue(json) ? "true" : cJSON_IsFalse(json) ? "false" : "null");
}

void nb_json_print(const cJSON *json, struct nb_strbuf *out) { print_value(json, 0, false, out); }

void nb_json_print_pretty(const cJSON *json, int indent, struct nb_strbuf *out) {
    print_value(json, indent, true, out);
}

char *nb_json_shown(const cJSON *json) {
    struct nb_strbuf text = {0};
    if (cJSON_IsString(json))
        nb_strbuf_add(&text, json->valuestring);
    else if (!json || cJSON_IsNull(json))
        nb_strbuf_add(&text, "-");
    else
        nb_json_print(json, &text);
    return text.text;
}

int nb_json_write(const cJSON *json, const char *path) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_json_print_pretty(json, 0, &text);
    nb_strbuf_add(&text, "\n");
    return nb_file_write(path, text.text, text.len);
}

/* ---- files that people write ---- */

/* Reading JSON with comments, in three sweeps: blank and bound, parse (cJSON), find the lines. */

/* ---- comments and bounds ---- */

/* Behind the closing quote of the string that opens at p; null when it does not close on its line, or holds a \u0000,
 * which would cut the text short. */
static const char *skip_string(const char *p) {
    for (p++; *p && *p != '\n'; p++) {
        if (*p == '"') return p + 1;
        if (*p != '\\') continue;
        if (strncmp(p, "\\u0000", 6) == 0 || !p[1]) return NULL;
        p++;
    }
    return NULL;
}

/* Blanks the comment at p, newlines kept. Returns what follows it, null when it does not end. */
static char *blank_comment(char *p) {
    bool block = p[1] == '*';
    char *end = block ? strstr(p + 2, "*/") : strchr(p, '\n');
    if (!end && block) return NULL;
    end = end ? end + (block ? 2 : 0) : p + strlen(p);
    for (; p < end; p++)
        if (*p != '\n') *p = ' ';
    return end;
}

/* Behind the number at p; null after nb_error: as a double it would be another one. */
static const char *skip_number(const char *path, const char *text, const char *p) {
    const size_t n_digits = strspn(p, "0123456789"), n_mantissa = strspn(p, "0123456789.");
    const int n = (int)strspn(p, "0123456789.eE+-");
    const double value = strtod(p, NULL);
    char *exact freed = nb_textf("%.0f", value);
    const bool is_whole = (int)n_digits == n && isfinite(value);
    const bool changes = is_whole && value >= 0x1p53 && (strlen(exact) != n_digits || memcmp(exact, p, n_digits) != 0);
    if (changes)
        nb_error("%s:%d: %.*s is too long for a JSON number, which would be %.0f; write it as a text: \"%.*s\"", path,
                 nb_text_line(text, p), n, p, value, n, p);
    const bool vanishes = value == 0 && strcspn(p, "123456789") < n_mantissa;
    if (vanishes) nb_error("%s:%d: %.*s is smaller than any number but 0", path, nb_text_line(text, p), n, p);
    return changes || vanishes ? NULL : p + n;
}

/* Blanks all comments; checks that numbers stay what they are, that strings and comments end and that nothing is nested too deep. */
static int prepare(const char *path, char *text) {
    int depth = 0;
    for (char *p = text; *p;) {
        char *start = p;
        if (*p == '"') {
            p = (char *)skip_string(p);
            if (!p)
                return nb_error("%s:%d: a string does not end on its line, or holds \\u0000", path,
                                nb_text_line(text, start));
        } else if (*p == '/' && (p[1] == '/' || p[1] == '*')) {
            p = blank_comment(p);
            if (!p) return nb_error("%s:%d: a comment opens with /* and never ends", path, nb_text_line(text, start));
        } else if (*p >= '0' && *p <= '9') {
            p = (char *)skip_number(path, text, p);
            if (!p) return -1;
        } else {
            depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
            if (depth > NB_JSONC_MAX_DEPTH)
                return nb_error("%s:%d: nested deeper than %d levels", path, nb_text_line(text, p), NB_JSONC_MAX_DEPTH);
            p++;
        }
    }
    return 0;
}

/* ---- lines ---- */

/* Walks over text that cJSON has accepted, value by value, in the order in which cJSON links its nodes. */
struct scanner {
    const char *p;
    int line, key_line;
    bool in_object[NB_JSONC_MAX_DEPTH + 1];
    int depth;
    bool expect_key;
};

/* The line of the next value; 0 at the end. */
static int next_value_line(struct scanner *s) {
    for (; *s->p; s->p++) {
        const char c = *s->p;
        const int line = s->key_line ? s->key_line : s->line;
        if (c == '\n') s->line++;
        if ((unsigned char)c <= ' ' || c == ':') continue;
        if (c == '}' || c == ']') {
            s->depth--;
            s->expect_key = false;
        } else if (c == ',') {
            s->expect_key = s->in_object[s->depth];
        } else if (c == '"' && s->expect_key) {
            s->key_line = s->line;
            s->expect_key = false;
            s->p = skip_string(s->p) - 1;
        } else {
            s->key_line = 0;
            if (c == '{' || c == '[') {
                s->in_object[++s->depth] = c == '{';
                s->expect_key = c == '{';
                s->p++;
            } else {
                s->p = c == '"' ? skip_string(s->p) : s->p + strcspn(s->p, ",]} \t\r\n");
            }
            return line;
        }
    }
    return 0;
}

static size_t count_nodes(const cJSON *node) {
    size_t n = 1;
    for (const cJSON *child = node->child; child; child = child->next) n += count_nodes(child);
    return n;
}

static void place_nodes(struct nb_jsonc *file, const cJSON *node, struct scanner *s) {
    file->places[file->n_places++] = (struct nb_jsonc_place){node, next_value_line(s)};
    for (const cJSON *child = node->child; child; child = child->next) place_nodes(file, child, s);
}

static int compare_places(const void *a, const void *b) {
    uintptr_t p = (uintptr_t)((const struct nb_jsonc_place *)a)->node;
    uintptr_t q = (uintptr_t)((const struct nb_jsonc_place *)b)->node;
    return (p > q) - (p < q);
}

int nb_jsonc_line(const struct nb_jsonc *file, const cJSON *node) {
    const struct nb_jsonc_place wanted = {.node = node};
    const struct nb_jsonc_place *found = bsearch(&wanted, file->places, file->n_places, sizeof wanted, compare_places);
    return found ? found->line : 0;
}

/* ---- parsing ---- */

/* What stands at a place, for an error: the rest of the line, cut short, controls left out. */
static void excerpt(const char *at, char out[32]) {
    size_t n = 0;
    for (; at[n] && at[n] != '\n' && n < 30; n++) out[n] = (unsigned char)at[n] < ' ' ? ' ' : at[n];
    out[n] = '\0';
}

/* A bracket with a comma before it. */
static bool is_after_comma(const char *text, const char *bracket) {
    if (*bracket != ']' && *bracket != '}') return false;
    while (bracket > text && (unsigned char)bracket[-1] <= ' ') bracket--;
    return bracket > text && bracket[-1] == ',';
}

/* cJSON stops at what it cannot take, or one behind it where it looked for a key. */
static int syntax_error(const char *path, const char *text, const char *at) {
    char near[32];
    const char *bracket = at > text && is_after_comma(text, at - 1) ? at - 1 : at;
    excerpt(at, near);
    if (is_after_comma(text, bracket))
        return nb_error("%s:%d: a comma before '%c': take it away", path, nb_text_line(text, bracket), *bracket);
    if (!*at || (size_t)(at - text) + 1 >= strlen(text))
        return nb_error("%s:%d: the file ends inside a value, or its last bracket is missing", path,
                        nb_text_line(text, at));
    return nb_error("%s:%d: not valid JSON from here on: '%s'", path, nb_text_line(text, at), near);
}

static int parse_prepared(struct nb_jsonc *file, const char *text, size_t len) {
    const char *end = NULL;
    if (text[strspn(text, " \t\r\n")] == '\0') return nb_error("%s:1: the file is empty", file->path);
    file->root = cJSON_ParseWithLengthOpts(text, len + 1, &end, false);
    if (!file->root) return syntax_error(file->path, text, end ? end : text);
    const char *rest = end + strspn(end, " \t\r\n");
    if (*rest)
        return nb_error("%s:%d: something follows the end of the JSON value", file->path, nb_text_line(text, rest));
    struct scanner s = {.p = text, .line = 1};
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0) s.p += 3;
    file->places = nb_alloc(count_nodes(file->root), sizeof *file->places);
    place_nodes(file, file->root, &s);
    qsort(file->places, file->n_places, sizeof *file->places, compare_places);
    return 0;
}

int nb_jsonc_parse(struct nb_jsonc *file, const char *path, const char *text, size_t len) {
    *file = (struct nb_jsonc){.path = nb_strdup(path)};
    int result = -1;
    char *copy freed = nb_alloc(len + 1, 1);
    memcpy(copy, text, len);
    const char *zero = memchr(text, '\0', len);
    if (len > NB_JSONC_MAX_BYTES)
        nb_error("%s: larger than %d bytes", path, NB_JSONC_MAX_BYTES);
    else if (zero)
        nb_error("%s:%d: holds a zero byte", path, nb_text_line(text, zero));
    else if (prepare(path, copy) == 0)
        result = parse_prepared(file, copy, len);
    if (result != 0) nb_jsonc_release(file);
    return result;
}

int nb_jsonc_read(struct nb_jsonc *file, const char *path) {
    size_t len = 0;
    *file = (struct nb_jsonc){0};
    char *text freed = nb_file_read(path, NB_JSONC_MAX_BYTES, &len);
    return text ? nb_jsonc_parse(file, path, text, len) : -1;
}

void nb_jsonc_release(struct nb_jsonc *file) {
    cJSON_Delete(file->root);
    free(file->places);
    free(file->path);
    *file = (struct nb_jsonc){0};
}

char *nb_jsonc_find(const char *file_name) {
    char *dir freed = nb_share_dir("NORMBENCH_CONFIGS", "configs");
    return nb_path_found(dir ? nb_path_join(dir, file_name) : NULL);
}

/* ---- errors of their readers ---- */

static const char *type_name(const cJSON *node) {
    if (cJSON_IsString(node)) return "a text";
    if (cJSON_IsNumber(node)) return "a number";
    if (cJSON_IsBool(node)) return "true or false";
    if (cJSON_IsNull(node)) return "null";
    return cJSON_IsArray(node) ? "a list" : "an object";
}

int nb_jsonc_error(const struct nb_jsonc *file, const cJSON *node, const char *format, ...) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    va_list args;
    va_start(args, format);
    nb_strbuf_addv(&text, format, args);
    va_end(args);
    return nb_error("%s:%d: %s", file->path, nb_jsonc_line(file, node), text.text);
}

int nb_jsonc_wrong_type(const struct nb_jsonc *file, const cJSON *node, const char *key, const char *wanted) {
    return nb_jsonc_error(file, node, "\"%s\" is %s; it must be %s", key, type_name(node), wanted);
}

int nb_jsonc_unknown_key(const struct nb_jsonc *file, const cJSON *node, const char *const *names, size_t n) {
    const char *nearest = nb_nearest(node->string, names, n);
    nb_jsonc_error(file, node, "unknown key \"%s\"%s%s%s", node->string, nearest ? "; did you mean \"" : "",
                   nearest ? nearest : "", nearest ? "\"?" : "");
    if (nearest) return -1;
    struct nb_strbuf all released_by(nb_strbuf_release) = {0};
    for (size_t i = 0; i < n; i++) nb_strbuf_addf(&all, "%s %s", i ? "," : "", names[i]);
    nb_note("valid keys here:%s", all.text);
    return -1;
}

int nb_jsonc_twice(const struct nb_jsonc *file, const cJSON *node) {
    return nb_jsonc_error(file, node, "key \"%s\" is given twice", node->string);
}

int nb_jsonc_number(const struct nb_jsonc *file, const cJSON *node, double low, double high, bool whole,
                    double *value) {
    if (!cJSON_IsNumber(node)) return nb_jsonc_wrong_type(file, node, node->string, "a number");
    *value = node->valuedouble;
    if (*value >= low && *value <= high && (!whole || floor(*value) == *value)) return 0;
    return nb_jsonc_error(file, node, "\"%s\": %.10g is not a %snumber from %g to %.16g", node->string, *value,
                          whole ? "whole " : "", low, high);
}
