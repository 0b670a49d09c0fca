// SPDX-License-Identifier: Apache-2.0
/* RNNSearch (Bahdanau et al. 2015) as in tables 2, 3 and 5 of Zhang & Sennrich 2019: a bidirectional gated recurrent unit reads a piece of
 * text, a decoder with attention predicts the piece that follows, byte by byte. Without masks: all pieces are equally long. The
 * bytes are the first 256 of a vocabulary as large as the paper's 32000 word pieces.
 *
 * Observers are given "encoder.forwards.*", "encoder.backwards.*", "decoder.first.*", "decoder.second.*" (x_gates, x_candidate, h_gates,
 * h_candidate: product and result; the results of decoder.first.h_gates and .h_candidate are what table 5 is about), "decoder.states",
 * "decoder.readout", "logits"; of gradients at the same places. */

/* The decoder of RNNSearch (Bahdanau et al. 2015) as Nematus has it: two gated recurrent units a step with the attention between them,
 * then a readout of state, previous word and context:
 *   s'_t = gru1(word_t, s_t);  c_t = attention(s'_t, memory);  s_{t+1} = gru2(c_t, s'_t)
 *   o_t  = tanh(norm(s_{t+1} Ws) + norm(word_t We) + norm(c_t Wc));  logits = o_t Wo + b;   s_0 = tanh(norm(mean(memory) Wi)) */
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/train/data.h"
#include "src/train/layers.h"
#include "src/train/recurrent.h"
#include "src/train/tensor.h"
#include "src/train/workload.h"

struct decoder_shape {
    int64_t n_steps, n_sources, batch;
    int64_t embedding, hidden, memory, vocabulary;
};

struct decoder {
    struct decoder_shape shape;
    struct nb_model *model; /* borrowed */
    struct nb_projection start;
    struct nb_gru first, second;
    struct nb_additive attention;
    struct nb_projection of_state, of_word, of_context, output;
    float *mean, *states, *middles, *contexts, *readout;
    float *dmean, *dstates, *dmiddles, *dcontexts, *dreadout;
};

/* ---- the decoder, with teacher forcing: words are known beforehand, so that all but the two units and the attention is done for all steps at once ---- */

/* ---- shapes ---- */

enum { NORMED = NB_PROJECTION_BIASED | NB_PROJECTION_NORMED };

static struct nb_recurrent_shape gru_shape(const struct decoder_shape *s, int64_t in) {
    return (struct nb_recurrent_shape){.n_steps = s->n_steps, .batch = s->batch, .in = in, .hidden = s->hidden};
}
static struct nb_additive_shape attention_shape(const struct decoder_shape *s) {
    return (struct nb_additive_shape){.n_steps = s->n_steps,
                                      .n_sources = s->n_sources,
                                      .batch = s->batch,
                                      .query = s->hidden,
                                      .memory = s->memory,
                                      .width = s->memory,
                                      .normed = true};
}
static struct nb_projection_shape readout_shape(const struct decoder_shape *s, int64_t in) {
    return (struct nb_projection_shape){s->n_steps, s->batch, in, s->embedding, NORMED};
}
static struct nb_projection_shape output_shape(const struct decoder_shape *s) {
    return (struct nb_projection_shape){s->n_steps, s->batch, s->embedding, s->vocabulary, NB_PROJECTION_BIASED};
}
static struct nb_projection_shape start_shape(const struct decoder_shape *s) {
    return (struct nb_projection_shape){1, s->batch, s->memory, s->hidden, NORMED};
}

static double decoder_flops(const struct decoder_shape *s) {
    const struct nb_recurrent_shape first = gru_shape(s, s->embedding), second = gru_shape(s, s->memory);
    const struct nb_additive_shape attention = attention_shape(s);
    return nb_gru_flops(&first) + nb_gru_flops(&second) + nb_additive_flops(&attention) +
           nb_projection_flops(start_shape(s)) + nb_projection_flops(readout_shape(s, s->hidden)) +
           nb_projection_flops(readout_shape(s, s->embedding)) + nb_projection_flops(readout_shape(s, s->memory)) +
           nb_projection_flops(output_shape(s));
}

/* ---- set-up ---- */

