// SPDX-License-Identifier: Apache-2.0
/* The order embedding (Vendrov et al. 2016) as in table 8 of Zhang & Sennrich 2019: a gated recurrent unit reads a caption, a matrix takes
 * the image's features, and both are compared by order violation (layers.h). Captions are words of the text; an image's features are
 * made of its caption's words (a fixed random vector for each, summed, without what is negative, as behind a ReLU), so that there is
 * something to learn.
 *
 * Observers are given "caption.*" (x_gates, x_candidate, h_gates, h_candidate: product and result), "caption.states" and "image"; of
 * gradients at the same places. */

/* Data, caption encoder and image encoder in front of the loss. Tensors are steps x batch x width. */
#include <math.h>
#include <string.h>

#include "src/core/random.h"
#include "src/train/data.h"
#include "src/train/layers.h"
#include "src/train/recurrent.h"
#include "src/train/tensor.h"
#include "src/train/workload.h"

enum { N_TOPICS = 256, TOPIC_STREAM = 0x1a6e };
static const double MARGIN = 0.05, EMBEDDING_DEVIATION = 0.1;

struct order_embedding {
    int64_t n_steps, batch, hidden, word, image, vocabulary;
    struct nb_parameter *table;
    struct nb_gru gru;
    struct nb_projection of_image;
    struct nb_order_loss loss;
    float *topics; /* what a word adds to the features of its image: N_TOPICS x image */
    int32_t *tokens;
    float *words, *features, *states;
    float *dwords, *dstates;
};

/* ---- shapes: at 1024 the words' vectors have 300 elements, the features 4096, and there are 8192 words ---- */

static int64_t word_width(const struct nb_train_options *o) { return (int64_t)o->hidden * 75 / 256; }

static struct nb_recurrent_shape gru_shape(const struct nb_train_options *o) {
    return (struct nb_recurrent_shape){
        .n_steps = o->sequence, .batch = o->batch, .in = word_width(o), .hidden = o->hidden, .input_by_step = true};
}

static struct nb_projection_shape image_shape(const struct nb_train_options *o) {
    return (struct nb_projection_shape){1, o->batch, 4 * (int64_t)o->hidden, o->hidden, NB_PROJECTION_BIASED};
}

/* A pair of the loss costs 3 a component forward and, where its hinge is open, 4 backward. */
static double order_embedding_flops(const void *own, const struct nb_train_options *o) {
    (void)own;
    const struct nb_recurrent_shape gru = gru_shape(o);
    return nb_gru_flops(&gru) + nb_projection_flops(image_shape(o)) + 7.0 * o->batch * o->batch * o->hidden;
}

/* ---- set-up ---- */

static void allocate(struct nb_model *model, struct order_embedding *s) {
    const int64_t rows = s->n_steps * s->batch;
    nb_model_take(model, rows * s->word, &s->words, &s->dwords);
    nb_model_take(model, (rows + s->batch) * s->hidden, &s->states, &s->dstates);
    s->features = nb_arena_take(&model->kept, s->batch * s->image);
    s->topics = nb_arena_take(&model->passing, N_TOPICS * s->image);
    s->tokens = nb_arena_take_bytes(&model->passing, (size_t)rows * sizeof *s->tokens);
    nb_order_loss_init(&s->loss, &model->kept, &model->passing, s->batch, s->hidden, MARGIN);
}

static void draw_topics(struct order_embedding *s) {
    const struct nb_random r = nb_random_stream(0, TOPIC_STREAM);
    for (int64_t i = 0; i < N_TOPICS * s->image; i++) s->topics[i] = (float)nb_random_normal(r, (uint64_t)i);
}

static void order_embedding_create(struct nb_model *model) {
    struct order_embedding *s = nb_arena_take_bytes(&model->passing, sizeof *s);
    const struct nb_train_options *o = &model->options;
    const struct nb_recurrent_shape gru = gru_shape(o);
    model->inside = s;
    *s = (struct order_embedding){.n_steps = o->sequence,
                                  .batch = o->batch,
                                  .hidden = o->hidden,
                                  .word = word_width(o),
                                  .image = 4 * (int64_t)o->hidden,
                                  .vocabulary = 8 * (int64_t)o->hidden};
    allocate(model, s);
    draw_topics(s);
    s->table =
        nb_parameter_matrix(&model->parameters, "words", "", s->vocabulary, s->word, o->seed, EMBEDDING_DEVIATION);
    nb_gru_init(&s->gru, model, "caption", "", &gru);
    nb_projection_init(&s->of_image, model, "image", "", image_shape(o), NULL);
}

/* ---- forward ---- */

