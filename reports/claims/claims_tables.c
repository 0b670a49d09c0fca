// SPDX-License-Identifier: Apache-2.0
/* Arithmetic on printed times. */
#include "reports/claims/claims_tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/claims/claims_text.h"
#include "reports/text/grid.h"
#include "src/claims/claims_document.h"
#include "src/core/json.h"
#include "src/core/log.h"

static double time_of(const cJSON *row, const char *name) {
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(row, name), 0);
    return cJSON_IsNumber(first) && first->valuedouble > 0 ? first->valuedouble : (double)NAN;
}

/* Of a mean of three runs: half the width of its interval at 95 % over the mean, by Student's t with two degrees of freedom. */
static double half_width(const cJSON *row, const char *name) {
    static const double t_95 = 4.303, runs = 3;
    const cJSON *sd = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(row, name), 1);
    return cJSON_IsNumber(sd) ? t_95 / sqrt(runs) * sd->valuedouble / time_of(row, name) : (double)NAN;
}

/* 1 - t / t_LN: relative errors of a quotient add as squares. */
static struct nb_interval cut_of(const cJSON *row, const char *name) {
    const double ratio = time_of(row, name) / time_of(row, "layernorm");
    const double half = hypot(half_width(row, name), half_width(row, "layernorm"));
    return (struct nb_interval){1 - ratio, 1 - ratio * exp(half), 1 - ratio * exp(-half)};
}

static void derive(struct nb_paper_row *r) {
    const double norm = r->layernorm - r->baseline;
    r->share = norm / r->layernorm;
    r->step_cut = 1 - r->rmsnorm / r->layernorm;
    r->step_cut_p = 1 - r->prmsnorm / r->layernorm;
    r->norm_cut = (r->layernorm - r->rmsnorm) / norm;
    r->norm_cut_p = (r->layernorm - r->prmsnorm) / norm;
}

int nb_paper_read(struct nb_paper *paper) {
    cJSON *table = nb_claims_table_read("rmsnorm-paper");
    const cJSON *row;
    *paper = (struct nb_paper){0};
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(table, "rows")) {
        struct nb_paper_row *r = &paper->rows[paper->n];
        if (paper->n == NB_PAPER_ROWS) break;
        snprintf(r->name, sizeof r->name, "%s", nb_claims_text(row, "row"));
        snprintf(r->claim, sizeof r->claim, "%s", nb_claims_text(row, "claim"));
        snprintf(r->table, sizeof r->table, "%s", nb_claims_text(row, "table"));
        r->baseline = time_of(row, "baseline");
        r->layernorm = time_of(row, "layernorm");
        r->rmsnorm = time_of(row, "rmsnorm");
        r->prmsnorm = time_of(row, "prmsnorm");
        r->step = cut_of(row, "rmsnorm");
        r->step_p = cut_of(row, "prmsnorm");
        derive(r);
        paper->n++;
    }
    cJSON_Delete(table);
    return table ? 0 : -1;
}

struct nb_interval nb_paper_range(const struct nb_paper *paper, size_t offset) {
    struct nb_interval range = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < paper->n; i++) {
        double v;
        memcpy(&v, (const char *)&paper->rows[i] + offset, sizeof v);
        range.low = fmin(range.low, v);
        range.high = fmax(range.high, v);
    }
    return range;
}

struct nb_interval nb_paper_measured(const cJSON *document, const char *claim, const char *reading) {
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

void nb_paper_sentences(const struct nb_paper *paper, struct nb_strbuf *out) {
    const struct nb_interval plain = nb_paper_range(paper, offsetof(struct nb_paper_row, step_cut));
    const struct nb_interval partial = nb_paper_range(paper, offsetof(struct nb_paper_row, step_cut_p));
    const struct nb_interval share = nb_paper_range(paper, offsetof(struct nb_paper_row, share));
    const struct nb_interval norm = nb_paper_range(paper, offsetof(struct nb_paper_row, norm_cut));
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

/* ---- Markdown ---- */

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

void nb_claims_paper_markdown(const cJSON *document, struct nb_strbuf *out) {
    static const char *const titles[] = {"table",
                                         "row",
                                         "norm's share",
                                         "step cut, RMSNorm (95 %, of three runs)",
                                         "pRMSNorm (95 %, of three runs)",
                                         "cut of the norm alone, from the table",
                                         "measured here, op by op",
                                         "measured here, fused"};
    struct nb_paper paper;
    struct nb_grid grid;
    bool any = false;
    if (nb_paper_read(&paper) != 0) return;
    nb_grid_init(&grid, titles, 8);
    for (size_t i = 0; i < paper.n; i++) {
        const struct nb_paper_row *r = &paper.rows[i];
        const struct nb_interval norm = nb_paper_measured(document, r->claim, "norm");
        const struct nb_interval fused = nb_paper_measured(document, r->claim, "fused");
        any |= nb_claims_figures(document, r->claim, "norm") != NULL;
        nb_grid_add(&grid, r->table);
        nb_grid_add(&grid, r->name);
        add_share(&grid, r->share);
        add_percent(&grid, &r->step);
        add_percent(&grid, &r->step_p);
        add_share(&grid, r->norm_cut);
        add_percent(&grid, &norm);
        add_percent(&grid, &fused);
    }
    if (any) {
        nb_strbuf_add(out, "\n## What the 64 % is\n\n");
        nb_paper_sentences(&paper, out);
        nb_strbuf_add(out, "\n");
        nb_grid_add_markdown(&grid, out);
    }
    nb_grid_release(&grid);
}
