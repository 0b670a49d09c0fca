// SPDX-License-Identifier: Apache-2.0
/* A case: its names, what it is called with, what it must move at least, and its key, one printed string by which a case is named on
 * a command line, in a record and in a filter. The axes that a key is made of are in axes.c. */
#include "src/core/case.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/core/tuning.h"

/* ---- names ---- */

const char *const nb_op_names[] = {"rmsnorm", "prmsnorm",    "layernorm",     "batchnorm", "l2norm",
                                   "dyt",     "add_rmsnorm", "add_layernorm", "copy",      NULL};
const char *const nb_pass_names[] = {"forward", "backward", NULL};
const char *const nb_dtype_names[] = {"f32", "f16", "bf16", NULL};
const char *const nb_backend_names[] = {"cpu", "cuda", "cuda-emulated", NULL};
const char *const nb_width_names[] = {"scalar", "128", "256", "256x", "512", "native", NULL};
const char *const nb_style_names[] = {"fused", "composed", NULL};
const char *const nb_stats_names[] = {"register", "keepdim", "expanded", NULL};
const char *const nb_stats_dtype_names[] = {"f32", "x", NULL};
const char *const nb_variance_names[] = {"none", "twopass", "corrected", "welford", "onepass", "shifted", NULL};
const char *const nb_root_names[] = {"div_sqrt", "mul_recip", "rsqrt_nr", "rsqrt_raw", NULL};
const char *const nb_eps_place_names[] = {"inside", "outside", "clamp", NULL};
const char *const nb_cast_names[] = {"after", "before", NULL};
const char *const nb_affine_names[] = {"none", "gamma", "gamma_beta", NULL};
const char *const nb_param_names[] = {"f32", "x", NULL};
const char *const nb_mode_names[] = {"training", "inference", NULL};
const char *const nb_layout_names[] = {"rows", "nchw", "nhwc", NULL};
const char *const nb_cache_names[] = {"hot", "cold", NULL};
const char *const nb_switch_names[] = {"0", "1", NULL};

/* An alias means its name in every list that has the name. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"rms", "rmsnorm"},
    {"rms_norm", "rmsnorm"},
    {"prms", "prmsnorm"},
    {"ln", "layernorm"},
    {"bn", "batchnorm"},
    {"layer_norm", "layernorm"},
    {"batch_norm", "batchnorm"},
    {"l2", "l2norm"},
    {"fwd", "forward"},
    {"bwd", "backward"},
    {"fp32", "f32"},
    {"float32", "f32"},
    {"float", "f32"},
    {"single", "f32"},
    {"fp16", "f16"},
    {"float16", "f16"},
    {"half", "f16"},
    {"bfloat16", "bf16"},
    {"v128", "128"},
    {"v256", "256"},
    {"v256x", "256x"},
    {"v512", "512"},
    {"train", "training"},
    {"eval", "inference"},
    {"eager", "composed"},
    {"false", "0"},
    {"true", "1"},
};

size_t nb_names_count(const char *const *names) {
    size_t n = 0;
    while (names[n]) n++;
    return n;
}

static int index_of(const char *const *names, const char *text) {
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0) return i;
    return -1;
}

int nb_name_find(const char *const *names, const char *text) {
    assert(names && text);
    int found = index_of(names, text);
    for (size_t i = 0; found < 0 && i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcmp(aliases[i].alias, text) == 0) found = index_of(names, aliases[i].name);
    return found;
}

void nb_name_refuse(const char *const *names, const char *text, char *reason, size_t n) {
    struct nb_strbuf out = {0};
    nb_strbuf_add(&out, "is not one of");
    for (size_t i = 0; names[i]; i++) nb_strbuf_addf(&out, "%s %s", i ? "," : "", names[i]);
    nb_strbuf_add(&out, nb_did_you_mean(text, names, nb_names_count(names)).text);
    snprintf(reason, n, "%s", out.text);
    nb_strbuf_release(&out);
}

void nb_shortest_text(double value, char text[32]) {
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        if (strtod(text, NULL) == value) return;
    }
}

/* ---- a case as data ---- */

