// SPDX-License-Identifier: Apache-2.0
/* The lines of `normbench limits` as text, a Markdown table or JSON. */
#ifndef NB_LIMITS_VIEW_H
#define NB_LIMITS_VIEW_H

#include "src/lab/limits/limits.h"

/* Appends the whole report on the lines. format: table, markdown or json. */
void nb_limits_view(const struct nb_limits *l, const struct nb_limit *lines, size_t n, const char *format,
                    struct nb_strbuf *out);

#endif
