// SPDX-License-Identifier: Apache-2.0
/* The RMSNorm paper's printed times, and what follows from them. */
#include "reports/claims/claims_report.h"

#include <math.h>
#include <stdio.h>
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
    nb_strbuf_addf(
        out,
        "What the 64%% is: the 7%% to 64%% are savings of whole training steps, against the same step with LayerNorm. RMSNorm "
        "itself saves %.1f%% to %.1f%% over %zu steps; %.1f%% is pRMSNorm, which saves %.1f%% to %.1f%%. ",
        100 * plain.low, 100 * plain.high, paper->n, 100 * partial.high, 100 * partial.low, 100 * partial.high);
    nb_strbuf_addf(
        out,
        "By the steps without any norm in the same tables, LayerNorm was %.0f%% to %.0f%% of a step. Of the norm's own time RMSNorm then saved "
        "%.0f%% to %.0f%% over these steps, unfused; what a step saves is the product of both.",
        100 * share.low, 100 * share.high, 100 * norm.low, 100 * norm.high);
}

/* ---- its tables ---- */

void nb_claims_paper_sentence(struct nb_strbuf *out) {
    struct nb_paper paper;
    nb_strbuf_add(out, "");
    if (nb_paper_read(&paper) == 0) add_sentences(&paper, out);
}

void nb_claims_paper(const struct nb_claims_page *p, const cJSON *document) {
    struct nb_paper paper;
    struct nb_grid grid released_by(nb_grid_release) =
        nb_grid_of("table", "row", "LayerNorm's share of the step", "RMSNorm saves of the step", "pRMSNorm saves",
                   "RMSNorm saves of the norm");
    bool any = false;
    if (nb_paper_read(&paper) != 0) return;
    for (size_t i = 0; i < paper.n; i++) {
        const struct nb_paper_row *r = &paper.rows[i];
        any |= nb_claims_figures(document, r->claim, "norm") != NULL;
        nb_grid_row(&grid, r->table, r->name);
        nb_grid_put(&grid, nb_format_share, nb_exactly(r->share));
        nb_grid_put(&grid, nb_format_share, r->step);
        nb_grid_put(&grid, nb_format_share, r->step_p);
        nb_grid_put(&grid, nb_format_share, nb_exactly(r->norm_cut));
    }
    if (any) {
        nb_claims_heading(p, 2, "paper", "The RMSNorm paper's tables");
        nb_claims_say(
            p, "",
            "Intervals at 95% from the deviations of the paper's three runs; shares from its steps without any norm.");
        nb_claims_grid(p, &grid);
    }
}
