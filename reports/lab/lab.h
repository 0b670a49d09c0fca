// SPDX-License-Identifier: Apache-2.0
/* What the commands limits, tolerance, probe and emulate print. */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdio.h>

#include "src/core/case.h"
#include "src/lab/emulate/emulate.h"
#include "src/lab/limits/limits.h"
#include "src/lab/tolerance/tolerance.h"

/* ---- limits ---- */

/* Appends the whole report on the lines. format: table, markdown or json. */
void nb_limits_view(const struct nb_limits *l, const struct nb_limit *lines, size_t n, const char *format,
                    struct nb_strbuf *out);

/* ---- tolerance ---- */

/* Appends a program that tests a kernel: language "torch", "numpy" or "c". */
void nb_tolerance_code(const struct nb_tolerance *t, const struct nb_tolerance_request *q, const char *title,
                       const char *language, struct nb_strbuf *out);
/* Appends: "table", "json", or a program. */
void nb_tolerance_view(const struct nb_tolerance *t, const struct nb_tolerance_request *q, const char *format,
                       struct nb_strbuf *out);

/* ---- probe ---- */

/* answers[i]: nb_probe_kernel()'s of cases[i], or what a study says of a worker that died; null: not asked. format: "table" or "json":
 * {"probes": [{"variant", "called_as" (a case key), "status", "answers" ..}]}. */
void nb_probes_print(const struct nb_case *cases, cJSON *const *answers, int n, const char *format, FILE *out);

/* ---- emulate: designs and what was found about them ---- */

struct nb_judged_design {
    struct nb_design design;
    char *text; /* as nb_design_print() has it */
    struct nb_design_report report;
};

/* format: of nb_grid_print(). -1 after nb_error. */
int nb_print_designs(const struct nb_judged_design *designs, size_t n, const struct nb_design_data *data,
                     const char *format);
struct nb_quantized_rows {
    const char *values; /* "x", or the text of the design behind which they stand */
    enum nb_quantum quantum;
    enum nb_scaling scaling;
    struct nb_quantized q;
};
/* {"data", "rows", "n", "seed", "quantized": [..]} or a grid. -1 after nb_error. */
int nb_print_quantized(const struct nb_quantized_rows *out, size_t n, const struct nb_design_data *data,
                       const char *format);
/* Presets, and the parts of a design's text. */
int nb_list_designs(const char *format);