/* Parameters NAME.first, NAME.second, NAME.attention, NAME.start, NAME.of_state, ... */
static void init_parts(struct decoder *d, const char *name) {
    const struct decoder_shape *s = &d->shape;
    const struct nb_recurrent_shape first = gru_shape(s, s->embedding), second = gru_shape(s, s->memory);
    const struct nb_additive_shape attention = attention_shape(s);
    nb_gru_init(&d->first, d->model, name, "first", &first);
    nb_gru_init(&d->second, d->model, name, "second", &second);
    nb_additive_init(&d->attention, d->model, nb_place_of(name, "attention").text, &attention);
    nb_projection_init(&d->start, d->model, name, "start", start_shape(s), NULL);
    nb_projection_init(&d->of_state, d->model, name, "of_state", readout_shape(s, s->hidden), NULL);
    float *sum = d->of_state.gradient; /* of the three addends alike */
    nb_projection_init(&d->of_word, d->model, name, "of_word", readout_shape(s, s->embedding), sum);
    nb_projection_init(&d->of_context, d->model, name, "of_context", readout_shape(s, s->memory), sum);
    nb_projection_init(&d->output, d->model, name, "output", output_shape(s), NULL);
}

static void decoder_init(struct decoder *d, struct nb_model *model, const char *name, const struct decoder_shape *s) {
    *d = (struct decoder){.shape = *s, .model = model};
    const int64_t rows = s->n_steps * s->batch;
    nb_model_take(model, s->batch * s->memory, &d->mean, &d->dmean);
    nb_model_take(model, (rows + s->batch) * s->hidden, &d->states, &d->dstates);
    nb_model_take(model, rows * s->hidden, &d->middles, &d->dmiddles);
    nb_model_take(model, rows * s->memory, &d->contexts, &d->dcontexts);
    nb_model_take(model, rows * s->embedding, &d->readout, &d->dreadout);
    init_parts(d, name);
}

/* ---- forward ---- */

static int64_t state_size(const struct decoder *d) { return d->shape.batch * d->shape.hidden; }
static int64_t context_size(const struct decoder *d) { return d->shape.batch * d->shape.memory; }
static int64_t readout_size(const struct decoder *d) { return d->shape.n_steps * d->shape.batch * d->shape.embedding; }

static void start(struct decoder *d, const float *memory) {
    const int64_t n = context_size(d), n_sources = d->shape.n_sources;
    memset(d->mean, 0, (size_t)n * sizeof *d->mean);
    nb_op(2);
    for (int64_t j = 0; j < n_sources; j++)
        for (int64_t i = 0; i < n; i++) d->mean[i] += memory[j * n + i] / (float)n_sources;
    nb_round_tensor(d->mean, n, d->model->options.dtype);
    memcpy(d->states, nb_projection_forward(&d->start, d->mean, 0, 1), (size_t)state_size(d) * sizeof(float));
    nb_tanh_tensor(d->states, state_size(d));
    nb_round_tensor(d->states, state_size(d), d->model->options.dtype);
}

static const float *read_out(struct decoder *d, const float *words) {
    const int64_t n_steps = d->shape.n_steps, n = readout_size(d);
    const float *of_state = nb_projection_forward(&d->of_state, d->states + state_size(d), 0, n_steps);
    const float *of_word = nb_projection_forward(&d->of_word, words, 0, n_steps);
    const float *of_context = nb_projection_forward(&d->of_context, d->contexts, 0, n_steps);
    nb_op(3);
    for (int64_t i = 0; i < n; i++) d->readout[i] = of_state[i] + of_word[i] + of_context[i];
    nb_tanh_tensor(d->readout, n);
    nb_round_tensor(d->readout, n, d->model->options.dtype);
    return nb_projection_forward(&d->output, d->readout, 0, n_steps);
}

/* words: steps x batch x embedding; memory: sources x batch x width. Returns the logits, steps x batch x vocabulary. */
static const float *decoder_forward(struct decoder *d, const float *words, const float *memory) {
    start(d, memory);
    nb_gru_input(&d->first, words, 0, d->shape.n_steps);
    for (int64_t t = 0; t < d->shape.n_steps; t++) {
        const float *state = d->states + t * state_size(d);
        float *middle = d->middles + t * state_size(d), *context = d->contexts + t * context_size(d);
        nb_gru_step(&d->first, t, middle, state);
        nb_additive_step(&d->attention, t, context, middle, memory);
        nb_gru_input(&d->second, context, t, 1);
        nb_gru_step(&d->second, t, d->states + (t + 1) * state_size(d), middle);
    }
    return read_out(d, words);
}

