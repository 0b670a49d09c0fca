// SPDX-License-Identifier: Apache-2.0
/* What models are trained on: bytes of a real text, its words, questions about it, and drawn images. */
#ifndef NB_TRAIN_DATA_H
#define NB_TRAIN_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "src/train/tensor.h"

/* Real bytes, of a file that the user names, else of one that every Debian has. */
struct nb_text {
    unsigned char *bytes;
    size_t n;
    char path[256];
};

/* path null: NORMBENCH_TEXT, else the first of a list of files that every Debian has (licences). -1 after nb_error. */
int nb_text_open(struct nb_text *text, const char *path);
/* Sequence number i of so many bytes, the start drawn from i alone, and the byte behind each as its target; past the end the text begins
 * again. */
void nb_text_sequence(const struct nb_text *text, uint64_t i, int64_t length, int32_t *tokens, int32_t *targets);
void nb_text_release(struct nb_text *text);

/* The words of a text by place, without a dictionary: a word is known by the hash of its lower-cased letters. */

struct nb_word {
    uint64_t hash;
    int64_t n_bytes;
};

/* Where sample i begins; always the same place for the same text. */
size_t nb_words_start(const struct nb_text *text, uint64_t i);
/* The next word at or behind *at, which is moved past it; the text begins again at its end. A text without letters and digits has each
 * of its bytes for a word. */
struct nb_word nb_words_next(const struct nb_text *text, size_t *at);

/* Questions about a text as Hermann et al. 2015 made them of news: a document, a query of the words behind it with one word left out, and
 * which of the document's entities that is. Entities are the words of five letters and more that occur in the document (a text without
 * annotations has no better mark of names), numbered by their first occurrence as in Chen, Bolton & Manning 2016. */

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

void nb_cloze_init(struct nb_cloze *c, struct nb_arena *arena, const struct nb_cloze_shape *shape);
/* Question number i: word t of the document goes to document[t * stride], of the query likewise. Returns the entity asked for; -1 where
 * none of the document's entities follows it. */
int32_t nb_cloze_ask(struct nb_cloze *c, const struct nb_text *text, uint64_t i, int32_t *document, int32_t *query,
                     int64_t stride);

/* Images that differ in texture, drawn from a number: gratings of ten classes (five directions, two wavelengths) in a
 * colour, a phase, a contrast and a brightness of their own, under noise. They stand for CIFAR-10, which no machine has by itself: its
 * shapes, ten classes, neighbouring pixels that are alike. They are easier than photographs, so that losses are no losses on CIFAR-10. */

enum { NB_TEXTURE_CLASSES = 10, NB_TEXTURE_COLOURS = 3 };

/* Image number i: its class, pixels[colour][row][column]. */
int32_t nb_texture(float *pixels, uint64_t i, int64_t side);

#endif
