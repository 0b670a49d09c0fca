// SPDX-License-Identifier: Apache-2.0
/* Pieces that the table, the Markdown page and the HTML page of claims share, read from the document. */
#ifndef NB_CLAIMS_TEXT_H
#define NB_CLAIMS_TEXT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/core/text.h"

const char *nb_claims_text(const cJSON *object, const char *name); /* "" where there is none */
bool nb_claims_is_bug(const cJSON *claim);
/* The figures of a reading of a claim, or null. */
const cJSON *nb_claims_figures(const cJSON *document, const char *claim, const char *reading);

/* Of a figure of a reading: where it was measured ("style=composed, cols=512": its label, and the tags in which the figures differ), and
 * its value, "30.1 % [29.8 %, 30.6 %]", of an exact one the value alone. Both are appended. */
void nb_claims_figure(const cJSON *figure, const cJSON *figures, struct nb_strbuf *where, struct nb_strbuf *value);
/* "makes or breaks it: style (composed REPRODUCED, fused NOT REPRODUCED)", one sentence for each axis that decides; "" for none. */
void nb_claims_sensitivity(struct nb_strbuf *out, const cJSON *claim);
/* "31 REPRODUCED, 5 PARTLY ...". */
void nb_claims_counts(struct nb_strbuf *out, const cJSON *document);

/* The lines of the table of verdicts, the same on a terminal, in Markdown and on the page: one for each claim; and where the statement
 * itself cannot be tested here, one for each other reading that could. */

struct nb_claims_line {
    const cJSON *claim, *reading;       /* reading: null for the line of the claim itself */
    const char *name, *title, *verdict; /* borrowed from the document */
    char *measured, *published, *why;   /* owned */
};
/* Of bug reports (bugs), or of all the others. Returns how many. */
size_t nb_claims_lines(const cJSON *document, bool bugs, struct nb_claims_line **lines);
void nb_claims_lines_release(struct nb_claims_line *lines, size_t n);

#endif
