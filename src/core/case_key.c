// SPDX-License-Identifier: Apache-2.0
/* What is printed and parsed is in axes.c; here is what a case is made of by it, and how the parts stand in one text. */
#include "src/core/case.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/axes.h"
#include "src/core/log.h"
#include "src/core/tuning.h"

/* ---- values that depend on other fields ---- */

enum nb_affine nb_usual_affine(uint32_t op) {
    switch (op) {
    case NB_OP_COPY:
        return NB_AFFINE_NONE;
    case NB_OP_LAYERNORM:
    case NB_OP_BATCHNORM:
    case NB_OP_DYT:
    case NB_OP_ADD_LAYERNORM:
        return NB_AFFINE_GAMMA_BETA;
    default:
        return NB_AFFINE_GAMMA;
    }
}

/* "6.25%" of n: the smallest whole k with k >= n * 6.25 / 100, in whole numbers; a text without % is a count. */
static int64_t count_of(const char *text, int64_t n) {
    __int128 digits = 0, scale = 100;
    bool fraction = false;
    const char *p = text;
    for (; *p && *p != '%'; p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        digits = digits * 10 + (*p - '0');
        if (fraction) scale *= 10;
    }
    return *p == '%' ? (int64_t)((digits * n + scale - 1) / scale) : (int64_t)digits;
}

static void set_fallback(struct nb_case *c, const struct nb_axis *axis) {
    char reason[256];
    int result = nb_axis_set(axis, c, axis->fallback, reason, sizeof reason);
    assert(result == 0);
    (void)result;
}

void nb_case_init(struct nb_case *c) {
    *c = (struct nb_case){0};
    for (size_t i = 0; i < nb_n_axes; i++)
        if (nb_axes[i].kind == NB_AXIS_CELL) set_fallback(c, &nb_axes[i]);
    c->tuning = nb_tuning_used();
    nb_case_normalize(c);
}

void nb_case_normalize(struct nb_case *c) {
    if (c->formula.affine == NB_N_AFFINES || c->op == NB_OP_COPY) c->formula.affine = nb_usual_affine(c->op);
    for (size_t i = 0; i < nb_n_axes; i++) {
        const struct nb_axis *axis = &nb_axes[i];
        if (axis->kind == NB_AXIS_CELL && axis->applies && !axis->applies(c) && strcmp(axis->name, "affine") != 0)
            set_fallback(c, axis);
    }
    struct nb_shape *s = &c->shape;
    if (c->op == NB_OP_BATCHNORM && s->layout == NB_ROWS) {
        s->layout = NB_NHWC;
        s->n = s->rows;
        s->c = s->cols;
        s->hw = 1;
    }
    c->k = count_of(c->k_text, s->cols);
    c->formula.struct_size = sizeof c->formula;
}

void nb_case_set_kernel(struct nb_case *c, const struct nb_kernel *kernel, const char *plugin) {
    assert(kernel->variant);
    snprintf(c->variant, sizeof c->variant, "%s%s%s", plugin ? plugin : "", plugin ? ":" : "", kernel->variant);
    snprintf(c->kernel, sizeof c->kernel, "%s%s%s", plugin && kernel->name ? plugin : "",
             plugin && kernel->name ? ":" : "", kernel->name ? kernel->name : "");
    c->is_peer = false;
    c->op = kernel->op;
    c->pass = kernel->pass;
    c->dtype = kernel->dtype;
    c->width = kernel->width;
    c->backend = kernel->backend;
    c->style = kernel->style;
    c->stats = kernel->stats;
    c->stats_dtype = kernel->stats_dtype;
    c->variance = kernel->variance;
    c->folded = (kernel->flags & NB_FLAG_FOLDED) != 0;
    c->flushes = (kernel->flags & NB_FLAG_FLUSHES) != 0;
    c->recomputes = kernel->pass == NB_BACKWARD && (kernel->flags & NB_FLAG_RECOMPUTES) != 0;
    c->copy_loads = kernel->op == NB_OP_COPY ? (double)kernel->loads : 0;
    c->copy_stores = kernel->op == NB_OP_COPY ? (double)kernel->stores : 0;
    nb_case_normalize(c);
}

