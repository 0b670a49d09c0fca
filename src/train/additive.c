// SPDX-License-Identifier: Apache-2.0
/* Scores and sums over the sources by plain loops, a pair of query and source at a time. */
#include "src/train/additive.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/train/precision.h"
#include "src/train/sigmoid.h"

static struct nb_projection_shape query_part(const struct nb_additive_shape *s) {
    return (struct nb_projection_shape){s->n_steps, s->batch, s->query, s->width,
                                        s->normed ? (unsigned)NB_PROJECTION_NORMED : 0u};
}
static struct nb_projection_shape memory_part(const struct nb_additive_shape *s) {
    return (struct nb_projection_shape){s->n_sources, s->batch, s->memory, s->width,
                                        (s->normed ? (unsigned)NB_PROJECTION_NORMED : 0u) | NB_PROJECTION_BIASED};
}

int nb_additive_init(struct nb_additive *a, struct nb_model *model, struct nb_model_arenas *arenas, const char *name,
                     const struct nb_additive_shape *s) {
    *a = (struct nb_additive){.shape = *s, .model = model};
    const struct nb_projection_shape query = query_part(s), memory = memory_part(s);
    char full[64];
    a->hidden = nb_arena_take(&arenas->kept, s->n_steps * s->n_sources * s->batch * s->width);
    a->weights = nb_arena_take(&arenas->kept, s->n_steps * s->batch * s->n_sources);
    snprintf(full, sizeof full, "%s.query", name);
    if (nb_projection_init(&a->from_query, model, arenas, full, &query, NULL) != 0) return -1;
    snprintf(full, sizeof full, "%s.memory", name);
    if (nb_projection_init(&a->from_memory, model, arenas, full, &memory, NULL) != 0) return -1;
    snprintf(full, sizeof full, "%s.score", name);
    a->score = nb_parameter_add(&model->parameters, full, 1, s->width, true);
    nb_parameter_draw(a->score, model->options.seed, 1 / sqrt((double)s->width));
    return 0;
}

void nb_additive_release(struct nb_additive *a) {
    nb_projection_release(&a->from_query);
    nb_projection_release(&a->from_memory);
    *a = (struct nb_additive){0};
}

void nb_additive_memory(struct nb_additive *a, const float *memory) {
    nb_projection_forward(&a->from_memory, memory, 0, a->shape.n_sources);
}

/* Hidden layer of sample b at a source. */
static float *hidden_at(const struct nb_additive *a, int64_t step, int64_t source, int64_t b) {
    return a->hidden + ((step * a->shape.n_sources + source) * a->shape.batch + b) * a->shape.width;
}
static const float *memory_at(const struct nb_additive *a, const float *memory, int64_t source, int64_t b) {
    return memory + (source * a->shape.batch + b) * a->shape.memory;
}
static float *weights_at(const struct nb_additive *a, int64_t step, int64_t b) {
    return a->weights + (step * a->shape.batch + b) * a->shape.n_sources;
}

/* Four sums side by side: additions do not wait for each other. */
static float dot(const float *x, const float *y, int64_t n) {
    float sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) sum[k] += x[i + k] * y[i + k];
    for (; i < n; i++) sum[0] += x[i] * y[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void add_scaled(float *y, float factor, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] += factor * x[i];
}

static void softmax(float *scores, int64_t n) {
    float most = scores[0], sum = 0;
    for (int64_t i = 1; i < n; i++) most = scores[i] > most ? scores[i] : most;
    for (int64_t i = 0; i < n; i++) sum += scores[i] = expf(scores[i] - most);
    for (int64_t i = 0; i < n; i++) scores[i] /= sum;
}

static float score_of(const struct nb_additive *a, int64_t step, int64_t source, int64_t b) {
    const int64_t width = a->shape.width;
    const float *query = nb_projection_result(&a->from_query, step) + b * width;
    const float *key = nb_projection_result(&a->from_memory, source) + b * width;
    float *hidden = hidden_at(a, step, source, b);
    for (int64_t i = 0; i < width; i++) hidden[i] = query[i] + key[i];
    nb_tanh_tensor(hidden, width);
    nb_round_tensor(hidden, width, a->model->options.dtype);
    return dot(hidden, nb_parameter_used(a->score), width);
}

