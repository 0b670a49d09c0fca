// SPDX-License-Identifier: Apache-2.0
/* Designs with names, and the texts that describe others. */
#include "src/lab/emulate/design.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/core/log.h"
#include "src/core/names.h"

const struct nb_design_preset nb_design_presets[] = {
    {"ideal", "A", "rmsnorm/store:bf16/weight:bf16", "all in f32, rounded once at the end"},
    {"llama", "B", "rmsnorm/store:bf16/weight:bf16/cast:before",
     "x * rstd rounded to the dtype, then times the weight (Hugging Face Llama)"},
    {"cast_each", "C", "rmsnorm/store:bf16/weight:bf16/rstd:bf16/scale:bf16",
     "rstd rounded to the dtype, each product too"},
    {"eager", "D", "rmsnorm/store:bf16/weight:bf16/stat:bf16/rstd:bf16/scale:bf16",
     "unfused in the dtype, sums in f32 (PyTorch eager without a cast)"},
    {"truncate", "F", "rmsnorm/store:bf16/weight:bf16/store_round:rz", "as ideal, but the last rounding cuts off"},
    {"gemma", NULL, "rmsnorm/store:bf16/weight:bf16/weight_offset:1", "1 + w in f32, rounded once at the end (Gemma)"},
    {"gemma_bf16", "G", "rmsnorm/store:bf16/weight:bf16/weight_offset:1/offset:bf16",
     "1 + w made into a bf16 weight beforehand, rounded once at the end"},
    {"var_bf16", "I", "rmsnorm/store:bf16/weight:bf16/stat:bf16", "variance and eps rounded to the dtype, rest f32"},
    {"rstd_bf16", "J", "rmsnorm/store:bf16/weight:bf16/rstd:bf16", "rstd rounded to the dtype, rest f32"},
    {"autocast", NULL, "rmsnorm/store:bf16", "f32 inside, f32 weights, rounded for the next matmul (torch.autocast)"},
    {"all_bf16", NULL, "rmsnorm/all:bf16", "sums in bf16, too"},
    {"all_f16", NULL, "rmsnorm/all:f16", "sums in f16, too"},
    {"stochastic", NULL, "rmsnorm/all:bf16/round:sr/store_round:sr", "as all_bf16, every rounding stochastic"},
    {"fp8", NULL, "rmsnorm/store:e4m3/weight:bf16", "e4m3 in and out, f32 inside"},
    {"fp64_acc", NULL, "rmsnorm/acc:f64/square:f64", "f32 in and out, squares and sums in f64"},
    {"kahan", NULL, "rmsnorm/order:kahan", "f32, compensated sum"},
    {"pairwise", NULL, "rmsnorm/order:pairwise", "f32, pairwise sum down to 8 elements"},
    {"corrected", NULL, "layernorm/order:pairwise/variance:corrected",
     "LayerNorm in f32, two-pass with the residual mean taken off"},
    {"naive", NULL, "layernorm/variance:onepass", "LayerNorm in f32, E[x^2] - mean^2"},
    {"welford", NULL, "layernorm/variance:welford", "LayerNorm in f32, updating"},
};
const size_t nb_n_design_presets = sizeof nb_design_presets / sizeof nb_design_presets[0];

/* ---- The parts of a design's text: how each is read and written ---- */

#define NUMBERS "f64, f32, tf32, f16, bf16, e5m2 or e4m3"
#define ROUNDINGS "rn (nearest, ties to even), rz (towards zero) or sr (stochastic)"

static const char *const number_names[] = {"f64", "f32", "tf32", "f16", "bf16", "e5m2", "e4m3", NULL};
static const char *const rounding_names[] = {"rn", "rz", "sr", NULL};
static const char *const order_names[] = {"sequential", "pairwise", "blocked", "kahan", NULL};

/* found: the index in names, or below 0. The field is an enum or a uint32_t. */
static int set_index(void *field, int found, const char *const *names, char *reason, size_t n) {
    const uint32_t index = (uint32_t)found;
    if (found < 0) return nb_name_refuse(names, reason, n);
    memcpy(field, &index, sizeof index);
    return 0;
}

static int set_number(enum nb_number *number, const char *text, char *reason, size_t n) {
    return set_index(number, nb_number_parse(text), number_names, reason, n);
}

