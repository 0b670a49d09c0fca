// SPDX-License-Identifier: Apache-2.0
/* What every model does alike: a step, with clipping and the loss scale. */
#include "src/train/workload.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/timer.h"
#include "src/measure/fp_state.h"
#include "src/train/tensor.h"

const char *const nb_norm_kind_names[] = {"none",      "layernorm", "rmsnorm", "prmsnorm",
                                          "batchnorm", "centre",    "scale",   NULL};
const char *const nb_norm_place_names[] = {"pre", "post", NULL};
const char *const nb_padding_names[] = {"unpadded", "padded", "masked", NULL};

/* ---- words of an arm ---- */

#define AT(field) offsetof(struct nb_train_options, field)
_Static_assert(sizeof(enum nb_style) == sizeof(int) && sizeof(enum nb_dtype) == sizeof(int) && sizeof(bool) == 1,
               "get() and set() take a byte for a bool and an int for the rest");

struct word { /* a choice: one of a few values of a field */
    const char *name;
    size_t offset;
    bool is_bool;
    int value;
};
static const struct word words[] = {{"fused", AT(norm.style), false, NB_FUSED},
                                    {"composed", AT(norm.style), false, NB_COMPOSED},
                                    {"learned", AT(norm.affine), false, NB_NORM_LEARNED},
                                    {"frozen", AT(norm.affine), false, NB_NORM_FROZEN},
                                    {"by_feature", AT(norm.by_position), true, false},
                                    {"by_position", AT(norm.by_position), true, true},
                                    {"pre", AT(place), false, NB_PRE_NORM},
                                    {"post", AT(place), false, NB_POST_NORM},
                                    {"residual", AT(residual), true, true},
                                    {"no_residual", AT(residual), true, false},
                                    {"causal", AT(causal), true, true},
                                    {"bidirectional", AT(causal), true, false},
                                    {"unpadded", AT(padding), false, NB_NOT_PADDED},
                                    {"padded", AT(padding), false, NB_PADDED},
                                    {"masked", AT(padding), false, NB_MASKED},
                                    {"f32", AT(dtype), false, NB_F32},
                                    {"f16", AT(dtype), false, NB_F16},
                                    {"bf16", AT(dtype), false, NB_BF16},
                                    {"subnormal", AT(flushed), true, false},
                                    {"flushed", AT(flushed), true, true}};
enum { N_WORDS = sizeof words / sizeof words[0] };

struct number {
    const char *name;
    size_t offset;
    bool whole;
    double most;
};
static const struct number numbers[] = {{"layers", AT(layers), true, 1000},
                                        {"batch", AT(batch), true, 1 << 20},
                                        {"sequence", AT(sequence), true, 1 << 20},
                                        {"hidden", AT(hidden), true, 1 << 16},
                                        {"threads", AT(n_threads), true, 1024},
                                        {"rate", AT(learning_rate), false, 1000},
                                        {"clip", AT(clip), false, 1e9},
                                        {"eps", AT(norm.eps), false, 1},
                                        {"partial", AT(norm.partial), false, 1},
                                        {"dispatch", AT(dispatch), false, 1000}};
enum { N_NUMBERS = sizeof numbers / sizeof numbers[0] };

static const struct nb_train_options usual = {.norm.kind = NB_NORM_NONE, .residual = true, .causal = true, .clip = 1};

static bool is_set(const struct nb_train_options *o, const struct word *w) {
    const void *at = (const char *)o + w->offset;
    return (w->is_bool ? *(const bool *)at : *(const int *)at) == w->value;
}

static void set(struct nb_train_options *o, const struct word *w) {
    void *at = (char *)o + w->offset;
    if (w->is_bool)
        *(bool *)at = w->value;
    else
        *(int *)at = w->value;
}

static double get_number(const struct nb_train_options *o, const struct number *n) {
    const void *at = (const char *)o + n->offset;
    return n->whole ? *(const int *)at : *(const double *)at;
}

static bool set_number(struct nb_train_options *o, const struct number *n, const char *text) {
    char *end;
    void *at = (char *)o + n->offset;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= n->most) || (n->whole && value != floor(value))) return false;
    if (n->whole)
        *(int *)at = (int)value;
    else
        *(double *)at = value;
    return true;
}

void nb_train_options_fill(struct nb_train_options *o, const struct nb_train_options *from) {
    for (int i = 0; i < N_NUMBERS; i++) {
        const struct number *n = &numbers[i];
        const size_t size = n->whole ? sizeof(int) : sizeof(double);
        if (get_number(o, n) == 0) memcpy((char *)o + n->offset, (const char *)from + n->offset, size);
    }
}

static bool within(double v, double least, double most) { return v >= least && v <= most; } /* NaN is not */

