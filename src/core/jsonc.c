// SPDX-License-Identifier: Apache-2.0
/* Reading JSON with comments, in three sweeps: blank and bound, parse (cJSON), find the lines. */
#include "src/core/jsonc.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/log.h"

/* ---- comments and bounds ---- */

static int line_of(const char *text, const char *at) {
    int line = 1;
    for (const char *p = text; p < at; p++) line += *p == '\n';
    return line;
}

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

/* Blanks all comments; checks that strings and comments end and that nothing is nested too deep. */
static int prepare(const char *path, char *text) {
    int depth = 0;
    for (char *p = text; *p;) {
        char *start = p;
        if (*p == '"') {
            p = (char *)skip_string(p);
            if (!p)
                return nb_error("%s:%d: a string does not end on its line, or holds \\u0000", path,
                                line_of(text, start));
        } else if (*p == '/' && (p[1] == '/' || p[1] == '*')) {
            p = blank_comment(p);
            if (!p) return nb_error("%s:%d: a comment opens with /* and never ends", path, line_of(text, start));
        } else {
            depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
            if (depth > NB_JSONC_MAX_DEPTH)
                return nb_error("%s:%d: nested deeper than %d levels", path, line_of(text, p), NB_JSONC_MAX_DEPTH);
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
        return nb_error("%s:%d: a comma before '%c': take it away", path, line_of(text, bracket), *bracket);
    if (!*at || (size_t)(at - text) + 1 >= strlen(text))
        return nb_error("%s:%d: the file ends inside a value, or its last bracket is missing", path, line_of(text, at));
    return nb_error("%s:%d: not valid JSON from here on: '%s'", path, line_of(text, at), near);
}

static int parse_prepared(struct nb_jsonc *file, const char *text, size_t len) {
    const char *end = NULL;
    if (text[strspn(text, " \t\r\n")] == '\0') return nb_error("%s:1: the file is empty", file->path);
    file->root = cJSON_ParseWithLengthOpts(text, len + 1, &end, false);
    if (!file->root) return syntax_error(file->path, text, end ? end : text);
    const char *rest = end + strspn(end, " \t\r\n");
    if (*rest) return nb_error("%s:%d: something follows the end of the JSON value", file->path, line_of(text, rest));
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
    char *copy = nb_alloc(len + 1, 1);
    memcpy(copy, text, len);
    const char *zero = memchr(text, '\0', len);
    if (len > NB_JSONC_MAX_BYTES)
        nb_error("%s: larger than %d bytes", path, NB_JSONC_MAX_BYTES);
    else if (zero)
        nb_error("%s:%d: holds a zero byte", path, line_of(text, zero));
    else if (prepare(path, copy) == 0)
        result = parse_prepared(file, copy, len);
    free(copy);
    if (result != 0) nb_jsonc_release(file);
    return result;
}

int nb_jsonc_read(struct nb_jsonc *file, const char *path) {
    size_t len = 0;
    *file = (struct nb_jsonc){0};
    char *text = nb_file_read(path, NB_JSONC_MAX_BYTES, &len);
    if (!text) return -1;
    int result = nb_jsonc_parse(file, path, text, len);
    free(text);
    return result;
}

void nb_jsonc_release(struct nb_jsonc *file) {
    cJSON_Delete(file->root);
    free(file->places);
    free(file->path);
    *file = (struct nb_jsonc){0};
}

char *nb_jsonc_find(const char *file_name) {
    char *dir = nb_share_dir("NORMBENCH_CONFIGS", "configs");
    if (!dir) return NULL;
    char *path = nb_path_join(dir, file_name);
    free(dir);
    if (nb_path_exists(path)) return path;
    free(path);
    return NULL;
}
