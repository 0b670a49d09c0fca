// SPDX-License-Identifier: Apache-2.0
/* A reader of the little Python that NumPy writes: one dict of strings, booleans and a tuple of integers. Every step looks
 * at the bytes left first, so that no file can lead it astray. */
#include "src/plan/npy.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/text.h"

/* ---- the header ---- */

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
static bool take_dims(struct cursor *c, struct nb_npy_header *h) {
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

static int fail_header(char *reason, size_t n, const char *what) { return nb_reason(reason, n, "%s", what); }

enum seen { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };

static int parse_value(struct cursor *c, const char *key, struct nb_npy_header *h, unsigned *seen, char *reason,
                       size_t n) {
    if (strcmp(key, "descr") == 0) {
        *seen |= SEEN_DESCR;
        if (take(c, "[")) return fail_header(reason, n, "holds records of several fields; save one array of floats");
        return take_string(c, h->descr, sizeof h->descr) ? 0
                                                         : fail_header(reason, n, "its header has no readable descr");
    }
    if (strcmp(key, "fortran_order") == 0) {
        *seen |= SEEN_ORDER;
        return take_bool(c, &h->fortran_order) ? 0 : fail_header(reason, n, "its header has no readable fortran_order");
    }
    if (strcmp(key, "shape") == 0) {
        *seen |= SEEN_SHAPE;
        return take_dims(c, h) ? 0 : fail_header(reason, n, "its header has no readable shape");
    }
    return fail_header(reason, n, "its header has a key other than descr, fortran_order and shape");
}

static int parse_dict(struct cursor *c, struct nb_npy_header *h, char *reason, size_t n) {
    unsigned seen = 0;
    if (!take(c, "{")) return fail_header(reason, n, "its header is not a Python dict");
    while (!take(c, "}")) {
        char key[24];
        if (!take_string(c, key, sizeof key) || !take(c, ":"))
            return fail_header(reason, n, "its header has a broken key");
        if (parse_value(c, key, h, &seen, reason, n) != 0) return -1;
        if (take(c, ",")) continue;
        if (!take(c, "}")) return fail_header(reason, n, "its header is not closed");
        break;
    }
    skip_blanks(c);
    if (c->at != c->end) return fail_header(reason, n, "its header continues after the dict");
    return seen == SEEN_ALL ? 0 : fail_header(reason, n, "its header lacks descr, fortran_order or shape");
}

int nb_npy_header_parse(struct nb_npy_header *h, const unsigned char *bytes, size_t n, char *reason, size_t reason_n) {
    *h = (struct nb_npy_header){0};
    if (n < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return fail_header(reason, reason_n, "is not a .npy file (no magic number)");
    unsigned major = bytes[6];
    if (major < 1 || major > 3)
        return nb_reason(reason, reason_n, "has .npy format %u.%u; 1.0 to 3.0 are read", major, bytes[7]);
    size_t start = major == 1 ? 10 : 12;
    if (n < start) return fail_header(reason, reason_n, "ends inside its header");
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (major > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > NB_NPY_MAX_HEADER) return fail_header(reason, reason_n, "has a header of more than 64 KiB");
    if (length > n - start) return fail_header(reason, reason_n, "ends inside its header");
    h->data_offset = start + length;
    struct cursor c = {(const char *)bytes + start, (const char *)bytes + h->data_offset};
    return parse_dict(&c, h, reason, reason_n);
}

/* ---- the values ---- */

/* Arrays from files. What the header promises is compared with the size of the file before any memory is allocated. */

/* 2 GiB as doubles. More rows than this add nothing: a case cycles through them. */
#define MAX_ELEMENTS ((int64_t)1 << 28)

struct source {
    FILE *file;
    int64_t bytes;  /* of the whole file */
    int size;       /* of a value: 2, 4 or 8 bytes */
    int64_t offset; /* of the first value */
    int64_t rows, cols;
};

static int fail(char *reason, size_t n, const char *path, const char *what) {
    return nb_reason(reason, n, "%s %s", path, what);
}

/* Looked at before it is opened: opening a pipe would wait for its other end. */
static int open_source(struct source *s, const char *path, char *reason, size_t n) {
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) return fail(reason, n, path, "is not a file");
    s->file = fopen(path, "rbe");
    if (!s->file || fstat(fileno(s->file), &st) != 0) return nb_reason(reason, n, "%s: %s", path, strerror(errno));
    s->bytes = st.st_size;
    return 0;
}

/* "<f4" -> 4; -1 with what would be right. */
static int parse_descr(const char *descr, int *size, char *reason, size_t n, const char *path) {
    static const char *const kinds[] = {"f2", "f4", "f8"};
    bool has_order = *descr && strchr("<>=|", *descr);
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(descr + has_order, kinds[i]) != 0) continue;
        if (*descr == '>')
            return nb_reason(reason, n, "%s holds big-endian values; save x.astype('<%s')", path, kinds[i]);
        *size = 2 << i;
        return 0;
    }
    return nb_reason(reason, n, "%s holds '%s'; float16, float32 and float64 are read: save x.astype('<f4')", path,
                     descr);
}

