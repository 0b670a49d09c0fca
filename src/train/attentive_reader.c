// SPDX-License-Identifier: Apache-2.0
/* The attentive reader (Hermann et al. 2015) as in table 6 of Zhang & Sennrich 2019: one bidirectional LSTM reads a document, another one a
 * query with a word left out; attention by the query's vector u over the document's y(t), which of the entities is missing:
 *   s(t) = softmax(v . tanh(y(t) Wy + u Wu));  r = sum s(t) y(t);  g = tanh(r Wr + u Wg);  logits = g Wa + b
 * Normalizations stand inside the LSTM alone. Questions are made from the text (data.h). A quarter as many words are in the query as in
 * the document.
 *
 * Observers are given "document.forwards.*", "document.backwards.*", "query.forwards.*", "query.backwards.*" (x, h: product and result;
 * cell), "document", "query" (the states side by side), "logits"; of gradients at the same places. */

/* Two LSTMs that read the same words in either direction, with the words' vectors in front. */
#include <string.h>

#include "src/train/data.h"
#include "src/train/layers.h"
#include "src/train/recurrent.h"
#include "src/train/tensor.h"
#include "src/train/workload.h"

struct reader_pair {
    struct nb_recurrent_shape shape; /* of the one that reads forwards */
    struct nb_model *model;          /* borrowed */
    const char *name;                /* borrowed */
    struct nb_parameter *table;      /* borrowed: vocabulary x in */
    struct nb_lstm lstm[2];          /* forwards, backwards */
    int32_t *tokens;                 /* steps x batch: the caller's to fill */
    float *words;
    float *states[2];
    float *dwords, *dstates[2];
};

/* ---- two LSTMs, one in each direction; the last state of the one that runs backwards is that of the first step ---- */

enum { FORWARDS = 0, BACKWARDS = 1 };
static const char *const directions[2] = {"forwards", "backwards"};

static int64_t all_rows(const struct reader_pair *p) { return p->shape.n_steps * p->shape.batch; }

static void reader_pair_init(struct reader_pair *p, struct nb_model *model, const char *name,
                             const struct nb_recurrent_shape *shape, struct nb_parameter *table) {
    *p = (struct reader_pair){.shape = *shape, .model = model, .name = name, .table = table};
    const int64_t rows = all_rows(p);
    p->tokens = nb_arena_take_bytes(&model->passing, (size_t)rows * sizeof *p->tokens);
    nb_model_take(model, rows * shape->in, &p->words, &p->dwords);
    for (int d = 0; d < 2; d++) {
        struct nb_recurrent_shape one = *shape;
        one.backwards = d == BACKWARDS;
        nb_model_take(model, (rows + shape->batch) * shape->hidden, &p->states[d], &p->dstates[d]);
        nb_lstm_init(&p->lstm[d], model, name, directions[d], &one);
    }
}

static double reader_pair_flops(const struct nb_recurrent_shape *shape) { return 2 * nb_lstm_flops(shape); }

/* Outputs of all steps of a direction, and the last one that it makes, in its array of states. */
static float *outputs(const struct reader_pair *p, int d, float *const states[2]) {
    return nb_recurrent_outputs(&p->lstm[d].shape, states[d]);
}
static float *end(const struct reader_pair *p, int d, float *const states[2]) {
    const int64_t step = d == BACKWARDS ? 0 : p->shape.n_steps - 1;
    return outputs(p, d, states) + step * p->shape.batch * p->shape.hidden;
}

