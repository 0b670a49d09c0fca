// SPDX-License-Identifier: Apache-2.0
/* Amdahl's law with the paper's rows on it: what a step gains is the norm's share of it times what the norm saves. */
#include "reports/claims_plots.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "reports/claims_tables.h"
#include "src/base/log.h"
#include "src/base/strbuf.h"

static const char caption[] = "What a training step gains from RMSNorm against the share of the step that LayerNorm "
                              "takes. Points: rows of the paper's "
                              "tables, shares from the steps without a norm. Lines: share times the cut of the norm "
                              "alone as it was measured here, at the "
                              "paper's shapes, op by op and fused; a step lies on its line whatever its model is.";

enum { PLAIN, PARTIAL, N_PANELS }; /* RMSNorm, pRMSNorm */

/* A line through 0 of the given slope. */
static void add_law(struct nb_figure *f, size_t panel, const char *words, double cut) {
    char label[80];
    if (!isfinite(cut)) return;
    snprintf(label, sizeof label, "%s here: cut %.0f %%", words, 100 * cut);
    const size_t entry = nb_figure_entry(f, label);
    for (int percent = 0; percent <= 100; percent += 5) nb_figure_add_law(f, panel, entry, percent, percent * cut);
}

/* The median over the rows' shapes. */
static double measured(const struct nb_paper *paper, const cJSON *document, const char *reading) {
    double v[NB_PAPER_ROWS];
    size_t n = 0;
    for (size_t i = 0; i < paper->n; i++) {
        const struct nb_interval cut = nb_paper_measured(document, paper->rows[i].claim, reading);
        if (isfinite(cut.value)) v[n++] = cut.value;
    }
    return n ? nb_median(v, n) : (double)NAN;
}

static void draw_amdahl(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta) {
    struct nb_paper paper;
    if (nb_paper_read(&paper) != 0) return;
    struct nb_figure *f = nb_figures_new(figures, meta, "amdahl");
    f->title = nb_strdup("A step's gain is the norm's share of it times what the norm saves");
    f->subtitle = nb_strdup("rows of the RMSNorm paper, and norms measured here");
    f->caption = nb_strdup(caption);
    f->n_panels = N_PANELS;
    f->scattered = true;
    for (int i = 0; i < N_PANELS; i++)
        f->panels[i] = (struct nb_panel){i == PLAIN ? "RMSNorm" : "pRMSNorm", "share of LayerNorm in the step, %",
                                         "time of the step saved", NB_SCALE_LINEAR, NB_SCALE_PERCENT};
    for (size_t i = 0; i < paper.n; i++) {
        const struct nb_paper_row *r = &paper.rows[i];
        const size_t entry = nb_figure_entry(f, r->name);
        nb_figure_add(f, PLAIN, entry, (struct nb_point){100 * r->share, 100 * r->step_cut, NAN, NAN});
        nb_figure_add(f, PARTIAL, entry, (struct nb_point){100 * r->share, 100 * r->step_cut_p, NAN, NAN});
    }
    add_law(f, PLAIN, "op by op", measured(&paper, document, "norm"));
    add_law(f, PLAIN, "fused", measured(&paper, document, "fused"));
    add_law(f, PARTIAL, "pRMSNorm, op by op", nb_paper_measured(document, "speed-paper-range", "prmsnorm").value);
    nb_figure_sort(f);
    nb_figure_sort_laws(f);
}

void nb_claims_figures_init(struct nb_figures *figures, const cJSON *document, const struct nb_results *timing) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)document};
    *figures = (struct nb_figures){0};
    nb_strbuf_add(&figures->notes, "");
    if (timing) nb_plot_cut(timing, figures);
    draw_amdahl(figures, document, &meta);
}
