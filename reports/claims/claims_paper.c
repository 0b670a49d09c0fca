// SPDX-License-Identifier: Apache-2.0
/* The RMSNorm paper's printed times: what follows from them, and the Amdahl figure. */
#include "reports/claims/claims_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/text/grid.h"
#include "src/claims/claims_document.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/log.h"

static double time_of(const cJSON *row, const char *name) {
    const cJSON *first = cJSON_GetArrayItem(nb_json_get(row, name), 0);
    return cJSON_IsNumber(first) && first->valuedouble > 0 ? first->valuedouble : (double)NAN;
}

/* Of a mean of three runs: half the width of its interval at 95 % over the mean, by Student's t with two degrees of freedom. */
static double half_width(const cJSON *row, const char *name) {
    static const double t_95 = 4.303, runs = 3;
    const cJSON *sd = cJSON_GetArrayItem(nb_json_get(row, name), 1);
    return cJSON_IsNumber(sd) ? t_95 / sqrt(runs) * sd->valuedouble / time_of(row, name) : (double)NAN;
}

/* 1 - t / t_LN: relative errors of a quotient add as squares. */
static struct nb_interval cut_of(const cJSON *row, const char *name) {
    const double ratio = time_of(row, name) / time_of(row, "layernorm");
    const double half = hypot(half_width(row, name), half_width(row, "layernorm"));
    return (struct nb_interval){1 - ratio, 1 - ratio * exp(half), 1 - ratio * exp(-half)};
}

int nb_paper_read(struct nb_paper *paper) {
    cJSON *table = nb_claims_table_read("rmsnorm-paper");
    const cJSON *row;
    *paper = (struct nb_paper){0};
    cJSON_ArrayForEach(row, nb_json_get(table, "rows")) {
        struct nb_paper_row *r = &paper->rows[paper->n];
        if (paper->n == NB_PAPER_ROWS) break;
        snprintf(r->name, sizeof r->name, "%s", nb_json_get_string(row, "row"));
        snprintf(r->claim, sizeof r->claim, "%s", nb_json_get_string(row, "claim"));
        snprintf(r->table, sizeof r->table, "%s", nb_json_get_string(row, "table"));
        r->baseline = time_of(row, "baseline");
        r->layernorm = time_of(row, "layernorm");
        r->rmsnorm = time_of(row, "rmsnorm");
        r->step = cut_of(row, "rmsnorm");
        r->step_p = cut_of(row, "prmsnorm");
        r->share = (r->layernorm - r->baseline) / r->layernorm;
        r->norm_cut = (r->layernorm - r->rmsnorm) / (r->layernorm - r->baseline);
        paper->n++;
    }
    cJSON_Delete(table);
    return table ? 0 : -1;
}

/* The range of a member over the rows. */
static struct nb_interval column_range(const struct nb_paper *paper, size_t offset) {
    struct nb_interval range = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < paper->n; i++) {
        double v;
        memcpy(&v, (const char *)&paper->rows[i] + offset, sizeof v);
        range.low = fmin(range.low, v);
        range.high = fmax(range.high, v);
    }
    return range;
}

static void add_sentences(const struct nb_paper *paper, struct nb_strbuf *out) {
    const struct nb_interval plain = column_range(paper, offsetof(struct nb_paper_row, step.value));
    const struct nb_interval partial = column_range(paper, offsetof(struct nb_paper_row, step_p.value));
    const struct nb_interval share = column_range(paper, offsetof(struct nb_paper_row, share));
    const struct nb_interval norm = column_range(paper, offsetof(struct nb_paper_row, norm_cut));
    nb_strbuf_addf(out,
                   "The 7 %% to 64 %% are times of whole training steps, against the same step with LayerNorm. RMSNorm "
                   "itself spans %.1f %% to %.1f %% of them; %.1f %% is pRMSNorm, which spans %.1f %% to %.1f %%.\n",
                   100 * plain.low, 100 * plain.high, 100 * partial.high, 100 * partial.low, 100 * partial.high);
    nb_strbuf_addf(
        out,
        "From the steps without any norm in the same tables follows how much of a step LayerNorm was: %.0f %% to "
        "%.0f %%. Of the norm's own time RMSNorm then saved %.0f %% to %.0f %%, op by op and never fused; the "
        "step's cut is the product of both.\n",
        100 * share.low, 100 * share.high, 100 * norm.low, 100 * norm.high);
}

/* ---- what the 64 % is ---- */

static void add_percent(struct nb_grid *grid, const struct nb_interval *i) {
    nb_strbuf_add(&grid->cell, "");
    nb_format_share(&grid->cell, i);
    nb_grid_end_cell(grid);
}

static void add_share(struct nb_grid *grid, double share) {
    const struct nb_interval alone = {share, share, share};
    add_percent(grid, &alone);
}

