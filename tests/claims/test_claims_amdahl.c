// SPDX-License-Identifier: Apache-2.0
/* Amdahl's picture: the paper's rows from its table. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "tests/support/files.h"

TestSuite(claims_amdahl, .init = quiet);

static const struct nb_figure *draw(struct nb_figures *figures, const cJSON *document) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)document};
    *figures = (struct nb_figures){0};
    nb_claims_amdahl_figure(figures, document, &meta);
    cr_assert_eq(figures->n, 1);
    return &figures->list[0];
}

/* Of the entry in the panel; exactly one is expected. */
static const struct nb_point *drawn_point(const struct nb_figure *f, size_t panel, const char *entry) {
    for (size_t i = 0; i < f->n_lines; i++)
        if (f->lines[i].panel == panel && !f->lines[i].law && strcmp(f->entries[f->lines[i].entry], entry) == 0) {
            cr_assert_eq(f->lines[i].n, 1);
            return &f->lines[i].points[0];
        }
    return NULL;
}

Test(claims_amdahl, the_paper_s_rows_have_intervals) {
    struct nb_figures figures;
    struct nb_paper paper;
    cJSON *nothing = kept_json(cJSON_CreateObject());
    const struct nb_figure *f = draw(&figures, nothing);
    cr_assert_eq(nb_paper_read(&paper), 0);
    cr_expect_eq(f->n_panels, 2, "nothing was measured here");
    for (size_t i = 0; i < 2 * paper.n; i++) cr_assert_not_null(drawn_point(f, i % 2, paper.rows[i / 2].name));
    /* Transformer: 231 +- 0.04 of 248 +- 1.31, three runs each, Student's t of two degrees 4.303. */
    const struct nb_point *p = drawn_point(f, 0, "Transformer, TensorFlow");
    cr_assert_not_null(p);
    cr_expect_float_eq(p->x, 100 * 38.0 / 248, 1e-9);
    const double half = 4.303 / sqrt(3) * hypot(0.04 / 231, 1.31 / 248);
    cr_expect_float_eq(p->low, 100 * (1 - 231.0 / 248 * exp(half)), 1e-6);
    cr_expect_float_eq(p->high, 100 * (1 - 231.0 / 248 * exp(-half)), 1e-6);
    nb_figures_release(&figures);
}

/* A step as the sum of its operations is a point of both outer panels, on a line through what its norms save. */
Test(claims_amdahl, steps_of_this_machine_lie_on_its_lines) {
    struct nb_figures figures;
    cJSON *document = kept_json(cJSON_Parse(
        "{\"steps\":{\"models\":[{\"model\":\"m\",\"norm\":\"rmsnorm\",\"style\":\"composed\",\"parts\":[{\"part\":\"step\","
        "\"norm_share\":{\"value\":0.2,\"low\":0.2,\"high\":0.2},\"cut\":{\"value\":0.1,\"low\":0.09,\"high\":0.11},"
        "\"norm_cut\":{\"value\":0.5,\"low\":0.5,\"high\":0.5}}]}]}}"));
    const struct nb_figure *f = draw(&figures, document);
    cr_assert_eq(f->n_panels, 3);
    for (size_t panel = 0; panel < 3; panel += 2) {
        const struct nb_point *p = drawn_point(f, panel, "m here");
        cr_assert_not_null(p);
        cr_expect_float_eq(p->x, 20, 1e-9);
        cr_expect_float_eq(p->y, 10, 1e-9);
        cr_expect_float_eq(p->low, 9, 1e-9);
    }
    bool line = false;
    for (size_t i = 0; i < f->n_lines; i++)
        line |= f->lines[i].law && strstr(f->entries[f->lines[i].entry], "unfused here: cut 50 %");
    cr_expect(line, "the line of the norms timed here");
    nb_figures_release(&figures);
}