/* joined: steps x batch x 2 hidden, both directions side by side; ends: batch x 2 hidden, what each said last. Either may be null. */
static void reader_pair_forward(struct reader_pair *p, float *joined, float *ends) {
    const int64_t rows = all_rows(p), hidden = p->shape.hidden;
    nb_embedding_forward(p->words, nb_parameter_used(p->table), p->tokens, rows, p->shape.in, 1);
    for (int d = 0; d < 2; d++) {
        nb_lstm_forward(&p->lstm[d], p->states[d], p->words);
        nb_lstm_observe(&p->lstm[d], NB_ACTIVATION);
    }
    if (joined) {
        nb_halves_join(joined, outputs(p, FORWARDS, p->states), outputs(p, BACKWARDS, p->states), rows, hidden);
        nb_model_observe(p->model, NB_ACTIVATION, p->name, "", joined, rows * 2 * hidden);
    }
    if (!ends) return;
    nb_halves_join(ends, end(p, FORWARDS, p->states), end(p, BACKWARDS, p->states), p->shape.batch, hidden);
    nb_model_observe(p->model, NB_ACTIVATION, p->name, joined ? "ends" : "", ends, p->shape.batch * 2 * hidden);
}

static void spread(struct reader_pair *p, const float *djoined, const float *dends) {
    const int64_t rows = all_rows(p), batch = p->shape.batch, hidden = p->shape.hidden;
    for (int d = 0; d < 2; d++) memset(p->dstates[d], 0, (size_t)((rows + batch) * hidden) * sizeof(float));
    if (djoined)
        nb_halves_split(outputs(p, FORWARDS, p->dstates), outputs(p, BACKWARDS, p->dstates), djoined, rows, hidden);
    float *forwards = end(p, FORWARDS, p->dstates), *backwards = end(p, BACKWARDS, p->dstates);
    for (int64_t b = 0; dends && b < batch; b++)
        for (int64_t i = 0; i < hidden; i++) {
            forwards[b * hidden + i] += dends[2 * b * hidden + i];
            backwards[b * hidden + i] += dends[(2 * b + 1) * hidden + i];
        }
}

/* Gradients by the same two, null for one that is not used. */
static void reader_pair_backward(struct reader_pair *p, const float *djoined, const float *dends) {
    const int64_t rows = all_rows(p);
    if (djoined) nb_model_observe(p->model, NB_GRADIENT, p->name, "", djoined, rows * 2 * p->shape.hidden);
    if (dends)
        nb_model_observe(p->model, NB_GRADIENT, p->name, djoined ? "ends" : "", dends,
                         p->shape.batch * 2 * p->shape.hidden);
    spread(p, djoined, dends);
    for (int d = 0; d < 2; d++) {
        nb_lstm_backward(&p->lstm[d], p->dwords, p->dstates[d], p->states[d], p->words);
        nb_embedding_backward(p->table->gradient, p->dwords, p->tokens, rows, p->shape.in, 1);
        nb_lstm_observe(&p->lstm[d], NB_GRADIENT);
    }
}

/* ---- the model: questions, the two readers, the answer ---- */

static const double EMBEDDING_DEVIATION = 0.1;

struct attentive_reader {
    struct nb_cloze cloze;
    int64_t batch, hidden;
    struct nb_parameter *table;
    struct reader_pair document, query;
    struct nb_additive attention;
    struct nb_projection of_document, of_query, answer;
    int32_t *answers;
    float *memory, *question, *found, *joint; /* y, u, r, g */
    float *dmemory, *dquestion, *dfound, *djoint;
    float *probabilities;
};

/* ---- shapes: words are as wide as the state; at 240 there are 120 entities and 15360 words ---- */

static int64_t n_entities(const struct nb_train_options *o) { return o->hidden / 2; }

