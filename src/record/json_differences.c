// SPDX-License-Identifier: Apache-2.0
/* A walk through both values at once. */
#include "src/record/json_differences.h"

#include <stdbool.h>

#include "src/core/text.h"

struct walk {
    void (*found)(const char *path, const cJSON *a, const cJSON *b, void *arg);
    void *arg;
};

static void compare(const struct walk *w, const char *path, const cJSON *a, const cJSON *b);

static void compare_member(const struct walk *w, const char *path, const char *name, const cJSON *a, const cJSON *b) {
    struct nb_strbuf inner = {0};
    nb_strbuf_addf(&inner, "%s%s%s", path, *path ? "." : "", name);
    compare(w, inner.text, cJSON_GetObjectItemCaseSensitive(a, name), cJSON_GetObjectItemCaseSensitive(b, name));
    nb_strbuf_release(&inner);
}

static void compare(const struct walk *w, const char *path, const cJSON *a, const cJSON *b) {
    const cJSON *child;
    if (cJSON_Compare(a, b, true) || (!a && !b)) return;
    if (!cJSON_IsObject(a) || !cJSON_IsObject(b)) {
        w->found(path, a, b, w->arg);
        return;
    }
    cJSON_ArrayForEach(child, a) compare_member(w, path, child->string, a, b);
    cJSON_ArrayForEach(child, b) {
        if (!cJSON_GetObjectItemCaseSensitive(a, child->string)) compare_member(w, path, child->string, a, b);
    }
}

void nb_json_differences(const cJSON *a, const cJSON *b,
                         void (*found)(const char *path, const cJSON *a, const cJSON *b, void *arg), void *arg) {
    compare(&(struct walk){found, arg}, "", a, b);
}
