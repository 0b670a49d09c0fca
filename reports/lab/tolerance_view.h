// SPDX-License-Identifier: Apache-2.0
/* What `normbench tolerance` prints. */
#ifndef NB_TOLERANCE_VIEW_H
#define NB_TOLERANCE_VIEW_H

#include "src/lab/tolerance/tolerance.h"

/* Appends: "table", "json", or text to paste into a test: "torch", "numpy", "c". -1: no such format. */
int nb_tolerance_view(const struct nb_tolerance *t, const struct nb_tolerance_request *q, const char *format,
                      struct nb_strbuf *out);
/* Whether there is such a format. */
bool nb_tolerance_format_known(const char *format);
/* The same for what is to be pasted. */
void nb_tolerance_snippet(const struct nb_tolerance *t, const struct nb_tolerance_request *q, const char *language,
                          struct nb_strbuf *out);
/* "rmsnorm, 16 rows of 4096 in bf16 (normal), eps 1e-6, against the exact result" */
void nb_tolerance_title(const struct nb_tolerance *t, const struct nb_tolerance_request *q, struct nb_strbuf *out);

#endif
