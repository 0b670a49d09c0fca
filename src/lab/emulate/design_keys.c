// SPDX-License-Identifier: Apache-2.0
/* The parts of a design's text: how each is read and written. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/lab/emulate/design.h"

#define NUMBERS "f64, f32, tf32, f16, bf16, e5m2 or e4m3"
#define ROUNDINGS "rn (nearest, ties to even), rz (towards zero) or sr (stochastic)"

static const char *const number_names[] = {"f64", "f32", "tf32", "f16", "bf16", "e5m2", "e4m3", NULL};
static const char *const rounding_names[] = {"rn", "rz", "sr", NULL};
static const char *const order_names[] = {"sequential", "pairwise", "blocked", "kahan", NULL};

/* ---- values ------------------------------------------------------------------------------------------------------------ */

static int set_number(enum nb_number *number, const char *text, char *reason, size_t n) {
    const int found = nb_number_parse(text);
    if (found < 0) {
        nb_name_refuse(number_names, text, reason, n);
        return -1;
    }
    *number = (enum nb_number)found;
    return 0;
}

/* The index in names as *value. */
static int set_name(const char *const *names, uint32_t *value, const char *text, char *reason, size_t n) {
    const int found = nb_name_find(names, text);
    if (found < 0) {
        nb_name_refuse(names, text, reason, n);
        return -1;
    }
    *value = (uint32_t)found;
    return 0;
}

static int set_count(int64_t *count, const char *text, char *reason, size_t n) {
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > 1 << 20) {
        snprintf(reason, n, "is not a whole number from 1 to 2^20");
        return -1;
    }
    *count = value;
    return 0;
}

static void print_number(enum nb_number number, struct nb_strbuf *out) { nb_strbuf_add(out, nb_numbers[number].name); }

static void print_count(int64_t count, struct nb_strbuf *out) { nb_strbuf_addf(out, "%lld", (long long)count); }

/* ---- keys -------------------------------------------------------------------------------------------------------------- */

static int set_op(struct nb_design *d, const char *text, char *reason, size_t n) {
    static const char *const ops[] = {"rmsnorm", "prmsnorm", "layernorm", "l2norm", NULL};
    const int op = nb_name_find(nb_op_names, text);
    if (op == NB_OP_RMSNORM || op == NB_OP_PRMSNORM || op == NB_OP_LAYERNORM || op == NB_OP_L2NORM) {
        d->op = (enum nb_op)op;
        return 0;
    }
    nb_name_refuse(ops, text, reason, n);
    return -1;
}
static void print_op(const struct nb_design *d, struct nb_strbuf *out) { nb_strbuf_add(out, nb_op_names[d->op]); }

static int set_all(struct nb_design *d, const char *text, char *reason, size_t n) {
    enum nb_number number;
    if (set_number(&number, text, reason, n) != 0) return -1;
    d->store = d->weight = d->square = d->acc = d->stat = d->root = d->rstd = d->scale = d->offset = number;
    return 0;
}

static int set_compute(struct nb_design *d, const char *text, char *reason, size_t n) {
    enum nb_number number;
    if (set_number(&number, text, reason, n) != 0) return -1;
    d->square = d->acc = d->stat = d->root = d->rstd = d->scale = d->offset = number;
    return 0;
}

static int set_store(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_number(&d->store, text, reason, n);
}
static void print_store(const struct nb_design *d, struct nb_strbuf *out) { print_number(d->store, out); }

static int set_weight(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_number(&d->weight, text, reason, n);
}
static void print_weight(const struct nb_design *d, struct nb_strbuf *out) { print_number(d->weight, out); }

static int set_square(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_number(&d->square, text, reason, n);
}
static void print_square(const struct nb_design *d, struct nb_strbuf *out) { print_number(d->square, out); }

/* "f32" or "f32x16": sixteen lanes of f32. */
static int set_acc(struct nb_design *d, const char *text, char *reason, size_t n) {
    char number[16];
    const char *x = strrchr(text, 'x');
    const size_t length = x ? (size_t)(x - text) : strlen(text);
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    if (set_number(&d->acc, number, reason, n) != 0) return -1;
    return x ? set_count(&d->lanes, x + 1, reason, n) : 0;
}
static void print_acc(const struct nb_design *d, struct nb_strbuf *out) { print_number(d->acc, out); }

static int set_stat(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_number(&d->stat, text, reason, n);
}
static void print_stat(const struct nb_design *d, struct nb_strbuf *out) { print_number(d->stat, out); }

