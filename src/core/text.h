// SPDX-License-Identifier: Apache-2.0
/* Strings that grow (zero-initialise; text is never null after the first append), lists of texts, the nearest name, hashes, numbers by
 * text. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/log.h" /* released_by(), for whoever has a text */

struct nb_strbuf {
    char *text;
    size_t len, cap;
};
void nb_strbuf_add(struct nb_strbuf *b, const char *s);
void nb_strbuf_addn(struct nb_strbuf *b, const char *s, size_t n);
void nb_strbuf_addf(struct nb_strbuf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nb_strbuf_addv(struct nb_strbuf *b, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
void nb_strbuf_clear(struct nb_strbuf *b); /* its text is "", memory kept */
void nb_strbuf_release(struct nb_strbuf *b);
struct nb_strbuf nb_strbuf_empty(void); /* whose text is "" already */
/* A text as printf() makes it; owned. */
char *nb_textf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* On which line of the text, from 1, does `at` stand? */
int nb_text_line(const char *text, const char *at);
bool nb_text_ends(const char *text, const char *end);
/* Is the word one of a text with commas between? */
bool nb_text_lists(const char *text, const char *word);
/* "quick" of "dir/quick.json" and ".json"; owned. */
char *nb_base_name(const char *path, const char *end);

/* Why something is refused, for a caller who says where it stands; returns -1, so that a function can end with `return nb_reason(...)`. */
int nb_reason(char *reason, size_t n, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Zero-initialise. The texts are copies, which the list owns. */
struct nb_strings {
    char **items;
    size_t n;
};
void nb_strings_add(struct nb_strings *s, const char *text);
/* Adds the words of a text, of which any may be empty: one more than there are separators. */
void nb_strings_split(struct nb_strings *s, const char *text, char separator);
void nb_strings_release(struct nb_strings *s);

/* The name in names[0..n) nearest to s by edit distance, or null when none is near: for "did you mean". */
const char *nb_nearest(const char *s, const char *const *names, size_t n);
/* "; did you mean 'NAME'?", "" when none is near. */
struct nb_hint {
    char text[128];
};
struct nb_hint nb_did_you_mean(const char *s, const char *const *names, size_t n);

/* Appends text so that a terminal shows it as it stands: control characters and broken UTF-8 become \xNN; without utf8 everything
 * beyond ASCII does. */
void nb_escape_terminal(struct nb_strbuf *out, const char *text, bool utf8);

/* The shortest decimal text that reads back as the same double. */
void nb_shortest_text(double value, char text[32]);
/* The same of 15 to 17 digits: 0.1 and 0.10000000000000001 are told apart. */
void nb_exact_text(double value, char text[32]);

/* ---- hashes ---- */

/* FNV-1a, 64 bits (Fowler, Noll & Vo): of more bytes after those that `hash` is of; the first hash is NB_HASH_EMPTY. */
#define NB_HASH_EMPTY 0xcbf29ce484222325u
static inline uint64_t nb_hash(uint64_t hash, const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}
uint64_t nb_hash_text(const char *text);   /* without its null byte */
uint32_t nb_hash32_text(const char *text); /* FNV-1a, 32 bits: for names of files */

/* ---- numbers by text ---- */

/* Which number belongs to a text: a hash table for keys and variants, of which a matrix may have hundreds of thousands. */

#define NB_NOWHERE ((size_t)-1)

/* Zero-initialise. Texts are borrowed. */
struct nb_text_map {
    struct nb_text_slot {
        const char *text; /* null: free */
        size_t value;
    } * slots;
    size_t n, n_slots; /* n_slots: a power of two, more than n */
};
/* Adds the text with its value, and returns NB_NOWHERE; a text that is there keeps its value, which is returned. */
size_t nb_text_map_add(struct nb_text_map *map, const char *text, size_t value);
size_t nb_text_map_find(const struct nb_text_map *map, const char *text); /* its value, or NB_NOWHERE */
void nb_text_map_release(struct nb_text_map *map);
