// SPDX-License-Identifier: Apache-2.0
/* What a terminal can show: its width, colours, text in lines that fit. */
#ifndef NB_SCREEN_H
#define NB_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "src/core/text.h"

/* Cells of a line: COLUMNS is the user's word, else what the terminal says; 0: a file or a pipe, no limit. */
size_t nb_screen_width(FILE *out);
bool nb_screen_color(FILE *out);
/* The words of a text, escaped, in lines of at most `screen` cells (0: 110), the second and later ones indented; ends the
 * line. */
void nb_screen_wrap(struct nb_strbuf *out, const char *text, size_t screen, bool utf8);

#endif