bool nb_op_adds(uint32_t op) { return op == NB_OP_ADD_RMSNORM || op == NB_OP_ADD_LAYERNORM; }
/* Of a row, or in BatchNorm of a channel. What is about one row at a time may ask too, since it never has a BatchNorm: searches refuse
 * it (nb_row_score_refuses), sweeps over short rows and the emulator's designs have no such op. */
bool nb_op_centres(uint32_t op) { return op == NB_OP_LAYERNORM || op == NB_OP_ADD_LAYERNORM || op == NB_OP_BATCHNORM; }

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
    c->copy_loads = kernel->op == NB_OP_COPY ? (double)kernel->loads : 0;
    c->copy_stores = kernel->op == NB_OP_COPY ? (double)kernel->stores : 0;
    nb_case_normalize(c);
}

/* Tensors beyond this would be a mistake on any machine that this program meets: 2^34 bytes in f32. */
static const int64_t max_elements = (int64_t)1 << 32;

const char *nb_case_conflict(const struct nb_case *c) {
    const struct nb_formula *f = &c->formula;
    bool estimate = f->root == NB_ROOT_RSQRT_NR || f->root == NB_ROOT_RSQRT_RAW;
    if (c->shape.layout != NB_ROWS && c->op != NB_OP_BATCHNORM && c->op != NB_OP_COPY)
        return "NCHW and NHWC shapes are for batchnorm";
    if (estimate && f->eps_place == NB_EPS_OUTSIDE)
        return "a reciprocal square root estimate with eps outside the root is not defined";
    if (c->op == NB_OP_PRMSNORM && (c->k < 1 || c->k > c->shape.cols)) return "k is more than the row has";
    if (c->op == NB_OP_BATCHNORM && c->mode == NB_TRAINING && c->shape.n * c->shape.hw < 2)
        return "batchnorm in training needs at least two values per channel";
    if (c->backend != NB_BACKEND_CPU && c->threads > 1) return "a GPU's kernel is launched by one thread";
    if (c->shape.rows > max_elements / (c->shape.cols + c->pad)) return "the padded rows take more than 2^32 elements";
    return NULL;
}

void nb_case_call(const struct nb_case *c, struct nb_call *call) {
    assert(c && call);
    const struct nb_shape *s = &c->shape;
    const int64_t stride = s->cols + c->pad;
    *call = (struct nb_call){.struct_size = sizeof *call,
                             .mode = c->mode,
                             .layout = s->layout,
                             .n_threads = c->threads,
                             .rows = s->rows,
                             .cols = s->cols,
                             .n = s->n,
                             .c = s->c,
                             .hw = s->hw,
                             .k = c->op == NB_OP_PRMSNORM ? c->k : s->cols,
                             .eps = c->eps,
                             .alpha = c->alpha,
                             .momentum = c->momentum,
                             .formula = c->formula,
                             .tuning = c->tuning};
    call->formula.struct_size = sizeof call->formula;
    call->x_stride = call->residual_stride = call->y_stride = call->residual_out_stride = stride;
    call->dy_stride = call->dresidual_out_stride = call->dx_stride = call->dresidual_stride = stride;
}

/* Backward: x (for add_* the saved sum) and the gradients that come in; dx, which is the residual's gradient too. */
void nb_op_tensors(uint32_t op, uint32_t pass, int *n_loads, int *n_stores) {
    *n_loads = (nb_op_adds(op) ? 2 : 1) + (pass == NB_BACKWARD ? 1 : 0);
    *n_stores = nb_op_adds(op) && pass == NB_FORWARD ? 2 : 1;
}

