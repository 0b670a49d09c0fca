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
/* The member that another object has, or null. */
void nb_json_copy(cJSON *object, const cJSON *from, const char *name);
/* Text, null for a null pointer. */
void nb_json_text(cJSON *object, const char *name, const char *text);
const char *nb_json_get_text(const cJSON *object, const char *name);   /* null when null, absent or no string */
const char *nb_json_get_string(const cJSON *object, const char *name); /* the same, but "" */
/* Is the text of the member this one, and is it that of another object? What is absent is "". */
bool nb_json_is(const cJSON *object, const char *name, const char *text);
bool nb_json_same_text(const cJSON *a, const cJSON *b, const char *name);
/* The first of an array's objects with this text as a member, or null; text may be null. */
const cJSON *nb_json_find(const cJSON *array, const char *member, const char *text);
/* A document: an object that begins with its schema, the program and its version. */
cJSON *nb_json_document(const char *schema);
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

/* The sentence, as printf() makes it, behind the place of the value. */
int nb_jsonc_error(const struct nb_jsonc *file, const cJSON *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int nb_jsonc_wrong_type(const struct nb_jsonc *file, const cJSON *node, const char *key, const char *wanted);
int nb_jsonc_unknown_key(const struct nb_jsonc *file, const cJSON *node, const char *const *names, size_t n);
int nb_jsonc_twice(const struct nb_jsonc *file, const cJSON *node);
int nb_jsonc_number(const struct nb_jsonc *file, const cJSON *node, double low, double high, bool whole, double *value);

/* Reading an object of such a file by a table of its keys: what is unknown, given twice, of the wrong type, out of bounds or missing is an error
 * with file, line, key and remedy. */

enum nb_field_kind {
    NB_FIELD_TEXT,     /* char *, owned: not empty, without control characters */
    NB_FIELD_NUMBER,   /* double */
    NB_FIELD_PERCENT,  /* double: what is written in %, as a share */
    NB_FIELD_COUNT,    /* int: a whole number */
    NB_FIELD_BOOL,     /* bool */
    NB_FIELD_TEXTS,    /* struct nb_strings: a text or a list of texts */
    NB_FIELD_MEMBER,   /* by a function that is given the member */
    NB_FIELD_READ,     /* by a function that is given the whole struct */
    NB_FIELD_ELSEWHERE /* not here */
};

struct nb_field {
    const char *name;
    enum nb_field_kind kind;
    size_t offset; /* of the member in the struct that is read into */
    bool required;
    double low, high; /* of a number as it is written; both 0: any */
    int (*read)(const struct nb_jsonc *file, const cJSON *node, void *into);
};

/* A key that is called as its member is: {NB_FIELD(TEXT, struct nb_claim, title), .required = true} */
#define NB_FIELD(KIND, type, member) #member, NB_FIELD_##KIND, .offset = offsetof(type, member)

/* what: for errors, "a claim". -1 after nb_error. */
int nb_fields_read(const struct nb_jsonc *file, const cJSON *object, const struct nb_field *fields, size_t n,
                   const char *what, void *into);
/* One key of them; most: characters, 0 for any number. */
int nb_field_text(const struct nb_jsonc *file, const cJSON *node, size_t most, char **out);
int nb_strings_read(const struct nb_jsonc *file, const cJSON *node, struct nb_strings *out);

/* ---- what the program writes ----
 *
 * A struct as a JSON object: one table of its members writes it and reads it, so that no key is written in one place and forgotten
 * in the other.
 *
 *     static const struct nb_member evidence[] = {
 *         NB_MEMBER(COUNT, struct nb_timing, n_launches),
 *         NB_MEMBER(NUMBER, struct nb_timing, steal_ms),
 *         NB_MEMBERS_END};
 *     static const struct nb_member timing[] = {
 *         NB_MEMBER(INTERVAL, struct nb_timing, time_ns),
 *         NB_MEMBER_GROUP("evidence", evidence),
 *         NB_MEMBERS_END};
 *     nb_json_add_members(json, timing, t);
 *     if (nb_json_get_members(json, timing, t, "timing") != 0) return -1;
 *
 * Members are written in the order of the table. */

enum nb_member_kind {
    NB_MEMBER_NUMBER,   /* double: a finite number, else null; null or absent is read as NaN */
    NB_MEMBER_AMOUNT,   /* the same, and not below 0 */
    NB_MEMBER_EXACT,    /* double: text that keeps every bit, NaN and infinities too */
    NB_MEMBER_COUNT,    /* an integer type of 4 or 8 bytes: a whole number from 0 to 2^31 - 1, or 2^53 */
    NB_MEMBER_INDEX,    /* the same, or -1: null, and what null or absent is read as */
    NB_MEMBER_POSITIVE, /* the same, from 1: 0 is null, and what null or absent is read as */
    NB_MEMBER_COUNTS,   /* an array of int64_t: as many of them, each to 2^53 */
    NB_MEMBER_UINT64,   /* uint64_t: decimal text */
    NB_MEMBER_BOOL,     /* bool; absent is read as false */
    NB_MEMBER_TEXT,     /* char[]: "" is null */
    NB_MEMBER_STRING,   /* char *, owned: a null pointer is null */
    NB_MEMBER_BORROWED, /* const char *, into the JSON that it is read from: likewise */
    NB_MEMBER_NAME,     /* an enum or uint32_t: the name that it is the index of */
    NB_MEMBER_INTERVAL, /* struct nb_interval of amounts: an object; null or absent is read as NaN */
    NB_MEMBER_OBJECT,   /* a struct with a table of its own, or some members of this one as an object of their own */
};

struct nb_member {
    const char *name; /* null ends a table */
    enum nb_member_kind kind;
    size_t offset, size;             /* in the struct */
    const char *const *names;        /* NAME: null-terminated */
    const struct nb_member *members; /* OBJECT; offsets in the struct at `offset` */
    bool optional;                   /* left out where it would be null */
};

#define NB_MEMBER_AS(key, KIND, type, field)                                                                           \
    { key, NB_MEMBER_##KIND, offsetof(type, field), sizeof(((type *)0)->field), NULL, NULL, false }
#define NB_MEMBER(KIND, type, field) NB_MEMBER_AS(#field, KIND, type, field)
#define NB_MEMBER_OPTIONAL(KIND, type, field)                                                                          \
    { #field, NB_MEMBER_##KIND, offsetof(type, field), sizeof(((type *)0)->field), NULL, NULL, true }
#define NB_MEMBER_NAMED(type, field, list)                                                                             \
    { #field, NB_MEMBER_NAME, offsetof(type, field), sizeof(((type *)0)->field), list, NULL, false }
#define NB_MEMBER_STRUCT(type, field, table)                                                                           \
    { #field, NB_MEMBER_OBJECT, offsetof(type, field), sizeof(((type *)0)->field), NULL, table, false }
/* Members of the same struct. */
#define NB_MEMBER_GROUP(key, table)                                                                                    \
    { key, NB_MEMBER_OBJECT, 0, 0, NULL, table, false }
#define NB_MEMBERS_END                                                                                                 \
    { NULL, NB_MEMBER_NUMBER, 0, 0, NULL, NULL, false }

/* A new object of these members. */
cJSON *nb_json_of_members(const struct nb_member *members, const void *from);
void nb_json_add_members(cJSON *object, const struct nb_member *members, const void *from);
/* -1 after nb_error("WHAT: \"KEY\" is not ..."), with `what` the name of the thing that is read; members before that one are set. A
 * STRING is allocated; what it held is not freed. */
int nb_json_get_members(const cJSON *object, const struct nb_member *members, void *to, const char *what);
