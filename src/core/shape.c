// SPDX-License-Identifier: Apache-2.0
#include "src/core/shape.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"
#include "src/core/json.h"
#include "src/core/log.h"

/* 2^34 bytes in f32: beyond this a shape is a typing error. */
static const int64_t max_elements = (int64_t)1 << 32;

struct dims {
    int64_t size[NB_MAX_DIMS];
    int n;
    int n_outer; /* dimensions before the bracket; -1: no bracket */
};

/* One number at *p; the product of all dimensions stays within max_elements. */
static int read_dim(const char **p, struct dims *d, int64_t *product, char *reason, size_t n) {
    int64_t value = 0;
    if (**p < '0' || **p > '9')
        return nb_reason(reason, n, "is not a shape, such as 64x384, 2x3x[4x5] or nchw:8x64x28x28");
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        value = value * 10 + (**p - '0');
        if (value > max_elements) return nb_reason(reason, n, "has more than 2^32 elements");
    }
    if (value == 0) return nb_reason(reason, n, "has a dimension of 0");
    if (value > max_elements / *product) return nb_reason(reason, n, "has more than 2^32 elements");
    if (d->n == NB_MAX_DIMS) return nb_reason(reason, n, "has more than 8 dimensions");
    *product *= value;
    d->size[d->n++] = value;
    return 0;
}

/* "2x3x[4x5]": numbers separated by x, the last of them in one pair of brackets or none. */
static int read_dims(const char *text, struct dims *d, char *reason, size_t n) {
    int64_t product = 1;
    bool open = false;
    d->n_outer = -1;
    for (const char *p = text;;) {
        if (*p == '[' && d->n_outer < 0) {
            open = true;
            d->n_outer = d->n;
            p++;
        }
        if (read_dim(&p, d, &product, reason, n) != 0) return -1;
        if (*p == ']' && open) {
            open = false;
            p++;
            if (*p) return nb_reason(reason, n, "has something after its bracket: the normalized dimensions come last");
        }
        if (!*p) break;
        if (*p != 'x' && *p != 'X')
            return nb_reason(reason, n, "has something other than numbers, 'x' and one bracket in it");
        p++;
    }
    return open ? nb_reason(reason, n, "has a bracket that does not close") : 0;
}

static int64_t product_of(const struct dims *d, int from, int to) {
    int64_t product = 1;
    for (int i = from; i < to; i++) product *= d->size[i];
    return product;
}

/* Of a text's layout: "nchw:", "nhwc:", or none. */
static size_t prefix_length(const char *text) {
    return strncmp(text, "nchw:", 5) == 0 || strncmp(text, "nhwc:", 5) == 0 ? 5 : 0;
}

static void print_dims(const struct nb_shape *s, const struct dims *d, char *text, size_t n) {
    static const char *const prefixes[NB_N_LAYOUTS] = {"", "nchw:", "nhwc:"};
    size_t len = (size_t)snprintf(text, n, "%s", prefixes[s->layout]);
    for (int i = 0; i < d->n; i++)
        len += (size_t)snprintf(text + len, n - len, "%s%s%lld", i ? "x" : "", i == d->n_outer ? "[" : "",
                                (long long)d->size[i]);
    if (d->n_outer >= 0) snprintf(text + len, n - len, "]");
}

/* nchw: N x C x positions; nhwc: N x positions x C, as they lie in memory; the positions may be left out or be several. */
static int set_image(struct nb_shape *s, const struct dims *d, char *reason, size_t n) {
    if (d->n < 2 || d->n_outer >= 0) return nb_reason(reason, n, "needs at least N and C, without brackets");
    bool channels_last = s->layout == NB_NHWC;
    s->n = d->size[0];
    s->c = channels_last ? d->size[d->n - 1] : d->size[1];
    s->hw = channels_last ? product_of(d, 1, d->n - 1) : product_of(d, 2, d->n);
    s->rows = s->n * (channels_last ? s->hw : s->c);
    s->cols = channels_last ? s->c : s->hw;
    return 0;
}