/* Statistics that the op must read or write besides the tensors, in f32 elements. */
static double statistics_elements(const struct nb_case *c) {
    const struct nb_shape *s = &c->shape;
    if (c->op == NB_OP_COPY || c->op == NB_OP_DYT) return 0;
    if (c->op == NB_OP_BATCHNORM && c->pass == NB_FORWARD)
        return (double)s->c * (c->mode == NB_TRAINING ? 4 : 2); /* running mean and variance, in and out */
    if (c->pass == NB_FORWARD) return 0;
    return (double)(c->op == NB_OP_BATCHNORM ? s->c : s->rows) * (nb_op_centres(c->op) ? 2 : 1);
}

static double parameter_bytes(const struct nb_case *c) {
    if (c->op == NB_OP_COPY || c->formula.affine == NB_AFFINE_NONE) return 0;
    const double n = (double)(c->op == NB_OP_BATCHNORM ? c->shape.c : c->shape.cols);
    const double size = c->formula.param == NB_PARAM_X ? (double)nb_formats[c->dtype].bytes : 4;
    const int vectors = c->formula.affine == NB_AFFINE_GAMMA_BETA ? 2 : 1;
    if (c->pass == NB_FORWARD) return n * size * vectors;
    return n * size + n * 4 * vectors; /* gamma is read, dgamma and dbeta are written */
}

double nb_case_bytes(const struct nb_case *c) {
    int loads, stores;
    nb_op_tensors(c->op, c->pass, &loads, &stores);
    double tensors = c->op == NB_OP_COPY ? c->copy_loads + c->copy_stores : loads + stores;
    double tensor_bytes = (double)c->shape.rows * (double)c->shape.cols * (double)nb_formats[c->dtype].bytes;
    return tensors * tensor_bytes + parameter_bytes(c) + 4 * statistics_elements(c);
}

/* ---- the key ---- */

/* ---- values that depend on other fields ---- */