/* ---- writing ---- */

static void add_escaped(struct nb_strbuf *out, const char *text) {
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte <= ' ' || byte >= 0x7f || byte == '/' || byte == '%')
            nb_strbuf_addf(out, "%%%02X", byte);
        else
            nb_strbuf_addn(out, text, 1);
    }
}

char *nb_case_key(const struct nb_case *c) {
    struct nb_strbuf key = nb_strbuf_empty(), value released_by(nb_strbuf_release) = {0};
    add_escaped(&key, c->variant);
    for (size_t i = 0; i < nb_n_axes; i++) {
        const struct nb_axis *axis = &nb_axes[i];
        if (axis->kind != NB_AXIS_CELL || (axis->applies && !axis->applies(c))) continue;
        nb_strbuf_clear(&value);
        nb_axis_print(axis, c, &value);
        nb_strbuf_addf(&key, "/%s:", axis->name);
        add_escaped(&key, value.text);
    }
    return key.text;
}

void nb_case_axis(const struct nb_case *c, const char *name, struct nb_strbuf *out) {
    const struct nb_axis *axis = nb_axis_find(name);
    nb_strbuf_add(out, "");
    if (axis && (!axis->applies || axis->applies(c))) nb_axis_print(axis, c, out);
}

char *nb_case_axis_text(const struct nb_case *c, const char *name) {
    struct nb_strbuf text = {0};
    nb_case_axis(c, name, &text);
    return text.text;
}

/* ---- reading ---- */

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

int nb_case_key_unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex_digit(from[1]), low = high < 0 ? -1 : hex_digit(from[2]);
        if (low < 0 || (high == 0 && low == 0)) return -1;
        *to++ = (char)(16 * high + low);
        from += 2;
    }
    *to = '\0';
    return 0;
}

static const struct nb_axis *cell_axis(const char *name, const char *key) {
    const char *names[64];
    size_t n = 0;
    for (size_t i = 0; i < nb_n_axes; i++) {
        if (nb_axes[i].kind != NB_AXIS_CELL) continue;
        if (strcmp(nb_axes[i].name, name) == 0) return &nb_axes[i];
        names[n++] = nb_axes[i].name;
    }
    nb_error("case key '%s': '%s' is not a part of a key%s", key, name, nb_did_you_mean(name, names, n).text);
    return NULL;
}

/* part: "axis:value", changed in place. */
static int parse_part(struct nb_case *c, char *part, const char *key, uint64_t *seen) {
    char reason[256];
    char *value = strchr(part, ':');
    if (!value)
        return nb_error("case key '%s': '%s' is not of the form AXIS:VALUE (a / in a value is %%2F)", key, part);
    *value++ = '\0';
    const struct nb_axis *axis = cell_axis(part, key);
    if (!axis) return -1;
    uint64_t bit = (uint64_t)1 << (axis - nb_axes);
    if (*seen & bit) return nb_error("case key '%s': '%s' stands twice", key, axis->name);
    *seen |= bit;
    if (nb_case_key_unescape(value) != 0) return nb_error("case key '%s': '%s' has a broken %%XX", key, axis->name);
    if (nb_axis_set(axis, c, value, reason, sizeof reason) != 0)
        return nb_error("case key '%s': %s: '%s' %s", key, axis->name, value, reason);
    return 0;
}

int nb_case_parse(struct nb_case *c, const char *key) {
    char *text freed = nb_strdup(key), *rest = text;
    uint64_t seen = 0;
    nb_case_init(c);
    c->formula.affine = NB_N_AFFINES; /* the op's usual one, unless the key says which */
    char *variant = strsep(&rest, "/");
    if (nb_case_key_unescape(variant) != 0 || !*variant || strlen(variant) >= sizeof c->variant)
        return nb_error("case key '%s': does not begin with a variant, such as rmsnorm_twopass_v256_f32", key);
    snprintf(c->variant, sizeof c->variant, "%s", variant);
    while (rest)
        if (parse_part(c, strsep(&rest, "/"), key, &seen) != 0) return -1;
    return 0;
}
