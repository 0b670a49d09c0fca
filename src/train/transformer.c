// SPDX-License-Identifier: Apache-2.0
/* The transformer: its sizes, from tokens to loss and back, and the published configurations. */
#include "src/train/transformer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/random.h"
#include "src/train/data.h"
#include "src/train/layers.h"
#include "src/train/matrix.h"
#include "src/train/norm_layer.h"
#include "src/train/tensor.h"
#include "src/train/transformer_layers.h"
#include "src/train/workload.h"

static const double PARTIAL = 0.0625; /* Zhang & Sennrich 2019: 6.25 % of the elements */
enum { LAYERS_MOST = 256, WIDTH_MOST = 16384, BATCH_MOST = 65536, SEQUENCE_MOST = 32768 };

static bool outside(double v, double least, double most) { return v < least || v > most; }

/* A causal mask keeps real tokens from the padding behind them, so that a norm is the only way from one to the other. */
static const char *padding_wrong(const struct nb_transformer_shape *shape, const struct nb_train_options *o) {
    const bool in_sets = o->norm.by_position || o->padding == NB_MASKED;
    if (in_sets && o->norm.kind != NB_NORM_BATCHNORM)
        return "masked and by_position are said of BatchNorm's statistics";
    if (in_sets && shape->qk_norm) return "masked and by_position are of models without QK-norm";
    if (o->padding != NB_NOT_PADDED && !o->causal) return "padded sequences need a causal mask";
    if ((in_sets || o->padding != NB_NOT_PADDED) && o->batch < 2) return "padded sequences need a batch of 2 or more";
    return NULL;
}

static const char *transformer_complete(const void *own, struct nb_train_options *o) {
    const struct nb_transformer_shape *shape = own;
    nb_train_options_fill(o, &(struct nb_train_options){.layers = shape->layers,
                                                        .batch = shape->batch,
                                                        .sequence = shape->sequence,
                                                        .hidden = shape->hidden,
                                                        .learning_rate = shape->learning_rate,
                                                        .norm = {.eps = shape->eps, .partial = PARTIAL}});
    if (outside(o->layers, 1, LAYERS_MOST)) return "layers must be 1 to 256";
    if (outside(o->batch, 1, BATCH_MOST)) return "batch must be 1 to 65536";
    if (outside(o->sequence, 1, SEQUENCE_MOST)) return "sequence must be 1 to 32768";
    if (outside((double)o->batch * o->sequence, 2, 1 << 20)) return "batch times sequence must be 2 to 1048576 tokens";
    if (outside(o->hidden, 1, WIDTH_MOST) || o->hidden % (2 * shape->heads) != 0)
        return "hidden must be at most 16384 and a multiple of twice the heads";
    const char *refused = nb_train_options_refused(o, true);
    return refused ? refused : padding_wrong(shape, o);
}

/* The sizes that complete options give: layers, batch and sequence theirs, and where hidden is another, the feed-forward width in
 * proportion (a multiple of 8). */
static struct nb_transformer_shape transformer_resolve(const struct nb_transformer_shape *shape,
                                                       const struct nb_train_options *o) {
    struct nb_transformer_shape s = *shape;
    s.hidden = o->hidden;
    s.layers = o->layers;
    s.batch = o->batch;
    s.sequence = o->sequence;
    if (s.hidden != shape->hidden) s.ffn = (int)((int64_t)shape->ffn * s.hidden / shape->hidden + 7) / 8 * 8;
    return s;
}

/* Of a step: products and attention, 2 for a multiply and add, backward counted as two forwards. */
static double transformer_flops(const void *shape, const struct nb_train_options *options) {
    const struct nb_transformer_shape s = transformer_resolve(shape, options);
    const double rows = (double)s.batch * s.sequence, hidden = s.hidden, kv = hidden * s.kv_heads / s.heads;
    const double projections = 2 * hidden * hidden + 2 * hidden * kv;
    const double feed_forward = (s.swiglu ? 3.0 : 2.0) * hidden * s.ffn;
    const double attention = 2 * s.sequence * hidden; /* scores and mixture; masked products are made, too */
    return 3 * 2 * rows * (s.layers * (projections + feed_forward + attention) + hidden * s.vocabulary);
}

