// SPDX-License-Identifier: Apache-2.0
/* The renderers that the build found. */
#include "reports/run/report.h"

#include <string.h>

#define NB_RENDERER_ENTRY(name) extern const struct nb_renderer nb_renderer_##name;
#include "renderer_list.h"
#undef NB_RENDERER_ENTRY

static const struct nb_renderer *const renderers[] = {
#define NB_RENDERER_ENTRY(name) &nb_renderer_##name,
#include "renderer_list.h"
#undef NB_RENDERER_ENTRY
};
static const size_t n_renderers = sizeof renderers / sizeof *renderers;

const struct nb_renderer *nb_renderer_find(const char *name) {
    for (size_t i = 0; i < n_renderers; i++)
        if (strcmp(renderers[i]->name, name) == 0) return renderers[i];
    return NULL;
}

const struct nb_renderer *nb_renderer_at(size_t i) { return i < n_renderers ? renderers[i] : NULL; }