/* Rows are all dimensions but the last, taken together. */
static int set_shape(struct source *s, const struct nb_npy_header *h, char *reason, size_t n, const char *path) {
    if (h->fortran_order && h->n_dims > 1)
        return fail(reason, n, path, "is in Fortran order; save numpy.ascontiguousarray(x)");
    s->rows = 1;
    s->cols = h->n_dims ? h->dims[h->n_dims - 1] : 1;
    int64_t elements = s->cols;
    bool too_large = s->cols > MAX_ELEMENTS;
    for (int i = 0; i + 1 < h->n_dims && !too_large; i++) {
        too_large = h->dims[i] > MAX_ELEMENTS || elements * h->dims[i] > MAX_ELEMENTS;
        s->rows *= too_large ? 1 : h->dims[i];
        elements *= too_large ? 1 : h->dims[i];
    }
    if (too_large) return fail(reason, n, path, "holds more than 2^28 values; save fewer rows, cases repeat them");
    return elements > 0 ? 0 : fail(reason, n, path, "is empty");
}

static int read_npy_header(struct source *s, const char *path, char *reason, size_t n) {
    struct nb_npy_header h;
    char why[96];
    unsigned char *start freed = nb_alloc(NB_NPY_MAX_HEADER + 12, 1);
    const size_t got = fread(start, 1, NB_NPY_MAX_HEADER + 12, s->file);
    if (nb_npy_header_parse(&h, start, got, why, sizeof why) != 0) return fail(reason, n, path, why);
    if (parse_descr(h.descr, &s->size, reason, n, path) != 0) return -1;
    if (set_shape(s, &h, reason, n, path) != 0) return -1;
    s->offset = (int64_t)h.data_offset;
    int64_t want = s->rows * s->cols * s->size, have = s->bytes - s->offset;
    if (have == want) return 0;
    return nb_reason(reason, n,
                     "%s has %lld bytes of values, but its header promises %lld; it is cut off or not a plain array",
                     path, (long long)have, (long long)want);
}

static double decode(const unsigned char *item, int size) {
    union {
        double d;
        float f;
        uint16_t h;
    } value;
    memcpy(&value, item, (size_t)size);
    return size == 8 ? value.d : size == 4 ? (double)value.f : (double)nb_f16_decode(value.h);
}

static int read_values(const struct source *s, double *values, const char *path, char *reason, size_t n) {
    unsigned char chunk[65536];
    const int64_t total = s->rows * s->cols, per_chunk = (int64_t)sizeof chunk / s->size;
    if (fseek(s->file, (long)s->offset, SEEK_SET) != 0) return fail(reason, n, path, strerror(errno));
    for (int64_t done = 0; done < total;) {
        int64_t want = total - done < per_chunk ? total - done : per_chunk;
        if (fread(chunk, (size_t)s->size, (size_t)want, s->file) != (size_t)want)
            return fail(reason, n, path, "ended while it was read");
        for (int64_t i = 0; i < want; i++) values[done + i] = decode(chunk + i * s->size, s->size);
        done += want;
    }
    return 0;
}

int nb_array_read(struct nb_array *a, const char *path, bool header_only, char *reason, size_t n) {
    struct source s = {0};
    *a = (struct nb_array){0};
    int result = open_source(&s, path, reason, n);
    if (result == 0) result = read_npy_header(&s, path, reason, n);
    if (result == 0 && !header_only) {
        a->values = nb_alloc((unsigned long long)(s.rows * s.cols), sizeof *a->values);
        result = read_values(&s, a->values, path, reason, n);
    }
    if (s.file) fclose(s.file);
    if (result != 0) nb_array_release(a);
    if (result == 0) a->rows = s.rows, a->cols = s.cols;
    return result;
}

void nb_array_release(struct nb_array *a) {
    free(a->values);
    *a = (struct nb_array){0};
}

int nb_npy_write(const char *path, const void *values, const char *descr, const int64_t *dims, int n_dims) {
    assert(path && values && descr && dims && n_dims > 0);
    released_by(nb_strbuf_release) struct nb_strbuf dict = {0}, text = {0};
    size_t elements = 1, size = strlen(descr) > 2 ? (size_t)atoi(descr + 2) : 0;
    nb_strbuf_addf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < n_dims; i++) {
        nb_strbuf_addf(&dict, "%s%lld%s", i ? ", " : "", (long long)dims[i], n_dims == 1 ? "," : "");
        elements *= (size_t)dims[i];
    }
    nb_strbuf_add(&dict, "), }");
    /* Values start at a multiple of 64 bytes; a newline ends the padding. */
    while ((10 + dict.len + 1) % 64 != 0) nb_strbuf_add(&dict, " ");
    nb_strbuf_add(&dict, "\n");
    const char length[2] = {(char)(dict.len & 0xff), (char)(dict.len >> 8)};
    nb_strbuf_addn(&text, "\x93NUMPY\x01\x00", 8);
    nb_strbuf_addn(&text, length, 2);
    nb_strbuf_addn(&text, dict.text, dict.len);
    nb_strbuf_addn(&text, values, elements * size);
    return nb_file_write(path, text.text, text.len);
}
