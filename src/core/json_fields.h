// SPDX-License-Identifier: Apache-2.0
/* Reading an object of a file that people write by a table of its keys: what is unknown, given twice, of the wrong type, out of bounds
 * or missing is an error with file, line, key and remedy. */
#ifndef NB_JSON_FIELDS_H
#define NB_JSON_FIELDS_H

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

#endif