static int set_rows(struct nb_shape *s, const struct dims *d, char *reason, size_t n) {
    if (d->n_outer < 0 && d->n != 2)
        return nb_reason(
            reason, n,
            d->n < 2 ? "has one dimension: write ROWSxCOLS"
                     : "has more than two dimensions: put those to normalize over into brackets, as in 2x3x[4x5]");
    int outer = d->n_outer < 0 ? 1 : d->n_outer;
    s->rows = product_of(d, 0, outer);
    s->cols = product_of(d, outer, d->n);
    return 0;
}

struct nb_shape nb_shape_of(int64_t rows, int64_t cols) {
    struct nb_shape s = {.layout = NB_ROWS, .rows = rows, .cols = cols};
    snprintf(s.text, sizeof s.text, "%lldx%lld", (long long)rows, (long long)cols);
    return s;
}

int nb_shape_parse(struct nb_shape *shape, const char *text, char *reason, size_t n) {
    struct nb_shape s = {0};
    struct dims d = {0};
    const size_t prefix = prefix_length(text);
    if (prefix > 0) s.layout = text[1] == 'c' ? NB_NCHW : NB_NHWC;
    if (read_dims(text + prefix, &d, reason, n) != 0) return -1;
    int result = s.layout == NB_ROWS ? set_rows(&s, &d, reason, n) : set_image(&s, &d, reason, n);
    if (result != 0) return -1;
    print_dims(&s, &d, s.text, sizeof s.text);
    *shape = s;
    return 0;
}

/* ---- presets and ranges ---- */

/* Many shapes from one text: the name of a preset in configs/shapes.json, or ranges such as 64x256:65536:*4. */

enum { MAX_EXPANDED = 4096, MAX_TEXT = 200 };

/* ---- ranges ---- */

/* "FIRST:LAST:*F" or "FIRST:LAST:+S". */
struct range {
    long long first, last, step;
    bool multiply;
    size_t length; /* of its text */
};

static int read_range(struct range *r, const char *text, char *reason, size_t n) {
    char *p;
    r->first = strtoll(text, &p, 10);
    bool ok = *p == ':' && isdigit((unsigned char)p[1]);
    if (ok) r->last = strtoll(p + 1, &p, 10);
    ok = ok && *p == ':' && (p[1] == '*' || p[1] == '+') && isdigit((unsigned char)p[2]);
    if (ok) {
        r->multiply = p[1] == '*';
        r->step = strtoll(p + 2, &p, 10);
        r->length = (size_t)(p - text);
        ok = r->first >= 1 && r->last >= r->first && r->step >= (r->multiply ? 2 : 1);
    }
    if (ok) return 0;
    return nb_reason(reason, n, "has a range that is not FIRST:LAST:*FACTOR or FIRST:LAST:+STEP, such as 256:65536:*4");
}

/* The first number of the text with a ':' behind it; null: no range left. A prefix such as "nchw:" has no number. */
static const char *find_range(const char *text) {
    const char *p = text + prefix_length(text), *colon = strchr(p, ':');
    if (!colon) return NULL;
    while (colon > p && isdigit((unsigned char)colon[-1])) colon--;
    return colon;
}

static int expand_ranges(struct nb_strings *out, const char *text, char *reason, size_t n) {
    struct range r = {0};
    struct nb_shape shape;
    const char *at = find_range(text);
    if (!at) {
        if (nb_shape_parse(&shape, text, reason, n) != 0) return -1;
        if (out->n == MAX_EXPANDED) return nb_reason(reason, n, "stands for more than %d shapes", MAX_EXPANDED);
        nb_strings_add(out, shape.text);
        return 0;
    }
    if (read_range(&r, at, reason, n) != 0) return -1;
    struct nb_strbuf one released_by(nb_strbuf_release) = {0};
    int result = 0;
    for (long long v = r.first; result == 0;) {
        nb_strbuf_clear(&one);
        nb_strbuf_addf(&one, "%.*s%lld%s", (int)(at - text), text, v, at + r.length);
        result = expand_ranges(out, one.text, reason, n);
        if (r.multiply ? v > r.last / r.step : v > r.last - r.step) break;
        v = r.multiply ? v * r.step : v + r.step;
    }
    return result;
}