/* ---- backward ---- */

/* Where the gradient by the logits is written before backward. */
static float *decoder_dlogits(const struct decoder *d) { return nb_projection_gradient(&d->output, 0); }

static void read_out_backward(struct decoder *d, float *dwords, const float *words) {
    const int64_t n_steps = d->shape.n_steps;
    float *dsum = nb_projection_gradient(&d->of_state, 0);
    nb_op(1);
    nb_projection_backward(&d->output, d->dreadout, 0, n_steps, 0);
    nb_projection_finish(&d->output, d->readout);
    for (int64_t i = 0; i < readout_size(d); i++) dsum[i] = d->dreadout[i] * (1 - d->readout[i] * d->readout[i]);
    nb_projection_backward(&d->of_state, d->dstates + state_size(d), 0, n_steps, 0);
    nb_projection_backward(&d->of_word, dwords, 0, n_steps, 0);
    nb_projection_backward(&d->of_context, d->dcontexts, 0, n_steps, 0);
    nb_projection_finish(&d->of_state, d->states + state_size(d));
    nb_projection_finish(&d->of_word, words);
    nb_projection_finish(&d->of_context, d->contexts);
}

static void step_backward(struct decoder *d, int64_t t, float *dmemory, const float *memory) {
    const int64_t n = state_size(d);
    const float *state = d->states + t * n, *middle = d->middles + t * n;
    float *dmiddle = d->dmiddles + t * n, *dcontext = d->dcontexts + t * context_size(d);
    nb_gru_step_backward(&d->second, t, dmiddle, d->dstates + (t + 1) * n, middle);
    nb_gru_input_backward(&d->second, dcontext, t, 1, 1);
    nb_additive_step_backward(&d->attention, t, dmiddle, dmemory, dcontext, memory);
    nb_gru_step_backward(&d->first, t, d->dstates + t * n, dmiddle, state);
}

static void start_backward(struct decoder *d, float *dmemory) {
    const int64_t n = context_size(d);
    float *dbefore = nb_projection_gradient(&d->start, 0);
    nb_op(2);
    for (int64_t i = 0; i < state_size(d); i++) dbefore[i] = d->dstates[i] * (1 - d->states[i] * d->states[i]);
    nb_projection_backward(&d->start, d->dmean, 0, 1, 0);
    nb_projection_finish(&d->start, d->mean);
    for (int64_t j = 0; j < d->shape.n_sources; j++)
        for (int64_t i = 0; i < n; i++) dmemory[j * n + i] += d->dmean[i] / (float)d->shape.n_sources;
}

/* Overwrites dwords and dmemory. */
static void decoder_backward(struct decoder *d, float *dwords, float *dmemory, const float *words,
                             const float *memory) {
    const int64_t n_steps = d->shape.n_steps;
    memset(dmemory, 0, (size_t)(d->shape.n_sources * context_size(d)) * sizeof *dmemory);
    memset(d->dstates, 0, (size_t)state_size(d) * sizeof *d->dstates);
    memset(d->dmiddles, 0, (size_t)(n_steps * state_size(d)) * sizeof *d->dmiddles);
    read_out_backward(d, dwords, words);
    for (int64_t t = n_steps - 1; t >= 0; t--) step_backward(d, t, dmemory, memory);
    nb_gru_input_backward(&d->first, dwords, 0, n_steps, 1);
    nb_gru_finish(&d->first, words, d->states);
    nb_gru_finish(&d->second, d->contexts, d->middles);
    nb_additive_finish(&d->attention, dmemory, memory, d->middles);
    start_backward(d, dmemory);
}

/* ---- observers ---- */

static void decoder_observe(const struct decoder *d, enum nb_observed what) {
    const bool gradient = what == NB_GRADIENT;
    nb_gru_observe(&d->first, what);
    nb_gru_observe(&d->second, what);
    nb_model_observe(d->model, what, "decoder", "states", gradient ? d->dstates : d->states,
                     (d->shape.n_steps + 1) * state_size(d));
    nb_model_observe(d->model, what, "decoder", "readout", gradient ? d->dreadout : d->readout, readout_size(d));
}

