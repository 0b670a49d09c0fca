// SPDX-License-Identifier: Apache-2.0
/* Amdahl's picture: the paper's rows from its table, and this machine's steps from answers made by hand. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "reports/claims/claims_paper.c"
#include "reports/claims/claims_report.h"
#include "src/claims/training.h"
#include "tests/support/files.h"

TestSuite(claims_amdahl, .init = quiet);

/* One launch: LayerNorm's step takes 10, of which the norm is share; the others take so much of its time, and save it in the norm. */
static void add_launch(struct nb_train_results *r, int round, const char *style, double share, double rms,
                       double prms) {
    static const char *const norms[] = {"layernorm", "rmsnorm", "prmsnorm"};
    const double times[] = {10, 10 * rms, 10 * prms}, drift = 1 + round;
    struct nb_strbuf text = {0}, arms = {0};
    nb_strbuf_addf(&text,
                   "{\"request\":{\"measure\":\"steps\",\"workload\":\"rnnsearch\",\"round\":%d,\"steps\":0,"
                   "\"arms\":[",
                   round);
    for (int i = 0; i < 3; i++) {
        const double t = times[i] * drift, norm = t - 10 * (1 - share) * drift;
        nb_strbuf_addf(&text, "%s\"%s %s threads=1\"", i ? "," : "", norms[i], style);
        nb_strbuf_addf(&arms, "%s{\"arm\":\"%s %s threads=1\",\"step\":[%g,%g],\"passes\":[%g,%g],\"norm\":[%g,%g]}",
                       i ? "," : "", norms[i], style, t, t, t / 2, t / 2, norm, norm);
    }
    nb_strbuf_addf(&text, "]},\"status\":\"ok\",\"arms\":[%s]}", arms.text);
    cJSON *answer = cJSON_Parse(text.text);
    cr_assert_not_null(answer, "%s", text.text);
    nb_train_results_add(r, answer);
    nb_strbuf_release(&text);
    nb_strbuf_release(&arms);
}

/* claims.json as it is after six launches; spread: what launches differ by. */
static cJSON *document_of(double share, double rms, double spread) {
    struct nb_train_results r = {0};
    cJSON *document = cJSON_CreateObject();
    for (int i = 0; i < 6; i++) {
        const double ratio = rms + spread * (i - 2.5);
        add_launch(&r, i, "composed", share, ratio, 0.85);
        add_launch(&r, i, "fused", share / 2, 0.99, 0.98);
    }
    cJSON_AddItemToObject(document, "training", nb_training_to_json(&r));
    nb_train_results_release(&r);
    return document;
}

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
    cr_assert_eq(paper_read(&paper), 0);
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

Test(claims_amdahl, steps_measured_here_are_points_whichever_way_they_come_out) {
    for (int slower = 0; slower < 2; slower++) {
        struct nb_figures figures;
        const double rms = slower ? 1.1 : 0.9;
        cJSON *document = kept_json(document_of(0.2, rms, 0.01));
        const struct nb_figure *f = draw(&figures, document);
        cr_expect_eq(f->n_panels, 3);
        for (size_t panel = 0; panel < 3; panel += 2) {
            const struct nb_point *p = drawn_point(f, panel, "rnnsearch here");
            cr_assert_not_null(p);
            cr_expect_float_eq(p->x, 20, 1e-9, "LayerNorm's share of the whole step");
            cr_expect_float_eq(p->y, 100 * (1 - rms), 0.1);
            cr_expect(p->low < p->y - 1 && p->high > p->y + 1 && p->high - p->low < 6, "[%g, %g]", p->low, p->high);
        }
        const struct nb_point *partial = drawn_point(f, 1, "rnnsearch here"),
                              *fused = drawn_point(f, 2, "rnnsearch here, fused");
        cr_assert(partial && fused);
        cr_expect_float_eq(partial->y, 15, 1e-9);
        cr_expect_float_eq(fused->x, 10, 1e-9);
        cr_expect_float_eq(fused->y, 1, 1e-9);
        cr_expect_null(drawn_point(f, 0, "rnnsearch here, fused"), "the paper's norms are op by op");
        nb_figures_release(&figures);
    }
}
