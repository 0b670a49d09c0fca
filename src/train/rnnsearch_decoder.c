// SPDX-License-Identifier: Apache-2.0
/* Teacher forcing: words are known beforehand, so that all but the two units and the attention is done for all steps at once. */
#include "src/train/rnnsearch_decoder.h"

#include <stdio.h>
#include <string.h>

#include "src/train/precision.h"
#include "src/train/sigmoid.h"

/* ---- shapes ---- */

enum { NORMED = NB_PROJECTION_BIASED | NB_PROJECTION_NORMED };

static struct nb_gru_shape gru_shape(const struct nb_decoder_shape *s, int64_t in) {
    return (struct nb_gru_shape){.n_steps = s->n_steps, .batch = s->batch, .in = in, .hidden = s->hidden};
}
static struct nb_additive_shape attention_shape(const struct nb_decoder_shape *s) {
    return (struct nb_additive_shape){.n_steps = s->n_steps,
                                      .n_sources = s->n_sources,
                                      .batch = s->batch,
                                      .query = s->hidden,
                                      .memory = s->memory,
                                      .width = s->memory,
                                      .normed = true};
}
static struct nb_projection_shape readout_shape(const struct nb_decoder_shape *s, int64_t in) {
    return (struct nb_projection_shape){s->n_steps, s->batch, in, s->embedding, NORMED};
}
static struct nb_projection_shape output_shape(const struct nb_decoder_shape *s) {
    return (struct nb_projection_shape){s->n_steps, s->batch, s->embedding, s->vocabulary, NB_PROJECTION_BIASED};
}
static struct nb_projection_shape start_shape(const struct nb_decoder_shape *s) {
    return (struct nb_projection_shape){1, s->batch, s->memory, s->hidden, NORMED};
}

double nb_decoder_flops(const struct nb_decoder_shape *s) {
    const struct nb_gru_shape first = gru_shape(s, s->embedding), second = gru_shape(s, s->memory);
    const struct nb_additive_shape attention = attention_shape(s);
    const struct nb_projection_shape parts[] = {start_shape(s), readout_shape(s, s->hidden),
                                                readout_shape(s, s->embedding), readout_shape(s, s->memory),
                                                output_shape(s)};
    double flops = nb_gru_flops(&first) + nb_gru_flops(&second) + nb_additive_flops(&attention);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) flops += nb_projection_flops(&parts[i]);
    return flops;
}

/* ---- set-up ---- */

static int init_projection(struct nb_projection *p, struct nb_decoder *d, struct nb_model_arenas *arenas,
                           const char *name, const char *what, struct nb_projection_shape shape, float *gradient) {
    char full[64];
    snprintf(full, sizeof full, "%s.%s", name, what);
    return nb_projection_init(p, d->model, arenas, full, &shape, gradient);
}

static int init_units(struct nb_decoder *d, struct nb_model_arenas *arenas, const char *name) {
    const struct nb_gru_shape first = gru_shape(&d->shape, d->shape.embedding),
                              second = gru_shape(&d->shape, d->shape.memory);
    const struct nb_additive_shape attention = attention_shape(&d->shape);
    char full[64];
    snprintf(full, sizeof full, "%s.first", name);
    if (nb_gru_init(&d->first, d->model, arenas, full, &first) != 0) return -1;
    snprintf(full, sizeof full, "%s.second", name);
    if (nb_gru_init(&d->second, d->model, arenas, full, &second) != 0) return -1;
    snprintf(full, sizeof full, "%s.attention", name);
    return nb_additive_init(&d->attention, d->model, arenas, full, &attention);
}

