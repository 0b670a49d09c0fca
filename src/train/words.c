// SPDX-License-Identifier: Apache-2.0
/* A word is a run of ASCII letters and digits and of bytes beyond ASCII, which are letters in UTF-8. */
#include "src/train/words.h"

#include <assert.h>
#include <stdbool.h>

#include "src/core/random.h"

enum { WORDS_STREAM = 0x3047d5 };

static unsigned lower(unsigned c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; }
static bool in_word(unsigned c) { return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c >= 0x80; }

size_t nb_words_start(const struct nb_text *text, uint64_t i) {
    return (size_t)(nb_random_bits(nb_random_stream(0, WORDS_STREAM), i) % text->n);
}

/* FNV-1a, mixed at the end since its low bits are weak. */
static struct nb_word read_word(const struct nb_text *text, size_t *at) {
    struct nb_word word = {.hash = 0xcbf29ce484222325u};
    do {
        word.hash = (word.hash ^ lower(text->bytes[*at])) * 0x100000001b3u;
        word.n_bytes++;
        *at = (*at + 1) % text->n;
    } while (in_word(text->bytes[*at]) && *at != 0 && (size_t)word.n_bytes < text->n);
    word.hash = nb_random_mix(word.hash);
    return word;
}

struct nb_word nb_words_next(const struct nb_text *text, size_t *at) {
    assert(text->n > 0 && *at < text->n);
    for (size_t i = 0; i < text->n && !in_word(text->bytes[*at]); i++) *at = (*at + 1) % text->n;
    return read_word(text, at);
}