void nb_additive_step(struct nb_additive *a, int64_t step, float *context, const float *query, const float *memory) {
    const struct nb_additive_shape *s = &a->shape;
    nb_projection_forward(&a->from_query, query, step, 1);
    memset(context, 0, (size_t)(s->batch * s->memory) * sizeof *context);
    for (int64_t b = 0; b < s->batch; b++) {
        float *weights = weights_at(a, step, b);
        for (int64_t j = 0; j < s->n_sources; j++) weights[j] = score_of(a, step, j, b);
        softmax(weights, s->n_sources);
        for (int64_t j = 0; j < s->n_sources; j++)
            add_scaled(context + b * s->memory, weights[j], memory_at(a, memory, j, b), s->memory);
    }
    nb_round_tensor(context, s->batch * s->memory, a->model->options.dtype);
}

/* Gradients by the keys are sums over the steps. */
void nb_additive_start_backward(struct nb_additive *a) {
    const int64_t n = a->shape.n_sources * a->shape.batch * a->shape.width;
    memset(nb_projection_gradient(&a->from_memory, 0), 0, (size_t)n * sizeof(float));
}

/* Through the hidden layer of one pair: dscore is the gradient by its score. */
static void score_backward(const struct nb_additive *a, int64_t step, int64_t source, int64_t b, float dscore) {
    const int64_t width = a->shape.width;
    const float *hidden = hidden_at(a, step, source, b), *v = nb_parameter_used(a->score);
    float *dquery = nb_projection_gradient(&a->from_query, step) + b * width;
    float *dkey = nb_projection_gradient(&a->from_memory, source) + b * width;
    float *dv = a->score->gradient;
    for (int64_t i = 0; i < width; i++) {
        const float d = dscore * v[i] * (1 - hidden[i] * hidden[i]);
        dv[i] += dscore * hidden[i];
        dquery[i] += d;
        dkey[i] += d;
    }
}

static void sample_backward(const struct nb_additive *a, int64_t step, int64_t b, float *dmemory, const float *dcontext,
                            const float *memory) {
    const struct nb_additive_shape *s = &a->shape;
    const float *weights = weights_at(a, step, b);
    float mean = 0; /* of the gradient by the weights, weighted */
    for (int64_t j = 0; j < s->n_sources; j++)
        mean += weights[j] * dot(dcontext, memory_at(a, memory, j, b), s->memory);
    for (int64_t j = 0; j < s->n_sources; j++) {
        const float dweight = dot(dcontext, memory_at(a, memory, j, b), s->memory);
        add_scaled(dmemory + (j * s->batch + b) * s->memory, weights[j], dcontext, s->memory);
        score_backward(a, step, j, b, weights[j] * (dweight - mean));
    }
}

void nb_additive_step_backward(struct nb_additive *a, int64_t step, float *dquery, float *dmemory,
                               const float *dcontext, const float *memory) {
    const struct nb_additive_shape *s = &a->shape;
    memset(nb_projection_gradient(&a->from_query, step), 0, (size_t)(s->batch * s->width) * sizeof(float));
    for (int64_t b = 0; b < s->batch; b++) sample_backward(a, step, b, dmemory, dcontext + b * s->memory, memory);
    nb_projection_backward(&a->from_query, dquery, step, 1, 1);
}

void nb_additive_finish(struct nb_additive *a, float *dmemory, const float *memory, const float *queries) {
    nb_projection_backward(&a->from_memory, dmemory, 0, a->shape.n_sources, 1);
    nb_projection_finish(&a->from_memory, memory);
    nb_projection_finish(&a->from_query, queries);
}

/* A pair of query and source costs 2 width for the score and 2 memory for the sum, twice that backward. */
double nb_additive_flops(const struct nb_additive_shape *s) {
    const struct nb_projection_shape query = query_part(s), memory = memory_part(s);
    const double pairs = (double)s->n_steps * (double)s->n_sources * (double)s->batch;
    return nb_projection_flops(&query) + nb_projection_flops(&memory) + 6 * pairs * (double)(s->width + s->memory);
}
