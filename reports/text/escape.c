// SPDX-License-Identifier: Apache-2.0
/* Escapes for every reader that the reports write for, and the width of UTF-8 text. */
#include "reports/text/escape.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/utf8.h"

/* The main blocks of combining and of double-width characters; a name outside them is one column off at worst. */
static size_t cells_of(uint32_t code) {
    static const struct {
        uint32_t first, last;
        size_t cells;
    } blocks[] = {
        {0x0300, 0x036F, 0},   {0x200B, 0x200F, 0},   {0x20D0, 0x20FF, 0},   {0xFE00, 0xFE0F, 0}, {0x1100, 0x115F, 2},
        {0x2E80, 0xA4CF, 2},   {0xAC00, 0xD7A3, 2},   {0xF900, 0xFAFF, 2},   {0xFF00, 0xFF60, 2}, {0xFFE0, 0xFFE6, 2},
        {0x1F300, 0x1F64F, 2}, {0x1F900, 0x1F9FF, 2}, {0x20000, 0x3FFFD, 2},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (code >= blocks[i].first && code <= blocks[i].last) return blocks[i].cells;
    return 1;
}

/* The next character, where a byte that is not UTF-8 counts as one of its own. */
static size_t next_character(const char *s, size_t *cells) {
    uint32_t code = 0;
    size_t len = nb_utf8_decode(s, &code);
    *cells = len ? cells_of(code) : 1;
    return len ? len : 1;
}

size_t nb_utf8_cells(const char *text) {
    size_t total = 0, cells;
    for (const char *s = text; *s; total += cells) s += next_character(s, &cells);
    return total;
}

static size_t bytes_within(const char *text, size_t cells) {
    size_t at = 0, used = 0, width;
    while (text[at]) {
        const size_t len = next_character(text + at, &width);
        if (used + width > cells) break;
        used += width;
        at += len;
    }
    return at;
}

void nb_utf8_cut(struct nb_strbuf *text, size_t cells, const char *mark) {
    if (!text->text || nb_utf8_cells(text->text) <= cells) return;
    text->len = bytes_within(text->text, cells - (cells ? 1 : 0));
    text->text[text->len] = '\0';
    if (cells) nb_strbuf_add(text, mark);
}

size_t nb_utf8_line(const char *text, size_t cells) {
    const size_t fits = bytes_within(text, cells);
    size_t n = fits, ignored;
    if (!text[fits]) return fits;
    while (n > 0 && text[n] != ' ') n--;
    while (n > 0 && text[n - 1] == ' ') n--;
    if (n > 0) return n;
    for (n = fits; n > 0 && text[n - 1] != '/'; n--) {
    }
    return n > 0 ? n : fits > 0 ? fits : next_character(text, &ignored);
}

bool nb_utf8_wanted(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

/* XML 1.0 allows none of those that end a plane, HTML none of these at all. */
static bool is_noncharacter(uint32_t code) { return (code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF); }

/* What stands for a character that has a meaning for the reader. */
struct entity {
    uint32_t code; /* 0: the last */
    const char *text;
};

static const char *entity_of(const struct entity *entities, uint32_t code) {
    while (entities->code && entities->code != code) entities++;
    return entities->text;
}

/* Copies text with each character that is among the entities replaced; what no document may hold becomes U+FFFD, line breaks and tabs
 * become blanks. */
static void replace(struct nb_strbuf *out, const char *text, const struct entity *entities) {
    for (const char *s = text; *s;) {
        uint32_t code = 0;
        size_t len = nb_utf8_decode(s, &code);
        const char *other = len ? entity_of(entities, code) : NULL;
        if (len && (code == '\n' || code == '\t' || code == '\r'))
            other = " ";
        else if (!len || nb_utf8_is_command(code) || is_noncharacter(code))
            other = "\xEF\xBF\xBD";
        if (other)
            nb_strbuf_add(out, other);
        else
            nb_strbuf_addn(out, s, len);
        s += len ? len : 1;
    }
}

void nb_escape_html(struct nb_strbuf *out, const char *text) {
    static const struct entity entities[] = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}, {'`', "&#96;"}, {0}};
    replace(out, text, entities);
}

/* Underscores stay: GitHub gives them no meaning inside a word, and kernels' names are full of them. */
void nb_escape_markdown(struct nb_strbuf *out, const char *text) {
    static const struct entity entities[] = {{'|', "\\|"},  {'\\', "\\\\"}, {'`', "\\`"}, {'*', "\\*"},
                                             {'[', "\\["},  {']', "\\]"},   {'~', "\\~"}, {'<', "&lt;"},
                                             {'>', "&gt;"}, {'&', "&amp;"}, {0}};
    replace(out, text, entities);
}

/* gnuplot writes a quote inside single quotes as two, but 5.4 loses count where two of those follow each other or one stands first,
 * stops with a syntax error and draws nothing more. A typographic quote needs no escape. */
void nb_escape_gnuplot(struct nb_strbuf *out, const char *text) {
    static const struct entity entities[] = {{'\'', "\xE2\x80\x99"}, {0}};
    nb_strbuf_add(out, "'");
    replace(out, text, entities);
    nb_strbuf_add(out, "'");
}

static bool is_number(const char *text) {
    char *end;
    strtod(text, &end);
    return *end == '\0' && end > text;
}

/* A spreadsheet takes a cell that begins so for a formula, also a quoted one: the apostrophe makes it a text. */
static bool is_formula(const char *text) { return *text && strchr("=+-@\t\r", *text) && !is_number(text); }

void nb_escape_csv(struct nb_strbuf *out, const char *text) {
    const bool formula = is_formula(text), quoted = formula || strpbrk(text, ",\"\r\n\t");
    if (quoted) nb_strbuf_add(out, formula ? "\"'" : "\"");
    for (const char *s = text; *s;) {
        uint32_t code = 0;
        const size_t len = nb_utf8_decode(s, &code), n = len ? len : 1;
        const bool plain = len && (!nb_utf8_is_command(code) || strchr("\t\r\n", (int)code));
        if (*s == '"') nb_strbuf_add(out, "\"");
        if (plain) nb_strbuf_addn(out, s, n);
        for (size_t i = 0; i < n && !plain; i++) nb_strbuf_addf(out, "\\x%02X", (unsigned char)s[i]);
        s += n;
    }
    if (quoted) nb_strbuf_add(out, "\"");
}

void nb_escape_file_name(struct nb_strbuf *out, const char *text) {
    enum { LONGEST = 80 };
    size_t start = out->len;
    for (const char *s = text; *s && out->len - start < LONGEST; s++) {
        bool letter = isalnum((unsigned char)*s) && (unsigned char)*s < 0x80;
        bool inner = out->len > start && (*s == '-' || *s == '.');
        nb_strbuf_addn(out, letter || inner ? s : "_", 1);
    }
    if (out->len == start) nb_strbuf_add(out, "_");
}