/* ---- the model, from tokens to loss and back ---- */

enum { LENGTH_STREAM = 0x4c454e };

struct layer {
    struct nb_attention attention;
    struct nb_feed_forward feed_forward;
    struct nb_sublayer sublayers[2];
};

struct transformer {
    struct nb_transformer_shape shape;
    int64_t rows;
    struct nb_rope rope;
    struct layer *layers;
    struct nb_norm_layer final_norm; /* pre-norm alone */
    struct nb_parameter *embedding;
    int32_t *tokens, *targets, *lengths;     /* lengths: of the sequences of the batch under way */
    struct nb_row_sets sets;                 /* for BatchNorm */
    float *embedded, *final_normed, *logits; /* logits become probabilities, then gradients */
    const float *stream, *final;             /* out of the last layer; what the head sees */
    float *d, *buffer, *other_buffer;
};

/* ---- set-up ---- */

static void init_layers(struct nb_model *model, struct transformer *t) {
    struct nb_attention_buffers attention = {0};
    struct nb_feed_forward_buffers feed_forward = {0};
    const struct nb_rope *rope = t->shape.rope_theta > 0 ? &t->rope : NULL;
    const int64_t width = t->shape.hidden;
    t->layers = nb_arena_take_bytes(&model->passing, (size_t)t->shape.layers * sizeof *t->layers);
    for (int i = 0; i < t->shape.layers; i++) {
        char name[16];
        struct layer *l = &t->layers[i];
        snprintf(name, sizeof name, "layer%d", i);
        const struct nb_place first = nb_place_of(name, "attention"), second = nb_place_of(name, "feed_forward");
        nb_attention_init(&l->attention, first.text, model, &t->shape, &attention, rope);
        nb_feed_forward_init(&l->feed_forward, second.text, model, &t->shape, &feed_forward);
        l->sublayers[0].attention = &l->attention;
        l->sublayers[1].feed_forward = &l->feed_forward;
        nb_sublayer_init(&l->sublayers[0], model, first, nb_place_of(name, "input_layernorm"), t->rows, width);
        nb_sublayer_init(&l->sublayers[1], model, second, nb_place_of(name, "post_attention_layernorm"), t->rows,
                         width);
    }
}

static void allocate(struct nb_model *model, struct transformer *t) {
    const int64_t n = t->rows * t->shape.hidden;
    t->tokens = nb_arena_take_bytes(&model->passing, (size_t)t->rows * sizeof *t->tokens);
    t->targets = nb_arena_take_bytes(&model->passing, (size_t)t->rows * sizeof *t->targets);
    t->lengths = nb_arena_take_bytes(&model->passing, (size_t)t->shape.batch * sizeof *t->lengths);
    t->embedded = nb_arena_take(&model->kept, n);
    t->logits = nb_arena_take(&model->kept, t->rows * t->shape.vocabulary);
    t->d = nb_arena_take(&model->passing, n);
    t->buffer = nb_arena_take(&model->passing, n);
    t->other_buffer = nb_arena_take(&model->passing, n);
}

static bool has_final_norm(const struct nb_model *model) {
    return model->options.place == NB_PRE_NORM && model->options.norm.kind != NB_NORM_NONE;
}

static void transformer_create(struct nb_model *model) {
    struct transformer *t = nb_arena_take_bytes(&model->passing, sizeof *t);
    model->inside = t;
    t->shape = transformer_resolve(model->workload->own, &model->options);
    t->rows = (int64_t)t->shape.batch * t->shape.sequence;
    allocate(model, t);
    for (int b = 0; b < t->shape.batch; b++) t->lengths[b] = t->shape.sequence;
    t->sets = (struct nb_row_sets){t->shape.batch, t->shape.sequence, t->lengths, model->options.padding == NB_MASKED,
                                   model->options.norm.by_position};
    model->options.norm.sets = &t->sets;
    if (t->shape.rope_theta > 0)
        nb_rope_init(&t->rope, &model->passing, t->shape.sequence, t->shape.hidden / t->shape.heads,
                     t->shape.rope_theta);
    t->embedding = nb_parameter_matrix(&model->parameters, "embedding", "", t->shape.vocabulary, t->shape.hidden,
                                       model->options.seed,
                                       t->shape.deviation > 0 ? t->shape.deviation : 1 / sqrt((double)t->shape.hidden));
    init_layers(model, t);
    if (!has_final_norm(model)) return;
    t->final_normed = nb_arena_take(&model->kept, t->rows * t->shape.hidden);
    nb_norm_layer_init(&t->final_norm, model, "norm", t->rows, t->shape.hidden);
}

