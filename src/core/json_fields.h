// SPDX-License-Identifier: Apache-2.0
/* Reading an object of a file that people write by a table of its keys: what is unknown, given twice, of the wrong type, out of bounds
 * or missing is an error with file, line, key and remedy. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/core/json.h"
#include "src/core/text.h"

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