static uint32_t usual_affine(uint32_t op) {
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
    if (c->formula.affine == NB_N_AFFINES || c->op == NB_OP_COPY) c->formula.affine = usual_affine(c->op);
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

void nb_kernel_name(const struct nb_case *c, struct nb_strbuf *out) {
    char suffix[64];
    if (c->kernel[0]) {
        nb_strbuf_add(out, c->kernel);
        return;
    }
    const char *dtype = c->dtype < NB_N_DTYPES ? nb_formats[c->dtype].name : "";
    const char *width = c->width < NB_N_WIDTHS ? nb_width_names[c->width] : "";
    bool lanes = c->width == NB_128 || c->width == NB_256 || c->width == NB_256X || c->width == NB_512;
    if (c->backend != NB_BACKEND_CPU) width = c->backend == NB_BACKEND_CUDA ? "cuda" : "cuda_emulated";
    int n = snprintf(suffix, sizeof suffix, "_%s%s_%s", lanes && c->backend == NB_BACKEND_CPU ? "v" : "", width, dtype);
    size_t len = strnlen(c->variant, sizeof c->variant);
    bool ends = n > 0 && (size_t)n < len && memcmp(c->variant + len - n, suffix, (size_t)n) == 0;
    nb_strbuf_addn(out, c->variant, ends ? len - (size_t)n : len);
}

void nb_case_key(const struct nb_case *c, struct nb_strbuf *out) {
    assert(c && out);
    struct nb_strbuf value = {0};
    add_escaped(out, c->variant);
    for (size_t i = 0; i < nb_n_axes; i++) {
        const struct nb_axis *axis = &nb_axes[i];
        if (axis->kind != NB_AXIS_CELL || (axis->applies && !axis->applies(c))) continue;
        nb_strbuf_clear(&value);
        nb_axis_print(axis, c, &value);
        nb_strbuf_addf(out, "/%s:", axis->name);
        add_escaped(out, value.text);
    }
    nb_strbuf_release(&value);
}

void nb_case_axis(const struct nb_case *c, const char *name, struct nb_strbuf *out) {
    assert(c && name && out);
    const struct nb_axis *axis = nb_axis_find(name);
    nb_strbuf_add(out, "");
    if (axis && (!axis->applies || axis->applies(c))) nb_axis_print(axis, c, out);
}

/* ---- reading ---- */

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

/* Undoes %XX in place; -1: not such a text. */
static int unescape(char *text) {
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
    for (size_t i = 0; i < nb_n_axes && n < sizeof names / sizeof names[0]; i++)
        if (nb_axes[i].kind == NB_AXIS_CELL) names[n++] = nb_axes[i].name;
    for (size_t i = 0; i < nb_n_axes; i++)
        if (nb_axes[i].kind == NB_AXIS_CELL && strcmp(nb_axes[i].name, name) == 0) return &nb_axes[i];
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
    if (unescape(value) != 0) return nb_error("case key '%s': '%s' has a broken %%XX", key, axis->name);
    if (nb_axis_set(axis, c, value, reason, sizeof reason) != 0)
        return nb_error("case key '%s': %s: '%s' %s", key, axis->name, value, reason);
    return 0;
}

int nb_case_parse(struct nb_case *c, const char *key) {
    assert(c && key);
    char *text = nb_strdup(key), *rest = text;
    uint64_t seen = 0;
    int result = -1;
    nb_case_init(c);
    c->formula.affine = NB_N_AFFINES; /* the op's usual one, unless the key says which */
    char *variant = strsep(&rest, "/");
    if (unescape(variant) != 0 || !*variant || strlen(variant) >= sizeof c->variant) {
        nb_error("case key '%s': does not begin with a variant, such as rmsnorm_twopass_v256_f32", key);
        goto out;
    }
    snprintf(c->variant, sizeof c->variant, "%s", variant);
    while (rest)
        if (parse_part(c, strsep(&rest, "/"), key, &seen) != 0) goto out;
    result = 0;
out:
    free(text);
    return result;
}

/* ---- what gamma and beta hold ---- */

static const double largest = 3.4e38; /* what f32 can hold, about */

/* "fixed(g)", "fixed(g,b)" */
static bool parse_fixed(const char *text, struct nb_params *params) {
    char *end;
    if (strncmp(text, "fixed(", 6) != 0) return false;
    *params = (struct nb_params){.kind = NB_PARAMS_FIXED};
    params->gamma = strtod(text + 6, &end);
    if (end == text + 6) return false;
    if (*end == ',') {
        const char *second = end + 1;
        params->beta = strtod(second, &end);
        if (end == second) return false;
    }
    return strcmp(end, ")") == 0 && fabs(params->gamma) <= largest && fabs(params->beta) <= largest;
}

int nb_params_parse(const char *text, struct nb_params *params, char *reason, size_t n) {
    assert(text && params);
    static const struct {
        const char *name;
        enum nb_params_kind kind;
    } kinds[] = {{"", NB_PARAMS_OF_DRAWS},
                 {NB_PARAMS_DRAWN, NB_PARAMS_OF_DRAWS},
                 {"negative", NB_PARAMS_NEGATIVE},
                 {"zeros", NB_PARAMS_ZEROS},
                 {"tiny", NB_PARAMS_TINY}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(text, kinds[i].name) != 0) continue;
        *params = (struct nb_params){.kind = kinds[i].kind};
        return 0;
    }
    if (parse_fixed(text, params)) return 0;
    snprintf(reason, n, "is not one of drawn, negative, zeros, tiny, fixed(GAMMA), fixed(GAMMA,BETA)");
    return -1;
}

double nb_params_gamma(const struct nb_params *params, int64_t i, double z) {
    const double drawn = 1 + 0.3 * z;
    switch (params->kind) {
    case NB_PARAMS_NEGATIVE:
        return -fabs(drawn);
    case NB_PARAMS_ZEROS:
        return i % 3 == 1 ? 0 : drawn;
    case NB_PARAMS_TINY:
        return 0x1p-8 * z;
    case NB_PARAMS_FIXED:
        return params->gamma;
    default:
        return drawn;
    }
}

double nb_params_beta(const struct nb_params *params, int64_t i, double z) {
    if (params->kind == NB_PARAMS_FIXED) return params->beta;
    return params->kind == NB_PARAMS_ZEROS && i % 3 == 1 ? 0 : 0.1 * z;
}