static int set_count(int64_t *count, const char *text, char *reason, size_t n) {
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > 1 << 20)
        return nb_reason(reason, n, "is not a whole number from 1 to 2^20");
    *count = value;
    return 0;
}

static int set_op(struct nb_design *d, const char *text, char *reason, size_t n) {
    static const char *const ops[] = {"rmsnorm", "prmsnorm", "layernorm", "l2norm", NULL};
    const int op = nb_name_find(nb_op_names, text);
    const bool known = op == NB_OP_RMSNORM || op == NB_OP_PRMSNORM || op == NB_OP_LAYERNORM || op == NB_OP_L2NORM;
    return set_index(&d->op, known ? op : -1, ops, reason, n);
}

static void compute_in(struct nb_design *d, enum nb_number number) {
    d->square = d->acc = d->stat = d->root = d->rstd = d->scale = d->offset = number;
}

static int set_compute(struct nb_design *d, const char *text, char *reason, size_t n) {
    enum nb_number number = NB_NUM_F32;
    if (set_number(&number, text, reason, n) != 0) return -1;
    compute_in(d, number);
    return 0;
}

static int set_all(struct nb_design *d, const char *text, char *reason, size_t n) {
    if (set_compute(d, text, reason, n) != 0) return -1;
    d->store = d->weight = d->square;
    return 0;
}

/* "f32" or "f32x16": sixteen lanes of f32. */
static int set_acc(struct nb_design *d, const char *text, char *reason, size_t n) {
    char number[16];
    const char *x = strrchr(text, 'x');
    const size_t length = x ? (size_t)(x - text) : strlen(text);
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    if (set_number(&d->acc, number, reason, n) != 0) return -1;
    return x ? set_count(&d->lanes, x + 1, reason, n) : 0;
}

/* The form as everywhere else ("mul_recip"), or a format. */
static int set_root(struct nb_design *d, const char *text, char *reason, size_t n) {
    if (nb_number_parse(text) >= 0) return set_number(&d->root, text, reason, n);
    return set_index(&d->root_form, nb_name_find(nb_root_names, text), nb_root_names, reason, n);
}

static int set_variance(struct nb_design *d, const char *text, char *reason, size_t n) {
    const int variance = nb_name_find(nb_variance_names, text);
    return set_index(&d->variance, variance == NB_VAR_NONE ? -1 : variance, nb_variance_names + 1, reason, n);
}

static int set_eps(struct nb_design *d, const char *text, char *reason, size_t n) {
    char *end;
    const double eps = strtod(text, &end);
    if (end == text || *end || !(eps >= 0) || isinf(eps) || strlen(text) >= sizeof d->eps_text)
        return nb_reason(reason, n, "is not a finite number of 0 or more, such as 1e-5");
    d->eps = eps;
    snprintf(d->eps_text, sizeof d->eps_text, "%s", text);
    return 0;
}

/* "6.25%" or "0.0625". */
static int set_k(struct nb_design *d, const char *text, char *reason, size_t n) {
    char *end;
    double share = strtod(text, &end);
    if (end != text && strcmp(end, "%") == 0) {
        share /= 100;
        end++;
    }
    if (end == text || *end || !(share > 0 && share <= 1))
        return nb_reason(reason, n, "is not a share of the row above 0 and up to 1, such as 6.25%%");
    d->k = share;
    return 0;
}