/* ---- forward ---- */

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
    nb_model_observe(model, NB_ACTIVATION, "embedding", "", t->embedded, n);
}

static double head_loss(struct nb_model *model, struct transformer *t, bool training) {
    const int64_t n = t->rows * t->shape.hidden, n_logits = t->rows * t->shape.vocabulary;
    t->final = nb_norm_forward(&t->final_norm, t->final_normed, t->stream, 0, t->rows, training);
    nb_model_observe(model, NB_ACTIVATION, "final", "", t->final, n);
    nb_linear_forward(t->logits, t->final, nb_parameter_used(t->embedding), NULL, t->rows, t->shape.hidden,
                      t->shape.vocabulary);
    nb_round_tensor(t->logits, n_logits, model->options.dtype);
    nb_model_observe(model, NB_ACTIVATION, "logits", "", t->logits, n_logits);
    return nb_cross_entropy_forward(t->logits, t->logits, t->targets, t->rows, t->shape.vocabulary);
}

static double run(struct nb_model *model, bool training) {
    struct transformer *t = model->inside;
    embed(model, t);
    t->stream = t->embedded;
    for (int i = 0; i < t->shape.layers; i++)
        for (int part = 0; part < 2; part++)
            t->stream = nb_sublayer_forward(&t->layers[i].sublayers[part], t->stream, training);
    return head_loss(model, t, training);
}

/* From a quarter of the sequence to all of it; two are whole, so that every position has statistics. The same for every arm. */
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

static double transformer_forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training) {
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
    nb_model_observe(model, NB_GRADIENT, "logits", "", t->logits, n_logits);
    float *dfinal = has_final_norm(model) ? t->buffer : t->d;
    nb_linear_backward(dfinal, t->embedding->gradient, NULL, t->logits, t->final, nb_parameter_used(t->embedding),
                       t->rows, t->shape.hidden, t->shape.vocabulary);
    nb_round_tensor(dfinal, n, dtype);
    nb_model_observe(model, NB_GRADIENT, "final", "", dfinal, n);
    nb_norm_backward(&t->final_norm, t->d, dfinal, t->stream, 0, t->rows);
}

static void transformer_backward(struct nb_model *model, double scale) {
    struct transformer *t = model->inside;
    head_backward(model, t, scale);
    for (int i = t->shape.layers - 1; i >= 0; i--)
        for (int part = 1; part >= 0; part--)
            nb_sublayer_backward(&t->layers[i].sublayers[part], t->d, t->buffer, t->other_buffer);
    nb_model_observe(model, NB_GRADIENT, "embedding", "", t->d, t->rows * t->shape.hidden);
    nb_embedding_backward(t->embedding->gradient, t->d, t->tokens, t->rows, t->shape.hidden, embedding_factor(t));
}

/* Configurations as published; batch and sequence are cut to what two cores do in a second or two.
 *
 * MiniMind (jingyaogong/minimind: model configurations of 2025-04-26 and 2026-04-01): AdamW with PyTorch's beta and decay, rate 5e-4;
 * first values of deviation 0.02 (GPT-2, and initializer_range of the transformers library). Its byte pair vocabulary of 6400 is
 * kept as the width of the head, the bytes of the text are its first 256 tokens.
 * Transformer base (Vaswani et al. 2017, the RMSNorm paper's table 4): the encoder's layers alone, without a decoder, with the shared
 * vocabulary of 32000 of that experiment; Adam with beta2 0.98 and eps 1e-9. */

