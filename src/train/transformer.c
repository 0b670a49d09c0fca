// SPDX-License-Identifier: Apache-2.0
/* The transformer from tokens to loss and back. */
#include "src/train/transformer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/train/attention.h"
#include "src/train/embedding.h"
#include "src/train/feed_forward.h"
#include "src/train/loss.h"
#include "src/train/matrix.h"
#include "src/train/precision.h"
#include "src/train/row_sets.h"
#include "src/train/sublayer.h"
#include "src/train/text.h"

enum { PARAMETERS_PER_LAYER = 16, PARAMETERS_OUTSIDE = 4, LENGTH_STREAM = 0x4c454e };

struct layer {
    struct nb_attention attention;
    struct nb_feed_forward feed_forward;
    struct nb_sublayer sublayers[2];
};

struct transformer {
    struct nb_transformer_shape shape;
    int64_t rows;
    struct nb_arena kept, shared; /* from forward to backward; for one layer's backward at a time */
    struct nb_rope rope;
    struct layer *layers;
    struct nb_norm_layer final_norm; /* pre-norm alone */
    struct nb_parameter *embedding;
    int32_t *tokens, *targets, *lengths;     /* lengths: of the sequences of the batch under way */
    struct nb_row_sets sets;                 /* for BatchNorm */
    float *embedded, *final_normed, *logits; /* logits become probabilities, then gradients */
    const float *stream, *final;             /* out of the last layer; what the head sees */
    float *d, *arena, *other_arena;
};

/* ---- set-up ---- */

static void wrap_attention(void *inside, float *y, const float *x, bool training) {
    nb_attention_forward(inside, y, x, training);
}
static void wrap_attention_back(void *inside, float *dx, const float *dy, const float *x) {
    nb_attention_backward(inside, dx, dy, x);
}
static void wrap_feed_forward(void *inside, float *y, const float *x, bool training) {
    (void)training;
    nb_feed_forward_forward(inside, y, x);
}
static void wrap_feed_forward_back(void *inside, float *dx, const float *dy, const float *x) {
    nb_feed_forward_backward(inside, dx, dy, x);
}

static int init_sublayers(struct nb_model *model, struct transformer *t, struct layer *l, int index) {
    static const char *const parts[2][2] = {{"attention", "input_layernorm"},
                                            {"feed_forward", "post_attention_layernorm"}};
    for (int i = 0; i < 2; i++) {
        char place[48], norm[48];
        snprintf(place, sizeof place, "layer%d.%s", index, parts[i][0]);
        snprintf(norm, sizeof norm, "layer%d.%s", index, parts[i][1]);
        if (nb_sublayer_init(&l->sublayers[i], model, place, norm, t->rows, t->shape.hidden, &t->kept) != 0) return -1;
    }
    l->sublayers[0].inside = &l->attention;
    l->sublayers[0].forward = wrap_attention;
    l->sublayers[0].backward = wrap_attention_back;
    l->sublayers[1].inside = &l->feed_forward;
    l->sublayers[1].forward = wrap_feed_forward;
    l->sublayers[1].backward = wrap_feed_forward_back;
    return 0;
}

static int init_layers(struct nb_model *model, struct transformer *t) {
    struct nb_attention_arena attention;
    struct nb_feed_forward_arena feed_forward;
    nb_attention_arena_take(&attention, &t->shared, &t->shape);
    nb_feed_forward_arena_take(&feed_forward, &t->shared, &t->shape);
    t->layers = nb_alloc((unsigned)t->shape.layers, sizeof *t->layers);
    for (int i = 0; i < t->shape.layers; i++) {
        char name[40];
        struct layer *l = &t->layers[i];
        snprintf(name, sizeof name, "layer%d.attention", i);
        if (nb_attention_init(&l->attention, name, model, &t->shape, &t->kept, &attention,
                              t->shape.rope_theta > 0 ? &t->rope : NULL) != 0)
            return -1;
        snprintf(name, sizeof name, "layer%d.feed_forward", i);
        nb_feed_forward_init(&l->feed_forward, name, model, &t->shape, &t->kept, &feed_forward);
        if (init_sublayers(model, t, l, i) != 0) return -1;
    }
    return 0;
}

static void take_arena(struct transformer *t) {
    const int64_t n = t->rows * t->shape.hidden;
    t->tokens = nb_alloc((unsigned long long)t->rows, sizeof *t->tokens);
    t->targets = nb_alloc((unsigned long long)t->rows, sizeof *t->targets);
    t->lengths = nb_alloc((unsigned)t->shape.batch, sizeof *t->lengths);
    t->embedded = nb_arena_take(&t->kept, n);
    t->logits = nb_arena_take(&t->kept, t->rows * t->shape.vocabulary);
    t->d = nb_arena_take(&t->shared, n);
    t->arena = nb_arena_take(&t->shared, n);
    t->other_arena = nb_arena_take(&t->shared, n);
}