static struct nb_cloze_shape cloze_shape(const struct nb_train_options *o) {
    return (struct nb_cloze_shape){.document = o->sequence,
                                   .query = o->sequence / 4,
                                   .entities = (int32_t)n_entities(o),
                                   .vocabulary = 64 * o->hidden};
}
static struct nb_recurrent_shape reader_shape(const struct nb_train_options *o, int64_t n_words) {
    return (struct nb_recurrent_shape){.n_steps = n_words, .batch = o->batch, .in = o->hidden, .hidden = o->hidden};
}
static struct nb_additive_shape attention_shape(const struct nb_train_options *o) {
    const int64_t both = 2 * (int64_t)o->hidden;
    return (struct nb_additive_shape){
        .n_steps = 1, .n_sources = o->sequence, .batch = o->batch, .query = both, .memory = both, .width = o->hidden};
}
static struct nb_projection_shape joint_shape(const struct nb_train_options *o, unsigned flags) {
    return (struct nb_projection_shape){1, o->batch, 2 * (int64_t)o->hidden, o->hidden, flags};
}
static struct nb_projection_shape answer_shape(const struct nb_train_options *o) {
    return (struct nb_projection_shape){1, o->batch, o->hidden, n_entities(o), NB_PROJECTION_BIASED};
}

static double attentive_reader_flops(const void *own, const struct nb_train_options *o) {
    (void)own;
    const struct nb_cloze_shape cloze = cloze_shape(o);
    const struct nb_recurrent_shape document = reader_shape(o, cloze.document), query = reader_shape(o, cloze.query);
    const struct nb_additive_shape attention = attention_shape(o);
    return reader_pair_flops(&document) + reader_pair_flops(&query) + nb_additive_flops(&attention) +
           2 * nb_projection_flops(joint_shape(o, 0)) + nb_projection_flops(answer_shape(o));
}

/* ---- set-up ---- */

static void allocate(struct nb_model *model, struct attentive_reader *s, const struct nb_train_options *o) {
    const int64_t state = s->batch * s->hidden;
    nb_model_take(model, o->sequence * 2 * state, &s->memory, &s->dmemory);
    nb_model_take(model, 2 * state, &s->question, &s->dquestion);
    nb_model_take(model, 2 * state, &s->found, &s->dfound);
    nb_model_take(model, state, &s->joint, &s->djoint);
    s->probabilities = nb_arena_take(&model->kept, s->batch * n_entities(o));
    s->answers = nb_arena_take_bytes(&model->passing, (size_t)s->batch * sizeof *s->answers);
}

static void attentive_reader_create(struct nb_model *model) {
    struct attentive_reader *s = nb_arena_take_bytes(&model->passing, sizeof *s);
    const struct nb_train_options *o = &model->options;
    const struct nb_cloze_shape cloze = cloze_shape(o);
    const struct nb_recurrent_shape document = reader_shape(o, cloze.document), query = reader_shape(o, cloze.query);
    const struct nb_additive_shape attention = attention_shape(o);
    model->inside = s;
    *s = (struct attentive_reader){.batch = o->batch, .hidden = o->hidden};
    nb_cloze_init(&s->cloze, &model->passing, &cloze);
    allocate(model, s, o);
    s->table =
        nb_parameter_matrix(&model->parameters, "words", "", cloze.vocabulary, s->hidden, o->seed, EMBEDDING_DEVIATION);
    reader_pair_init(&s->document, model, "document", &document, s->table);
    reader_pair_init(&s->query, model, "query", &query, s->table);
    nb_additive_init(&s->attention, model, "attention", &attention);
    nb_projection_init(&s->of_document, model, "joint", "document", joint_shape(o, NB_PROJECTION_BIASED), NULL);
    nb_projection_init(&s->of_query, model, "joint", "query", joint_shape(o, 0), s->of_document.gradient);
    nb_projection_init(&s->answer, model, "answer", "", answer_shape(o), NULL);
}

/* ---- forward ---- */

static double answer_loss(struct nb_model *model, struct attentive_reader *s) {
    const int64_t n = s->batch * s->hidden;
    const float *of_document = nb_projection_forward(&s->of_document, s->found, 0, 1);
    const float *of_query = nb_projection_forward(&s->of_query, s->question, 0, 1);
    nb_op(2);
    for (int64_t i = 0; i < n; i++) s->joint[i] = of_document[i] + of_query[i];
    nb_tanh_tensor(s->joint, n);
    nb_round_tensor(s->joint, n, model->options.dtype);
    const float *logits = nb_projection_forward(&s->answer, s->joint, 0, 1);
    nb_model_observe(model, NB_ACTIVATION, "logits", "", logits, s->batch * n_entities(&model->options));
    return nb_cross_entropy_forward(s->probabilities, logits, s->answers, s->batch, n_entities(&model->options));
}

