// SPDX-License-Identifier: Apache-2.0
/* The words behind the document are searched for the first entity that has half a query on either side. */
#include "src/train/cloze.h"

#include <assert.h>
#include <stdlib.h>

#include "src/core/log.h"

enum { ENTITY_BYTES = 5 };

/* As many words behind the document are searched as it has, and two queries more. */
static int64_t n_words(const struct nb_cloze_shape *s) { return 2 * (s->document + s->query); }

void nb_cloze_init(struct nb_cloze *c, const struct nb_cloze_shape *s) {
    assert(s->document > 0 && s->query > 0 && s->entities > 0 && s->vocabulary > s->entities + 1);
    *c = (struct nb_cloze){.shape = *s,
                           .words = nb_alloc((unsigned long long)n_words(s), sizeof *c->words),
                           .entities = nb_alloc((unsigned long long)s->entities, sizeof *c->entities)};
}

void nb_cloze_release(struct nb_cloze *c) {
    free(c->words);
    free(c->entities);
    *c = (struct nb_cloze){0};
}

static int32_t entity_of(const struct nb_cloze *c, int32_t n_entities, const struct nb_word *word) {
    if (word->n_bytes < ENTITY_BYTES) return -1;
    for (int32_t e = 0; e < n_entities; e++)
        if (c->entities[e] == word->hash) return e;
    return -1;
}

static int32_t number_entities(struct nb_cloze *c) {
    int32_t n = 0;
    for (int64_t t = 0; t < c->shape.document && n < c->shape.entities; t++)
        if (c->words[t].n_bytes >= ENTITY_BYTES && entity_of(c, n, &c->words[t]) < 0)
            c->entities[n++] = c->words[t].hash;
    return n;
}

static int32_t token_of(const struct nb_cloze *c, int32_t n_entities, const struct nb_word *word) {
    const int32_t entity = entity_of(c, n_entities, word), first = c->shape.entities + 1;
    if (entity >= 0) return entity;
    return first + (int32_t)(word->hash % (uint64_t)(c->shape.vocabulary - first));
}

/* The place of the word to leave out. */
static int64_t find_answer(const struct nb_cloze *c, int32_t n_entities) {
    const int64_t half = c->shape.query / 2, first = c->shape.document + half;
    for (int64_t t = first; t + c->shape.query - half <= n_words(&c->shape); t++)
        if (entity_of(c, n_entities, &c->words[t]) >= 0) return t;
    return first;
}

int32_t nb_cloze_ask(struct nb_cloze *c, const struct nb_text *text, uint64_t i, int32_t *document, int32_t *query,
                     int64_t stride) {
    size_t at = nb_words_start(text, i);
    for (int64_t t = 0; t < n_words(&c->shape); t++) c->words[t] = nb_words_next(text, &at);
    const int32_t n_entities = number_entities(c);
    const int64_t answer = find_answer(c, n_entities), begin = answer - c->shape.query / 2;
    for (int64_t t = 0; t < c->shape.document; t++) document[t * stride] = token_of(c, n_entities, &c->words[t]);
    for (int64_t t = 0; t < c->shape.query; t++)
        query[t * stride] = begin + t == answer ? c->shape.entities : token_of(c, n_entities, &c->words[begin + t]);
    return entity_of(c, n_entities, &c->words[answer]);
}
