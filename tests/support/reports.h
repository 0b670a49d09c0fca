// SPDX-License-Identifier: Apache-2.0
/* Small results made by hand, for the tests of what is made of results. */
#pragma once

#include <cjson/cJSON.h>

#include "reports/figures/figure.h"
#include "src/record/record.h"

/* Appends a record with status ok, width 256, and every axis but the shape at its default. */
struct nb_record *nb_test_add(struct nb_results *results, const char *variant, uint32_t op, const char *shape);
void nb_test_times(struct nb_record *r, double time_ns, struct nb_interval ratio, const char *reference);
void nb_test_accuracy(struct nb_record *r, double max_ulp, double bias_u);
/* Two timed cases, one failed, one skipped; release with nb_results_release(). */
struct nb_results nb_test_small(void);
/* Row lengths 256, 1024, 4096: LayerNorm, the reference, and RMSNorm at 0.8, 0.7 and 0.6 of its time, +- 0.01. */
void nb_test_sweep(struct nb_results *results);
/* Makes them merged results of two machines: records of the shape were timed by machine 0, all others by machine 1. */
void nb_test_part(struct nb_results *results, const char *shape);
/* What a renderer prints. */
char *nb_test_render(const char *format, const struct nb_results *results);
/* ASCII, no colour, no limit to the width. */
void nb_test_plain_terminal(void);

bool have_gnuplot(void);
/* It must be there. */
const struct nb_figure *figure_named(const struct nb_figures *figures, const char *name);
/* In the scripts of the figures names stay inside single quotes, and files have plain ones. */
void expect_names_quoted(const struct nb_figures *figures);

/* A small stress.json made by hand, for the tests of what is made of it. */

/* layernorm_onepass in f32 (two widths) and f16, two grades, no bugs. */
cJSON *nb_test_stress(void);
/* A study with one of everything; its texts hold markup. */
void nb_test_add_study(cJSON *stress, const char *variant, const char *dtype);
/* text: why; all finite rows: F. */
void nb_test_add_grade(cJSON *stress, const char *variant, const char *kernel, const char *formula, const char *grade,
                       const char *text);
