// SPDX-License-Identifier: Apache-2.0
/* The words of a text by place, without a dictionary: a word is known by the hash of its lower-cased letters. */
#ifndef NB_TRAIN_WORDS_H
#define NB_TRAIN_WORDS_H

#include "src/train/text.h"

struct nb_word {
    uint64_t hash;
    int64_t n_bytes;
};

/* Where sample i begins; always the same place for the same text. */
size_t nb_words_start(const struct nb_text *text, uint64_t i);
/* The next word at or behind *at, which is moved past it; the text begins again at its end. A text without letters and digits has each
 * of its bytes for a word. */
struct nb_word nb_words_next(const struct nb_text *text, size_t *at);

#endif
