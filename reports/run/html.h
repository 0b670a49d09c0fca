// SPDX-License-Identifier: Apache-2.0
/* Parts that our pages share; each appends to out. */
#ifndef NB_HTML_H
#define NB_HTML_H

#include "reports/figures/plots.h"

/* Escaped text between two pieces of markup; nothing at all when there is no text. */
void nb_html_text(struct nb_strbuf *out, const char *before, const char *text, const char *after);

/* From the doctype to <body>. The policy forbids what the page does not use, so that text that slipped through could still do
 * nothing. */
void nb_html_head(const char *title, struct nb_strbuf *out);
/* Figures as pictures inside the page, so that it can be sent around alone, with links to their files in DIR/FOLDER; those whose
 * name starts with prefix, "" for all. */
void nb_html_figures(const struct nb_figures *figures, const char *prefix, const char *dir, const char *folder,
                     struct nb_strbuf *out);
/* What is not drawn and why. Changes the notes. */
void nb_html_not_drawn(struct nb_figures *figures, struct nb_strbuf *out);

#endif
