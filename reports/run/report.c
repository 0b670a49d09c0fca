// SPDX-License-Identifier: Apache-2.0
/* The renderers that the build found. */
#include "reports/run/report.h"

#include <string.h>

#define NB_RENDERER_ENTRY(name) extern const struct nb_renderer nb_renderer_##name[];
#include "renderer_list.h"
#undef NB_RENDERER_ENTRY

static const struct nb_renderer *const files[] = {
#define NB_RENDERER_ENTRY(name) nb_renderer_##name,
#include "renderer_list.h"
#undef NB_RENDERER_ENTRY
};

const struct nb_renderer *nb_renderer_at(size_t i) {
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (const struct nb_renderer *r = files[f]; r->name; r++)
            if (i-- == 0) return r;
    return NULL;
}

const struct nb_renderer *nb_renderer_find(const char *name) {
    const struct nb_renderer *r;
    for (size_t i = 0; (r = nb_renderer_at(i)) != NULL; i++)
        if (strcmp(r->name, name) == 0) return r;
    return NULL;
}
