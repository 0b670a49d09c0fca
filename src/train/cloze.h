// SPDX-License-Identifier: Apache-2.0
/* Questions about a text as Hermann et al. 2015 made them of news: a document, a query of the words behind it with one word left out, and
 * which of the document's entities that is. Entities are the words of five letters and more that occur in the document (a text without
 * annotations has no better mark of names), numbered by their first occurrence as in Chen, Bolton & Manning 2016. */
#ifndef NB_TRAIN_CLOZE_H
#define NB_TRAIN_CLOZE_H

#include "src/train/text.h"
#include "src/train/words.h"

struct nb_cloze_shape {
    int64_t document, query; /* words */
    int32_t entities;        /* tokens below are entities; the token `entities` stands for the word left out */
    int32_t vocabulary;      /* tokens in all: other words by their hash */
};

struct nb_cloze {
    struct nb_cloze_shape shape;
    struct nb_word *words; /* the document's, and those behind it */
    uint64_t *entities;    /* hashes, by number */
};

void nb_cloze_init(struct nb_cloze *c, const struct nb_cloze_shape *shape);
/* Question number i: word t of the document goes to document[t * stride], of the query likewise. Returns the entity asked for; -1 where
 * none of the document's entities follows it. */
int32_t nb_cloze_ask(struct nb_cloze *c, const struct nb_text *text, uint64_t i, int32_t *document, int32_t *query,
                     int64_t stride);
void nb_cloze_release(struct nb_cloze *c);

#endif
