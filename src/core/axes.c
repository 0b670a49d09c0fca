// SPDX-License-Identifier: Apache-2.0
/* The table of the axes: how each is written, what it sets and for which cases it means anything. Its order is the order of
 * the parts of a case's key, so an axis comes after those that decide whether it applies. */
#include "src/core/axes.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/params.h"
#include "src/core/shape.h"

/* ---- reading values ---- */

/* Decimal or hexadecimal floats as strtod reads them, but no sign, no blanks, no words. */
static int set_real(double *field, const char *text, double below, const char *wanted, char *reason, size_t n) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    bool plain =
        text[0] && text[strspn(text, "0123456789abcdefABCDEFxXpP.+-")] == '\0' && strchr("0123456789.", text[0]);
    bool underflow = errno == ERANGE && fabs(value) < 1;
    if (!plain || *end || end == text || underflow || !isfinite(value) || value >= below)
        return nb_reason(reason, n, "is not %s", wanted);
    *field = value;
    return 0;
}

static int read_count(uint64_t *value, const char *text) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && errno == 0 ? 0 : -1;
}

static int set_shape(struct nb_case *c, const char *text, char *reason, size_t n) {
    return nb_shape_parse(&c->shape, text, reason, n);
}

static int set_name(char *field, size_t size, const char *text, char *reason, size_t n) {
    if (!*text || strlen(text) >= size)
        return nb_reason(reason, n, "is not a name or a path of at most %zu characters", size - 1);
    snprintf(field, size, "%s", text);
    return 0;
}
static int set_data(struct nb_case *c, const char *text, char *reason, size_t n) {
    return set_name(c->data, sizeof c->data, text, reason, n);
}
static int set_dy(struct nb_case *c, const char *text, char *reason, size_t n) {
    return set_name(c->dy, sizeof c->dy, text, reason, n);
}

static int set_seed(struct nb_case *c, const char *text, char *reason, size_t n) {
    uint64_t seed;
    if (read_count(&seed, text) != 0) return nb_reason(reason, n, "is not a whole number from 0 to 2^64 - 1");
    c->seed = seed;
    return 0;
}

static int set_eps(struct nb_case *c, const char *text, char *reason, size_t n) {
    const char *wanted = "a number from 0 to below 1e6, such as \"1e-5\" or \"0x1p-7\"";
    double value;
    if (strlen(text) >= sizeof c->eps_text)
        return nb_reason(reason, n, "is longer than %d characters", NB_TEXT_MAX - 1);
    if (set_real(&value, text, 1e6, wanted, reason, n) != 0) return -1;
    c->eps = value;
    snprintf(c->eps_text, sizeof c->eps_text, "%s", text);
    return 0;
}

/* "default" waits for nb_case_normalize(), which knows the op. */
static const char *const affine_choices[] = {"none", "gamma", "gamma_beta", "default", NULL};

static int set_params(struct nb_case *c, const char *text, char *reason, size_t n) {
    struct nb_params params;
    if (strlen(text) >= sizeof c->params) return nb_reason(reason, n, "is longer than %d characters", NB_TEXT_MAX - 1);
    if (nb_params_parse(text, &params, reason, n) != 0) return -1;
    snprintf(c->params, sizeof c->params, "%s", text);
    return 0;
}

static int set_k(struct nb_case *c, const char *text, char *reason, size_t n) {
    /* A percentage has at most nine digits, so that ceil(cols * percent / 100) is exact in whole numbers. */
    size_t len = strlen(text), digits = strspn(text, "0123456789");
    bool percent = len > 1 && text[len - 1] == '%';
    size_t fraction = digits < len && text[digits] == '.' ? strspn(text + digits + 1, "0123456789") + 1 : 0;
    bool whole = digits > 0 && digits + (percent ? fraction + 1 : 0) == len && digits + fraction <= 10;
    double value = whole ? strtod(text, NULL) : 0;
    if (!whole || fraction == 1 || value <= 0 || (percent && value > 100))
        return nb_reason(reason, n,
                         "is not a count of elements or a percentage above 0 and up to 100, such as \"6.25%%\"");
    snprintf(c->k_text, sizeof c->k_text, "%s", text);
    return 0;
}

static int set_alpha(struct nb_case *c, const char *text, char *reason, size_t n) {
    return set_real(&c->alpha, text, 1e6, "a number from 0 to below 1e6", reason, n);
}

static int set_momentum(struct nb_case *c, const char *text, char *reason, size_t n) {
    return set_real(&c->momentum, text, nextafter(1, 2), "a number from 0 to 1, the weight of the new value", reason,
                    n);
}

