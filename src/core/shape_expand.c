// SPDX-License-Identifier: Apache-2.0
/* Many shapes from one text: the name of a preset in configs/shapes.json, or ranges such as 64x256:65536:*4. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/shape.h"

enum { MAX_EXPANDED = 4096, MAX_TEXT = 200 };

struct texts {
    char **items;
    size_t n;
};

static void add_text(struct texts *t, const char *text) {
    t->items = nb_realloc(t->items, t->n + 1, sizeof *t->items);
    t->items[t->n++] = nb_strdup(text);
}

static void free_texts(struct texts *t) {
    for (size_t i = 0; i < t->n; i++) free(t->items[i]);
    free(t->items);
    *t = (struct texts){0};
}

/* ---- ranges ---- */

/* "FIRST:LAST:*F" or "FIRST:LAST:+S". */
struct range {
    long long first, last, step;
    bool multiply;
    size_t length; /* of its text */
};

static long long read_number(const char **p) {
    long long value = 0;
    for (; isdigit((unsigned char)**p); (*p)++) {
        value = value * 10 + (**p - '0');
        if (value > (long long)1 << 40) value = (long long)1 << 40;
    }
    return value;
}

static int read_range(struct range *r, const char *text, char *reason, size_t n) {
    const char *p = text;
    r->first = read_number(&p);
    bool ok = *p == ':' && isdigit((unsigned char)p[1]);
    if (ok) {
        p++;
        r->last = read_number(&p);
        ok = *p == ':' && (p[1] == '*' || p[1] == '+') && isdigit((unsigned char)p[2]);
    }
    if (ok) {
        r->multiply = p[1] == '*';
        p += 2;
        r->step = read_number(&p);
        r->length = (size_t)(p - text);
        ok = r->first >= 1 && r->last >= r->first && r->step >= (r->multiply ? 2 : 1);
    }
    if (ok) return 0;
    snprintf(reason, n, "has a range that is not FIRST:LAST:*FACTOR or FIRST:LAST:+STEP, such as 256:65536:*4");
    return -1;
}

/* The first number of the text with a ':' behind it; null: no range left. A prefix such as "nchw:" has no number. */
static const char *find_range(const char *text) {
    const char *p = strncmp(text, "nchw:", 5) == 0 || strncmp(text, "nhwc:", 5) == 0 ? text + 5 : text;
    const char *colon = strchr(p, ':');
    if (!colon) return NULL;
    while (colon > p && isdigit((unsigned char)colon[-1])) colon--;
    return colon;
}

static int expand_ranges(struct texts *out, const char *text, char *reason, size_t n) {
    struct range r = {0};
    struct nb_shape shape;
    const char *at = find_range(text);
    if (!at) {
        if (nb_shape_parse(&shape, text, reason, n) != 0) return -1;
        if (out->n == MAX_EXPANDED) {
            snprintf(reason, n, "stands for more than %d shapes", MAX_EXPANDED);
            return -1;
        }
        add_text(out, shape.text);
        return 0;
    }
    if (read_range(&r, at, reason, n) != 0) return -1;
    struct nb_strbuf one = {0};
    int result = 0;
    for (long long v = r.first; result == 0;) {
        nb_strbuf_clear(&one);
        nb_strbuf_addf(&one, "%.*s%lld%s", (int)(at - text), text, v, at + r.length);
        result = expand_ranges(out, one.text, reason, n);
        if (r.multiply ? v > r.last / r.step : v > r.last - r.step) break;
        v = r.multiply ? v * r.step : v + r.step;
    }
    nb_strbuf_release(&one);
    return result;
}

/* ---- levels ---- */

const char *const nb_level_names[] = {"L1", "L2", "L3", "DRAM", NULL};

static size_t prefix_length(const char *text) {
    return strncmp(text, "nchw:", 5) == 0 || strncmp(text, "nhwc:", 5) == 0 ? 5 : 0;
}

