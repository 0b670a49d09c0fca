// SPDX-License-Identifier: Apache-2.0
/* A config.json as Hugging Face has it, read as it is: keys that a step does not depend on are passed over.
 *
 * One token is generated, with 1024 before it in the cache of keys and values; more are a training step of sequences as long as the model takes at
 * most, whose masked half is computed. Without a number a decoder generates one, and BERT trains on a sequence. Everything is in f32, whatever the
 * file's torch_dtype. Linear layers have their bias in the product, as frameworks launch them; keys and values of grouped heads are read
 * once; dropout is left out. */
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/models/operations.h"

enum { CACHED = 1024, MOST_SIZE = 1 << 24 };

static const struct family {
    const char *name;
    enum { GATED, GPT2, BERT } build;
    int norms; /* of a layer */
    bool query_norms, query_biases, tied;
} families[] = {{"llama", GATED, 2, .tied = false},        {"mistral", GATED, 2, .tied = false},
                {"qwen2", GATED, 2, .query_biases = true}, {"qwen3", GATED, 2, .query_norms = true},
                {"gemma", GATED, 2, .tied = true},         {"gemma2", GATED, 4, .tied = true},
                {"gpt2", GPT2, 2, .tied = true},           {"bert", BERT, 2, .tied = true}};
enum { N_FAMILIES = sizeof families / sizeof families[0] };

struct config {
    const struct family *family;
    int hidden, layers, inner, heads, groups, head, vocabulary, positions, types;
    bool tied;
    int tokens, sequences, queries, context; /* queries: of one sequence, each of which attends to `context` tokens */
};

/* ---- keys ---- */

/* An absent or null key is `usual`, where that is not 0. */
static int size_of(const struct nb_jsonc *file, const char *key, int usual, int *out) {
    const cJSON *node = nb_json_get(file->root, key);
    double value = usual;
    if (!node || cJSON_IsNull(node)) {
        if (usual == 0) return nb_error("%s: no \"%s\", which the shapes of a step need", file->path, key);
    } else if (nb_jsonc_number(file, node, 1, MOST_SIZE, true, &value) != 0) {
        return -1;
    }
    *out = (int)value;
    return 0;
}

static int family_of(const struct nb_jsonc *file, const struct family **out) {
    const cJSON *node = nb_json_get(file->root, "model_type");
    struct nb_strbuf known released_by(nb_strbuf_release) = {0};
    if (!cJSON_IsString(node)) return nb_jsonc_wrong_type(file, node, "model_type", "a text");
    for (int i = 0; i < N_FAMILIES; i++) {
        const char *name = families[i].name;
        nb_strbuf_addf(&known, "%s%s", i == 0 ? "" : i == N_FAMILIES - 1 ? " and " : ", ", name);
        if (strcmp(node->valuestring, name) == 0) *out = &families[i];
    }
    if (!*out)
        nb_jsonc_error(
            file, node,
            "\"model_type\": the family '%.40s' is not known; %s are. A list of its operations can be written for "
            "any other (cmd/guide/claims.md)",
            node->valuestring, known.text);
    return *out ? 0 : -1;
}

static int read_gpt2(struct config *c, const struct nb_jsonc *file) {
    if (size_of(file, "n_embd", 0, &c->hidden) != 0 || size_of(file, "n_layer", 0, &c->layers) != 0 ||
        size_of(file, "n_head", 0, &c->heads) != 0 || size_of(file, "n_inner", 4 * c->hidden, &c->inner) != 0 ||
        size_of(file, "n_positions", 1024, &c->positions) != 0)
        return -1;
    if (c->hidden % c->heads != 0)
        return nb_error("%s: \"n_head\": %d does not divide the %d of \"n_embd\"", file->path, c->heads, c->hidden);
    c->groups = c->heads;
    c->head = c->hidden / c->heads;
    return 0;
}

static int read_usual(struct config *c, const struct nb_jsonc *file) {
    if (size_of(file, "hidden_size", 0, &c->hidden) != 0 || size_of(file, "num_hidden_layers", 0, &c->layers) != 0 ||
        size_of(file, "intermediate_size", 0, &c->inner) != 0 ||
        size_of(file, "num_attention_heads", 0, &c->heads) != 0)
        return -1;
    const int head = c->hidden % c->heads == 0 ? c->hidden / c->heads : 0;
    if (size_of(file, "num_key_value_heads", c->heads, &c->groups) != 0 ||
        size_of(file, "head_dim", head, &c->head) != 0 ||
        size_of(file, "max_position_embeddings", 2048, &c->positions) != 0 ||
        size_of(file, "type_vocab_size", 2, &c->types) != 0)
        return -1;
    if (c->heads % c->groups != 0)
        return nb_error("%s: \"num_key_value_heads\": %d does not divide the %d of \"num_attention_heads\"", file->path,
                        c->groups, c->heads);
    return 0;
}