static int set_stride(struct nb_case *c, const char *text, char *reason, size_t n) {
    uint64_t pad = 0;
    if (strcmp(text, "packed") != 0 && (read_count(&pad, text) != 0 || pad > 1 << 20))
        return nb_reason(reason, n, "is not \"packed\" or a padding of up to 1048576 elements");
    c->pad = (int64_t)pad;
    return 0;
}

static int set_threads(struct nb_case *c, const char *text, char *reason, size_t n) {
    uint64_t threads;
    if (read_count(&threads, text) != 0 || threads < 1 || threads > 1024)
        return nb_reason(reason, n, "is not a count of threads from 1 to 1024");
    c->threads = (int)threads;
    return 0;
}

/* ---- printing values ---- */

static void print_real(double value, struct nb_strbuf *out) {
    char text[32];
    nb_shortest_text(value, text);
    nb_strbuf_add(out, text);
}

static void print_seed(const struct nb_case *c, struct nb_strbuf *out) {
    nb_strbuf_addf(out, "%llu", (unsigned long long)c->seed);
}
static void print_momentum(const struct nb_case *c, struct nb_strbuf *out) { print_real(c->momentum, out); }
static void print_alpha(const struct nb_case *c, struct nb_strbuf *out) { print_real(c->alpha, out); }
static void print_stride(const struct nb_case *c, struct nb_strbuf *out) {
    if (c->pad == 0) nb_strbuf_add(out, "packed");
    if (c->pad != 0) nb_strbuf_addf(out, "%lld", (long long)c->pad);
}
static void print_threads(const struct nb_case *c, struct nb_strbuf *out) { nb_strbuf_addf(out, "%d", c->threads); }

static void print_backend(const struct nb_case *c, struct nb_strbuf *out) {
    const char *colon = strchr(c->variant, ':');
    if (c->backend != NB_BACKEND_CPU) {
        nb_strbuf_add(out, nb_backend_names[c->backend]);
        return;
    }
    if (colon) nb_strbuf_addf(out, "%s:%.*s", c->is_peer ? "peer" : "plugin", (int)(colon - c->variant), c->variant);
    if (!colon) nb_strbuf_add(out, "cpu");
}

/* ---- what applies ---- */

static bool is_forward(const struct nb_case *c) { return c->pass == NB_FORWARD; }
/* A gradient takes mean and rstd as they are given, which eps has a part in, however they were formed. */
static bool has_eps(const struct nb_case *c) { return c->op != NB_OP_DYT && c->op != NB_OP_COPY; }
static bool has_root(const struct nb_case *c) { return has_eps(c) && is_forward(c); }
static bool is_no_copy(const struct nb_case *c) { return c->op != NB_OP_COPY; }
static bool has_gamma(const struct nb_case *c) { return is_no_copy(c) && c->formula.affine != NB_AFFINE_NONE; }
static bool has_16bit_gamma(const struct nb_case *c) { return has_gamma(c) && c->dtype != NB_F32; }
static bool casts(const struct nb_case *c) { return has_16bit_gamma(c) && is_forward(c); }
/* A key without it is as keys always were: parameters as drawn. */
static bool has_chosen_params(const struct nb_case *c) {
    return has_gamma(c) && c->params[0] && strcmp(c->params, NB_PARAMS_DRAWN) != 0;
}
static bool is_prmsnorm(const struct nb_case *c) { return c->op == NB_OP_PRMSNORM; }
static bool is_dyt(const struct nb_case *c) { return c->op == NB_OP_DYT; }
static bool is_batchnorm(const struct nb_case *c) { return c->op == NB_OP_BATCHNORM; }
static bool updates_running(const struct nb_case *c) {
    return is_batchnorm(c) && c->mode == NB_TRAINING && is_forward(c);
}
static bool rounds_a_sum(const struct nb_case *c) { return nb_op_adds(c->op) && c->dtype != NB_F32 && is_forward(c); }

