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
/* The reading that the verdict is explained by, or null. */
const cJSON *nb_claims_reading(const cJSON *claim);

/* "44.7 %", "1.81", "12 ulp". */
void nb_claims_value(struct nb_strbuf *out, double value, const char *unit);
/* A figure: "30.1 % [29.8 %, 30.6 %]"; of an exact one the value alone. */
void nb_claims_figure(struct nb_strbuf *out, const cJSON *figure);
/* All figures of a reading in one: the value of a single one, else the range of the values, "21.9 % to 44.1 % (12 figures)". Of a
 * cut the ratio stands behind it, so that both conventions are there. */
void nb_claims_measured(struct nb_strbuf *out, const cJSON *reading);
/* What the source says: figures of the rules, else "". */
void nb_claims_published(struct nb_strbuf *out, const cJSON *reading);
/* "style=composed, cols=512", of the tags in which the figures of a reading differ. */
void nb_claims_tags(struct nb_strbuf *out, const cJSON *figure, const cJSON *figures);
/* "makes or breaks it: style (composed REPRODUCED, fused NOT REPRODUCED)", one sentence for each axis that decides; "" for none. */
void nb_claims_sensitivity(struct nb_strbuf *out, const cJSON *claim);
/* Of a bug report the kernels that its input breaks: "breaks layernorm_onepass, layernorm_composed"; "" for none. */
void nb_claims_broken(struct nb_strbuf *out, const cJSON *claim);
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