static bool has_final_norm(const struct nb_model *model) { return model->options.place == NB_PRE_NORM; }

typedef void visit_norm(struct nb_model *model, struct nb_norm_layer *norm);

static void each_norm(struct nb_model *model, visit_norm *visit) {
    struct transformer *t = model->inside;
    for (int i = 0; i < t->shape.layers; i++) {
        struct layer *l = &t->layers[i];
        visit(model, &l->sublayers[0].norm);
        visit(model, &l->sublayers[1].norm);
        visit(model, &l->attention.q_norm);
        visit(model, &l->attention.k_norm);
    }
    visit(model, &t->final_norm);
}

static void count_kept(struct nb_model *model, struct nb_norm_layer *norm) {
    if (norm->rows > 0) model->activation_bytes += nb_norm_kept_bytes(norm);
}

static int init_final_norm(struct nb_model *model, struct transformer *t) {
    const struct nb_norm_choice *choice = &model->options.norm;
    if (choice->kind != NB_NORM_NONE) t->final_normed = nb_arena_take(&t->kept, t->rows * t->shape.hidden);
    return nb_norm_layer_init(&t->final_norm, "norm", choice, t->rows, t->shape.hidden, &model->parameters,
                              model->pool);
}

int nb_transformer_create(struct nb_model *model) {
    struct transformer *t = nb_alloc(1, sizeof *t);
    model->inside = t;
    t->shape = nb_transformer_resolve(model->workload->own, &model->options);
    t->rows = (int64_t)t->shape.batch * t->shape.sequence;
    take_arena(t);
    for (int b = 0; b < t->shape.batch; b++) t->lengths[b] = t->shape.sequence;
    t->sets = (struct nb_row_sets){t->shape.batch, t->shape.sequence, t->lengths, model->options.padding == NB_MASKED,
                                   model->options.norm.by_position};
    model->options.norm.sets = &t->sets;
    nb_parameters_reserve(&model->parameters, t->shape.layers * PARAMETERS_PER_LAYER + PARAMETERS_OUTSIDE);
    if (t->shape.rope_theta > 0)
        nb_rope_init(&t->rope, t->shape.sequence, t->shape.hidden / t->shape.heads, t->shape.rope_theta);
    t->embedding = nb_parameter_add(&model->parameters, "embedding", t->shape.vocabulary, t->shape.hidden, true);
    nb_parameter_draw(t->embedding, model->options.seed,
                      t->shape.deviation > 0 ? t->shape.deviation : 1 / sqrt((double)t->shape.hidden));
    if (init_layers(model, t) != 0) return -1;
    if (has_final_norm(model) && init_final_norm(model, t) != 0) return -1;
    model->activation_bytes = t->kept.bytes;
    each_norm(model, count_kept);
    return 0;
}

void nb_transformer_release(struct nb_model *model) {
    struct transformer *t = model->inside;
    if (!t) return;
    for (int i = 0; t->layers && i < t->shape.layers; i++) {
        nb_attention_release(&t->layers[i].attention);
        nb_sublayer_release(&t->layers[i].sublayers[0]);
        nb_sublayer_release(&t->layers[i].sublayers[1]);
    }
    nb_norm_layer_release(&t->final_norm);
    nb_rope_release(&t->rope);
    nb_arena_release(&t->kept);
    nb_arena_release(&t->shared);
    free(t->layers);
    free(t->tokens);
    free(t->targets);
    free(t->lengths);
    free(t);
    model->inside = NULL;
}

/* ---- forward ---- */

static void take_times(struct nb_model *model, struct nb_norm_layer *norm) {
    model->norm_seconds += norm->seconds;
    model->norm_calls += norm->calls;
    norm->seconds = 0;
    norm->calls = 0;
}

static bool has_sinusoids(const struct transformer *t) { return t->shape.rope_theta == 0; }
static float embedding_factor(const struct transformer *t) {
    return has_sinusoids(t) ? sqrtf((float)t->shape.hidden) : 1;
}

static void embed(struct nb_model *model, struct transformer *t) {
    const int64_t n = t->rows * t->shape.hidden;
    nb_embedding_forward(t->embedded, nb_parameter_used(t->embedding), t->tokens, t->rows, t->shape.hidden,
                         embedding_factor(t));
    if (has_sinusoids(t)) nb_positions_add(t->embedded, t->rows, t->shape.sequence, t->shape.hidden);
    nb_round_tensor(t->embedded, n, model->options.dtype);
    nb_model_tell(model, "embedding", "", t->embedded, n);
}