/* ---- the model: encoder, embeddings and data around the decoder; tensors are steps x batch x width ---- */

enum { FORWARDS = 0, BACKWARDS = 1 };
static const double EMBEDDING_DEVIATION = 0.1;

struct rnnsearch {
    int64_t n_steps, batch, hidden, embedding, vocabulary;
    struct nb_parameter *source_table, *target_table;
    struct nb_gru encoder[2];
    struct decoder decoder;
    int32_t *sources, *words, *targets; /* steps x batch */
    float *source, *word;               /* embedded */
    float *states[2], *memory;
    float *dsource, *dword, *dstates[2], *dmemory;
    float *probabilities;
};

/* ---- shapes: the paper's embedding is half as wide as the state, and at its 1024 the vocabulary 32000; bytes are the first 256 of it ---- */

static int64_t vocabulary_of(const struct nb_train_options *o) {
    const int64_t n = (int64_t)o->hidden * 125 / 4;
    return n < 256 ? 256 : n;
}

static struct nb_recurrent_shape encoder_shape(const struct nb_train_options *o, bool backwards) {
    return (struct nb_recurrent_shape){
        .n_steps = o->sequence, .batch = o->batch, .in = o->hidden / 2, .hidden = o->hidden, .backwards = backwards};
}

static struct decoder_shape decoder_shape(const struct nb_train_options *o) {
    return (struct decoder_shape){.n_steps = o->sequence,
                                  .n_sources = o->sequence,
                                  .batch = o->batch,
                                  .embedding = o->hidden / 2,
                                  .hidden = o->hidden,
                                  .memory = 2 * (int64_t)o->hidden,
                                  .vocabulary = vocabulary_of(o)};
}

static double rnnsearch_flops(const void *own, const struct nb_train_options *o) {
    (void)own;
    const struct nb_recurrent_shape encoder = encoder_shape(o, false);
    const struct decoder_shape decoder = decoder_shape(o);
    return 2 * nb_gru_flops(&encoder) + decoder_flops(&decoder);
}

/* ---- set-up ---- */

static void allocate(struct nb_model *model, struct rnnsearch *s) {
    const int64_t rows = s->n_steps * s->batch;
    nb_model_take(model, rows * s->embedding, &s->source, &s->dsource);
    nb_model_take(model, rows * s->embedding, &s->word, &s->dword);
    nb_model_take(model, rows * 2 * s->hidden, &s->memory, &s->dmemory);
    for (int d = 0; d < 2; d++) nb_model_take(model, (rows + s->batch) * s->hidden, &s->states[d], &s->dstates[d]);
    s->probabilities = nb_arena_take(&model->kept, rows * s->vocabulary);
    s->sources = nb_arena_take_bytes(&model->passing, 3 * (size_t)rows * sizeof *s->sources);
    s->words = s->sources + rows;
    s->targets = s->words + rows;
}

