// SPDX-License-Identifier: Apache-2.0
/* Values are checked when they are read, so that a mistake is named with its place and not found in the middle of a run. */
#include "src/core/values.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/shape.h"

enum { MAX_VALUES = 100000 };

static int append(struct nb_values *v, const char *text, char *reason, size_t n) {
    if (v->n == MAX_VALUES) {
        snprintf(reason, n, "is the %dth value of its list", MAX_VALUES + 1);
        return -1;
    }
    v->texts = nb_realloc(v->texts, v->n + 1, sizeof *v->texts);
    v->texts[v->n++] = nb_strdup(text);
    return 0;
}

static int add_shapes(struct nb_values *v, const char *text, char *reason, size_t n) {
    char **shapes = NULL;
    int count = nb_shape_expand(text, &shapes, reason, n), result = count < 0 ? -1 : 0;
    for (int i = 0; i < count; i++) {
        if (result == 0) result = append(v, shapes[i], reason, n);
        free(shapes[i]);
    }
    free(shapes);
    return result;
}

static int add_choice(struct nb_values *v, const struct nb_axis *axis, const char *text, char *reason, size_t n) {
    if (strcmp(text, "all") == 0) return append(v, text, reason, n);
    int found = nb_name_find(axis->choices, text);
    if (found >= 0) return append(v, axis->choices[found], reason, n);
    nb_name_refuse(axis->choices, text, reason, n);
    return -1;
}

static bool starts_with_name(const char *text, const char *prefix) {
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 && text[n] != '\0';
}

/* kernel: a glob; backend: a word or a kind with a name. */
static int add_selection(struct nb_values *v, const struct nb_axis *axis, const char *text, char *reason, size_t n) {
    bool is_backend = strcmp(axis->name, "backend") == 0;
    bool known = !strcmp(text, "all") || !strcmp(text, "cpu") || !strcmp(text, "cuda") ||
                 starts_with_name(text, "plugin:") || starts_with_name(text, "peer:");
    if (is_backend && !known) {
        snprintf(reason, n, "is not cpu, plugin:NAME, cuda or peer:NAME");
        return -1;
    }
    if (!*text || strlen(text) >= NB_VARIANT_MAX) {
        snprintf(reason, n, "is not a name or glob of up to %d characters", NB_VARIANT_MAX - 1);
        return -1;
    }
    return append(v, text, reason, n);
}

int nb_values_add(struct nb_values *values, const struct nb_axis *axis, const char *text, char *reason, size_t n) {
    struct nb_case scratch;
    if (strcmp(axis->name, "shape") == 0) return add_shapes(values, text, reason, n);
    if (axis->kind == NB_AXIS_SELECT)
        return axis->choices ? add_choice(values, axis, text, reason, n) : add_selection(values, axis, text, reason, n);
    nb_case_init(&scratch);
    if (nb_axis_set(axis, &scratch, text, reason, n) != 0) return -1;
    return append(values, text, reason, n);
}

void nb_values_copy(struct nb_values *to, const struct nb_values *from) {
    nb_values_release(to);
    *to = (struct nb_values){.texts = nb_alloc(from->n, sizeof *to->texts), .n = from->n, .line = from->line};
    for (size_t i = 0; i < from->n; i++) to->texts[i] = nb_strdup(from->texts[i]);
}

void nb_values_release(struct nb_values *values) {
    for (size_t i = 0; i < values->n; i++) free(values->texts[i]);
    free(values->texts);
    *values = (struct nb_values){0};
}