static int read_config(struct config *c, const struct nb_jsonc *file) {
    if (family_of(file, &c->family) != 0) return -1;
    if ((c->family->build == GPT2 ? read_gpt2(c, file) : read_usual(c, file)) != 0) return -1;
    const cJSON *tied = nb_json_get(file->root, "tie_word_embeddings");
    c->tied = cJSON_IsBool(tied) ? cJSON_IsTrue(tied) : c->family->tied;
    if (tied && !cJSON_IsBool(tied) && !cJSON_IsNull(tied))
        return nb_jsonc_wrong_type(file, tied, "tie_word_embeddings", "true or false");
    return size_of(file, "vocab_size", 0, &c->vocabulary);
}

static void lay_out(struct config *c, int tokens) {
    c->tokens = tokens > 0 ? tokens : c->family->build == BERT ? c->positions : 1;
    if (c->tokens == 1) {
        c->sequences = c->queries = 1;
        c->context = (CACHED < c->positions ? CACHED : c->positions - 1) + 1;
        return;
    }
    c->context = c->queries = c->tokens < c->positions ? c->tokens : c->positions;
    c->sequences = (c->tokens + c->queries - 1) / c->queries;
}

/* ---- operations ---- */

struct builder {
    struct nb_model_step *step;
    const struct config *c;
    int count; /* of what is added */
};

static struct nb_operation operation(const struct builder *b, enum nb_operation_kind kind, int64_t rows, int64_t cols,
                                     int times, const char *where) {
    return (struct nb_operation){.kind = kind,
                                 .rows = rows,
                                 .cols = cols,
                                 .batch = 1,
                                 .count = times * b->count,
                                 .reads = 1,
                                 .writes = 1,
                                 .dispatches = 1,
                                 .where = (char *)where}; /* copied by whoever takes it */
}

static void add_parameters(const struct builder *b, double elements, int tensors) {
    b->step->parameters += b->count * elements;
    b->step->tensors += b->count * tensors;
}

static void product(const struct builder *b, int64_t inner, int64_t cols, int times, const char *where) {
    struct nb_operation o = operation(b, NB_PRODUCT, b->c->tokens, cols, times, where);
    o.inner = inner;
    nb_model_step_add(b->step, &o);
    add_parameters(b, (double)times * (double)inner * (double)cols, times);
}

/* Its weight, and but for Llama's relatives a bias. */
static void norm(const struct builder *b, int64_t rows, int64_t cols, int times, const char *where) {
    const struct nb_operation o = operation(b, NB_NORM, rows, cols, times, where);
    const int tensors = times * (b->c->family->build == GATED ? 1 : 2);
    nb_model_step_add(b->step, &o);
    add_parameters(b, tensors * (double)cols, tensors);
}

static void elementwise(const struct builder *b, int64_t cols, int reads, int writes, int dispatches, int times,
                        const char *where) {
    struct nb_operation o = operation(b, NB_ELEMENTWISE, b->c->tokens, cols, times, where);
    o.reads = reads;
    o.writes = writes;
    o.dispatches = dispatches;
    nb_model_step_add(b->step, &o);
}

static void embedding(const struct builder *b, int entries, const char *where) {
    const struct nb_operation o = operation(b, NB_EMBEDDING, b->c->tokens, b->c->hidden, 1, where);
    nb_model_step_add(b->step, &o);
    add_parameters(b, (double)entries * b->c->hidden, 1);
}

static void softmax(const struct builder *b, int64_t rows, int64_t cols, const char *where) {
    const struct nb_operation o = operation(b, NB_SOFTMAX, rows, cols, 1, where);
    nb_model_step_add(b->step, &o);
}

/* Of queries, keys and values: scores, softmax, sums of values; the heads that share keys and values are rows of one product. */
static void attention(const struct builder *b) {
    const struct config *c = b->c;
    const int64_t rows = (int64_t)(c->heads / c->groups) * c->queries;
    struct nb_operation scores = operation(b, NB_PRODUCT, rows, c->context, 1, "attention, scores"),
                        values = operation(b, NB_PRODUCT, rows, c->head, 1, "attention, values");
    scores.inner = c->head;
    values.inner = c->context;
    scores.batch = values.batch = (int64_t)c->sequences * c->groups;
    nb_model_step_add(b->step, &scores);
    nb_model_step_add(b->step, &values);
    softmax(b, (int64_t)c->sequences * c->heads * c->queries, c->context, "attention, softmax");
}