const char *nb_train_options_refused(const struct nb_train_options *o, bool can_pad) {
    if (!within(o->norm.partial, 0x1p-30, 1)) return "partial must be above 0 and at most 1";
    if (!within(o->norm.eps, 0, 1)) return "eps must be 0 to 1";
    if (!within(o->learning_rate, 0, 1e3)) return "learning_rate must be 0 to 1000";
    if (!can_pad && (o->padding != NB_NOT_PADDED || o->norm.by_position))
        return "padding and statistics by position are of transformers";
    return NULL;
}

/* 0: understood. */
static int take(struct nb_train_options *o, char *word, bool *has_norm) {
    const int kind = nb_name_find(nb_norm_kind_names, word);
    if (kind >= 0) {
        o->norm.kind = (enum nb_norm_kind)kind;
        *has_norm = true;
        return 0;
    }
    for (int i = 0; i < N_WORDS; i++)
        if (strcmp(words[i].name, word) == 0) return set(o, &words[i]), 0;
    char *equals = strchr(word, '=');
    if (!equals) return -1;
    *equals = '\0';
    int result = -1;
    for (int i = 0; i < N_NUMBERS && result != 0; i++)
        if (strcmp(numbers[i].name, word) == 0) result = set_number(o, &numbers[i], equals + 1) ? 0 : -1;
    *equals = '=';
    return result;
}

static const char *refuse(const char *word, char *reason, size_t n) {
    const char *names[N_WORDS + N_NUMBERS + NB_N_NORM_KINDS];
    size_t count = 0;
    for (int i = 0; i < N_WORDS; i++) names[count++] = words[i].name;
    for (int i = 0; i < N_NUMBERS; i++) names[count++] = numbers[i].name;
    for (int i = 0; i < NB_N_NORM_KINDS; i++) names[count++] = nb_norm_kind_names[i];
    const char *nearest = nb_nearest(word, names, count);
    snprintf(reason, n, "'%s' is not a word for an arm%s%s%s (configs/claims/README.md lists the words)", word,
             nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    return reason;
}

static const char *parse(struct nb_train_options *o, const char *text, bool *has_norm, char *reason, size_t n) {
    char copy[256], *state = NULL;
    if (strlen(text) >= sizeof copy) {
        snprintf(reason, n, "an arm has less than %zu characters", sizeof copy);
        return reason;
    }
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state))
        if (take(o, word, has_norm) != 0) return refuse(word, reason, n);
    return NULL;
}

const char *nb_arm_parse(struct nb_train_options *o, const char *common, const char *text, char *reason, size_t n) {
    assert(o && text && reason);
    bool has_norm;
    *o = usual;
    if (common && parse(o, common, &has_norm, reason, n)) return reason;
    has_norm = o->norm.kind != NB_NORM_NONE;
    if (parse(o, text, &has_norm, reason, n)) return reason;
    if (has_norm) return NULL;
    snprintf(reason, n, "'%s' names no norm", text);
    return reason;
}

bool nb_arm_has_kernel(const struct nb_train_options *o) {
    return o->norm.kind != NB_NORM_NONE && o->norm.kind != NB_NORM_CENTRE && o->norm.kind != NB_NORM_SCALE;
}

void nb_arm_print(const struct nb_train_options *o, struct nb_strbuf *out) {
    nb_strbuf_add(out, nb_norm_kind_names[o->norm.kind]);
    if (nb_arm_has_kernel(o)) nb_strbuf_addf(out, " %s", nb_style_names[o->norm.style]);
    for (int i = 0; i < N_WORDS; i++) {
        const struct word *w = &words[i];
        const bool matters =
            w->offset != AT(norm.style) && (w->offset != AT(norm.affine) || o->norm.kind != NB_NORM_NONE);
        if (matters && is_set(o, w) && !is_set(&usual, w)) nb_strbuf_addf(out, " %s", w->name);
    }
    for (int i = 0; i < N_NUMBERS; i++) {
        char text[32];
        if (get_number(o, &numbers[i]) == get_number(&usual, &numbers[i])) continue;
        const double value = get_number(o, &numbers[i]);
        if (value == floor(value))
            snprintf(text, sizeof text, "%.0f", value); /* 20, not 2e+01 */
        else
            nb_shortest_text(value, text);
        nb_strbuf_addf(out, " %s=%s", numbers[i].name, text);
    }
}

int nb_model_init(struct nb_model *model, const struct nb_workload *workload, const struct nb_train_options *options) {
    assert(model && workload && options);
    *model = (struct nb_model){.workload = workload, .options = *options};
    struct nb_train_options *o = &model->options;
    if (o->n_threads < 1) o->n_threads = 1;
    const char *refused = workload->family->complete(workload->own, o);
    if (refused) return nb_error("workload %s: %s", workload->name, refused);
    if (nb_matrix_open(o->n_threads) != 0) return -1;
    nb_loss_scale_init(&model->loss_scale, o->dtype);
    model->pool = nb_pool_new(o->n_threads, NULL);
    if (!model->pool) return -1;
    nb_pool_park(model->pool);
    model->parameters.like = o->drawn;
    workload->family->create(model);
    model->parameters.like = o->drawn = NULL; /* it goes on to make steps */
    model->activation_bytes += model->kept.bytes;
    if (!model->failed) return 0;
    nb_model_release(model);
    return -1;
}