static double head_loss(struct nb_model *model, struct transformer *t, bool training) {
    const int64_t n = t->rows * t->shape.hidden, n_logits = t->rows * t->shape.vocabulary;
    t->final = t->stream;
    if (has_final_norm(model)) t->final = nb_norm_pass(&t->final_norm, t->final_normed, t->stream, t->rows, training);
    if (t->final == t->final_normed) nb_round_tensor(t->final_normed, n, model->options.dtype);
    nb_model_tell(model, "final", "", t->final, n);
    nb_linear_forward(t->logits, t->final, nb_parameter_used(t->embedding), NULL, t->rows, t->shape.hidden,
                      t->shape.vocabulary);
    nb_round_tensor(t->logits, n_logits, model->options.dtype);
    nb_model_tell(model, "logits", "", t->logits, n_logits);
    return nb_cross_entropy_forward(t->logits, t->logits, t->targets, t->rows, t->shape.vocabulary);
}

static double run(struct nb_model *model, bool training) {
    struct transformer *t = model->inside;
    embed(model, t);
    t->stream = t->embedded;
    for (int i = 0; i < t->shape.layers; i++)
        for (int part = 0; part < 2; part++)
            t->stream = nb_sublayer_forward(&t->layers[i].sublayers[part], t->stream, training);
    const double loss = head_loss(model, t, training);
    each_norm(model, take_times);
    return loss;
}

/* From a quarter of the arena to all of it; two are whole, so that every position has statistics. The same for every arm. */
static int32_t draw_length(int64_t sequence, int64_t number, int64_t in_batch) {
    const int64_t least = sequence < 4 ? 1 : sequence / 4;
    if (in_batch < 2) return (int32_t)sequence;
    return (int32_t)(least + (int64_t)(nb_random_bits(nb_random_stream(0, LENGTH_STREAM), (uint64_t)number) %
                                       (uint64_t)(sequence - least + 1)));
}

/* Padding is byte 0, and what comes behind it no target. */
static void pad(struct transformer *t, int64_t in_batch, int32_t length) {
    const int64_t sequence = t->shape.sequence, from = in_batch * sequence;
    t->lengths[in_batch] = length;
    for (int64_t i = length; i < sequence; i++) {
        t->tokens[from + i] = 0;
        t->targets[from + i] = -1;
    }
}

double nb_transformer_forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training) {
    struct transformer *t = model->inside;
    const int64_t length = t->shape.sequence;
    for (int64_t b = 0; b < t->shape.batch; b++) {
        const int64_t number = batch * t->shape.batch + b;
        nb_text_sequence(text, (uint64_t)number, length, t->tokens + b * length, t->targets + b * length);
        if (model->options.padding != NB_NOT_PADDED) pad(t, b, draw_length(length, number, b));
    }
    return run(model, training);
}

double nb_transformer_loss(struct nb_model *model, const int32_t *tokens, const int32_t *targets, bool training) {
    struct transformer *t = model->inside;
    memcpy(t->tokens, tokens, (size_t)t->rows * sizeof *tokens);
    memcpy(t->targets, targets, (size_t)t->rows * sizeof *targets);
    return run(model, training);
}

/* ---- backward ---- */

static void head_backward(struct nb_model *model, struct transformer *t, double scale) {
    const int64_t n = t->rows * t->shape.hidden, n_logits = t->rows * t->shape.vocabulary;
    const enum nb_dtype dtype = model->options.dtype;
    nb_cross_entropy_backward(t->logits, t->logits, t->targets, t->rows, t->shape.vocabulary, scale);
    nb_round_tensor(t->logits, n_logits, dtype);
    nb_model_tell_gradient(model, "logits", "", t->logits, n_logits);
    float *dfinal = has_final_norm(model) ? t->arena : t->d;
    nb_linear_backward(dfinal, t->embedding->gradient, NULL, t->logits, t->final, nb_parameter_used(t->embedding),
                       t->rows, t->shape.hidden, t->shape.vocabulary);
    nb_round_tensor(dfinal, n, dtype);
    nb_model_tell_gradient(model, "final", "", dfinal, n);
    if (dfinal == t->d) return;
    nb_norm_backward(&t->final_norm, t->d, dfinal, t->stream, t->rows); /* without a norm a copy, once a step */
    nb_round_tensor(t->d, n, dtype);
}

void nb_transformer_backward(struct nb_model *model, double scale) {
    struct transformer *t = model->inside;
    head_backward(model, t, scale);
    for (int i = t->shape.layers - 1; i >= 0; i--)
        for (int part = 1; part >= 0; part--)
            nb_sublayer_backward(&t->layers[i].sublayers[part], t->d, t->arena, t->other_arena);
    nb_model_tell_gradient(model, "embedding", "", t->d, t->rows * t->shape.hidden);
    nb_embedding_backward(t->embedding->gradient, t->d, t->tokens, t->rows, t->shape.hidden, embedding_factor(t));
    each_norm(model, take_times);
}