void nb_claims_paper(const struct nb_claims_page *p, const cJSON *document) {
    static const char *const titles[] = {"table",
                                         "row",
                                         "norm's share",
                                         "step cut, RMSNorm (95 %, of three runs)",
                                         "pRMSNorm (95 %, of three runs)",
                                         "cut of the norm alone, from the table"};
    struct nb_paper paper;
    struct nb_grid grid;
    bool any = false;
    if (nb_paper_read(&paper) != 0) return;
    nb_grid_init(&grid, titles, 6);
    for (size_t i = 0; i < paper.n; i++) {
        const struct nb_paper_row *r = &paper.rows[i];
        any |= nb_claims_figures(document, r->claim, "norm") != NULL;
        nb_grid_row(&grid, r->table, r->name);
        add_share(&grid, r->share);
        add_percent(&grid, &r->step);
        add_percent(&grid, &r->step_p);
        add_share(&grid, r->norm_cut);
    }
    if (any) {
        nb_claims_heading(p, 2, "paper", "What the 64 % is");
        nb_claims_add(p, "", "<p>");
        add_sentences(&paper, p->out);
        nb_claims_add(p, "\n", "</p>\n");
        nb_claims_grid(p, &grid);
    }
    nb_grid_release(&grid);
}

/* ---- the Amdahl figure: points from tables and from the "steps" section of claims.json, lines from the norms of these steps ---- */

static const char caption[] =
    "What a training step gains from RMSNorm against the share of the step that LayerNorm takes. Left and middle: rows "
    "of the paper's tables (shares from the steps without a norm, bars at 95 % from the deviations of three runs), and "
    "the same steps on this machine, as sums of their operations, unfused. Right: those of this machine alone, nearer, unfused and "
    "fused; bars at 95 %. Lines: share times what the norms of these steps save of their own time; a step lies on its line whatever its model is.";

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

/* ---- what was summed here ---- */

static const cJSON *models_of(const cJSON *document) { return nb_json_get(nb_json_get(document, "steps"), "models"); }
static const cJSON *step_of(const cJSON *entry) { return nb_json_find(nb_json_get(entry, "parts"), "part", "step"); }

/* What the norms save of their own time: the median over the models. */
static double measured(const cJSON *document, const char *norm, const char *style) {
    const cJSON *models = models_of(document), *entry;
    double *v = nb_alloc((unsigned)cJSON_GetArraySize(models) + 1, sizeof *v);
    size_t n = 0;
    cJSON_ArrayForEach(entry, models) {
        const double cut = nb_json_get_interval(step_of(entry), "norm_cut").value;
        if (nb_json_is(entry, "norm", norm) && nb_json_is(entry, "style", style) && isfinite(cut)) v[n++] = cut;
    }
    const double median = n ? nb_median(v, n) : (double)NAN;
    free(v);
    return median;
}

/* ---- points ---- */

static struct nb_point point_of(double share, const struct nb_interval *cut) {
    return (struct nb_point){100 * share, 100 * cut->value, 100 * cut->low, 100 * cut->high, false};
}

static void add_paper(struct nb_figure *f, const struct nb_paper *paper) {
    for (size_t i = 0; i < paper->n; i++) {
        const struct nb_paper_row *r = &paper->rows[i];
        const size_t entry = nb_figure_entry(f, r->name);
        nb_figure_add(f, PLAIN, entry, point_of(r->share, &r->step));
        nb_figure_add(f, PARTIAL, entry, point_of(r->share, &r->step_p));
    }
}

/* Returns the share, in %. */
static double add_step(struct nb_figure *f, const cJSON *entry) {
    const bool fused = nb_json_is(entry, "style", "fused"), partial = nb_json_is(entry, "norm", "prmsnorm");
    const struct nb_interval cut = nb_json_get_interval(step_of(entry), "cut");
    const struct nb_point point = point_of(nb_json_get_interval(step_of(entry), "norm_share").value, &cut);
    char label[96];
    snprintf(label, sizeof label, "%s here%s", nb_json_get_string(entry, "model"), fused ? ", fused" : "");
    if (!isfinite(point.x) || !isfinite(point.y)) return 0;
    const size_t name = nb_figure_entry(f, label);
    if (!fused) nb_figure_add(f, partial ? PARTIAL : PLAIN, name, point);
    if (!partial) nb_figure_add(f, HERE, name, point);
    return partial ? 0 : ceil(point.x);
}

void nb_claims_amdahl_figure(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta) {
    static const char *const titles[N_PANELS] = {"RMSNorm", "pRMSNorm", "RMSNorm, this machine"};
    const cJSON *entry;
    struct nb_paper paper;
    double near = 0;
    if (nb_paper_read(&paper) != 0) return;
    struct nb_figure *f = nb_figures_new(figures, meta, nb_strdup("amdahl"));
    f->title = nb_strdup("A step's gain is the norm's share of it times what the norm saves");
    f->subtitle = nb_strdup("rows of the RMSNorm paper, and the same steps on this machine");
    f->caption = nb_strdup(caption);
    f->scattered = true;
    add_paper(f, &paper);
    cJSON_ArrayForEach(entry, models_of(document)) near = fmax(near, add_step(f, entry));
    f->n_panels = near > 0 ? N_PANELS : HERE;
    for (size_t i = 0; i < f->n_panels; i++)
        f->panels[i] = (struct nb_panel){titles[i], "share of LayerNorm in the step, %", "time of the step saved",
                                         NB_SCALE_LINEAR, NB_SCALE_PERCENT};
    for (size_t panel = PLAIN; panel < f->n_panels; panel += HERE) {
        add_law(f, panel, "unfused", measured(document, "rmsnorm", "composed"), panel == HERE ? near : 100);
        add_law(f, panel, "fused", measured(document, "rmsnorm", "fused"), panel == HERE ? near : 100);
    }
    add_law(f, PARTIAL, "pRMSNorm, unfused", measured(document, "prmsnorm", "composed"), 100);
    nb_figure_sort(f);
    nb_figure_sort_laws(f);
}
