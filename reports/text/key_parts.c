// SPDX-License-Identifier: Apache-2.0
/* "variant/axis:value/axis:value" taken apart. */
#include "reports/text/key_parts.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"

/* The next "axis:value" at or after *at, which goes on behind it; false: there is none. A part without a colon has no axis. */
static bool next_part(const char **at, const char **axis, size_t *n_axis, const char **value, size_t *n_value) {
    while (**at == '/') ++*at;
    if (!**at) return false;
    const size_t n = strcspn(*at, "/");
    const char *colon = memchr(*at, ':', n);
    *axis = *at;
    *n_axis = colon ? (size_t)(colon - *at) : n;
    *value = colon ? colon + 1 : *at + n;
    *n_value = n - *n_axis - (colon != NULL);
    *at += n;
    return true;
}

static struct nb_key_part *find(const struct nb_key_parts *p, const char *axis, size_t n) {
    for (size_t i = 0; i < p->n; i++)
        if (strncmp(p->parts[i].axis, axis, n) == 0 && p->parts[i].axis[n] == '\0') return &p->parts[i];
    return NULL;
}

static char *copy(const char *text, size_t n) {
    struct nb_strbuf out = {0};
    nb_strbuf_add(&out, "");
    nb_strbuf_addn(&out, text, n);
    return out.text;
}

static void take(struct nb_key_parts *p, const char *key) {
    const char *at = key + strcspn(key, "/"), *axis, *value;
    for (size_t n_axis, n_value; next_part(&at, &axis, &n_axis, &value, &n_value);) {
        struct nb_key_part *part = find(p, axis, n_axis);
        if (part) {
            part->varies |= strncmp(part->value, value, n_value) != 0 || part->value[n_value] != '\0';
            continue;
        }
        p->parts = nb_realloc(p->parts, p->n + 1, sizeof *p->parts);
        p->parts[p->n++] = (struct nb_key_part){copy(axis, n_axis), copy(value, n_value), false};
    }
}

void nb_key_parts_init(struct nb_key_parts *p, const char *const *keys, size_t n_keys) {
    *p = (struct nb_key_parts){0};
    for (size_t i = 0; i < n_keys; i++) take(p, keys[i]);
}

void nb_key_parts_release(struct nb_key_parts *p) {
    for (size_t i = 0; i < p->n; i++) {
        free(p->parts[i].axis);
        free(p->parts[i].value);
    }
    free(p->parts);
    *p = (struct nb_key_parts){0};
}

void nb_key_parts_common(const struct nb_key_parts *p, struct nb_strbuf *out) {
    const char *separator = "";
    nb_strbuf_add(out, "");
    for (size_t i = 0; i < p->n; i++) {
        if (p->parts[i].varies) continue;
        nb_strbuf_addf(out, "%s%s %s", separator, p->parts[i].axis, p->parts[i].value);
        separator = ", ";
    }
}

void nb_key_parts_short(const struct nb_key_parts *p, const char *key, struct nb_strbuf *out) {
    const char *at = key + strcspn(key, "/"), *axis, *value;
    nb_strbuf_add(out, "");
    nb_strbuf_addn(out, key, (size_t)(at - key));
    for (size_t n_axis, n_value; next_part(&at, &axis, &n_axis, &value, &n_value);) {
        const struct nb_key_part *part = find(p, axis, n_axis);
        if (part && !part->varies) continue;
        nb_strbuf_addf(out, " %.*s:%.*s", (int)n_axis, axis, (int)n_value, value);
    }
}