/* ---- levels ---- */

static const char *const level_names[] = {"L1", "L2", "L3", "DRAM", NULL};

int nb_shape_level(const char *text, enum nb_level *level, char *plain, size_t n) {
    const size_t prefix = prefix_length(text);
    for (int i = 0; i < NB_N_LEVELS; i++) {
        const size_t len = strlen(level_names[i]);
        if (strncmp(text + prefix, level_names[i], len) != 0 || text[prefix + len] != 'x') continue;
        *level = (enum nb_level)i;
        const int written = snprintf(plain, n, "%.*s1%s", (int)prefix, text, text + prefix + len);
        return written > 0 && (size_t)written < n ? 0 : -1;
    }
    return -1;
}

/* Each shape of the ranges behind the level, with the level in front of it again. */
static int expand_level(struct nb_strings *out, const char *text, const char *plain, enum nb_level level, char *reason,
                        size_t n) {
    struct nb_strings shapes released_by(nb_strings_release) = {0};
    const size_t prefix = prefix_length(text);
    int result = expand_ranges(&shapes, plain, reason, n);
    for (size_t i = 0; result == 0 && i < shapes.n; i++) {
        char *one freed = nb_textf("%.*s%s%s", (int)prefix, text, level_names[level], shapes.items[i] + prefix + 1);
        nb_strings_add(out, one);
    }
    return result;
}

/* ---- presets ---- */

static int unknown_name(const cJSON *root, const char *text, char *reason, size_t n) {
    size_t count = 0;
    const char **names freed = nb_alloc((unsigned long long)cJSON_GetArraySize(root), sizeof *names);
    for (const cJSON *item = root->child; item; item = item->next) names[count++] = item->string;
    return nb_reason(reason, n, "is neither a shape nor one of the presets that `normbench list shapes` shows%s",
                     nb_did_you_mean(text, names, count).text);
}

static int expand_preset(struct nb_strings *out, const cJSON *preset, char *reason, size_t n) {
    const cJSON *shapes = nb_json_get(preset, "shapes");
    if (!cJSON_IsArray(shapes) || !shapes->child)
        return nb_reason(reason, n, "has no list \"shapes\" in configs/shapes.json");
    for (const cJSON *item = shapes->child; item; item = item->next) {
        if (!cJSON_IsString(item))
            return nb_reason(reason, n, "has something other than texts in its list of configs/shapes.json");
        if (expand_ranges(out, item->valuestring, reason, n) != 0) return -1;
    }
    return 0;
}

static int expand_name(struct nb_strings *out, const char *text, char *reason, size_t n) {
    struct nb_jsonc file released_by(nb_jsonc_release) = {0};
    char *path freed = nb_jsonc_find("shapes.json");
    if (!path || nb_jsonc_read(&file, path) != 0 || !cJSON_IsObject(file.root))
        return nb_reason(
            reason, n,
            "is the name of a preset, but configs/shapes.json cannot be read; NORMBENCH_CONFIGS says where "
            "the folder is");
    const cJSON *preset = nb_json_get(file.root, text);
    return preset ? expand_preset(out, preset, reason, n) : unknown_name(file.root, text, reason, n);
}

int nb_shape_expand(const char *text, struct nb_strings *texts, char *reason, size_t n) {
    *texts = (struct nb_strings){0};
    if (strlen(text) > MAX_TEXT) return nb_reason(reason, n, "is longer than %d characters", MAX_TEXT);
    char plain[MAX_TEXT + 8];
    enum nb_level level;
    int result = nb_shape_level(text, &level, plain, sizeof plain) == 0
                     ? expand_level(texts, text, plain, level, reason, n)
                 : isalpha((unsigned char)*text) && prefix_length(text) == 0 ? expand_name(texts, text, reason, n)
                                                                             : expand_ranges(texts, text, reason, n);
    if (result != 0) nb_strings_release(texts);
    return result;
}