static double attentive_reader_forward(struct nb_model *model, const struct nb_text *text, int64_t batch,
                                       bool training) {
    struct attentive_reader *s = model->inside;
    (void)training;
    for (int64_t b = 0; b < s->batch; b++)
        s->answers[b] = nb_cloze_ask(&s->cloze, text, (uint64_t)(batch * s->batch + b), s->document.tokens + b,
                                     s->query.tokens + b, s->batch);
    reader_pair_forward(&s->document, s->memory, NULL);
    reader_pair_forward(&s->query, NULL, s->question);
    nb_additive_step(&s->attention, 0, s->found, s->question, s->memory);
    return answer_loss(model, s);
}

/* ---- backward ---- */

static void answer_backward(struct nb_model *model, struct attentive_reader *s, double scale) {
    float *dlogits = nb_projection_gradient(&s->answer, 0), *dsum = nb_projection_gradient(&s->of_document, 0);
    nb_op(1);
    nb_cross_entropy_backward(dlogits, s->probabilities, s->answers, s->batch, n_entities(&model->options), scale);
    nb_model_observe(model, NB_GRADIENT, "logits", "", dlogits, s->batch * n_entities(&model->options));
    nb_projection_backward(&s->answer, s->djoint, 0, 1, 0);
    nb_projection_finish(&s->answer, s->joint);
    for (int64_t i = 0; i < s->batch * s->hidden; i++) dsum[i] = s->djoint[i] * (1 - s->joint[i] * s->joint[i]);
    nb_projection_backward(&s->of_document, s->dfound, 0, 1, 0);
    nb_projection_backward(&s->of_query, s->dquestion, 0, 1, 0);
    nb_projection_finish(&s->of_document, s->found);
    nb_projection_finish(&s->of_query, s->question);
}

static void attentive_reader_backward(struct nb_model *model, double scale) {
    struct attentive_reader *s = model->inside;
    const int64_t n = model->options.sequence * 2 * s->batch * s->hidden;
    answer_backward(model, s, scale);
    memset(s->dmemory, 0, (size_t)n * sizeof *s->dmemory);
    nb_additive_step_backward(&s->attention, 0, s->dquestion, s->dmemory, s->dfound, s->memory);
    nb_additive_finish(&s->attention, s->dmemory, s->memory, s->question);
    reader_pair_backward(&s->document, s->dmemory, NULL);
    reader_pair_backward(&s->query, NULL, s->dquestion);
}

/* ---- the workloads ---- */

static const struct nb_train_options full = {.hidden = 240, .batch = 64, .sequence = 64, .learning_rate = 8e-5};
static const struct nb_train_options tiny = {.hidden = 16, .batch = 4, .sequence = 16, .learning_rate = 3e-3};

static const struct nb_model_family attentive_reader_family = {.complete = nb_recurrent_complete,
                                                               .create = attentive_reader_create,
                                                               .forward = attentive_reader_forward,
                                                               .backward = attentive_reader_backward,
                                                               .flops = attentive_reader_flops};

const struct nb_workload nb_workload_attentive_reader = {
    .name = "attentive-reader",
    .summary = "Attentive reader: bidirectional LSTMs of 240, batch 64, over documents of 64 words and queries of 16",
    .family = &attentive_reader_family,
    .own = &full};
const struct nb_workload nb_workload_tiny_attentive_reader = {
    .name = "tiny-attentive-reader",
    .summary = "The attentive reader at a width of 16: batch 4, documents of 16 words, queries of 4",
    .family = &attentive_reader_family,
    .own = &tiny};