#define NAMED(field) offsetof(struct nb_case, field), NULL, NULL
#define TEXT(field, set) offsetof(struct nb_case, field), set, NULL
const struct nb_axis nb_axes[] = {
    {"op", NB_AXIS_SELECT, NULL, "the mathematical function; left out: all but copy", nb_op_names, NAMED(op), NULL},
    {"pass", NB_AXIS_SELECT, "forward", "forward or backward", nb_pass_names, NAMED(pass), NULL},
    {"kernel", NB_AXIS_SELECT, NULL, "globs on the name of the kernel or its variant, such as layernorm_*", NULL, 0,
     NULL, nb_kernel_name, NULL},
    {"dtype", NB_AXIS_SELECT, "f32", "stored format of the tensors", nb_dtype_names, NAMED(dtype), NULL},
    {"width", NB_AXIS_SELECT, NULL,
     "SIMD width in bits; vector: 256, or 128 on a CPU without; 256x: 256 bits in AVX-512 encoding; native: the kernel chooses, and is always selected",
     nb_width_names, NAMED(width), NULL},
    {"style", NB_AXIS_SELECT, NULL, "fused, or unfused with temporaries", nb_style_names, NAMED(style), NULL},
    {"stats", NB_AXIS_SELECT, NULL, "where the statistics live: registers, a [rows, 1] tensor, a full-size tensor",
     nb_stats_names, NAMED(stats), NULL},
    {"stats_dtype", NB_AXIS_SELECT, NULL, "statistics in f32 or in the dtype of x", nb_stats_dtype_names,
     NAMED(stats_dtype), NULL},
    {"variance", NB_AXIS_SELECT, NULL, "algorithm of the variance", nb_variance_names, NAMED(variance), NULL},
    {"backend", NB_AXIS_SELECT, NULL,
     "cpu, plugin:NAME, peer:NAME, cuda, cuda-emulated; left out: whatever runs on the CPU", NULL, 0, NULL,
     print_backend, NULL},
    {"shape", NB_AXIS_CELL, "1024x1024",
     "64x384, 2x3x[4x5], nchw:8x64x28x28, a preset, a range 64x256:4096:*4, L2x1024: as many rows as fill that cache",
     NULL, TEXT(shape.text, set_shape), NULL},
    {"data", NB_AXIS_CELL, "normal", "a distribution, a data set, or an .npy file", NULL, TEXT(data, set_data), NULL},
    {"dy", NB_AXIS_CELL, NB_PARAMS_DRAWN,
     "backward: drawn (normal, or the file beside real rows), parallel (dy = x), or as data; a key names it unless drawn",
     NULL, TEXT(dy, set_dy), nb_case_chooses_dy},
    {"seed", NB_AXIS_CELL, "1", "of generated numbers", NULL, 0, set_seed, print_seed, NULL},
    {"eps", NB_AXIS_CELL, "1e-5", "kept as typed and as the exact double", NULL, TEXT(eps_text, set_eps), has_eps},
    {"eps_place", NB_AXIS_CELL, "inside", "sqrt(v + eps), sqrt(v) + eps, max(sqrt(v), eps)", nb_eps_place_names,
     NAMED(formula.eps_place), has_root},
    {"root", NB_AXIS_CELL, "mul_recip",
     "how x is scaled: x / sqrt(v), x * (1 / sqrt(v)), or by the hardware's estimate", nb_root_names,
     NAMED(formula.root), has_root},
    {"affine", NB_AXIS_CELL, "default",
     "parameters; default: gamma for rmsnorm, prmsnorm, l2norm and add_rmsnorm, gamma_beta for the others",
     affine_choices, NAMED(formula.affine), is_no_copy},
    {"cast", NB_AXIS_CELL, "after", "rounding to the dtype after or before the weight (Gemma, Llama); 16 bits only",
     nb_cast_names, NAMED(formula.cast), casts},
    {"weight_offset", NB_AXIS_CELL, "0", "the weight is gamma or 1 + gamma", nb_switch_names,
     NAMED(formula.weight_offset), has_gamma},
    {"param_dtype", NB_AXIS_CELL, "f32", "parameters in f32 or in the dtype of x; 16 bits only", nb_param_names,
     NAMED(formula.param), has_16bit_gamma},
    {"params", NB_AXIS_CELL, NB_PARAMS_DRAWN,
     "what gamma and beta hold: drawn, negative, zeros, tiny, fixed(GAMMA), fixed(GAMMA,BETA), values(GAMMA,..); a key names it unless "
     "drawn",
     NULL, TEXT(params, set_params), has_chosen_params},
    {"round_sum", NB_AXIS_CELL, "0", "add_*: statistics of the f32 sum or of the rounded one; 16 bits only",
     nb_switch_names, NAMED(formula.round_sum), rounds_a_sum},
    {"mode", NB_AXIS_CELL, "training", "BatchNorm: statistics of the batch, or running ones", nb_mode_names,
     NAMED(mode), is_batchnorm},
    {"momentum", NB_AXIS_CELL, "0.1", "BatchNorm in training: weight of the new value", NULL, 0, set_momentum,
     print_momentum, updates_running},
    {"k", NB_AXIS_CELL, "6.25%", "pRMSNorm: share or count of the elements that the statistics see", NULL,
     TEXT(k_text, set_k), is_prmsnorm},
    {"alpha", NB_AXIS_CELL, "0.5", "DyT: tanh(alpha * x)", NULL, 0, set_alpha, print_alpha, is_dyt},
    {"stride", NB_AXIS_CELL, "packed", "packed, or elements of padding after each row", NULL, 0, set_stride,
     print_stride, NULL},
    {"threads", NB_AXIS_CELL, "1", "pinned threads", NULL, 0, set_threads, print_threads, NULL},
    {"cache", NB_AXIS_CELL, "hot", "hot: the same buffers again; cold: buffers in turn, larger than the last cache",
     nb_cache_names, NAMED(cache), NULL},
};
const size_t nb_n_axes = sizeof nb_axes / sizeof nb_axes[0];

