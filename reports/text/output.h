// SPDX-License-Identifier: Apache-2.0
/* The end of every renderer: a whole text to a stream. */
#ifndef NB_OUTPUT_H
#define NB_OUTPUT_H

#include <stdio.h>

#include "src/core/text.h"

/* Writes and releases the text. 0, or -1 after nb_error (a full disk, a closed pipe). */
int nb_output(struct nb_strbuf *text, FILE *out);

#endif
