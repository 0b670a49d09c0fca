// SPDX-License-Identifier: Apache-2.0
/* Names come from plugins, paths and files that people send each other; none of them may be taken for markup, for a
 * gnuplot command or for a terminal's control sequence. Each function appends text so that its reader shows it as it
 * stands. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/core/text.h"

/* Terminal cells that text takes: 0 for combining marks, 2 for wide East Asian characters, 1 for others. */
size_t nb_utf8_cells(const char *text);
/* Cuts text to at most `cells` terminal cells, with mark (such as "~") as the last one when something was cut. */
void nb_utf8_cut(struct nb_strbuf *text, size_t cells, const char *mark);
/* Bytes of text that a line of so many cells takes: up to a blank, else behind a slash, else as many as fit. */
size_t nb_utf8_line(const char *text, size_t cells);
/* Does the environment (LC_ALL, LC_CTYPE, LANG: the first that is set) ask for UTF-8? */
bool nb_utf8_wanted(void);

/* For HTML and XML text and attribute values in either kind of quotes. */
void nb_escape_html(struct nb_strbuf *out, const char *text);
/* One field of RFC 4180: quoted only where it must be. A text that a spreadsheet would take for a formula (it begins with = + - @, a tab or
 * a carriage return, and is no number) gets an apostrophe in front. */
void nb_escape_csv(struct nb_strbuf *out, const char *text);
/* One cell of a GitHub table; line breaks become spaces. */
void nb_escape_markdown(struct nb_strbuf *out, const char *text);
/* A single-quoted gnuplot string, quotes included: nothing is expanded in those. Quotes in the text become typographic. */
void nb_escape_gnuplot(struct nb_strbuf *out, const char *text);
/* A file name of letters, digits, '_', '-' and '.', at most 80 bytes, that starts with none of the last two. */
void nb_escape_file_name(struct nb_strbuf *out, const char *text);