const struct nb_axis *nb_axis_find(const char *name) {
    static const char *const aliases[][2] = {
        {"norm", "op"}, {"epsilon", "eps"}, {"precision", "dtype"}, {"simd", "width"}, {"input", "data"}};
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcmp(name, aliases[i][0]) == 0) name = aliases[i][1];
    for (size_t i = 0; i < nb_n_axes; i++)
        if (strcmp(nb_axes[i].name, name) == 0) return &nb_axes[i];
    return NULL;
}

int nb_axis_set(const struct nb_axis *axis, struct nb_case *c, const char *text, char *reason, size_t n) {
    assert(axis->kind == NB_AXIS_CELL);
    if (!axis->choices) return axis->set(c, text, reason, n);
    const int found = nb_name_find(axis->choices, text);
    if (found < 0) return nb_name_refuse(axis->choices, reason, n);
    *(uint32_t *)((char *)c + axis->at) = (uint32_t)found;
    return 0;
}

void nb_axis_print(const struct nb_axis *axis, const struct nb_case *c, struct nb_strbuf *out) {
    const void *at = (const char *)c + axis->at;
    if (axis->print)
        axis->print(c, out);
    else if (!axis->choices)
        nb_strbuf_add(out, at);
    else
        nb_strbuf_add(out, *(const uint32_t *)at < nb_names_count(axis->choices) ? axis->choices[*(const uint32_t *)at]
                                                                                 : "?");
}

/* ---- lists of values ---- */

/* Values are checked when they are read, so that a mistake is named with its place and not found in the middle of a run. */

enum { MAX_VALUES = 100000 };

static int append(struct nb_values *v, const char *text, char *reason, size_t n) {
    if (v->n == MAX_VALUES) return nb_reason(reason, n, "is the %dth value of its list", MAX_VALUES + 1);
    *NB_PUSH(v->texts, v->n) = nb_strdup(text);
    return 0;
}

static int add_shapes(struct nb_values *v, const char *text, char *reason, size_t n) {
    struct nb_strings shapes released_by(nb_strings_release);
    int result = nb_shape_expand(text, &shapes, reason, n);
    for (size_t i = 0; i < shapes.n && result == 0; i++) result = append(v, shapes.items[i], reason, n);
    return result;
}

static int add_choice(struct nb_values *v, const struct nb_axis *axis, const char *text, char *reason, size_t n) {
    const bool is_vector = strcmp(axis->name, "width") == 0 && strcmp(text, NB_VECTOR) == 0;
    if (strcmp(text, "all") == 0 || is_vector) return append(v, text, reason, n);
    int found = nb_name_find(axis->choices, text);
    if (found >= 0) return append(v, axis->choices[found], reason, n);
    return nb_name_refuse(axis->choices, reason, n);
}

static bool starts_with_name(const char *text, const char *prefix) {
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 && text[n] != '\0';
}

/* kernel: a glob; backend: a word or a kind with a name. */
static int add_selection(struct nb_values *v, const struct nb_axis *axis, const char *text, char *reason, size_t n) {
    bool is_backend = strcmp(axis->name, "backend") == 0;
    bool known = !strcmp(text, "all") || nb_name_find(nb_backend_names, text) >= 0 ||
                 starts_with_name(text, "plugin:") || starts_with_name(text, "peer:");
    if (is_backend && !known) return nb_reason(reason, n, "is not cpu, cuda, cuda-emulated, plugin:NAME or peer:NAME");
    if (!*text || strlen(text) >= NB_VARIANT_MAX)
        return nb_reason(reason, n, "is not a name or glob of up to %d characters", NB_VARIANT_MAX - 1);
    return append(v, text, reason, n);
}

int nb_values_add(struct nb_values *values, const struct nb_axis *axis, const char *text, char *reason, size_t n) {
    struct nb_case scratch = {0};
    if (strcmp(axis->name, "shape") == 0) return add_shapes(values, text, reason, n);
    if (axis->kind == NB_AXIS_SELECT)
        return axis->choices ? add_choice(values, axis, text, reason, n) : add_selection(values, axis, text, reason, n);
    if (nb_axis_set(axis, &scratch, text, reason, n) != 0) return -1;
    return append(values, text, reason, n);
}

void nb_values_release(struct nb_values *values) {
    for (size_t i = 0; i < values->n; i++) free(values->texts[i]);
    free(values->texts);
    *values = (struct nb_values){0};
}