/* The form as everywhere else ("mul_recip"), or a format. */
static int set_root(struct nb_design *d, const char *text, char *reason, size_t n) {
    uint32_t form;
    const int number = nb_number_parse(text);
    if (number >= 0) {
        d->root = (enum nb_number)number;
        return 0;
    }
    if (set_name(nb_root_names, &form, text, reason, n) != 0) return -1;
    d->root_form = (enum nb_root)form;
    return 0;
}
static void print_root_form(const struct nb_design *d, struct nb_strbuf *out) {
    nb_strbuf_add(out, nb_root_names[d->root_form]);
}

static int set_sqrt(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_number(&d->root, text, reason, n);
}
static void print_sqrt(const struct nb_design *d, struct nb_strbuf *out) { print_number(d->root, out); }

static int set_rstd(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_number(&d->rstd, text, reason, n);
}
static void print_rstd(const struct nb_design *d, struct nb_strbuf *out) { print_number(d->rstd, out); }

static int set_scale(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_number(&d->scale, text, reason, n);
}
static void print_scale(const struct nb_design *d, struct nb_strbuf *out) { print_number(d->scale, out); }

static int set_offset(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_number(&d->offset, text, reason, n);
}
static void print_offset(const struct nb_design *d, struct nb_strbuf *out) { print_number(d->offset, out); }

static int set_order(struct nb_design *d, const char *text, char *reason, size_t n) {
    uint32_t order;
    if (set_name(order_names, &order, text, reason, n) != 0) return -1;
    d->order = (enum nb_order)order;
    return 0;
}
static void print_order(const struct nb_design *d, struct nb_strbuf *out) { nb_strbuf_add(out, order_names[d->order]); }

static int set_lanes(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_count(&d->lanes, text, reason, n);
}
static void print_lanes(const struct nb_design *d, struct nb_strbuf *out) { print_count(d->lanes, out); }

static int set_leaf(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_count(&d->leaf, text, reason, n);
}
static void print_leaf(const struct nb_design *d, struct nb_strbuf *out) { print_count(d->leaf, out); }

static int set_switch(bool *on, const char *text, char *reason, size_t n) {
    uint32_t value;
    if (set_name(nb_switch_names, &value, text, reason, n) != 0) return -1;
    *on = value != 0;
    return 0;
}

static int set_fma(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_switch(&d->fma, text, reason, n);
}
static void print_fma(const struct nb_design *d, struct nb_strbuf *out) { print_count(d->fma, out); }

static int set_variance(struct nb_design *d, const char *text, char *reason, size_t n) {
    uint32_t variance;
    if (set_name(nb_variance_names + 1, &variance, text, reason, n) != 0) return -1; /* none is no algorithm */
    d->variance = (enum nb_variance)(variance + 1);
    return 0;
}
static void print_variance(const struct nb_design *d, struct nb_strbuf *out) {
    nb_strbuf_add(out, nb_variance_names[d->variance]);
}

static int set_eps(struct nb_design *d, const char *text, char *reason, size_t n) {
    char *end;
    const double eps = strtod(text, &end);
    if (end == text || *end || !(eps >= 0) || isinf(eps) || strlen(text) >= sizeof d->eps_text) {
        snprintf(reason, n, "is not a finite number of 0 or more, such as 1e-5");
        return -1;
    }
    d->eps = eps;
    snprintf(d->eps_text, sizeof d->eps_text, "%s", text);
    return 0;
}
static void print_eps(const struct nb_design *d, struct nb_strbuf *out) { nb_strbuf_add(out, d->eps_text); }

static int set_eps_place(struct nb_design *d, const char *text, char *reason, size_t n) {
    uint32_t place;
    if (set_name(nb_eps_place_names, &place, text, reason, n) != 0) return -1;
    d->eps_place = (enum nb_eps_place)place;
    return 0;
}
static void print_eps_place(const struct nb_design *d, struct nb_strbuf *out) {
    nb_strbuf_add(out, nb_eps_place_names[d->eps_place]);
}

static int set_cast(struct nb_design *d, const char *text, char *reason, size_t n) {
    uint32_t cast;
    if (set_name(nb_cast_names, &cast, text, reason, n) != 0) return -1;
    d->cast = (enum nb_cast)cast;
    return 0;
}
static void print_cast(const struct nb_design *d, struct nb_strbuf *out) { nb_strbuf_add(out, nb_cast_names[d->cast]); }

static int set_weight_offset(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_name(nb_switch_names, &d->weight_offset, text, reason, n);
}
static void print_weight_offset(const struct nb_design *d, struct nb_strbuf *out) {
    print_count((int64_t)d->weight_offset, out);
}

static int set_folded(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_switch(&d->folded, text, reason, n);
}
static void print_folded(const struct nb_design *d, struct nb_strbuf *out) { print_count(d->folded, out); }

