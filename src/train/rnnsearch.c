// SPDX-License-Identifier: Apache-2.0
/* Encoder, embeddings and data around the decoder. Tensors are steps x batch x width. */
#include "src/train/rnnsearch.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/train/embedding.h"
#include "src/train/halves.h"
#include "src/train/loss.h"
#include "src/train/precision.h"
#include "src/train/recurrent_options.h"
#include "src/train/rnnsearch_decoder.h"
#include "src/train/text.h"

enum { VOCABULARY = 256, FORWARDS = 0, BACKWARDS = 1 };
static const double EMBEDDING_DEVIATION = 0.1;

struct rnnsearch {
    struct nb_model_arenas arenas;
    int64_t n_steps, batch, hidden, embedding;
    struct nb_parameter *source_table, *target_table;
    struct nb_gru encoder[2];
    struct nb_decoder decoder;
    int32_t *sources, *words, *targets; /* steps x batch */
    float *source, *word;               /* embedded */
    float *states[2], *memory;
    float *dsource, *dword, *dstates[2], *dmemory;
    float *probabilities;
};

/* ---- shapes: the paper's embedding is half as wide as the state ---- */

static struct nb_gru_shape encoder_shape(const struct nb_train_options *o, bool backwards) {
    return (struct nb_gru_shape){
        .n_steps = o->sequence, .batch = o->batch, .in = o->hidden / 2, .hidden = o->hidden, .backwards = backwards};
}

static struct nb_decoder_shape decoder_shape(const struct nb_train_options *o) {
    return (struct nb_decoder_shape){.n_steps = o->sequence,
                                     .n_sources = o->sequence,
                                     .batch = o->batch,
                                     .embedding = o->hidden / 2,
                                     .hidden = o->hidden,
                                     .memory = 2 * (int64_t)o->hidden,
                                     .vocabulary = VOCABULARY};
}

static double flops(const void *own, const struct nb_train_options *o) {
    (void)own;
    const struct nb_gru_shape encoder = encoder_shape(o, false);
    const struct nb_decoder_shape decoder = decoder_shape(o);
    return 2 * nb_gru_flops(&encoder) + nb_decoder_flops(&decoder);
}

/* ---- set-up ---- */

static void make_arena(struct rnnsearch *s) {
    struct nb_arena *kept = &s->arenas.kept, *passing = &s->arenas.passing;
    const int64_t rows = s->n_steps * s->batch, n_states = (rows + s->batch) * s->hidden;
    s->source = nb_arena_take(kept, rows * s->embedding);
    s->word = nb_arena_take(kept, rows * s->embedding);
    s->memory = nb_arena_take(kept, rows * 2 * s->hidden);
    s->probabilities = nb_arena_take(kept, rows * VOCABULARY);
    s->dsource = nb_arena_take(passing, rows * s->embedding);
    s->dword = nb_arena_take(passing, rows * s->embedding);
    s->dmemory = nb_arena_take(passing, rows * 2 * s->hidden);
    for (int d = 0; d < 2; d++) {
        s->states[d] = nb_arena_take(kept, n_states);
        s->dstates[d] = nb_arena_take(passing, n_states);
    }
    s->sources = nb_alloc((unsigned long long)rows, sizeof *s->sources);
    s->words = nb_alloc((unsigned long long)rows, sizeof *s->words);
    s->targets = nb_alloc((unsigned long long)rows, sizeof *s->targets);
}

static struct nb_parameter *add_table(struct nb_model *model, const char *name, int64_t width) {
    struct nb_parameter *table = nb_parameter_add(&model->parameters, name, VOCABULARY, width, true);
    nb_parameter_draw(table, model->options.seed, EMBEDDING_DEVIATION);
    return table;
}

static int create(struct nb_model *model) {
    struct rnnsearch *s = nb_alloc(1, sizeof *s);
    const struct nb_train_options *o = &model->options;
    model->inside = s;
    *s = (struct rnnsearch){.n_steps = o->sequence, .batch = o->batch, .hidden = o->hidden, .embedding = o->hidden / 2};
    make_arena(s);
    nb_parameters_reserve(&model->parameters, 2 + 2 * NB_GRU_PARAMETERS + NB_DECODER_PARAMETERS);
    s->source_table = add_table(model, "source", s->embedding);
    s->target_table = add_table(model, "target", s->embedding);
    const struct nb_gru_shape forwards = encoder_shape(o, false), backwards = encoder_shape(o, true);
    const struct nb_decoder_shape decoder = decoder_shape(o);
    if (nb_gru_init(&s->encoder[FORWARDS], model, &s->arenas, "encoder.forwards", &forwards) != 0) return -1;
    if (nb_gru_init(&s->encoder[BACKWARDS], model, &s->arenas, "encoder.backwards", &backwards) != 0) return -1;
    if (nb_decoder_init(&s->decoder, model, &s->arenas, "decoder", &decoder) != 0) return -1;
    model->activation_bytes += s->arenas.kept.bytes;
    return 0;
}

static void release(struct nb_model *model) {
    struct rnnsearch *s = model->inside;
    if (!s) return;
    nb_gru_release(&s->encoder[FORWARDS]);
    nb_gru_release(&s->encoder[BACKWARDS]);
    nb_decoder_release(&s->decoder);
    nb_arena_release(&s->arenas.kept);
    nb_arena_release(&s->arenas.passing);
    free(s->sources);
    free(s->words);
    free(s->targets);
    free(s);
    model->inside = NULL;
}

/* ---- forward ---- */

