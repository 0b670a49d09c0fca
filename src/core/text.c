// SPDX-License-Identifier: Apache-2.0
#include "src/core/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/utf8.h"

static void reserve(struct nb_strbuf *b, size_t more) {
    if (b->len + more + 1 <= b->cap) return;
    b->cap = 2 * b->cap > b->len + more + 1 ? 2 * b->cap : b->len + more + 1;
    b->text = nb_realloc(b->text, b->cap, 1);
}

void nb_strbuf_addn(struct nb_strbuf *b, const char *s, size_t n) {
    reserve(b, n);
    memcpy(b->text + b->len, s, n);
    b->len += n;
    b->text[b->len] = '\0';
}

void nb_strbuf_add(struct nb_strbuf *b, const char *s) { nb_strbuf_addn(b, s, strlen(s)); }

void nb_strbuf_addv(struct nb_strbuf *b, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n > 0) {
        reserve(b, (size_t)n);
        vsnprintf(b->text + b->len, (size_t)n + 1, format, again);
        b->len += (size_t)n;
    } else {
        nb_strbuf_addn(b, "", 0);
    }
    va_end(again);
}

void nb_strbuf_addf(struct nb_strbuf *b, const char *format, ...) {
    va_list args;
    va_start(args, format);
    nb_strbuf_addv(b, format, args);
    va_end(args);
}

char *nb_textf(const char *format, ...) {
    struct nb_strbuf text = {0};
    va_list args;
    va_start(args, format);
    nb_strbuf_addv(&text, format, args);
    va_end(args);
    return text.text;
}

struct nb_strbuf nb_strbuf_empty(void) {
    struct nb_strbuf b = {0};
    nb_strbuf_clear(&b);
    return b;
}

void nb_strbuf_clear(struct nb_strbuf *b) {
    b->len = 0;
    nb_strbuf_add(b, "");
}

void nb_strbuf_release(struct nb_strbuf *b) {
    free(b->text);
    *b = (struct nb_strbuf){0};
}

bool nb_text_lists(const char *text, const char *word) {
    const size_t n = strlen(word);
    for (; *text; text += strcspn(text, ","), text += *text == ',')
        if (strcspn(text, ",") == n && strncmp(text, word, n) == 0) return true;
    return false;
}

int nb_text_line(const char *text, const char *at) {
    int line = 1;
    for (; text < at; text++) line += *text == '\n';
    return line;
}

bool nb_text_ends(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

char *nb_base_name(const char *path, const char *end) {
    const char *slash = strrchr(path, '/');
    char *name = nb_strdup(slash ? slash + 1 : path);
    if (nb_text_ends(name, end)) name[strlen(name) - strlen(end)] = '\0';
    return name;
}

int nb_reason(char *reason, size_t n, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(reason, n, format, args);
    va_end(args);
    return -1;
}

void nb_strings_add(struct nb_strings *s, const char *text) { *NB_PUSH(s->items, s->n) = nb_strdup(text); }

void nb_strings_split(struct nb_strings *s, const char *text, char separator) {
    const char separators[] = {separator, '\0'};
    for (;; text++) {
        const size_t n = strcspn(text, separators);
        *NB_PUSH(s->items, s->n) = nb_textf("%.*s", (int)n, text);
        text += n;
        if (*text == '\0') break;
    }
}

void nb_strings_release(struct nb_strings *s) {
    for (size_t i = 0; i < s->n; i++) free(s->items[i]);
    free(s->items);
    *s = (struct nb_strings){0};
}

/* Levenshtein distance; names longer than the table are simply far. */
static size_t edit_distance(const char *a, const char *b) {
    enum { LONGEST = 64 };
    size_t la = strlen(a), lb = strlen(b), row[LONGEST + 1];
    if (la > LONGEST || lb > LONGEST) return LONGEST;
    for (size_t j = 0; j <= lb; j++) row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[lb];
}

const char *nb_nearest(const char *s, const char *const *names, size_t n) {
    const char *nearest = NULL;
    size_t limit = strlen(s) / 3 + 2, best = limit;
    for (size_t i = 0; i < n; i++) {
        size_t d = edit_distance(s, names[i]);
        if (d < best) {
            best = d;
            nearest = names[i];
        }
    }
    return nearest;
}

struct nb_hint nb_did_you_mean(const char *s, const char *const *names, size_t n) {
    const char *nearest = nb_nearest(s, names, n);
    struct nb_hint hint = {""};
    if (nearest) snprintf(hint.text, sizeof hint.text, "; did you mean '%s'?", nearest);
    return hint;
}

/* ---- what a terminal shows ---- */

void nb_escape_terminal(struct nb_strbuf *out, const char *text, bool utf8) {
    nb_strbuf_add(out, "");
    for (const char *s = text; *s;) {
        uint32_t code = 0;
        size_t len = nb_utf8_decode(s, &code);
        bool plain = len && !nb_utf8_is_command(code) && (utf8 || code < 0x80);
        size_t n = len ? len : 1;
        if (plain) nb_strbuf_addn(out, s, n);
        for (size_t i = 0; i < n && !plain; i++) nb_strbuf_addf(out, "\\x%02X", (unsigned char)s[i]);
        s += n;
    }
}

static void print_digits(double value, int least, char text[32]) {
    for (int digits = least; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        if (strtod(text, NULL) == value) return;
    }
}

void nb_shortest_text(double value, char text[32]) { print_digits(value, 1, text); }
void nb_exact_text(double value, char text[32]) { print_digits(value, 15, text); }

/* ---- hashes ---- */

uint64_t nb_hash_text(const char *text) { return nb_hash(NB_HASH_EMPTY, text, strlen(text)); }

uint32_t nb_hash32_text(const char *text) {
    uint32_t hash = 0x811c9dc5u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x01000193u;
    return hash;
}

/* ---- numbers by text ---- */

/* Open addressing with linear probing, at most half full. */

/* Where the text is, or belongs. */
static struct nb_text_slot *place(const struct nb_text_map *map, const char *text) {
    size_t i = nb_hash_text(text) & (map->n_slots - 1);
    while (map->slots[i].text && strcmp(map->slots[i].text, text) != 0) i = (i + 1) & (map->n_slots - 1);
    return &map->slots[i];
}

static void grow(struct nb_text_map *map) {
    struct nb_text_map larger = {.n = map->n, .n_slots = map->n_slots ? 2 * map->n_slots : 64};
    larger.slots = nb_alloc(larger.n_slots, sizeof *larger.slots);
    for (size_t i = 0; i < map->n_slots; i++)
        if (map->slots[i].text) *place(&larger, map->slots[i].text) = map->slots[i];
    free(map->slots);
    *map = larger;
}

size_t nb_text_map_add(struct nb_text_map *map, const char *text, size_t value) {
    if (2 * (map->n + 1) > map->n_slots) grow(map);
    struct nb_text_slot *slot = place(map, text);
    if (slot->text) return slot->value;
    *slot = (struct nb_text_slot){text, value};
    map->n++;
    return NB_NOWHERE;
}

size_t nb_text_map_find(const struct nb_text_map *map, const char *text) {
    if (map->n_slots == 0) return NB_NOWHERE;
    const struct nb_text_slot *slot = place(map, text);
    return slot->text ? slot->value : NB_NOWHERE;
}

void nb_text_map_release(struct nb_text_map *map) {
    free(map->slots);
    *map = (struct nb_text_map){0};
}