int nb_shape_level(const char *text, enum nb_level *level, char *plain, size_t n) {
    const size_t prefix = prefix_length(text);
    for (int i = 0; i < NB_N_LEVELS; i++) {
        const size_t len = strlen(nb_level_names[i]);
        if (strncmp(text + prefix, nb_level_names[i], len) != 0 || text[prefix + len] != 'x') continue;
        *level = (enum nb_level)i;
        const int written = snprintf(plain, n, "%.*s1%s", (int)prefix, text, text + prefix + len);
        return written > 0 && (size_t)written < n ? 0 : -1;
    }
    return -1;
}

/* Each shape of the ranges behind the level, with the level in front of it again. */
static int expand_level(struct texts *out, const char *text, const char *plain, enum nb_level level, char *reason,
                        size_t n) {
    struct texts shapes = {0};
    const size_t prefix = prefix_length(text);
    int result = expand_ranges(&shapes, plain, reason, n);
    for (size_t i = 0; result == 0 && i < shapes.n; i++) {
        struct nb_strbuf one = {0};
        nb_strbuf_addf(&one, "%.*s%s%s", (int)prefix, text, nb_level_names[level], shapes.items[i] + prefix + 1);
        add_text(out, one.text);
        nb_strbuf_release(&one);
    }
    free_texts(&shapes);
    return result;
}

/* ---- presets ---- */

static bool is_name(const char *text) {
    return isalpha((unsigned char)*text) && strncmp(text, "nchw:", 5) != 0 && strncmp(text, "nhwc:", 5) != 0;
}

static int unknown_name(const cJSON *root, const char *text, char *reason, size_t n) {
    size_t count = 0;
    const char **names = nb_alloc((unsigned long long)cJSON_GetArraySize(root), sizeof *names);
    for (const cJSON *item = root->child; item; item = item->next) names[count++] = item->string;
    const char *nearest = nb_nearest(text, names, count);
    snprintf(reason, n, "is neither a shape nor one of the presets that `normbench list shapes` shows%s%s%s",
             nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    free(names);
    return -1;
}

static int expand_preset(struct texts *out, const cJSON *preset, char *reason, size_t n) {
    const cJSON *shapes = cJSON_GetObjectItemCaseSensitive(preset, "shapes");
    if (!cJSON_IsArray(shapes) || !shapes->child) {
        snprintf(reason, n, "has no list \"shapes\" in configs/shapes.json");
        return -1;
    }
    for (const cJSON *item = shapes->child; item; item = item->next) {
        if (!cJSON_IsString(item)) {
            snprintf(reason, n, "has something else than texts in its list of configs/shapes.json");
            return -1;
        }
        if (expand_ranges(out, item->valuestring, reason, n) != 0) return -1;
    }
    return 0;
}

static int expand_name(struct texts *out, const char *text, char *reason, size_t n) {
    struct nb_jsonc file = {0};
    char *path = nb_jsonc_find("shapes.json");
    int result = -1;
    if (!path || nb_jsonc_read(&file, path) != 0 || !cJSON_IsObject(file.root)) {
        snprintf(reason, n,
                 "is the name of a preset, but configs/shapes.json cannot be read; NORMBENCH_CONFIGS says where "
                 "the folder is");
        goto out;
    }
    const cJSON *preset = cJSON_GetObjectItemCaseSensitive(file.root, text);
    result = preset ? expand_preset(out, preset, reason, n) : unknown_name(file.root, text, reason, n);
out:
    nb_jsonc_release(&file);
    free(path);
    return result;
}

int nb_shape_expand(const char *text, char ***texts, char *reason, size_t n) {
    struct texts out = {0};
    *texts = NULL;
    if (strlen(text) > MAX_TEXT) {
        snprintf(reason, n, "is longer than %d characters", MAX_TEXT);
        return -1;
    }
    char plain[MAX_TEXT + 8];
    enum nb_level level;
    int result = nb_shape_level(text, &level, plain, sizeof plain) == 0
                     ? expand_level(&out, text, plain, level, reason, n)
                 : is_name(text) ? expand_name(&out, text, reason, n)
                                 : expand_ranges(&out, text, reason, n);
    if (result != 0) {
        free_texts(&out);
        return -1;
    }
    *texts = out.items;
    return (int)out.n;
}