static int init_readout(struct nb_decoder *d, struct nb_model_arenas *arenas, const char *name) {
    const struct nb_decoder_shape *s = &d->shape;
    if (init_projection(&d->start, d, arenas, name, "start", start_shape(s), NULL) != 0) return -1;
    if (init_projection(&d->of_state, d, arenas, name, "of_state", readout_shape(s, s->hidden), NULL) != 0) return -1;
    float *sum = d->of_state.gradient; /* of the three addends alike */
    if (init_projection(&d->of_word, d, arenas, name, "of_word", readout_shape(s, s->embedding), sum) != 0) return -1;
    if (init_projection(&d->of_context, d, arenas, name, "of_context", readout_shape(s, s->memory), sum) != 0)
        return -1;
    return init_projection(&d->output, d, arenas, name, "output", output_shape(s), NULL);
}

int nb_decoder_init(struct nb_decoder *d, struct nb_model *model, struct nb_model_arenas *arenas, const char *name,
                    const struct nb_decoder_shape *s) {
    *d = (struct nb_decoder){.shape = *s, .model = model};
    const int64_t rows = s->n_steps * s->batch;
    d->mean = nb_arena_take(&arenas->kept, s->batch * s->memory);
    d->states = nb_arena_take(&arenas->kept, (rows + s->batch) * s->hidden);
    d->middles = nb_arena_take(&arenas->kept, rows * s->hidden);
    d->contexts = nb_arena_take(&arenas->kept, rows * s->memory);
    d->readout = nb_arena_take(&arenas->kept, rows * s->embedding);
    d->dmean = nb_arena_take(&arenas->passing, s->batch * s->memory);
    d->dstates = nb_arena_take(&arenas->passing, (rows + s->batch) * s->hidden);
    d->dmiddles = nb_arena_take(&arenas->passing, rows * s->hidden);
    d->dcontexts = nb_arena_take(&arenas->passing, rows * s->memory);
    d->dreadout = nb_arena_take(&arenas->passing, rows * s->embedding);
    if (init_units(d, arenas, name) != 0) return -1;
    return init_readout(d, arenas, name);
}

void nb_decoder_release(struct nb_decoder *d) {
    struct nb_projection *const projections[] = {&d->start, &d->of_state, &d->of_word, &d->of_context, &d->output};
    for (size_t i = 0; i < sizeof projections / sizeof projections[0]; i++) nb_projection_release(projections[i]);
    nb_gru_release(&d->first);
    nb_gru_release(&d->second);
    nb_additive_release(&d->attention);
    *d = (struct nb_decoder){0};
}

/* ---- forward ---- */

static int64_t state_size(const struct nb_decoder *d) { return d->shape.batch * d->shape.hidden; }
static int64_t context_size(const struct nb_decoder *d) { return d->shape.batch * d->shape.memory; }
static int64_t readout_size(const struct nb_decoder *d) {
    return d->shape.n_steps * d->shape.batch * d->shape.embedding;
}

static void start(struct nb_decoder *d, const float *memory) {
    const int64_t n = context_size(d), n_sources = d->shape.n_sources;
    memset(d->mean, 0, (size_t)n * sizeof *d->mean);
    for (int64_t j = 0; j < n_sources; j++)
        for (int64_t i = 0; i < n; i++) d->mean[i] += memory[j * n + i] / (float)n_sources;
    nb_round_tensor(d->mean, n, d->model->options.dtype);
    memcpy(d->states, nb_projection_forward(&d->start, d->mean, 0, 1), (size_t)state_size(d) * sizeof(float));
    nb_tanh_tensor(d->states, state_size(d));
    nb_round_tensor(d->states, state_size(d), d->model->options.dtype);
}

static const float *read_out(struct nb_decoder *d, const float *words) {
    const int64_t n_steps = d->shape.n_steps, n = readout_size(d);
    const float *of_state = nb_projection_forward(&d->of_state, d->states + state_size(d), 0, n_steps);
    const float *of_word = nb_projection_forward(&d->of_word, words, 0, n_steps);
    const float *of_context = nb_projection_forward(&d->of_context, d->contexts, 0, n_steps);
    for (int64_t i = 0; i < n; i++) d->readout[i] = of_state[i] + of_word[i] + of_context[i];
    nb_tanh_tensor(d->readout, n);
    nb_round_tensor(d->readout, n, d->model->options.dtype);
    return nb_projection_forward(&d->output, d->readout, 0, n_steps);
}

