// SPDX-License-Identifier: Apache-2.0
/* Two runs side by side, for people and for other tools. */
#ifndef NB_COMPARE_REPORT_H
#define NB_COMPARE_REPORT_H

#include <stdio.h>

#include "src/record/comparison.h"

bool nb_compare_format_known(const char *format); /* table, markdown, json */
/* 0, or -1 after nb_error. */
int nb_compare_print(const struct nb_comparison *c, const char *format, FILE *out);

/* As reports/schema/compare.schema.json has it. */
void nb_compare_add_json(const struct nb_comparison *c, struct nb_strbuf *out);

#endif
