// SPDX-License-Identifier: Apache-2.0
/* The order embedding (Vendrov et al. 2016) as in table 8 of Zhang & Sennrich 2019: a gated recurrent unit reads a caption, a matrix takes
 * the image's features, and both are compared by order violation. Captions are words of the text; an image's features are
 * made of its caption's words (a fixed random vector for each, summed, without what is negative, as behind a ReLU), so that there is
 * something to learn.
 *
 * Observers are given "caption.*" (x_gates, x_candidate, h_gates, h_candidate: product and result), "caption.states" and "image"; of
 * gradients at the same places. Tensors are steps x batch x width. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "src/core/random.h"
#include "src/train/data.h"
#include "src/train/layers.h"
#include "src/train/recurrent.h"
#include "src/train/tensor.h"
#include "src/train/workload.h"

/* The loss of order embeddings (Vendrov et al. 2016, equations 2 and 4) over a batch of pairs of a caption and its image, their vectors
 * made non-negative and of length 1: a caption lies above its image, E(s, m) = |max(0, s - m)|^2, by a margin more than above the
 * other images, and than other captions above its image:
 *   loss = sum_ij max(0, margin - E(s_i, m_j) + E(s_i, m_i)) + max(0, margin - E(s_i, m_j) + E(s_j, m_j)),  i != j */

struct order_loss {
    int64_t n, width; /* pairs, width of a vector */
    double margin;
    float *captions, *images; /* |.| / length */
    float *caption_length, *image_length;
    float *violations; /* E, n x n: captions x images */
    float *pull;       /* gradient of the loss by E */
    float *dcaptions, *dimages;
};

/* ---- order violation: all pairs by plain loops, 2 n^2 width of them, a small share of a step ---- */