double nb_model_forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training) {
    const double start = nb_now_s();
    nb_parameters_round(&model->parameters, model->options.dtype);
    const double loss = model->workload->family->forward(model, text, batch, training);
    model->forward_seconds += nb_now_s() - start;
    model->forward_work = nb_train_work;
    return loss;
}

void nb_model_backward(struct nb_model *model, double scale) {
    const double start = nb_now_s();
    model->workload->family->backward(model, scale);
    nb_parameters_round_gradients(&model->parameters, model->options.dtype);
    model->backward_seconds += nb_now_s() - start;
    model->passes_work = nb_train_work;
}

/* PyTorch's clip_grad_norm_: the small number keeps a norm of 0 from dividing. */
static void scale_and_clip(struct nb_model *model, double scaled_norm, double scale) {
    const double clip = model->options.clip, norm = scaled_norm / scale;
    double factor = 1 / scale;
    if (clip > 0 && norm + 1e-6 > clip) factor *= clip / (norm + 1e-6);
    if (factor != 1) nb_parameters_scale_gradients(&model->parameters, (float)factor);
}

static struct nb_optimizer optimizer_of(const struct nb_model *model) {
    const struct nb_model_family *family = model->workload->family;
    if (family->optimizer) return family->optimizer(model->workload->own, &model->options);
    return (struct nb_optimizer){
        .kind = NB_ADAMW, .learning_rate = model->options.learning_rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
}

static void flush_subnormals(void) {
    struct nb_fp_state state = nb_fp_state();
    state.control |= NB_FP_FLUSHES;
    nb_fp_state_set(state);
}

/* Of each parameter: gradient to 0, its norm, clipping, and the update, which frameworks have in one. */
enum { UPDATE_OPS = 4 };

static double step(struct nb_model *model, const struct nb_text *text, int64_t batch) {
    const struct nb_optimizer optimizer = optimizer_of(model);
    const double scale = model->loss_scale.scale;
    nb_parameters_zero_gradients(&model->parameters);
    const double loss = nb_model_forward(model, text, batch, true);
    nb_model_backward(model, scale);
    const double norm = nb_parameters_gradient_norm(&model->parameters);
    model->gradient_norm = norm / scale;
    if (!nb_loss_scale_update(&model->loss_scale, isfinite(norm))) return loss;
    scale_and_clip(model, norm, scale);
    nb_op(UPDATE_OPS * model->parameters.n);
    nb_optimizer_update(&optimizer, &model->parameters);
    return loss;
}

double nb_model_step(struct nb_model *model, const struct nb_text *text, int64_t batch) {
    const struct nb_fp_state before = nb_fp_state();
    if (model->options.flushed) flush_subnormals();
    nb_train_work = (struct nb_train_work){.dispatch_s = 1e-6 * model->options.dispatch};
    const double loss = step(model, text, batch);
    nb_train_work.dispatch_s = 0;
    nb_fp_state_set(before);
    return loss;
}

void nb_model_release(struct nb_model *model) {
    nb_arena_release(&model->kept);
    nb_arena_release(&model->passing);
    nb_parameters_release(&model->parameters);
    nb_pool_free(model->pool);
    *model = (struct nb_model){0};
}

void nb_model_take(struct nb_model *model, int64_t n, float **values, float **gradient) {
    *values = nb_arena_take(&model->kept, n);
    *gradient = nb_arena_take(&model->passing, n);
}

void nb_model_observe(const struct nb_model *model, enum nb_observed what, const char *place, const char *part,
                      const float *values, int64_t n) {
    if (!model->observer) return;
    model->observer->see(model->observer->context, what, nb_place_of(place, part).text, values, n);
}

/* ---- the workloads there are ---- */

const struct nb_workload *const nb_workloads[] = {
    &nb_workload_minimind2_small,  &nb_workload_minimind_3,
    &nb_workload_transformer_base, &nb_workload_tiny_transformer,
    &nb_workload_rnnsearch,        &nb_workload_tiny_rnnsearch,
    &nb_workload_order_embedding,  &nb_workload_tiny_order_embedding,
    &nb_workload_attentive_reader, &nb_workload_tiny_attentive_reader,
    &nb_workload_convpool,         &nb_workload_tiny_convpool,
};
const size_t nb_n_workloads = sizeof nb_workloads / sizeof nb_workloads[0];

const struct nb_workload *nb_workload_find(const char *name) {
    assert(name);
    for (size_t i = 0; i < nb_n_workloads; i++)
        if (strcmp(nb_workloads[i]->name, name) == 0) return nb_workloads[i];
    return NULL;
}
