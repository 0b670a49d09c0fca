// SPDX-License-Identifier: Apache-2.0
/* One shape from its text. Named shapes and ranges are expanded in shape_expand.c. */
#include "src/core/shape.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* 2^34 bytes in f32: beyond this a shape is a slip of the hand. */
static const int64_t max_elements = (int64_t)1 << 32;

struct dims {
    int64_t size[NB_MAX_DIMS];
    int n;
    int n_outer; /* dimensions before the bracket; -1: no bracket */
};

static int refuse(char *reason, size_t n, const char *why) {
    snprintf(reason, n, "%s", why);
    return -1;
}

/* One number at *p; the product of all dimensions stays within max_elements. */
static int read_dim(const char **p, struct dims *d, int64_t *product, char *reason, size_t n) {
    int64_t value = 0;
    if (**p < '0' || **p > '9')
        return refuse(reason, n, "is not a shape, such as 64x384, 2x3x[4x5] or nchw:8x64x28x28");
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        value = value * 10 + (**p - '0');
        if (value > max_elements) return refuse(reason, n, "has more than 2^32 elements");
    }
    if (value == 0) return refuse(reason, n, "has a dimension of 0");
    if (value > max_elements / *product) return refuse(reason, n, "has more than 2^32 elements");
    if (d->n == NB_MAX_DIMS) return refuse(reason, n, "has more than 8 dimensions");
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
            if (*p) return refuse(reason, n, "has something behind its bracket: the normalized dimensions come last");
        }
        if (!*p) break;
        if (*p != 'x' && *p != 'X')
            return refuse(reason, n, "has something else than numbers, 'x' and one bracket in it");
        p++;
    }
    return open ? refuse(reason, n, "has a bracket that does not close") : 0;
}

static int64_t product_of(const struct dims *d, int from, int to) {
    int64_t product = 1;
    for (int i = from; i < to; i++) product *= d->size[i];
    return product;
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
    if (d->n < 2 || d->n_outer >= 0) return refuse(reason, n, "needs at least N and C, without brackets");
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
        return refuse(reason, n,
                      d->n < 2
                          ? "has one dimension: write ROWSxCOLS"
                          : "has more than two dimensions: put those to normalize over into brackets, as in 2x3x[4x5]");
    int outer = d->n_outer < 0 ? 1 : d->n_outer;
    s->rows = product_of(d, 0, outer);
    s->cols = product_of(d, outer, d->n);
    return 0;
}

int nb_shape_parse(struct nb_shape *shape, const char *text, char *reason, size_t n) {
    struct nb_shape s = {0};
    struct dims d = {0};
    const char *dims = text;
    if (strncmp(text, "nchw:", 5) == 0 || strncmp(text, "nhwc:", 5) == 0) {
        s.layout = text[1] == 'c' ? NB_NCHW : NB_NHWC;
        dims = text + 5;
    }
    if (read_dims(dims, &d, reason, n) != 0) return -1;
    int result = s.layout == NB_ROWS ? set_rows(&s, &d, reason, n) : set_image(&s, &d, reason, n);
    if (result != 0) return -1;
    print_dims(&s, &d, s.text, sizeof s.text);
    *shape = s;
    return 0;
}