/* Sample b: a piece, and the piece behind it; the decoder's first word is the last byte of the first piece. */
static void read_batch(struct rnnsearch *s, const struct nb_text *text, int64_t batch) {
    const int64_t length = 2 * s->n_steps - 1;
    int32_t *tokens = nb_alloc((unsigned long long)(2 * length), sizeof *tokens), *next = tokens + length;
    for (int64_t b = 0; b < s->batch; b++) {
        nb_text_sequence(text, (uint64_t)(batch * s->batch + b), length, tokens, next);
        for (int64_t t = 0; t < s->n_steps; t++) {
            s->sources[t * s->batch + b] = tokens[t];
            s->words[t * s->batch + b] = tokens[s->n_steps - 1 + t];
            s->targets[t * s->batch + b] = next[s->n_steps - 1 + t];
        }
    }
    free(tokens);
}

static void embed(struct nb_model *model, float *y, const struct nb_parameter *table, const int32_t *tokens) {
    const struct rnnsearch *s = model->inside;
    nb_embedding_forward(y, nb_parameter_used(table), tokens, s->n_steps * s->batch, s->embedding, 1);
    nb_round_tensor(y, s->n_steps * s->batch * s->embedding, model->options.dtype);
}

static void tell(struct nb_model *model) {
    const struct rnnsearch *s = model->inside;
    if (!model->observer) return;
    nb_gru_tell(&s->encoder[FORWARDS]);
    nb_gru_tell(&s->encoder[BACKWARDS]);
    nb_decoder_tell(&s->decoder);
}

static double forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training) {
    struct rnnsearch *s = model->inside;
    const int64_t rows = s->n_steps * s->batch;
    (void)training;
    read_batch(s, text, batch);
    embed(model, s->source, s->source_table, s->sources);
    embed(model, s->word, s->target_table, s->words);
    for (int d = 0; d < 2; d++) nb_gru_forward(&s->encoder[d], s->states[d], s->source);
    nb_halves_join(s->memory, nb_gru_outputs(&s->encoder[FORWARDS], s->states[FORWARDS]),
                   nb_gru_outputs(&s->encoder[BACKWARDS], s->states[BACKWARDS]), rows, s->hidden);
    const float *logits = nb_decoder_forward(&s->decoder, s->word, s->memory);
    tell(model);
    nb_model_tell(model, "logits", "", logits, rows * VOCABULARY);
    return nb_cross_entropy_forward(s->probabilities, logits, s->targets, rows, VOCABULARY);
}

/* ---- backward ---- */

static void tell_gradients(struct nb_model *model) {
    const struct rnnsearch *s = model->inside;
    if (!model->observer) return;
    nb_gru_tell_gradients(&s->encoder[FORWARDS]);
    nb_gru_tell_gradients(&s->encoder[BACKWARDS]);
    nb_decoder_tell_gradients(&s->decoder);
}

static void encoder_backward(struct nb_model *model) {
    struct rnnsearch *s = model->inside;
    const int64_t rows = s->n_steps * s->batch;
    for (int d = 0; d < 2; d++) memset(s->dstates[d], 0, (size_t)((rows + s->batch) * s->hidden) * sizeof(float));
    nb_halves_split(nb_gru_outputs(&s->encoder[FORWARDS], s->dstates[FORWARDS]),
                    nb_gru_outputs(&s->encoder[BACKWARDS], s->dstates[BACKWARDS]), s->dmemory, rows, s->hidden);
    for (int d = 0; d < 2; d++) {
        nb_gru_backward(&s->encoder[d], s->dsource, s->dstates[d], s->states[d], s->source);
        nb_embedding_backward(s->source_table->gradient, s->dsource, s->sources, rows, s->embedding, 1);
    }
}

static void backward(struct nb_model *model, double scale) {
    struct rnnsearch *s = model->inside;
    const int64_t rows = s->n_steps * s->batch;
    float *dlogits = nb_decoder_dlogits(&s->decoder);
    nb_cross_entropy_backward(dlogits, s->probabilities, s->targets, rows, VOCABULARY, scale);
    nb_model_tell_gradient(model, "logits", "", dlogits, rows * VOCABULARY);
    nb_decoder_backward(&s->decoder, s->dword, s->dmemory, s->word, s->memory);
    nb_embedding_backward(s->target_table->gradient, s->dword, s->words, rows, s->embedding, 1);
    encoder_backward(model);
    tell_gradients(model);
}

/* ---- the workloads ---- */

static const struct nb_recurrent_defaults full = {.hidden = 1024, .batch = 80, .sequence = 8, .learning_rate = 1e-4};
static const struct nb_recurrent_defaults tiny = {.hidden = 16, .batch = 4, .sequence = 5, .learning_rate = 3e-3};

const struct nb_workload nb_workload_rnnsearch = {
    .name = "rnnsearch",
    .summary =
        "RNNSearch: bidirectional GRU of 1024, decoder with additive attention, embedding 512, batch 80; pieces of 8 "
        "bytes for sentences of up to 80 word pieces",
    .complete = nb_recurrent_complete,
    .create = create,
    .forward = forward,
    .backward = backward,
    .optimizer = nb_recurrent_optimizer,
    .release = release,
    .flops = flops,
    .own = &full};
const struct nb_workload nb_workload_tiny_rnnsearch = {
    .name = "tiny-rnnsearch",
    .summary = "RNNSearch at a width of 16: embedding 8, batch 4, pieces of 5 bytes",
    .complete = nb_recurrent_complete,
    .create = create,
    .forward = forward,
    .backward = backward,
    .optimizer = nb_recurrent_optimizer,
    .release = release,
    .flops = flops,
    .own = &tiny};
