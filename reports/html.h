// SPDX-License-Identifier: Apache-2.0
/* Parts of the page; each appends to out. */
#ifndef NB_HTML_H
#define NB_HTML_H

#include "reports/summary.h"

/* Escaped text between two pieces of markup; nothing at all when there is no text. */
void nb_html_text(struct nb_strbuf *out, const char *before, const char *text, const char *after);

void nb_html_failures(const struct nb_summary *summary, const struct nb_results *results, struct nb_strbuf *out);
void nb_html_table(const struct nb_results *results, struct nb_strbuf *out);
void nb_html_skips(const struct nb_summary *summary, struct nb_strbuf *out);
/* Figures as pictures inside the page, so that it can be sent around alone. dir: where plots/ lies. */
void nb_html_plots(const struct nb_results *results, const char *dir, struct nb_strbuf *out);
void nb_html_machine(const struct nb_results *results, struct nb_strbuf *out);
void nb_html_reproduce(const struct nb_results *results, struct nb_strbuf *out);

#endif
