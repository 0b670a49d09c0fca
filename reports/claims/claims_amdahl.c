// SPDX-License-Identifier: Apache-2.0
/* Points from tables and from the "training" section of claims.json, laws from norms that were timed alone. */
#include "reports/claims/claims_amdahl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/claims/claims_tables.h"
#include "reports/claims/claims_text.h"
#include "src/core/json.h"
#include "src/core/log.h"

static const char caption[] =
    "What a training step gains from RMSNorm against the share of the step that LayerNorm takes. Left and middle: rows "
    "of the paper's tables (shares from the steps without a norm, bars at 95 % from the deviations of three runs), and "
    "whole steps measured here, op by op. Right: the steps of this machine alone, nearer, op by op and fused; share of "
    "LayerNorm and cut of the step from launches in which the arms take turns, bars at 95 %. Lines: share times the "
    "cut of the norm alone as it was timed here, at the paper's shapes; a step lies on its line whatever its model is.";

enum { PLAIN, PARTIAL, HERE, N_PANELS }; /* RMSNorm, pRMSNorm, this machine alone */

/* ---- laws ---- */

/* A line through 0 of the given slope. */
static void add_law(struct nb_figure *f, size_t panel, const char *words, double cut, double most_percent) {
    enum { STEPS = 20 };
    char label[80];
    if (!isfinite(cut)) return;
    snprintf(label, sizeof label, "%s here: cut %.0f %%", words, 100 * cut);
    const size_t entry = nb_figure_entry(f, label);
    for (int i = 0; i <= STEPS; i++)
        nb_figure_add_law(f, panel, entry, most_percent * i / STEPS, most_percent * i / STEPS * cut);
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

/* ---- points ---- */

static struct nb_point point_of(double share, const struct nb_interval *cut) {
    return (struct nb_point){100 * share, 100 * cut->value, 100 * cut->low, 100 * cut->high};
}

static void add_paper(struct nb_figure *f, const struct nb_paper *paper) {
    for (size_t i = 0; i < paper->n; i++) {
        const struct nb_paper_row *r = &paper->rows[i];
        const size_t entry = nb_figure_entry(f, r->name);
        nb_figure_add(f, PLAIN, entry, point_of(r->share, &r->step));
        nb_figure_add(f, PARTIAL, entry, point_of(r->share, &r->step_p));
    }
}

static double value_of(const cJSON *entry, const char *name) {
    return nb_json_get_number(cJSON_GetObjectItemCaseSensitive(entry, name), "value");
}

/* The share of the step that LayerNorm has in the arm that the entry is compared with. */
static double share_of(const cJSON *steps, const cJSON *entry) {
    const cJSON *other;
    cJSON_ArrayForEach(other, steps) {
        if (strcmp(nb_claims_text(other, "workload"), nb_claims_text(entry, "workload")) == 0 &&
            strcmp(nb_claims_text(other, "arm"), nb_claims_text(entry, "against")) == 0)
            return value_of(other, "step_share");
    }
    return (double)NAN;
}

static bool begins(const char *text, const char *word) { return strncmp(text, word, strlen(word)) == 0; }

static void add_step(struct nb_figure *f, const cJSON *steps, const cJSON *entry) {
    const char *arm = nb_claims_text(entry, "arm");
    const bool composed = strstr(arm, " composed"), partial = begins(arm, "prmsnorm ");
    const struct nb_interval cut = nb_json_get_interval(entry, "cut");
    const struct nb_point point = point_of(share_of(steps, entry), &cut);
    char label[96];
    snprintf(label, sizeof label, "%s here%s", nb_claims_text(entry, "workload"), composed ? "" : ", fused");
    if (!isfinite(point.x) || !isfinite(point.y)) return;
    const size_t name = nb_figure_entry(f, label);
    if (composed) nb_figure_add(f, partial ? PARTIAL : PLAIN, name, point);
    if (!partial) nb_figure_add(f, HERE, name, point);
}

/* The largest share in the panel, rounded up. */
static double farthest(const struct nb_figure *f, size_t panel) {
    double most = 0;
    for (size_t i = 0; i < f->n_lines; i++)
        for (size_t p = 0; p < f->lines[i].n && f->lines[i].panel == panel; p++)
            most = fmax(most, f->lines[i].points[p].x);
    return ceil(most);
}

void nb_claims_amdahl_figure(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta) {
    static const char *const titles[N_PANELS] = {"RMSNorm", "pRMSNorm", "RMSNorm, this machine"};
    const cJSON *training = cJSON_GetObjectItemCaseSensitive(document, "training"), *entry;
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(training, "steps");
    struct nb_paper paper;
    if (nb_paper_read(&paper) != 0) return;
    struct nb_figure *f = nb_figures_new(figures, meta, "amdahl");
    f->title = nb_strdup("A step's gain is the norm's share of it times what the norm saves");
    f->subtitle = nb_strdup("rows of the RMSNorm paper, and steps and norms measured here");
    f->caption = nb_strdup(caption);
    f->scattered = true;
    add_paper(f, &paper);
    cJSON_ArrayForEach(entry, steps) {
        if (*nb_claims_text(entry, "against")) add_step(f, steps, entry);
    }
    const double near = farthest(f, HERE);
    f->n_panels = near > 0 ? N_PANELS : HERE;
    for (size_t i = 0; i < f->n_panels; i++)
        f->panels[i] = (struct nb_panel){titles[i], "share of LayerNorm in the step, %", "time of the step saved",
                                         NB_SCALE_LINEAR, NB_SCALE_PERCENT};
    const double composed = measured(&paper, document, "norm"), fused = measured(&paper, document, "fused");
    for (size_t panel = PLAIN; panel < f->n_panels; panel += HERE) {
        add_law(f, panel, "op by op", composed, panel == HERE ? near : 100);
        add_law(f, panel, "fused", fused, panel == HERE ? near : 100);
    }
    add_law(f, PARTIAL, "pRMSNorm, op by op", nb_paper_measured(document, "speed-paper-range", "prmsnorm").value, 100);
    nb_figure_sort(f);
    nb_figure_sort_laws(f);
}
