// SPDX-License-Identifier: Apache-2.0
/* Questions, the two readers, and what is said of them. */
#include "src/train/attentive_reader.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/train/additive.h"
#include "src/train/cloze.h"
#include "src/train/loss.h"
#include "src/train/precision.h"
#include "src/train/reader_pair.h"
#include "src/train/recurrent_options.h"
#include "src/train/sigmoid.h"

static const double EMBEDDING_DEVIATION = 0.1;

struct attentive_reader {
    struct nb_model_arenas arenas;
    struct nb_cloze cloze;
    int64_t batch, hidden;
    struct nb_parameter *table;
    struct nb_reader_pair document, query;
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
static struct nb_lstm_shape reader_shape(const struct nb_train_options *o, int64_t n_words) {
    return (struct nb_lstm_shape){.n_steps = n_words, .batch = o->batch, .in = o->hidden, .hidden = o->hidden};
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

static double flops(const void *own, const struct nb_train_options *o) {
    (void)own;
    const struct nb_cloze_shape cloze = cloze_shape(o);
    const struct nb_lstm_shape document = reader_shape(o, cloze.document), query = reader_shape(o, cloze.query);
    const struct nb_additive_shape attention = attention_shape(o);
    const struct nb_projection_shape joint = joint_shape(o, 0), answer = answer_shape(o);
    return nb_reader_pair_flops(&document) + nb_reader_pair_flops(&query) + nb_additive_flops(&attention) +
           2 * nb_projection_flops(&joint) + nb_projection_flops(&answer);
}

/* ---- set-up ---- */

static void make_arena(struct attentive_reader *s, const struct nb_train_options *o) {
    struct nb_arena *kept = &s->arenas.kept, *passing = &s->arenas.passing;
    const int64_t state = s->batch * s->hidden;
    s->memory = nb_arena_take(kept, o->sequence * 2 * state);
    s->question = nb_arena_take(kept, 2 * state);
    s->found = nb_arena_take(kept, 2 * state);
    s->joint = nb_arena_take(kept, state);
    s->probabilities = nb_arena_take(kept, s->batch * n_entities(o));
    s->dmemory = nb_arena_take(passing, o->sequence * 2 * state);
    s->dquestion = nb_arena_take(passing, 2 * state);
    s->dfound = nb_arena_take(passing, 2 * state);
    s->djoint = nb_arena_take(passing, state);
    s->answers = nb_alloc((unsigned long long)s->batch, sizeof *s->answers);
}

static int init_readers(struct nb_model *model, struct attentive_reader *s) {
    const struct nb_train_options *o = &model->options;
    const struct nb_lstm_shape document = reader_shape(o, s->cloze.shape.document),
                               query = reader_shape(o, s->cloze.shape.query);
    s->table = nb_parameter_add(&model->parameters, "words", s->cloze.shape.vocabulary, s->hidden, true);
    nb_parameter_draw(s->table, o->seed, EMBEDDING_DEVIATION);
    if (nb_reader_pair_init(&s->document, model, &s->arenas, "document", &document, s->table) != 0) return -1;
    return nb_reader_pair_init(&s->query, model, &s->arenas, "query", &query, s->table);
}

static int init_answer(struct nb_model *model, struct attentive_reader *s) {
    const struct nb_train_options *o = &model->options;
    const struct nb_additive_shape attention = attention_shape(o);
    const struct nb_projection_shape found = joint_shape(o, NB_PROJECTION_BIASED), question = joint_shape(o, 0),
                                     answer = answer_shape(o);
    if (nb_additive_init(&s->attention, model, &s->arenas, "attention", &attention) != 0) return -1;
    if (nb_projection_init(&s->of_document, model, &s->arenas, "joint.document", &found, NULL) != 0) return -1;
    if (nb_projection_init(&s->of_query, model, &s->arenas, "joint.query", &question, s->of_document.gradient) != 0)
        return -1;
    return nb_projection_init(&s->answer, model, &s->arenas, "answer", &answer, NULL);
}

static int create(struct nb_model *model) {
    struct attentive_reader *s = nb_alloc(1, sizeof *s);
    const struct nb_train_options *o = &model->options;
    const struct nb_cloze_shape cloze = cloze_shape(o);
    model->inside = s;
    *s = (struct attentive_reader){.batch = o->batch, .hidden = o->hidden};
    nb_cloze_init(&s->cloze, &cloze);
    make_arena(s, o);
    nb_parameters_reserve(&model->parameters, 1 + 2 * NB_READER_PAIR_PARAMETERS + NB_ADDITIVE_PARAMETERS + 5);
    if (init_readers(model, s) != 0 || init_answer(model, s) != 0) return -1;
    model->activation_bytes += s->arenas.kept.bytes;
    return 0;
}

static void release(struct nb_model *model) {
    struct attentive_reader *s = model->inside;
    if (!s) return;
    nb_reader_pair_release(&s->document);
    nb_reader_pair_release(&s->query);
    nb_additive_release(&s->attention);
    nb_projection_release(&s->of_document);
    nb_projection_release(&s->of_query);
    nb_projection_release(&s->answer);
    nb_cloze_release(&s->cloze);
    nb_arena_release(&s->arenas.kept);
    nb_arena_release(&s->arenas.passing);
    free(s->answers);
    free(s);
    model->inside = NULL;
}

/* ---- forward ---- */

static double answer_loss(struct nb_model *model, struct attentive_reader *s) {
    const int64_t n = s->batch * s->hidden;
    const float *of_document = nb_projection_forward(&s->of_document, s->found, 0, 1);
    const float *of_query = nb_projection_forward(&s->of_query, s->question, 0, 1);
    for (int64_t i = 0; i < n; i++) s->joint[i] = of_document[i] + of_query[i];
    nb_tanh_tensor(s->joint, n);
    nb_round_tensor(s->joint, n, model->options.dtype);
    const float *logits = nb_projection_forward(&s->answer, s->joint, 0, 1);
    nb_model_tell(model, "logits", "", logits, s->batch * n_entities(&model->options));
    return nb_cross_entropy_forward(s->probabilities, logits, s->answers, s->batch, n_entities(&model->options));
}

static double forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training) {
    struct attentive_reader *s = model->inside;
    (void)training;
    for (int64_t b = 0; b < s->batch; b++)
        s->answers[b] = nb_cloze_ask(&s->cloze, text, (uint64_t)(batch * s->batch + b), s->document.tokens + b,
                                     s->query.tokens + b, s->batch);
    nb_reader_pair_forward(&s->document, s->memory, NULL);
    nb_reader_pair_forward(&s->query, NULL, s->question);
    nb_additive_memory(&s->attention, s->memory);
    nb_additive_step(&s->attention, 0, s->found, s->question, s->memory);
    return answer_loss(model, s);
}

/* ---- backward ---- */

static void answer_backward(struct nb_model *model, struct attentive_reader *s, double scale) {
    float *dlogits = nb_projection_gradient(&s->answer, 0), *dsum = nb_projection_gradient(&s->of_document, 0);
    nb_cross_entropy_backward(dlogits, s->probabilities, s->answers, s->batch, n_entities(&model->options), scale);
    nb_model_tell_gradient(model, "logits", "", dlogits, s->batch * n_entities(&model->options));
    nb_projection_backward(&s->answer, s->djoint, 0, 1, 0);
    nb_projection_finish(&s->answer, s->joint);
    for (int64_t i = 0; i < s->batch * s->hidden; i++) dsum[i] = s->djoint[i] * (1 - s->joint[i] * s->joint[i]);
    nb_projection_backward(&s->of_document, s->dfound, 0, 1, 0);
    nb_projection_backward(&s->of_query, s->dquestion, 0, 1, 0);
    nb_projection_finish(&s->of_document, s->found);
    nb_projection_finish(&s->of_query, s->question);
}

static void backward(struct nb_model *model, double scale) {
    struct attentive_reader *s = model->inside;
    const int64_t n = model->options.sequence * 2 * s->batch * s->hidden;
    answer_backward(model, s, scale);
    memset(s->dmemory, 0, (size_t)n * sizeof *s->dmemory);
    nb_additive_start_backward(&s->attention);
    nb_additive_step_backward(&s->attention, 0, s->dquestion, s->dmemory, s->dfound, s->memory);
    nb_additive_finish(&s->attention, s->dmemory, s->memory, s->question);
    nb_reader_pair_backward(&s->document, s->dmemory, NULL);
    nb_reader_pair_backward(&s->query, NULL, s->dquestion);
}

/* ---- the workloads ---- */

static const struct nb_recurrent_defaults full = {.hidden = 240, .batch = 64, .sequence = 64, .learning_rate = 8e-5};
static const struct nb_recurrent_defaults tiny = {.hidden = 16, .batch = 4, .sequence = 16, .learning_rate = 3e-3};

const struct nb_workload nb_workload_attentive_reader = {
    .name = "attentive-reader",
    .summary = "Attentive reader: bidirectional LSTMs of 240, batch 64, over documents of 64 words and queries of 16",
    .complete = nb_recurrent_complete,
    .create = create,
    .forward = forward,
    .backward = backward,
    .optimizer = nb_recurrent_optimizer,
    .release = release,
    .flops = flops,
    .own = &full};
const struct nb_workload nb_workload_tiny_attentive_reader = {
    .name = "tiny-attentive-reader",
    .summary = "The attentive reader at a width of 16: batch 4, documents of 16 words, queries of 4",
    .complete = nb_recurrent_complete,
    .create = create,
    .forward = forward,
    .backward = backward,
    .optimizer = nb_recurrent_optimizer,
    .release = release,
    .flops = flops,
    .own = &tiny};
