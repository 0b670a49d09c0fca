// SPDX-License-Identifier: Apache-2.0
/* The paper's rows from its table, and the picture of what RMSNorm saves. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "tests/support/files.h"

TestSuite(claims_savings, .init = quiet);

Test(claims_savings, the_paper_s_rows_have_intervals) {
    struct nb_paper paper;
    cr_assert_eq(nb_paper_read(&paper), 0);
    const struct nb_paper_row *row = NULL;
    for (size_t i = 0; i < paper.n; i++)
        if (strcmp(paper.rows[i].name, "Transformer, TensorFlow") == 0) row = &paper.rows[i];
    cr_assert_not_null(row);
    /* 231 +- 0.04 of 248 +- 1.31, three runs each, Student's t of two degrees 4.303. */
    const double half = 4.303 / sqrt(3) * hypot(0.04 / 231, 1.31 / 248);
    cr_expect_float_eq(row->share, 38.0 / 248, 1e-12);
    cr_expect_float_eq(row->step.low, 1 - 231.0 / 248 * exp(half), 1e-8);
    cr_expect_float_eq(row->step.high, 1 - 231.0 / 248 * exp(-half), 1e-8);
}

static const struct nb_point *point_of(const struct nb_figure *f, const char *series) {
    for (size_t i = 0; i < f->n_lines; i++)
        if (strcmp(f->entries.items[f->lines[i].entry], series) == 0) return &f->lines[i].points[0];
    cr_assert_fail("no %s", series);
    return NULL;
}

Test(claims_savings, a_row_of_the_picture_has_what_was_published_and_what_was_found) {
    cJSON *document = kept_json(cJSON_Parse(
        "{\"steps\":{\"models\":[{\"model\":\"transformer-base\",\"norm\":\"rmsnorm\",\"style\":\"composed\",\"training\":true,\"parts\":["
        "{\"part\":\"passes\",\"cut\":{\"value\":0.1,\"low\":0.09,\"high\":0.11},\"norm_cut\":{\"value\":0.5,\"low\":0.4,\"high\":0.6}}],"
        "\"dispatch\":[{\"row\":\"Table 4, TensorFlow\"}]}]},\"recorded\":[{\"device\":\"cuda\",\"date\":\"2026-11-27\",\"readings\":["
        "{\"workload\":\"transformer-base\",\"style\":\"printed\",\"saves\":0.04}]}]}"));
    const struct nb_results meta = {.meta = document};
    struct nb_figures figures released_by(nb_figures_release) = {0};
    nb_claims_savings_figure(&figures, document, &meta);
    cr_assert_eq(figures.n, 1);
    const struct nb_figure *f = &figures.list[0];
    cr_assert_eq(f->names.n, 1);
    cr_expect_str_eq(f->names.items[0], "Transformer, TensorFlow");
    cr_expect_float_eq(point_of(f, "published step")->x, 100 * (1 - 231.0 / 248), 1e-9);
    cr_expect_float_eq(point_of(f, "step here")->low, 9, 1e-9);
    cr_expect_float_eq(point_of(f, "unfused norm here")->high, 60, 1e-9);
    cr_expect_float_eq(point_of(f, "GPU step in PyTorch")->x, 4, 1e-9);
    cr_expect(isnan(point_of(f, "GPU step in PyTorch")->low));
}