static const struct nb_transformer_shape minimind2_small = {.hidden = 512,
                                                            .layers = 8,
                                                            .heads = 8,
                                                            .kv_heads = 2,
                                                            .ffn = 1408,
                                                            .vocabulary = 6400,
                                                            .batch = 4,
                                                            .sequence = 128,
                                                            .swiglu = true,
                                                            .rope_theta = 1e6,
                                                            .eps = 1e-5,
                                                            .deviation = 0.02,
                                                            .learning_rate = 5e-4,
                                                            .beta2 = 0.999,
                                                            .adam_eps = 1e-8,
                                                            .decay = 0.01};
static const struct nb_transformer_shape minimind_3 = {.hidden = 768,
                                                       .layers = 8,
                                                       .heads = 8,
                                                       .kv_heads = 4,
                                                       .ffn = 2432,
                                                       .vocabulary = 6400,
                                                       .batch = 2,
                                                       .sequence = 128,
                                                       .swiglu = true,
                                                       .qk_norm = true,
                                                       .rope_theta = 1e6,
                                                       .eps = 1e-6,
                                                       .deviation = 0.02,
                                                       .learning_rate = 5e-4,
                                                       .beta2 = 0.999,
                                                       .adam_eps = 1e-8,
                                                       .decay = 0.01};
static const struct nb_transformer_shape transformer_base = {.hidden = 512,
                                                             .layers = 6,
                                                             .heads = 8,
                                                             .kv_heads = 8,
                                                             .ffn = 2048,
                                                             .vocabulary = 32000,
                                                             .batch = 4,
                                                             .sequence = 64,
                                                             .eps = 1e-8,
                                                             .learning_rate = 1e-4,
                                                             .beta2 = 0.98,
                                                             .adam_eps = 1e-9};
static const struct nb_transformer_shape tiny = {.hidden = 64,
                                                 .layers = 4,
                                                 .heads = 4,
                                                 .kv_heads = 2,
                                                 .ffn = 176,
                                                 .vocabulary = 256,
                                                 .batch = 4,
                                                 .sequence = 64,
                                                 .swiglu = true,
                                                 .rope_theta = 1e6,
                                                 .eps = 1e-5,
                                                 .deviation = 0.02,
                                                 .learning_rate = 1e-3,
                                                 .beta2 = 0.999,
                                                 .adam_eps = 1e-8,
                                                 .decay = 0.01};

static struct nb_optimizer transformer_optimizer(const void *own, const struct nb_train_options *o) {
    const struct nb_transformer_shape *s = own;
    return (struct nb_optimizer){.kind = NB_ADAMW,
                                 .learning_rate = o->learning_rate,
                                 .beta1 = 0.9,
                                 .beta2 = s->beta2,
                                 .eps = s->adam_eps,
                                 .decay = s->decay};
}

const struct nb_model_family nb_transformer_family = {.complete = transformer_complete,
                                                      .create = transformer_create,
                                                      .forward = transformer_forward,
                                                      .backward = transformer_backward,
                                                      .optimizer = transformer_optimizer,
                                                      .flops = transformer_flops};

const struct nb_workload nb_workload_minimind2_small = {
    .name = "minimind2-small",
    .summary =
        "MiniMind2-Small: 8 layers of 512, 8 query heads on 2 of keys and values, SwiGLU of 1408, vocabulary 6400",
    .family = &nb_transformer_family,
    .own = &minimind2_small};
const struct nb_workload nb_workload_minimind_3 = {
    .name = "minimind-3",
    .summary = "minimind-3: 8 layers of 768, 8 query heads on 4, QK-norm over 96, SwiGLU of 2432, vocabulary 6400",
    .family = &nb_transformer_family,
    .own = &minimind_3};
const struct nb_workload nb_workload_transformer_base = {
    .name = "transformer-base",
    .summary = "Transformer base, its encoder alone: 6 layers of 512, 8 heads, ReLU of 2048, vocabulary 32000",
    .family = &nb_transformer_family,
    .own = &transformer_base};
const struct nb_workload nb_workload_tiny_transformer = {
    .name = "tiny-transformer",
    .summary = "MiniMind's layers at a width of 64: 4 layers, 4 query heads on 2, SwiGLU of 176, vocabulary 256",
    .family = &nb_transformer_family,
    .own = &tiny};