/* Llama and its relatives: rotary positions, SwiGLU or GeGLU, norms before the sublayers (gemma2: behind them, too). */
static void gated_layers(const struct builder *b) {
    const struct config *c = b->c;
    const int64_t queries = (int64_t)c->heads * c->head, keys = (int64_t)c->groups * c->head;
    norm(b, c->tokens, c->hidden, c->family->norms, "of a layer");
    product(b, c->hidden, queries, 1, "queries");
    product(b, c->hidden, keys, 2, "keys, values");
    if (c->family->query_biases) add_parameters(b, (double)(queries + 2 * keys), 3);
    if (c->family->query_norms) {
        norm(b, (int64_t)c->tokens * c->heads, c->head, 1, "of queries");
        norm(b, (int64_t)c->tokens * c->groups, c->head, 1, "of keys");
    }
    elementwise(b, queries, 5, 4, 5, 1, "rotary positions of queries");
    elementwise(b, keys, 5, 4, 5, 1, "rotary positions of keys");
    attention(b);
    product(b, queries, c->hidden, 1, "output of attention");
    elementwise(b, c->hidden, 2, 1, 1, 2, "residual sums");
    product(b, c->hidden, c->inner, 2, "gate, up");
    elementwise(b, c->inner, 3, 2, 2, 1, "gate times up");
    product(b, c->inner, c->hidden, 1, "down");
}

/* GPT-2 and BERT: biases everywhere. tanh's GELU is written operation by operation there, BERT's is one. */
static void plain_layers(const struct builder *b) {
    const struct config *c = b->c;
    const bool gpt2 = c->family->build == GPT2;
    norm(b, c->tokens, c->hidden, c->family->norms, "of a layer");
    product(b, c->hidden, gpt2 ? 3 * c->hidden : c->hidden, gpt2 ? 1 : 3, "queries, keys, values");
    attention(b);
    product(b, c->hidden, c->hidden, 1, "output of attention");
    elementwise(b, c->hidden, 2, 1, 1, 2, "residual sums");
    product(b, c->hidden, c->inner, 1, "up");
    if (gpt2)
        elementwise(b, c->inner, 10, 8, 8, 1, "GELU, unfused");
    else
        elementwise(b, c->inner, 1, 1, 1, 1, "GELU");
    product(b, c->inner, c->hidden, 1, "down");
    add_parameters(b, 5.0 * c->hidden + c->inner, gpt2 ? 4 : 6);
}

/* The head's matrix is the table of the embedding where they are tied. */
static void head(const struct builder *b) {
    product(b, b->c->hidden, b->c->vocabulary, 1, "head");
    if (b->c->tied) add_parameters(b, -(double)b->c->hidden * b->c->vocabulary, -1);
    if (b->step->training) softmax(b, b->c->tokens, b->c->vocabulary, "loss");
}

static void build(struct nb_model_step *step, const struct config *c) {
    const struct builder once = {step, c, 1}, layers = {step, c, c->layers};
    embedding(&once, c->vocabulary, "tokens");
    if (c->family->build != GATED) {
        embedding(&once, c->positions, "positions");
        if (c->family->build == BERT) embedding(&once, c->types, "types");
        elementwise(&once, c->hidden, 2, 1, 1, c->family->build == BERT ? 2 : 1, "sum of embeddings");
    }
    if (c->family->build == GATED)
        gated_layers(&layers);
    else
        plain_layers(&layers);
    norm(&once, c->tokens, c->hidden, 1, c->family->build == BERT ? "of the embeddings" : "before the head");
    if (c->family->build == BERT) { /* what masked words are predicted by */
        product(&once, c->hidden, c->hidden, 1, "transform");
        elementwise(&once, c->hidden, 1, 1, 1, 1, "GELU");
        norm(&once, c->tokens, c->hidden, 1, "of the transform");
    }
    head(&once);
}

int nb_huggingface_read(struct nb_model_step *step, const struct nb_jsonc *file, int tokens) {
    struct config c = {0};
    for (const cJSON *node = file->root->child; node; node = node->next)
        if (nb_json_get(file->root, node->string) != node) return nb_jsonc_twice(file, node);
    if (read_config(&c, file) != 0) return -1;
    if (tokens == 1 && c.family->build == BERT)
        return nb_error("%s: --tokens 1: bert generates no tokens; a training step has 2 or more", file->path);
    lay_out(&c, tokens);
    step->tokens = c.tokens;
    step->context = c.context;
    step->training = c.tokens > 1;
    step->title = nb_textf("%s (%s: %d layers, hidden size %d)", step->name, c.family->name, c.layers, c.hidden);
    step->source = nb_strdup("its config.json");
    build(step, &c);
    return 0;
}