static int set_flush(struct nb_design *d, const char *text, char *reason, size_t n) {
    return set_switch(&d->flush, text, reason, n);
}
static void print_flush(const struct nb_design *d, struct nb_strbuf *out) { print_count(d->flush, out); }

static int set_round(struct nb_design *d, const char *text, char *reason, size_t n) {
    uint32_t rounding;
    if (set_name(rounding_names, &rounding, text, reason, n) != 0) return -1;
    d->rounding = (enum nb_rounding)rounding;
    return 0;
}
static void print_round(const struct nb_design *d, struct nb_strbuf *out) {
    nb_strbuf_add(out, rounding_names[d->rounding]);
}

static int set_store_round(struct nb_design *d, const char *text, char *reason, size_t n) {
    uint32_t rounding;
    if (set_name(rounding_names, &rounding, text, reason, n) != 0) return -1;
    d->store_rounding = (enum nb_rounding)rounding;
    return 0;
}
static void print_store_round(const struct nb_design *d, struct nb_strbuf *out) {
    nb_strbuf_add(out, rounding_names[d->store_rounding]);
}

/* "6.25%" or "0.0625". */
static int set_k(struct nb_design *d, const char *text, char *reason, size_t n) {
    char *end;
    double share = strtod(text, &end);
    if (end != text && strcmp(end, "%") == 0) {
        share /= 100;
        end++;
    }
    if (end == text || *end || !(share > 0 && share <= 1)) {
        snprintf(reason, n, "is not a share of the row above 0 and up to 1, such as 6.25%%");
        return -1;
    }
    d->k = share;
    return 0;
}
static void print_k(const struct nb_design *d, struct nb_strbuf *out) {
    char text[32];
    nb_shortest_text(d->k, text);
    nb_strbuf_add(out, text);
}

const struct nb_design_key nb_design_keys[] = {
    {"op", "what is computed", "rmsnorm, prmsnorm, layernorm or l2norm", set_op, print_op},
    {"all", "every format below", NUMBERS, set_all, NULL},
    {"compute", "every format between load and store", NUMBERS, set_compute, NULL},
    {"store", "x and y", NUMBERS, set_store, print_store},
    {"weight", "gamma and beta as stored", NUMBERS, set_weight, print_weight},
    {"square", "x^2, x - mean and its square, in the statistics", NUMBERS, set_square, print_square},
    {"acc", "running sums; with x and a number: so many lanes", NUMBERS ", f32x16 ...", set_acc, print_acc},
    {"stat", "mean, variance, eps, variance + eps", NUMBERS, set_stat, print_stat},
    {"sqrt", "sqrt and 1/sqrt", NUMBERS, set_sqrt, print_sqrt},
    {"rstd", "what 1/sqrt is kept in", NUMBERS, set_rstd, print_rstd},
    {"scale", "x * rstd and the products with gamma", NUMBERS, set_scale, print_scale},
    {"offset", "1 + gamma", NUMBERS, set_offset, print_offset},
    {"order", "how sums are ordered", "sequential, pairwise, blocked or kahan", set_order, print_order},
    {"lanes", "running sums, of sequential and kahan", "a whole number", set_lanes, print_lanes},
    {"leaf", "elements summed one after another, of pairwise and blocked", "a whole number", set_leaf, print_leaf},
    {"fma", "squares enter sums unrounded, beta is added by fma", "0 or 1", set_fma, print_fma},
    {"variance", "LayerNorm's algorithm", "twopass, corrected, welford, onepass or shifted", set_variance,
     print_variance},
    {"root", "how 1/sqrt is applied (a format: as sqrt)", "div_sqrt, mul_recip, rsqrt_nr or rsqrt_raw", set_root,
     print_root_form},
    {"eps", "epsilon", "a number", set_eps, print_eps},
    {"eps_place", "where it is added", "inside, outside or clamp", set_eps_place, print_eps_place},
    {"cast", "when the result is rounded to store", "after (once, at the end) or before (the weight, too)", set_cast,
     print_cast},
    {"weight_offset", "1: the weight is 1 + gamma", "0 or 1", set_weight_offset, print_weight_offset},
    {"folded", "1: y = x * a + b with the mean inside b", "0 or 1", set_folded, print_folded},
    {"flush", "1: subnormal inputs and results become 0", "0 or 1", set_flush, print_flush},
    {"round", "rounding of every operation", ROUNDINGS, set_round, print_round},
    {"store_round", "rounding of the last one, to store", ROUNDINGS, set_store_round, print_store_round},
    {"k", "pRMSNorm: share of the row", "a share or percentage", set_k, print_k},
};
const size_t nb_n_design_keys = sizeof nb_design_keys / sizeof nb_design_keys[0];
