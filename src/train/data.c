// SPDX-License-Identifier: Apache-2.0
/* What models are trained on: text, its words, questions about it, and drawn images. */

#include "src/train/data.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/text.h"

/* English prose of Debian's base-files package, longest first; the last one is of netbase. */
static const char *const usual[] = {"/usr/share/common-licenses/GPL-3", "/usr/share/common-licenses/GFDL-1.3",
                                    "/usr/share/common-licenses/GPL-2", "/usr/share/common-licenses/Apache-2.0",
                                    "/etc/services"};
enum { LEAST_BYTES = 1024, TEXT_STREAM = 0x7e97 };
static const long MOST_BYTES = 1L << 30;

/* Closes f; null: -1. */
static int read_all(struct nb_text *text, FILE *f, const char *path) {
    if (!f) return -1;
    long n = -1;
    if (fseek(f, 0, SEEK_END) == 0) n = ftell(f);
    rewind(f);
    if (n >= 0 && n <= MOST_BYTES) {
        text->bytes = nb_alloc((unsigned long long)n + 1, 1);
        text->n = fread(text->bytes, 1, (size_t)n, f);
    }
    fclose(f);
    snprintf(text->path, sizeof text->path, "%s", path);
    return 0;
}

static int open_named(struct nb_text *text, const char *path) {
    if (read_all(text, nb_file_open(path), path) != 0) return -1;
    if (text->n >= LEAST_BYTES) return 0;
    const size_t n = text->n;
    nb_text_release(text);
    return nb_error("text %s: %zu bytes could be read; training needs a file of %d to %ld", path, n, LEAST_BYTES,
                    MOST_BYTES);
}

int nb_text_open(struct nb_text *text, const char *path) {
    *text = (struct nb_text){0};
    const char *named = path ? path : getenv("NORMBENCH_TEXT");
    if (named && *named) return open_named(text, named);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        if (read_all(text, fopen(usual[i], "rbe"), usual[i]) == 0 && text->n >= LEAST_BYTES) return 0;
        nb_text_release(text);
    }
    return nb_error("no text to train on: %s and the like are not there; name a file, or set NORMBENCH_TEXT", usual[0]);
}

void nb_text_sequence(const struct nb_text *text, uint64_t i, int64_t length, int32_t *tokens, int32_t *targets) {
    assert(text && text->n > 0 && length > 0);
    const uint64_t start = nb_random_bits(nb_random_stream(0, TEXT_STREAM), i) % text->n;
    for (int64_t t = 0; t < length; t++) {
        tokens[t] = text->bytes[(start + (uint64_t)t) % text->n];
        targets[t] = text->bytes[(start + (uint64_t)t + 1) % text->n];
    }
}

void nb_text_release(struct nb_text *text) {
    free(text->bytes);
    *text = (struct nb_text){0};
}

/* ---- words ---- */

/* A word is a run of ASCII letters and digits and of bytes beyond ASCII, which are letters in UTF-8. */

enum { WORDS_STREAM = 0x3047d5 };

static unsigned lower(unsigned c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; }
static bool in_word(unsigned c) { return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c >= 0x80; }

size_t nb_words_start(const struct nb_text *text, uint64_t i) {
    return (size_t)(nb_random_bits(nb_random_stream(0, WORDS_STREAM), i) % text->n);
}

/* FNV-1a, mixed at the end since its low bits are weak. */
static struct nb_word read_word(const struct nb_text *text, size_t *at) {
    struct nb_word word = {.hash = NB_HASH_EMPTY};
    do {
        const unsigned char c = (unsigned char)lower(text->bytes[*at]);
        word.hash = nb_hash(word.hash, &c, 1);
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

/* ---- questions ---- */

/* The words behind the document are searched for the first entity that has half a query on either side. */

enum { ENTITY_BYTES = 5 };

/* As many words behind the document are searched as it has, and two queries more. */
static int64_t n_words(const struct nb_cloze_shape *s) { return 2 * (s->document + s->query); }

void nb_cloze_init(struct nb_cloze *c, struct nb_arena *arena, const struct nb_cloze_shape *s) {
    assert(s->document > 0 && s->query > 0 && s->entities > 0 && s->vocabulary > s->entities + 1);
    *c = (struct nb_cloze){.shape = *s,
                           .words = nb_arena_take_bytes(arena, (size_t)n_words(s) * sizeof *c->words),
                           .entities = nb_arena_take_bytes(arena, (size_t)s->entities * sizeof *c->entities)};
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

/* ---- images: gratings ---- */

enum { DIRECTIONS = 5, STREAM = 0x7e87 };
static const double PI = 3.14159265358979323846, WAVELENGTHS[2] = {5, 8}, NOISE = 0.4;

int32_t nb_texture(float *pixels, uint64_t i, int64_t side) {
    const struct nb_random r = nb_random_stream(i, STREAM);
    const int32_t class = (int32_t)(nb_random_bits(r, 0) % NB_TEXTURE_CLASSES);
    const double direction = PI * (class % DIRECTIONS + 0.3 * (nb_random_open(r, 1) - 0.5)) / DIRECTIONS;
    const double wave = 2 * PI / WAVELENGTHS[class / DIRECTIONS], phase = 2 * PI * nb_random_open(r, 2);
    const double contrast = 0.3 + nb_random_open(r, 3);
    uint64_t next = 16;
    for (int colour = 0; colour < NB_TEXTURE_COLOURS; colour++) {
        const double weight = nb_random_normal(r, 4 + (uint64_t)colour),
                     bright = nb_random_normal(r, 8 + (uint64_t)colour);
        for (int64_t row = 0; row < side; row++)
            for (int64_t col = 0; col < side; col++) {
                const double along = (double)col * cos(direction) + (double)row * sin(direction);
                *pixels++ = (float)(bright + contrast * weight * sin(wave * along + phase) +
                                    NOISE * nb_random_normal(r, next++));
            }
    }
    return class;
}
