// SPDX-License-Identifier: Apache-2.0
/* Reading an object of a claim file by a table of its keys: what is unknown, given twice, of the wrong type or missing is an error
 * with file, line, key and remedy. */
#ifndef NB_FIELDS_H
#define NB_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "src/core/json.h"

enum nb_field_kind {
    NB_FIELD_TEXT,      /* char *, owned */
    NB_FIELD_NUMBER,    /* double */
    NB_FIELD_BOOL,      /* bool */
    NB_FIELD_TEXTS,     /* struct nb_strings */
    NB_FIELD_SELECTOR,  /* struct nb_selector */
    NB_FIELD_ELSEWHERE, /* read by other means */
    NB_FIELD_READ       /* by a function */
};

struct nb_strings {
    char **items;
    size_t n;
};
void nb_strings_release(struct nb_strings *s);

struct nb_field {
    const char *name;
    enum nb_field_kind kind;
    size_t offset; /* of the member in the struct that is read into */
    bool required;
    int (*read)(const struct nb_jsonc *file, const cJSON *node,
                void *into); /* NB_FIELD_READ: into is the whole struct */
};

/* what: for errors, "a claim". -1 after nb_error. */
int nb_fields_read(const struct nb_jsonc *file, const cJSON *object, const struct nb_field *fields, size_t n,
                   const char *what, void *into);
/* A text or a list of texts. */
int nb_strings_read(const struct nb_jsonc *file, const cJSON *node, struct nb_strings *out);

#endif