enum { LANES = 4 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t masks __attribute__((vector_size(LANES * sizeof(float))));

static void order_loss_init(struct order_loss *l, struct nb_arena *kept, struct nb_arena *passing, int64_t n,
                            int64_t width, double margin) {
    assert(width % (2 * LANES) == 0);
    *l = (struct order_loss){.n = n,
                             .width = width,
                             .margin = margin,
                             .captions = nb_arena_take(kept, n * width),
                             .images = nb_arena_take(kept, n * width),
                             .caption_length = nb_arena_take(kept, n),
                             .image_length = nb_arena_take(kept, n),
                             .violations = nb_arena_take(kept, n * n),
                             .pull = nb_arena_take(passing, n * n),
                             .dcaptions = nb_arena_take(passing, n * width),
                             .dimages = nb_arena_take(passing, n * width)};
}

/* ---- |x| / length ---- */

static void to_unit(float *unit, float *length, const float *x, int64_t n, int64_t width) {
    for (int64_t r = 0; r < n; r++) {
        double sum = 0;
        for (int64_t i = 0; i < width; i++) sum += (double)x[r * width + i] * (double)x[r * width + i];
        length[r] = (float)sqrt(sum) + 1e-8f;
        for (int64_t i = 0; i < width; i++) unit[r * width + i] = fabsf(x[r * width + i]) / length[r];
    }
}

/* dx = sign(x) (d - u (u . d)) / length */
static void to_unit_backward(float *dx, const float *d, const float *unit, const float *length, const float *x,
                             int64_t n, int64_t width) {
    for (int64_t r = 0; r < n; r++) {
        const int64_t at = r * width;
        double along = 0;
        for (int64_t i = at; i < at + width; i++) along += (double)unit[i] * (double)d[i];
        for (int64_t i = at; i < at + width; i++)
            dx[i] = copysignf(1, x[i]) * (d[i] - unit[i] * (float)along) / length[r];
    }
}

/* ---- violations and margins ---- */

static lanes load(const float *p) {
    lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* max(0, caption - image); NaN stays. */
static lanes over(lanes caption, lanes image) {
    const lanes d = caption - image;
    return (lanes)(~(masks)(d < 0) & (masks)d);
}

/* Two sums of four side by side: additions do not wait for each other. */
static float violation(const float *caption, const float *image, int64_t width) {
    lanes sum[2] = {{0}, {0}};
    for (int64_t i = 0; i < width; i += 2 * LANES)
        for (int k = 0; k < 2; k++) {
            const lanes d = over(load(caption + i + k * LANES), load(image + i + k * LANES));
            sum[k] += d * d;
        }
    const lanes both = sum[0] + sum[1];
    return (both[0] + both[1]) + (both[2] + both[3]);
}

/* Both hinges of a pair (i, j); pull gets their gradients by the three violations. */
static double hinges(struct order_loss *l, int64_t i, int64_t j) {
    const int64_t n = l->n;
    const double other = l->violations[i * n + j];
    const double by_image = l->margin - other + (double)l->violations[i * n + i];
    const double by_caption = l->margin - other + (double)l->violations[j * n + j];
    double sum = 0;
    if (by_image > 0) {
        sum += by_image;
        l->pull[i * n + i] += 1;
        l->pull[i * n + j] -= 1;
    }
    if (by_caption > 0) {
        sum += by_caption;
        l->pull[j * n + j] += 1;
        l->pull[i * n + j] -= 1;
    }
    return sum;
}

/* Absolute value, length and quotient of both; difference, maximum, square and sum of the pairs; two hinges of two operations, two sums. */
enum { LOSS_OPS = 16 };

/* captions and images as the encoders say them, n x width. The sum above, for a pair of the batch: divided by n. */
static double order_loss_forward(struct order_loss *l, const float *captions, const float *images) {
    const int64_t n = l->n, width = l->width;
    nb_op(LOSS_OPS);
    to_unit(l->captions, l->caption_length, captions, n, width);
    to_unit(l->images, l->image_length, images, n, width);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            l->violations[i * n + j] = violation(l->captions + i * width, l->images + j * width, width);
    memset(l->pull, 0, (size_t)(n * n) * sizeof *l->pull);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            if (i != j) sum += hinges(l, i, j);
    for (int64_t i = 0; i < n * n; i++) /* NaN is greater than nothing: no hinge would say so */
        if (isnan(l->violations[i])) sum = NAN;
    return sum / (double)n;
}

static void violation_backward(float *dcaption, float *dimage, const float *caption, const float *image, int64_t width,
                               float factor) {
    for (int64_t i = 0; i < width; i += LANES) {
        const lanes d = factor * over(load(caption + i), load(image + i));
        const lanes up = load(dcaption + i) + d, down = load(dimage + i) - d;
        memcpy(dcaption + i, &up, sizeof up);
        memcpy(dimage + i, &down, sizeof down);
    }
}

/* scale times the gradients; overwrites both. */
static void order_loss_backward(struct order_loss *l, float *dcaptions, float *dimages, const float *captions,
                                const float *images, double scale) {
    const int64_t n = l->n, width = l->width;
    nb_op(LOSS_OPS);
    memset(l->dcaptions, 0, (size_t)(n * width) * sizeof *l->dcaptions);
    memset(l->dimages, 0, (size_t)(n * width) * sizeof *l->dimages);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const float factor = (float)(2 * scale / (double)n * (double)l->pull[i * n + j]);
            if (factor == 0) continue;
            violation_backward(l->dcaptions + i * width, l->dimages + j * width, l->captions + i * width,
                               l->images + j * width, width, factor);
        }
    to_unit_backward(dcaptions, l->dcaptions, l->captions, l->caption_length, captions, n, width);
    to_unit_backward(dimages, l->dimages, l->images, l->image_length, images, n, width);
}

enum { N_TOPICS = 256, TOPIC_STREAM = 0x1a6e };
static const double MARGIN = 0.05, EMBEDDING_DEVIATION = 0.1;

struct order_embedding {
    int64_t n_steps, batch, hidden, word, image, vocabulary;
    struct nb_parameter *table;
    struct nb_gru gru;
    struct nb_projection of_image;
    struct order_loss loss;
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
    order_loss_init(&s->loss, &model->kept, &model->passing, s->batch, s->hidden, MARGIN);
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
    return order_loss_forward(&s->loss, last_state(s, s->states), images);
}

/* ---- backward ---- */

static void order_embedding_backward(struct nb_model *model, double scale) {
    struct order_embedding *s = model->inside;
    const int64_t rows = s->n_steps * s->batch;
    float *dlast = s->dstates + rows * s->hidden;
    memset(s->dstates, 0, (size_t)(rows * s->hidden) * sizeof *s->dstates);
    order_loss_backward(&s->loss, dlast, nb_projection_gradient(&s->of_image, 0), last_state(s, s->states),
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