const float *nb_decoder_forward(struct nb_decoder *d, const float *words, const float *memory) {
    start(d, memory);
    nb_additive_memory(&d->attention, memory);
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

float *nb_decoder_dlogits(const struct nb_decoder *d) { return nb_projection_gradient(&d->output, 0); }

static void read_out_backward(struct nb_decoder *d, float *dwords, const float *words) {
    const int64_t n_steps = d->shape.n_steps;
    float *dsum = nb_projection_gradient(&d->of_state, 0);
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

static void step_backward(struct nb_decoder *d, int64_t t, float *dmemory, const float *memory) {
    const int64_t n = state_size(d);
    const float *state = d->states + t * n, *middle = d->middles + t * n;
    float *dmiddle = d->dmiddles + t * n, *dcontext = d->dcontexts + t * context_size(d);
    nb_gru_step_backward(&d->second, t, dmiddle, d->dstates + (t + 1) * n, middle);
    nb_gru_input_backward(&d->second, dcontext, t, 1, 1);
    nb_additive_step_backward(&d->attention, t, dmiddle, dmemory, dcontext, memory);
    nb_gru_step_backward(&d->first, t, d->dstates + t * n, dmiddle, state);
}

static void start_backward(struct nb_decoder *d, float *dmemory) {
    const int64_t n = context_size(d);
    float *dbefore = nb_projection_gradient(&d->start, 0);
    for (int64_t i = 0; i < state_size(d); i++) dbefore[i] = d->dstates[i] * (1 - d->states[i] * d->states[i]);
    nb_projection_backward(&d->start, d->dmean, 0, 1, 0);
    nb_projection_finish(&d->start, d->mean);
    for (int64_t j = 0; j < d->shape.n_sources; j++)
        for (int64_t i = 0; i < n; i++) dmemory[j * n + i] += d->dmean[i] / (float)d->shape.n_sources;
}

void nb_decoder_backward(struct nb_decoder *d, float *dwords, float *dmemory, const float *words, const float *memory) {
    const int64_t n_steps = d->shape.n_steps;
    memset(dmemory, 0, (size_t)(d->shape.n_sources * context_size(d)) * sizeof *dmemory);
    memset(d->dstates, 0, (size_t)state_size(d) * sizeof *d->dstates);
    memset(d->dmiddles, 0, (size_t)(n_steps * state_size(d)) * sizeof *d->dmiddles);
    read_out_backward(d, dwords, words);
    nb_additive_start_backward(&d->attention);
    for (int64_t t = n_steps - 1; t >= 0; t--) step_backward(d, t, dmemory, memory);
    nb_gru_input_backward(&d->first, dwords, 0, n_steps, 1);
    nb_gru_finish(&d->first, words, d->states);
    nb_gru_finish(&d->second, d->contexts, d->middles);
    nb_additive_finish(&d->attention, dmemory, memory, d->middles);
    start_backward(d, dmemory);
}

/* ---- observers ---- */

void nb_decoder_tell(const struct nb_decoder *d) {
    nb_gru_tell(&d->first);
    nb_gru_tell(&d->second);
    nb_model_tell(d->model, "decoder", "states", d->states, (d->shape.n_steps + 1) * state_size(d));
    nb_model_tell(d->model, "decoder", "readout", d->readout, readout_size(d));
}

void nb_decoder_tell_gradients(const struct nb_decoder *d) {
    nb_gru_tell_gradients(&d->first);
    nb_gru_tell_gradients(&d->second);
    nb_model_tell_gradient(d->model, "decoder", "states", d->dstates, (d->shape.n_steps + 1) * state_size(d));
    nb_model_tell_gradient(d->model, "decoder", "readout", d->dreadout, readout_size(d));
}
