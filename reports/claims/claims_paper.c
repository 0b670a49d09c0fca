// SPDX-License-Identifier: Apache-2.0
/* The RMSNorm paper's printed times: what follows from them, the headline that sets them beside this machine, and the Amdahl figure. */
#include "reports/claims/claims_report.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/text/grid.h"
#include "src/claims/claims_document.h"
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

/* -1 after nb_error. */
static int paper_read(struct nb_paper *paper) {
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

/* The norm-only cut that was measured at a row's shapes (reading "norm" of its claim, or "fused"): median, and range as bounds; NaN
 * where there is none. */
static struct nb_interval measured_of(const cJSON *document, const char *claim, const char *reading) {
    const cJSON *figures = nb_claims_figures(document, claim, reading), *figure;
    double *v = nb_alloc((unsigned)cJSON_GetArraySize(figures) + 1, sizeof *v);
    struct nb_interval out = {NAN, INFINITY, -INFINITY};
    size_t n = 0;
    cJSON_ArrayForEach(figure, figures) {
        const double value = nb_json_get_number(figure, "value");
        if (!isfinite(value)) continue;
        v[n++] = value;
        out.low = fmin(out.low, value);
        out.high = fmax(out.high, value);
    }
    out.value = n ? nb_median(v, n) : (double)NAN;
    free(v);
    return out;
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
    char text[64] = "";
    if (isfinite(i->value) && i->low < i->high)
        snprintf(text, sizeof text, "%.1f %% (%.1f to %.1f)", 100 * i->value, 100 * i->low, 100 * i->high);
    else if (isfinite(i->value))
        snprintf(text, sizeof text, "%.1f %%", 100 * i->value);
    nb_grid_add(grid, text);
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
    if (paper_read(&paper) != 0) return;
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

static const char of_range[] = "speed-paper-range";

static const cJSON *training_of(const cJSON *document) { return nb_json_get(document, "training"); }

/* ---- the headline: each row of the paper, and what it is here ---- */

/* The figure of the last rule that has one, which is the whole step continued to the source's size; NaN where there is none. */
static struct nb_interval figure_of(const cJSON *document, const char *claim, const char *reading) {
    const cJSON *figure, *last = NULL;
    cJSON_ArrayForEach(figure, nb_claims_figures(document, claim, reading)) {
        if (isfinite(nb_json_get_number(figure, "value")) &&
            (!last || nb_json_get_number(figure, "rule") >= nb_json_get_number(last, "rule")))
            last = figure;
    }
    return (struct nb_interval){nb_json_get_number(last, "value"), nb_json_get_number(last, "low"),
                                nb_json_get_number(last, "high")};
}

/* Of the row's own claim, else of that of the range, whose readings are called after the rows: transformer, transformer-norm. */
static struct nb_interval here_of(const cJSON *document, const struct nb_paper_row *r, const char *reading,
                                  const char *end, bool many) {
    struct nb_strbuf row = {0};
    struct nb_interval found = many ? measured_of(document, r->claim, reading) : figure_of(document, r->claim, reading);
    nb_strbuf_addf(&row, "%s%s", r->claim + strlen("speed-paper-"), end);
    if (!isfinite(found.value))
        found = many ? measured_of(document, of_range, row.text) : figure_of(document, of_range, row.text);
    nb_strbuf_release(&row);
    return found;
}

/* The model looks no further than a millisecond. */
static void add_cost(struct nb_strbuf *out, const cJSON *entry, const char *name, const char *where) {
    static const double farthest_us = 1000;
    const double us = nb_json_get_interval(entry, name).value;
    if (us < farthest_us)
        nb_strbuf_addf(out, "%.3g us %s", us, where);
    else
        nb_strbuf_addf(out, "never %s", where);
}

/* The cost of an operation's dispatch at which the published cut is reached, by the model of the training section, with the products of
 * this CPU and with those of the source's GPU; "" where there is none. */
static void add_dispatch(struct nb_grid *grid, const cJSON *document, const struct nb_paper_row *r) {
    const cJSON *entry;
    const char *framework = strchr(r->name, ',');
    char row[80];
    snprintf(row, sizeof row, "Table %s%s", r->table, framework ? framework : "");
    cJSON_ArrayForEach(entry, nb_json_get(training_of(document), "regime")) {
        if (!nb_json_is(entry, "row", row)) continue;
        add_cost(&grid->cell, entry, "needed_here_us", "here, ");
        add_cost(&grid->cell, entry, "needed_there_us", "on its GPU");
        break;
    }
    nb_strbuf_add(&grid->cell, "");
    nb_grid_end_cell(grid);
}

static void add_gpu(struct nb_grid *grid, const cJSON *document, const struct nb_paper_row *r) {
    const struct nb_interval gpu = figure_of(document, r->claim, "gpu");
    if (isfinite(gpu.value))
        add_percent(grid, &gpu);
    else
        nb_grid_add(grid, "needs a GPU");
}

bool nb_claims_headline(const cJSON *document, struct nb_grid *grid) {
    enum { COLUMNS = 7 };
    static const char *const titles[2][COLUMNS] = {
        {"RMSNorm against LayerNorm", "published, of a step", "whole step here", "norm alone, op by op",
         "norm alone, fused", "reached at a dispatch of", "on a GPU"},
        {"RMSNorm against LayerNorm", "published, of a step", "small step here", "norm alone, op by op",
         "norm alone, fused", "small step reaches it at a dispatch of", "on a GPU"}};
    static const int ranks[] = {NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, 3, 2, 1};
    struct nb_paper paper;
    bool any = false;
    assert(document && grid);
    nb_grid_init(grid, titles[nb_json_get_bool(document, "quick")], COLUMNS);
    grid->ranks = ranks;
    if (paper_read(&paper) != 0) return false;
    for (size_t i = 0; i < paper.n; i++) {
        const struct nb_paper_row *r = &paper.rows[i];
        const struct nb_interval step = here_of(document, r, "step", "", false),
                                 norm = here_of(document, r, "norm", "-norm", true),
                                 fused = here_of(document, r, "fused", "-fused", true);
        nb_grid_add(grid, r->name);
        add_percent(grid, &r->step);
        add_percent(grid, &step);
        add_percent(grid, &norm);
        add_percent(grid, &fused);
        add_dispatch(grid, document, r);
        add_gpu(grid, document, r);
        any |= isfinite(step.value) || isfinite(norm.value) || isfinite(fused.value);
    }
    return any;
}

/* ---- the Amdahl figure: points from tables and from the "training" section of claims.json, lines from norms timed alone ---- */

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
        const struct nb_interval cut = measured_of(document, paper->rows[i].claim, reading);
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
    return nb_json_get_number(nb_json_get(entry, name), "value");
}

/* The share of the step that LayerNorm has in the arm that the entry is compared with. */
static double share_of(const cJSON *steps, const cJSON *entry) {
    const cJSON *other;
    cJSON_ArrayForEach(other, steps) {
        if (nb_json_same_text(other, entry, "workload") &&
            nb_json_is(other, "arm", nb_json_get_string(entry, "against")))
            return value_of(other, "step_share");
    }
    return (double)NAN;
}

static bool begins(const char *text, const char *word) { return strncmp(text, word, strlen(word)) == 0; }

static void add_step(struct nb_figure *f, const cJSON *steps, const cJSON *entry) {
    const char *arm = nb_json_get_string(entry, "arm");
    const bool composed = strstr(arm, " composed"), partial = begins(arm, "prmsnorm ");
    const struct nb_interval cut = nb_json_get_interval(entry, "cut");
    const struct nb_point point = point_of(share_of(steps, entry), &cut);
    char label[96];
    snprintf(label, sizeof label, "%s here%s", nb_json_get_string(entry, "workload"), composed ? "" : ", fused");
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
    const cJSON *steps = nb_json_get(training_of(document), "steps"), *entry;
    struct nb_paper paper;
    if (paper_read(&paper) != 0) return;
    struct nb_figure *f = nb_figures_new(figures, meta, nb_strdup("amdahl"));
    f->title = nb_strdup("A step's gain is the norm's share of it times what the norm saves");
    f->subtitle = nb_strdup("rows of the RMSNorm paper, and steps and norms measured here");
    f->caption = nb_strdup(caption);
    f->scattered = true;
    add_paper(f, &paper);
    cJSON_ArrayForEach(entry, steps) {
        if (*nb_json_get_string(entry, "against")) add_step(f, steps, entry);
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
    add_law(f, PARTIAL, "pRMSNorm, op by op", measured_of(document, of_range, "prmsnorm").value, 100);
    nb_figure_sort(f);
    nb_figure_sort_laws(f);
}