#define FIELD(name) offsetof(struct nb_design, name)
const struct nb_design_key nb_design_keys[] = {
    {"op", "what is computed", "rmsnorm, prmsnorm, layernorm or l2norm", NB_KEY_NAME, FIELD(op), nb_op_names, set_op},
    {"all", "every format below", NUMBERS, NB_KEY_SEVERAL, 0, NULL, set_all},
    {"compute", "every format between load and store", NUMBERS, NB_KEY_SEVERAL, 0, NULL, set_compute},
    {"store", "x and y", NUMBERS, NB_KEY_NUMBER, FIELD(store), NULL, NULL},
    {"weight", "gamma and beta as stored", NUMBERS, NB_KEY_NUMBER, FIELD(weight), NULL, NULL},
    {"square", "x^2, x - mean and its square, in the statistics", NUMBERS, NB_KEY_NUMBER, FIELD(square), NULL, NULL},
    {"acc", "running sums; with x and a number: so many lanes", NUMBERS ", f32x16 ...", NB_KEY_NUMBER, FIELD(acc), NULL,
     set_acc},
    {"stat", "mean, variance, eps, variance + eps", NUMBERS, NB_KEY_NUMBER, FIELD(stat), NULL, NULL},
    {"sqrt", "sqrt and 1/sqrt", NUMBERS, NB_KEY_NUMBER, FIELD(root), NULL, NULL},
    {"rstd", "what 1/sqrt is kept in", NUMBERS, NB_KEY_NUMBER, FIELD(rstd), NULL, NULL},
    {"scale", "x * rstd and the products with gamma", NUMBERS, NB_KEY_NUMBER, FIELD(scale), NULL, NULL},
    {"offset", "1 + gamma", NUMBERS, NB_KEY_NUMBER, FIELD(offset), NULL, NULL},
    {"order", "how sums are ordered", "sequential, pairwise, blocked or kahan", NB_KEY_NAME, FIELD(order), order_names,
     NULL},
    {"lanes", "running sums, of sequential and kahan", "a whole number", NB_KEY_COUNT, FIELD(lanes), NULL, NULL},
    {"leaf", "elements summed one after another, of pairwise and blocked", "a whole number", NB_KEY_COUNT, FIELD(leaf),
     NULL, NULL},
    {"fma", "squares enter sums unrounded, beta is added by fma", "0 or 1", NB_KEY_NAME, FIELD(fma), nb_switch_names,
     NULL},
    {"variance", "LayerNorm's algorithm", "twopass, corrected, welford, onepass or shifted", NB_KEY_NAME,
     FIELD(variance), nb_variance_names, set_variance},
    {"root", "how 1/sqrt is applied (a format: as sqrt)", "div_sqrt, mul_recip, rsqrt_nr or rsqrt_raw", NB_KEY_NAME,
     FIELD(root_form), nb_root_names, set_root},
    {"eps", "epsilon", "a number", NB_KEY_TEXT, FIELD(eps_text), NULL, set_eps},
    {"eps_place", "where it is added", "inside, outside or clamp", NB_KEY_NAME, FIELD(eps_place), nb_eps_place_names,
     NULL},
    {"cast", "when the result is rounded to store", "after (once, at the end) or before (the weight, too)", NB_KEY_NAME,
     FIELD(cast), nb_cast_names, NULL},
    {"weight_offset", "1: the weight is 1 + gamma", "0 or 1", NB_KEY_NAME, FIELD(weight_offset), nb_switch_names, NULL},
    {"folded", "1: y = x * a + b with the mean inside b", "0 or 1", NB_KEY_NAME, FIELD(folded), nb_switch_names, NULL},
    {"flush", "1: subnormal inputs and results become 0", "0 or 1", NB_KEY_NAME, FIELD(flush), nb_switch_names, NULL},
    {"round", "rounding of every operation", ROUNDINGS, NB_KEY_NAME, FIELD(rounding), rounding_names, NULL},
    {"store_round", "rounding of the last one, to store", ROUNDINGS, NB_KEY_NAME, FIELD(store_rounding), rounding_names,
     NULL},
    {"k", "pRMSNorm: share of the row", "a share or percentage", NB_KEY_SHARE, FIELD(k), NULL, set_k},
};
const size_t nb_n_design_keys = sizeof nb_design_keys / sizeof nb_design_keys[0];

/* Where the value is wrong: -1, and how to go on after it in `reason` ("is not one of rn, rz, sr"). */
static int set_key(const struct nb_design_key *key, struct nb_design *d, const char *text, char *reason, size_t n) {
    void *const field = (char *)d + key->offset;
    if (key->set) return key->set(d, text, reason, n);
    if (key->kind == NB_KEY_NUMBER) return set_number(field, text, reason, n);
    if (key->kind == NB_KEY_COUNT) return set_count(field, text, reason, n);
    return set_index(field, nb_name_find(key->names, text), key->names, reason, n);
}