static void rnnsearch_create(struct nb_model *model) {
    struct rnnsearch *s = nb_arena_take_bytes(&model->passing, sizeof *s);
    const struct nb_train_options *o = &model->options;
    struct nb_parameters *all = &model->parameters;
    const struct nb_recurrent_shape forwards = encoder_shape(o, false), backwards = encoder_shape(o, true);
    const struct decoder_shape decoder = decoder_shape(o);
    model->inside = s;
    *s = (struct rnnsearch){.n_steps = o->sequence,
                            .batch = o->batch,
                            .hidden = o->hidden,
                            .embedding = o->hidden / 2,
                            .vocabulary = vocabulary_of(o)};
    allocate(model, s);
    s->source_table = nb_parameter_matrix(all, "source", "", s->vocabulary, s->embedding, o->seed, EMBEDDING_DEVIATION);
    s->target_table = nb_parameter_matrix(all, "target", "", s->vocabulary, s->embedding, o->seed, EMBEDDING_DEVIATION);
    nb_gru_init(&s->encoder[FORWARDS], model, "encoder", "forwards", &forwards);
    nb_gru_init(&s->encoder[BACKWARDS], model, "encoder", "backwards", &backwards);
    decoder_init(&s->decoder, model, "decoder", &decoder);
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

static void observe(struct nb_model *model, enum nb_observed what) {
    const struct rnnsearch *s = model->inside;
    if (!model->observer) return;
    nb_gru_observe(&s->encoder[FORWARDS], what);
    nb_gru_observe(&s->encoder[BACKWARDS], what);
    decoder_observe(&s->decoder, what);
}

/* Where the outputs of an encoder begin in its states. */
static float *outputs(const struct rnnsearch *s, int direction, float *const states[2]) {
    return nb_recurrent_outputs(&s->encoder[direction].shape, states[direction]);
}

static double rnnsearch_forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training) {
    struct rnnsearch *s = model->inside;
    const int64_t rows = s->n_steps * s->batch;
    (void)training;
    read_batch(s, text, batch);
    embed(model, s->source, s->source_table, s->sources);
    embed(model, s->word, s->target_table, s->words);
    for (int d = 0; d < 2; d++) nb_gru_forward(&s->encoder[d], s->states[d], s->source);
    nb_halves_join(s->memory, outputs(s, FORWARDS, s->states), outputs(s, BACKWARDS, s->states), rows, s->hidden);
    const float *logits = decoder_forward(&s->decoder, s->word, s->memory);
    observe(model, NB_ACTIVATION);
    nb_model_observe(model, NB_ACTIVATION, "logits", "", logits, rows * s->vocabulary);
    return nb_cross_entropy_forward(s->probabilities, logits, s->targets, rows, s->vocabulary);
}

/* ---- backward ---- */

static void encoder_backward(struct nb_model *model) {
    struct rnnsearch *s = model->inside;
    const int64_t rows = s->n_steps * s->batch;
    for (int d = 0; d < 2; d++) memset(s->dstates[d], 0, (size_t)((rows + s->batch) * s->hidden) * sizeof(float));
    nb_halves_split(outputs(s, FORWARDS, s->dstates), outputs(s, BACKWARDS, s->dstates), s->dmemory, rows, s->hidden);
    for (int d = 0; d < 2; d++) {
        nb_gru_backward(&s->encoder[d], s->dsource, s->dstates[d], s->states[d], s->source);
        nb_embedding_backward(s->source_table->gradient, s->dsource, s->sources, rows, s->embedding, 1);
    }
}

static void rnnsearch_backward(struct nb_model *model, double scale) {
    struct rnnsearch *s = model->inside;
    const int64_t rows = s->n_steps * s->batch;
    float *dlogits = decoder_dlogits(&s->decoder);
    nb_cross_entropy_backward(dlogits, s->probabilities, s->targets, rows, s->vocabulary, scale);
    nb_model_observe(model, NB_GRADIENT, "logits", "", dlogits, rows * s->vocabulary);
    decoder_backward(&s->decoder, s->dword, s->dmemory, s->word, s->memory);
    nb_embedding_backward(s->target_table->gradient, s->dword, s->words, rows, s->embedding, 1);
    encoder_backward(model);
    observe(model, NB_GRADIENT);
}

/* ---- the workloads ---- */

static const struct nb_train_options full = {.hidden = 1024, .batch = 80, .sequence = 80, .learning_rate = 1e-4};
static const struct nb_train_options tiny = {.hidden = 16, .batch = 4, .sequence = 5, .learning_rate = 3e-3};

static const struct nb_model_family rnnsearch_family = {.complete = nb_recurrent_complete,
                                                        .create = rnnsearch_create,
                                                        .forward = rnnsearch_forward,
                                                        .backward = rnnsearch_backward,
                                                        .flops = rnnsearch_flops};

const struct nb_workload nb_workload_rnnsearch = {
    .name = "rnnsearch",
    .summary = "RNNSearch: bidirectional GRU of 1024, decoder with additive attention, embedding 512, batch 80, "
               "vocabulary 32000; pieces of 80 bytes for sentences of up to 80 word pieces",
    .family = &rnnsearch_family,
    .own = &full};
const struct nb_workload nb_workload_tiny_rnnsearch = {
    .name = "tiny-rnnsearch",
    .summary = "RNNSearch at a width of 16: embedding 8, batch 4, pieces of 5 bytes",
    .family = &rnnsearch_family,
    .own = &tiny};
