// SPDX-License-Identifier: Apache-2.0
/* A reader of the little Python that NumPy writes: one dict of strings, booleans and a tuple of integers. Every step looks
 * at the bytes left first, so that no file can lead it astray. */
#include "src/plan/npy_header.h"

#include <stdio.h>
#include <string.h>

struct cursor {
    const char *at, *end;
};

static void skip_blanks(struct cursor *c) {
    while (c->at < c->end && strchr(" \t\r\n", *c->at) && *c->at) c->at++;
}

static bool take(struct cursor *c, const char *token) {
    size_t n = strlen(token);
    skip_blanks(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, token, n) != 0) return false;
    c->at += n;
    return true;
}

/* 'text' or "text", without escapes: no header that is read has any. */
static bool take_string(struct cursor *c, char *out, size_t out_n) {
    skip_blanks(c);
    if (c->at >= c->end || (*c->at != '\'' && *c->at != '"')) return false;
    char quote = *c->at++;
    const char *close = memchr(c->at, quote, (size_t)(c->end - c->at));
    if (!close || (size_t)(close - c->at) >= out_n) return false;
    memcpy(out, c->at, (size_t)(close - c->at));
    out[close - c->at] = '\0';
    c->at = close + 1;
    return true;
}

static bool take_integer(struct cursor *c, int64_t *value) {
    const int64_t largest = INT64_MAX / 10 - 1;
    skip_blanks(c);
    const char *start = c->at;
    for (*value = 0; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (*value > largest) return false;
        *value = *value * 10 + (*c->at - '0');
    }
    bool any = c->at > start;
    take(c, "L"); /* Python 2 */
    return any;
}

/* (), (3,), (3, 4), (3, 4,) */
static bool take_shape(struct cursor *c, struct nb_npy_header *h) {
    if (!take(c, "(")) return false;
    for (h->n_dims = 0; !take(c, ")"); h->n_dims++) {
        if (h->n_dims == NB_NPY_MAX_DIMS || !take_integer(c, &h->dims[h->n_dims])) return false;
        if (take(c, ",")) continue;
        h->n_dims++;
        return take(c, ")");
    }
    return true;
}

static bool take_bool(struct cursor *c, bool *value) {
    *value = take(c, "True");
    return *value || take(c, "False");
}

static int fail(char *reason, size_t n, const char *what) {
    snprintf(reason, n, "%s", what);
    return -1;
}

enum seen { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };

static int parse_value(struct cursor *c, const char *key, struct nb_npy_header *h, unsigned *seen, char *reason,
                       size_t n) {
    if (strcmp(key, "descr") == 0) {
        *seen |= SEEN_DESCR;
        if (take(c, "[")) return fail(reason, n, "holds records of several fields; save one array of floats");
        return take_string(c, h->descr, sizeof h->descr) ? 0 : fail(reason, n, "its header has no readable descr");
    }
    if (strcmp(key, "fortran_order") == 0) {
        *seen |= SEEN_ORDER;
        return take_bool(c, &h->fortran_order) ? 0 : fail(reason, n, "its header has no readable fortran_order");
    }
    if (strcmp(key, "shape") == 0) {
        *seen |= SEEN_SHAPE;
        return take_shape(c, h) ? 0 : fail(reason, n, "its header has no readable shape");
    }
    return fail(reason, n, "its header has a key other than descr, fortran_order and shape");
}

static int parse_dict(struct cursor *c, struct nb_npy_header *h, char *reason, size_t n) {
    unsigned seen = 0;
    if (!take(c, "{")) return fail(reason, n, "its header is not a Python dict");
    while (!take(c, "}")) {
        char key[24];
        if (!take_string(c, key, sizeof key) || !take(c, ":")) return fail(reason, n, "its header has a broken key");
        if (parse_value(c, key, h, &seen, reason, n) != 0) return -1;
        if (take(c, ",")) continue;
        if (!take(c, "}")) return fail(reason, n, "its header is not closed");
        break;
    }
    skip_blanks(c);
    if (c->at != c->end) return fail(reason, n, "its header goes on behind the dict");
    return seen == SEEN_ALL ? 0 : fail(reason, n, "its header lacks descr, fortran_order or shape");
}

int nb_npy_header_parse(struct nb_npy_header *h, const unsigned char *bytes, size_t n, char *reason, size_t reason_n) {
    *h = (struct nb_npy_header){0};
    if (n < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return fail(reason, reason_n, "is not a .npy file (no magic number)");
    unsigned major = bytes[6];
    if (major < 1 || major > 3) {
        snprintf(reason, reason_n, "has .npy format %u.%u; 1.0 to 3.0 are read", major, bytes[7]);
        return -1;
    }
    size_t start = major == 1 ? 10 : 12;
    if (n < start) return fail(reason, reason_n, "ends inside its header");
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (major > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > NB_NPY_MAX_HEADER) return fail(reason, reason_n, "has a header of more than 64 KiB");
    if (length > n - start) return fail(reason, reason_n, "ends inside its header");
    h->data_offset = start + length;
    struct cursor c = {(const char *)bytes + start, (const char *)bytes + h->data_offset};
    return parse_dict(&c, h, reason, reason_n);
}