void nb_design_key_print(const struct nb_design_key *key, const struct nb_design *d, struct nb_strbuf *out) {
    const void *const field = (const char *)d + key->offset;
    char text[32];
    switch (key->kind) {
    case NB_KEY_NUMBER:
        nb_strbuf_add(out, nb_numbers[*(const enum nb_number *)field].name);
        if (key->offset == FIELD(acc) && d->lanes > 1) nb_strbuf_addf(out, "x%lld", (long long)d->lanes);
        break;
    case NB_KEY_NAME:
        nb_strbuf_add(out, key->names[*(const uint32_t *)field]);
        break;
    case NB_KEY_COUNT:
        nb_strbuf_addf(out, "%lld", (long long)*(const int64_t *)field);
        break;
    case NB_KEY_TEXT:
        nb_strbuf_add(out, field);
        break;
    case NB_KEY_SHARE:
        nb_shortest_text(*(const double *)field, text);
        nb_strbuf_add(out, text);
        break;
    case NB_KEY_SEVERAL:
        break;
    }
}

/* ---- Text to design and back. A text is a start, which is an op or a preset, and changes to it in any number ---- */

/* What is not said is the first of its kind: one after another, eps inside, cast after, to nearest. */
void nb_design_init(struct nb_design *d) {
    *d = (struct nb_design){.op = NB_OP_RMSNORM,
                            .store = NB_NUM_F32,
                            .weight = NB_NUM_F32,
                            .lanes = 1,
                            .leaf = 8,
                            .variance = NB_VAR_TWOPASS,
                            .root_form = NB_ROOT_MUL_RECIP,
                            .k = 0.0625,
                            .eps = 1e-5,
                            .eps_text = "1e-5"};
    compute_in(d, NB_NUM_F32);
}

/* ---- reading ----------------------------------------------------------------------------------------------------------- */

static int parse_parts(struct nb_design *d, const char *text, const char *whole);

static const struct nb_design_preset *preset_find(const char *name) {
    for (size_t i = 0; i < nb_n_design_presets; i++) {
        const struct nb_design_preset *p = &nb_design_presets[i];
        if (strcmp(p->name, name) == 0 || (p->letter && strcasecmp(p->letter, name) == 0)) return p;
    }
    return NULL;
}

static const struct nb_design_key *key_find(const char *name) {
    for (size_t i = 0; i < nb_n_design_keys; i++)
        if (strcmp(nb_design_keys[i].name, name) == 0) return &nb_design_keys[i];
    return NULL;
}

static const char shown[] = "; `normbench emulate --list` shows them";

static int refuse_start(const char *part, const char *whole) {
    const char *names[64] = {"rmsnorm", "prmsnorm", "layernorm", "l2norm"};
    size_t n = 4;
    for (size_t i = 0; i < nb_n_design_presets && n < 64; i++) names[n++] = nb_design_presets[i].name;
    const struct nb_hint hint = nb_did_you_mean(part, names, n);
    return nb_error("design %s: '%s' is no op%s and no preset%s", whole, part,
                    *hint.text ? "" : " (rmsnorm, prmsnorm, layernorm, l2norm)", *hint.text ? hint.text : shown);
}

static int refuse_key(const char *name, const char *whole) {
    const char *names[64];
    size_t n = 0;
    for (; n < nb_n_design_keys && n < 64; n++) names[n] = nb_design_keys[n].name;
    const struct nb_hint hint = nb_did_you_mean(name, names, n);
    return nb_error("design %s: no part is called '%s'%s", whole, name, *hint.text ? hint.text : shown);
}

static int parse_start(struct nb_design *d, const char *part, const char *whole) {
    char reason[256];
    const struct nb_design_preset *preset = preset_find(part);
    if (preset) return parse_parts(d, preset->text, whole);
    return set_op(d, part, reason, sizeof reason) == 0 ? 0 : refuse_start(part, whole);
}

static int parse_part(struct nb_design *d, const char *part, const char *whole) {
    char name[32], reason[256];
    const char *colon = strchr(part, ':');
    if (!colon) return nb_error("design %s: '%s' is not of the form name:value, such as store:bf16", whole, part);
    snprintf(name, sizeof name, "%.*s", (int)(colon - part), part);
    const struct nb_design_key *key = key_find(name);
    if (!key) return refuse_key(name, whole);
    if (set_key(key, d, colon + 1, reason, sizeof reason) == 0) return 0;
    return nb_error("design %s: %s:%s %s", whole, name, colon + 1, reason);
}