/* Divided by the root of the number of words, so that the variance before the ReLU is 1. */
static void read_sample(struct order_embedding *s, const struct nb_text *text, uint64_t i, int64_t b) {
    size_t at = nb_words_start(text, i);
    float *features = s->features + b * s->image;
    memset(features, 0, (size_t)s->image * sizeof *features);
    for (int64_t t = 0; t < s->n_steps; t++) {
        const struct nb_word word = nb_words_next(text, &at);
        const float *topic = s->topics + (int64_t)(word.hash % N_TOPICS) * s->image;
        s->tokens[t * s->batch + b] = (int32_t)(word.hash % (uint64_t)s->vocabulary);
        for (int64_t c = 0; c < s->image; c++) features[c] += topic[c];
    }
    const float factor = 1 / sqrtf((float)s->n_steps);
    for (int64_t c = 0; c < s->image; c++) features[c] = features[c] > 0 ? features[c] * factor : 0;
}

static const float *last_state(const struct order_embedding *s, const float *states) {
    return states + s->n_steps * s->batch * s->hidden;
}

static void observe(struct nb_model *model, enum nb_observed what) {
    const struct order_embedding *s = model->inside;
    const int64_t state = s->batch * s->hidden;
    const bool gradient = what == NB_GRADIENT;
    if (!model->observer) return;
    nb_gru_observe(&s->gru, what);
    nb_model_observe(model, what, "caption", "states", (gradient ? s->dstates : s->states) + state, s->n_steps * state);
    nb_model_observe(model, what, "image", "",
                     gradient ? nb_projection_gradient(&s->of_image, 0) : nb_projection_result(&s->of_image, 0), state);
}

static double order_embedding_forward(struct nb_model *model, const struct nb_text *text, int64_t batch,
                                      bool training) {
    struct order_embedding *s = model->inside;
    const int64_t rows = s->n_steps * s->batch;
    (void)training;
    for (int64_t b = 0; b < s->batch; b++) read_sample(s, text, (uint64_t)(batch * s->batch + b), b);
    nb_round_tensor(s->features, s->batch * s->image, model->options.dtype);
    nb_embedding_forward(s->words, nb_parameter_used(s->table), s->tokens, rows, s->word, 1);
    nb_gru_forward(&s->gru, s->states, s->words);
    const float *images = nb_projection_forward(&s->of_image, s->features, 0, 1);
    observe(model, NB_ACTIVATION);
    return nb_order_loss_forward(&s->loss, last_state(s, s->states), images);
}

/* ---- backward ---- */

static void order_embedding_backward(struct nb_model *model, double scale) {
    struct order_embedding *s = model->inside;
    const int64_t rows = s->n_steps * s->batch;
    float *dlast = s->dstates + rows * s->hidden;
    memset(s->dstates, 0, (size_t)(rows * s->hidden) * sizeof *s->dstates);
    nb_order_loss_backward(&s->loss, dlast, nb_projection_gradient(&s->of_image, 0), last_state(s, s->states),
                           nb_projection_result(&s->of_image, 0), scale);
    nb_projection_backward(&s->of_image, NULL, 0, 1, 0);
    nb_projection_finish(&s->of_image, s->features);
    nb_round_tensor(dlast, s->batch * s->hidden, model->options.dtype);
    nb_gru_backward(&s->gru, s->dwords, s->dstates, s->states, s->words);
    nb_embedding_backward(s->table->gradient, s->dwords, s->tokens, rows, s->word, 1);
    observe(model, NB_GRADIENT);
}

/* ---- the workloads ---- */

static const struct nb_train_options full = {.hidden = 1024, .batch = 128, .sequence = 10, .learning_rate = 1e-3};
static const struct nb_train_options tiny = {.hidden = 16, .batch = 4, .sequence = 5, .learning_rate = 3e-3};

static const struct nb_model_family order_embedding_family = {.complete = nb_recurrent_complete,
                                                              .create = order_embedding_create,
                                                              .forward = order_embedding_forward,
                                                              .backward = order_embedding_backward,
                                                              .flops = order_embedding_flops};

const struct nb_workload nb_workload_order_embedding = {
    .name = "order-embedding",
    .summary = "Order embedding: GRU of 1024 over captions of 10 words of 300, image features of 4096, batch 128",
    .family = &order_embedding_family,
    .own = &full};
const struct nb_workload nb_workload_tiny_order_embedding = {
    .name = "tiny-order-embedding",
    .summary = "The order embedding at a width of 16: words of 4, image features of 64, batch 4, captions of 5 words",
    .family = &order_embedding_family,
    .own = &tiny};
