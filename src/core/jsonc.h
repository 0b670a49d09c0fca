// SPDX-License-Identifier: Apache-2.0
/* JSON files that people write: comments are allowed, and every value knows the line it stands on, for the errors.
 * cJSON keeps no positions and no comments, so comments are blanked in place before it parses (lines stay where they
 * are), size and depth are bounded before it recurses, and a scan of our own finds the lines. */
#ifndef NB_JSONC_H
#define NB_JSONC_H

#include <cjson/cJSON.h>
#include <stddef.h>

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

#endif