static int parse_parts(struct nb_design *d, const char *text, const char *whole) {
    for (bool first = true; *text || first; first = false) {
        char part[64];
        const size_t length = strcspn(text, "/");
        if (length >= sizeof part) return nb_error("design %.200s: '%.20s...' is too long for a part", whole, text);
        memcpy(part, text, length);
        part[length] = '\0';
        text += length + (text[length] == '/');
        const bool names_start = first && !strchr(part, ':');
        if ((names_start ? parse_start(d, part, whole) : parse_part(d, part, whole)) != 0) return -1;
    }
    return 0;
}

static const char *conflict(const struct nb_design *d) {
    const bool estimates = d->root_form == NB_ROOT_RSQRT_NR || d->root_form == NB_ROOT_RSQRT_RAW;
    const bool laned = d->order == NB_ORDER_SEQUENTIAL || d->order == NB_ORDER_KAHAN;
    if (estimates && d->eps_place == NB_EPS_OUTSIDE)
        return "a reciprocal square root estimate with eps outside the root is not defined; eps_place:inside or clamp";
    if (d->variance != NB_VAR_TWOPASS && d->op != NB_OP_LAYERNORM) return "variance: is for layernorm";
    if (d->variance == NB_VAR_CORRECTED && d->folded)
        return "variance:corrected subtracts the residual from each element, which folded:1 cannot do";
    if (d->lanes > 1 && !laned)
        return "lanes are for order:sequential and order:kahan; pairwise and blocked have a leaf:";
    if (d->cast == NB_CAST_BEFORE && d->folded)
        return "folded:1 multiplies x by one number, so cast:before has no effect";
    return NULL;
}

int nb_design_parse(struct nb_design *d, const char *text) {
    nb_design_init(d);
    if (strlen(text) > 1000) return nb_error("design %.40s...: too long", text);
    if (parse_parts(d, text, text) != 0) return -1;
    const char *reason = conflict(d);
    return reason ? nb_error("design %s: %s", text, reason) : 0;
}

/* ---- writing ----------------------------------------------------------------------------------------------------------- */

/* start, and what has to be changed to get d; lanes stand with acc: f32x16. */
static void print_from(const struct nb_design *d, const char *start, struct nb_strbuf *out) {
    struct nb_design base;
    nb_design_init(&base);
    const int result = parse_parts(&base, start, start);
    assert(result == 0);
    (void)result;
    nb_strbuf_clear(out);
    nb_strbuf_add(out, start);
    struct nb_strbuf want released_by(nb_strbuf_release) = {0}, have released_by(nb_strbuf_release) = {0};
    for (size_t i = 0; i < nb_n_design_keys; i++) {
        if (nb_design_keys[i].kind == NB_KEY_SEVERAL || nb_design_keys[i].offset == FIELD(lanes)) continue;
        nb_strbuf_clear(&want);
        nb_strbuf_clear(&have);
        nb_design_key_print(&nb_design_keys[i], d, &want);
        nb_design_key_print(&nb_design_keys[i], &base, &have);
        if (strcmp(want.text, have.text) != 0) nb_strbuf_addf(out, "/%s:%s", nb_design_keys[i].name, want.text);
    }
}

static void keep_shorter(const struct nb_design *d, const char *start, struct nb_strbuf *best) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    print_from(d, start, &text);
    if (!best->text || best->len == 0 || text.len < best->len) {
        nb_strbuf_clear(best);
        nb_strbuf_add(best, text.text);
    }
}

void nb_design_print(const struct nb_design *d, struct nb_strbuf *out) {
    struct nb_strbuf best released_by(nb_strbuf_release) = {0}, start released_by(nb_strbuf_release) = {0};
    keep_shorter(d, nb_op_names[d->op], &best);
    for (int number = 0; number < NB_N_NUMBERS; number++) {
        for (int all = 0; all < 2; all++) {
            nb_strbuf_clear(&start);
            nb_strbuf_addf(&start, "%s/%s:%s", nb_op_names[d->op], all ? "all" : "compute", nb_numbers[number].name);
            keep_shorter(d, start.text, &best);
        }
    }
    for (size_t i = 0; i < nb_n_design_presets; i++) keep_shorter(d, nb_design_presets[i].name, &best);
    nb_strbuf_add(out, best.text);
}

