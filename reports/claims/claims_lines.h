// SPDX-License-Identifier: Apache-2.0
/* The lines of the table of verdicts, the same on a terminal, in Markdown and on the page: one for each claim; and where the statement
 * itself cannot be tested here, one for each other reading that could. */
#ifndef NB_CLAIMS_LINES_H
#define NB_CLAIMS_LINES_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

struct nb_claims_line {
    const cJSON *claim, *reading;       /* reading: null for the line of the claim itself */
    const char *name, *title, *verdict; /* borrowed from the document */
    char *measured, *published, *why;   /* owned */
};
/* Of bug reports (bugs), or of all the others. Returns how many. */
size_t nb_claims_lines(const cJSON *document, bool bugs, struct nb_claims_line **lines);
void nb_claims_lines_release(struct nb_claims_line *lines, size_t n);

#endif
