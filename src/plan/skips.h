// SPDX-License-Identifier: Apache-2.0
/* What a plan leaves out, counted by reason. */
#ifndef NB_SKIPS_H
#define NB_SKIPS_H

#include <stddef.h>

#include "src/core/text.h"

struct nb_skip {
    char *reason; /* "width 512: this CPU has no AVX-512" */
    char *key;    /* null for cells that were never built (no kernel); else the case, which gets a record "skipped" */
    size_t n;     /* cells with this reason; 1 where there is a key */
};

/* Zero-initialise. */
struct nb_skips {
    struct nb_skip *items;
    size_t n;
    struct nb_text_map by_reason; /* of those without a key */
};

/* n more cells that have no record of their own. */
void nb_skips_count(struct nb_skips *s, size_t n, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A case that gets a record. */
void nb_skips_case(struct nb_skips *s, const char *key, const char *reason);
/* Most frequent reason first, the entries of a reason together. */
void nb_skips_sort(struct nb_skips *s);
void nb_skips_release(struct nb_skips *s);

#endif
