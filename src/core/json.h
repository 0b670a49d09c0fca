// SPDX-License-Identifier: Apache-2.0
/* JSON as all our files have it: numbers are finite or null and read back bit for bit, text is valid UTF-8, values that
 * must be exact or may be NaN or Inf are strings. cJSON parses; it does not print, since it keeps 15 digits only. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "src/core/text.h"

/* For released_by(). */
static inline void nb_json_release(cJSON **json) { cJSON_Delete(*json); }

/* A finite number, else null. */
void nb_json_number(cJSON *object, const char *name, double value);
/* A member, null when absent. */
static inline cJSON *nb_json_get(const cJSON *object, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(object, name);
}
double nb_json_get_number(const cJSON *object, const char *name); /* NaN when null or absent */
int nb_json_get_index(const cJSON *object, const char *name);     /* whole, from 0 on; -1: none that fits an int */
/* Text, null for a null pointer. */
void nb_json_text(cJSON *object, const char *name, const char *text);
const char *nb_json_get_text(const cJSON *object, const char *name);   /* null when null, absent or no string */
const char *nb_json_get_string(const cJSON *object, const char *name); /* the same, but "" */
/* Is the text of the member this one, and is it that of another object? What is absent is "". */
bool nb_json_is(const cJSON *object, const char *name, const char *text);
bool nb_json_same_text(const cJSON *a, const cJSON *b, const char *name);
/* The first of an array's objects with this text as a member, or null; text may be null. */
const cJSON *nb_json_find(const cJSON *array, const char *member, const char *text);
/* Does the document say that it is of this schema? -1 after nb_error naming the file, where it says another or none. */
int nb_json_check_schema(const cJSON *json, const char *path, const char *ours);
/* "sum" as the last member: FNV-1a, 64 bits, in hexadecimal, of the object's compact text (nb_json_print) without it and without "records",
 * which have their own. White space may change, no value. */
void nb_json_add_sum(cJSON *object);
/* -1 after nb_error, where the sum is missing or of something else; part: which one of the file; mend: what to do. */
int nb_json_check_sum(const cJSON *object, const char *path, const char *part, const char *mend);
/* A text into a field of n bytes, "" when null or absent; -1 after nb_error when it does not fit. */
int nb_json_copy_text(char *field, size_t n, const cJSON *object, const char *name);
bool nb_json_get_bool(const cJSON *object, const char *name); /* absent: false */
/* An exact value as text: a hexadecimal float such as "0x1.8p-3", or "nan", "inf", "-inf". */
void nb_json_exact(cJSON *object, const char *name, double value);
double nb_json_get_exact(const cJSON *object, const char *name);
/* An estimate and its bounds, as an object of "value", "low" and "high"; NaN is null. */
struct nb_interval;
void nb_json_interval(cJSON *object, const char *name, const struct nb_interval *interval);
struct nb_interval nb_json_get_interval(const cJSON *object, const char *name); /* all NaN when null or absent */
/* An empty object at the end of an array, which owns it. */
cJSON *nb_json_add_object(cJSON *array);
/* 64 bits as decimal text. */
void nb_json_uint64(cJSON *object, const char *name, uint64_t value);

/* Is a text what JSON may hold (RFC 8259, section 8.1)? */
bool nb_json_is_utf8(const char *text);
/* A text in quotes. */
void nb_json_print_text(const char *text, struct nb_strbuf *out);
/* The whole value on one line. */
void nb_json_print(const cJSON *json, struct nb_strbuf *out);
/* As people read it: texts bare, "-" for null and nothing. */
char *nb_json_shown(const cJSON *json);
/* Indented; arrays and objects that hold no container of their own stay on one line. */
void nb_json_print_pretty(const cJSON *json, int indent, struct nb_strbuf *out);
/* The same as a whole document, which a newline ends, in a file. -1 after nb_error. */
int nb_json_write(const cJSON *json, const char *path);

/* ---- files that people write ---- */

/* JSON files that people write: comments are allowed, and every value knows the line it stands on, for the errors.
 * cJSON keeps no positions and no comments, so comments are blanked in place before it parses (lines stay where they
 * are), size and depth are bounded before it recurses, and a scan of our own finds the lines. */

#define NB_JSONC_MAX_BYTES (1 << 20)
#define NB_JSONC_MAX_DEPTH 32

struct nb_jsonc_place {
    const cJSON *node;
    int line;
};

struct nb_jsonc {
    char *path;
    cJSON *root;
    struct nb_jsonc_place *places; /* by node address */
    size_t n_places;
};

/* Returns -1 after nb_error with file and line. */
int nb_jsonc_read(struct nb_jsonc *file, const char *path);
/* The same from a text; path is what errors call it. */
int nb_jsonc_parse(struct nb_jsonc *file, const char *path, const char *text, size_t len);
/* The line of a value, for a member of an object that of its key. */
int nb_jsonc_line(const struct nb_jsonc *file, const cJSON *node);
void nb_jsonc_release(struct nb_jsonc *file);

/* The path of a file of the configs folder: NORMBENCH_CONFIGS, configs/ beside the program or one above, the installed share
 * folder. Owned, or null. */
char *nb_jsonc_find(const char *file_name);

/* ---- errors of their readers ---- */

/* What every reader of a config says when it does not understand: file, line, key, and what would be right. All return -1 after
 * nb_error, but nb_jsonc_number 0 where it is right. */

int nb_jsonc_wrong_type(const struct nb_jsonc *file, const cJSON *node, const char *key, const char *wanted);
int nb_jsonc_unknown_key(const struct nb_jsonc *file, const cJSON *node, const char *const *names, size_t n);
int nb_jsonc_twice(const struct nb_jsonc *file, const cJSON *node);
int nb_jsonc_number(const struct nb_jsonc *file, const cJSON *node, double low, double high, bool whole, double *value);