/* ---- what follows from a design ---------------------------------------------------------------------------------------- */

int64_t nb_design_elements(const struct nb_design *d, int64_t cols) {
    if (d->op != NB_OP_PRMSNORM) return cols;
    const double n = ceil((double)cols * d->k);
    return n < 1 ? 1 : n < (double)cols ? (int64_t)n : cols;
}

static int64_t levels(int64_t n) {
    int64_t steps = 0;
    for (int64_t reach = 1; reach < n; reach *= 2) steps++;
    return steps;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* A merge by Chan's formula rounds three times. */
int64_t nb_design_chain(const struct nb_design *d, int64_t n) {
    const bool updating = d->op == NB_OP_LAYERNORM && d->variance == NB_VAR_WELFORD;
    const int64_t merge = updating ? 3 : 1;
    switch (d->order) {
    case NB_ORDER_PAIRWISE:
        return smaller(n, d->leaf) + merge * levels((n + d->leaf - 1) / d->leaf);
    case NB_ORDER_BLOCKED:
        return smaller(n, d->leaf) + merge * ((n + d->leaf - 1) / d->leaf);
    case NB_ORDER_KAHAN: /* 2 u + O(n u^2) (Higham 2002, section 4.3) */
        return 3 + (int64_t)ceil(4 * (double)n * nb_numbers[d->acc].unit_roundoff) + merge * levels(d->lanes);
    default:
        return (n + d->lanes - 1) / d->lanes + merge * levels(d->lanes);
    }
}

/* ---- Which case a design's arithmetic is no worse than ---- */

/* Has a every number that b has? */
static bool covers(enum nb_number a, enum nb_number b) {
    const struct nb_format *fa = &nb_numbers[a], *fb = &nb_numbers[b];
    return fa->precision >= fb->precision && fa->emin <= fb->emin && fa->emax >= fb->emax;
}

static bool all_steps_cover(const struct nb_design *d, enum nb_number number) {
    const enum nb_number steps[] = {d->square, d->acc, d->stat, d->root, d->rstd, d->scale, d->offset};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (!covers(steps[i], number)) return false;
    return true;
}

const char *nb_design_unbounded(const struct nb_design *d) {
    const bool is_dtype = d->store == NB_NUM_F32 || d->store == NB_NUM_F16 || d->store == NB_NUM_BF16;
    if (!is_dtype) return "the bound is for outputs in f32, f16 and bf16";
    if (d->rounding != NB_ROUND_NEAREST || d->store_rounding != NB_ROUND_NEAREST)
        return "the bound is for rounding to nearest";
    if (d->flush) return "the bound does not cover flushed subnormals";
    if (!all_steps_cover(d, NB_NUM_F32) && !all_steps_cover(d, d->store))
        return "a step is narrower than both f32 and the stored format";
    if (d->cast == NB_CAST_BEFORE && !d->weight_offset && !covers(d->store, d->weight))
        return "the bound does not cover the rounding of the weight to the stored format";
    return NULL;
}

static enum nb_dtype dtype_of(enum nb_number number) {
    return number == NB_NUM_F16 ? NB_F16 : number == NB_NUM_BF16 ? NB_BF16 : NB_F32;
}

void nb_design_case(struct nb_case *c, const struct nb_design *d, int64_t rows, int64_t cols, enum nb_affine affine) {
    nb_case_init(c);
    c->op = d->op;
    c->dtype = dtype_of(d->store);
    c->shape = nb_shape_of(rows, cols);
    c->formula = (struct nb_formula){.struct_size = sizeof c->formula,
                                     .root = d->root_form,
                                     .eps_place = d->eps_place,
                                     .cast = d->cast,
                                     .weight_offset = d->weight_offset,
                                     .affine = affine};
    c->variance = d->op == NB_OP_LAYERNORM ? d->variance : NB_VAR_NONE;
    c->folded = d->folded;
    c->eps = d->eps;
    snprintf(c->eps_text, sizeof c->eps_text, "%s", d->eps_text);
    c->k = nb_design_elements(d, cols);
    if (!all_steps_cover(d, NB_NUM_F32)) c->stats_dtype = NB_STATS_X;
    if (covers(d->acc, NB_NUM_F32)) c->style = NB_COMPOSED; /* sums in f32 whatever the tensors are */
}
