// SPDX-License-Identifier: Apache-2.0
/* The answers of the exhaustive modes for people. */
#ifndef NB_EXHAUSTIVE_H
#define NB_EXHAUSTIVE_H

#include <cjson/cJSON.h>
#include <stdio.h>

/* An answer of src/lab/exhaustive/exhaust.h as tables. -1 after nb_error. */
int nb_exhaustive_print(const cJSON *answer, FILE *out);

#endif
