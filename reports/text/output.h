// SPDX-License-Identifier: Apache-2.0
/* The way out: what a terminal can show, pages of sentences and tables for it or in Markdown, and a whole text to a stream. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "reports/text/grid.h"
#include "src/core/log.h"
#include "src/core/text.h"

bool nb_screen_color(FILE *out);
/* The words of a text, escaped, in lines of at most `screen` cells (0: 80), the second and later ones indented; ends the
 * line. */
void nb_screen_wrap(struct nb_strbuf *out, const char *text, size_t screen, bool utf8);
/* In lines that begin at a column, but for the first, which begins where the line is. */
void nb_screen_hang(struct nb_strbuf *out, const char *text, size_t at, size_t screen);

/* Lines that are wider go on in the next, under the text behind their label; commands stay whole, so that they can be copied. */
void nb_screen_fold(struct nb_strbuf *out, const char *text, size_t screen);

struct nb_page {
    bool markdown, color; /* color: of a terminal */
    size_t screen;        /* cells of a line; 0: no limit */
    struct nb_strbuf *out;
};
/* A page for the stream that the text goes to in the end. */
struct nb_page nb_page_for(FILE *stream, bool markdown, struct nb_strbuf *out);
void nb_page_heading(const struct nb_page *page, int level, const char *text);
/* A sentence, escaped for its reader; nothing when it is empty or null. The second empties its text. */
void nb_page_say(const struct nb_page *page, const char *text);
void nb_page_tell(const struct nb_page *page, struct nb_strbuf *text);
/* Releases the grid. */
void nb_page_grid(const struct nb_page *page, struct nb_grid *grid);

/* A line as printf() makes it, escaped for a terminal. */
void nb_print_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes and releases the text, or a document. 0, or -1 after nb_error (a full disk, a closed pipe). */
int nb_output(struct nb_strbuf *text, FILE *out);
/* The same, folded to the screen. */
int nb_output_folded(struct nb_strbuf *text, FILE *out);
int nb_output_json(cJSON *json, FILE *out);
/* The same, which stays the caller's. */
int nb_output_document(const cJSON *json, FILE *out);
