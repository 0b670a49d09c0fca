// SPDX-License-Identifier: Apache-2.0
/* The document's figures in words, and the lines of the table of verdicts. */
#include "reports/claims/claims_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/text/format.h"
#include "reports/text/grid.h"
#include "src/claims/claims.h"
#include "src/claims/claims_document.h"
#include "src/core/json.h"
#include "src/core/log.h"

const char *nb_claims_text(const cJSON *object, const char *name) {
    const char *text = nb_json_get_text(object, name);
    return text ? text : "";
}

bool nb_claims_is_bug(const cJSON *claim) {
    return strncmp(nb_claims_text(claim, "id"), NB_BUG_PREFIX, strlen(NB_BUG_PREFIX)) == 0;
}

static const cJSON *with_id(const cJSON *list, const char *id) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        if (strcmp(nb_claims_text(item, "id"), id) == 0) return item;
    }
    return NULL;
}

/* The reading that the verdict is explained by, or null. */
static const cJSON *main_reading(const cJSON *claim) {
    const char *id = nb_claims_text(claim, "decided_by");
    return with_id(cJSON_GetObjectItemCaseSensitive(claim, "readings"), id);
}

const cJSON *nb_claims_figures(const cJSON *document, const char *claim, const char *reading) {
    const cJSON *found = with_id(cJSON_GetObjectItemCaseSensitive(document, "claims"), claim);
    found = with_id(cJSON_GetObjectItemCaseSensitive(found, "readings"), reading);
    return cJSON_GetObjectItemCaseSensitive(found, "figures");
}

/* ---- figures ---- */

/* "44.7 %", "1.81", "12 ulp". */
static void add_value(struct nb_strbuf *out, double value, const char *unit) {
    if (!isfinite(value)) {
        nb_strbuf_add(out, "-");
    } else if (strcmp(unit, "share") == 0) {
        nb_strbuf_addf(out, fabs(value) < 0.001 && value != 0 ? "%.2g %%" : "%.1f %%", 100 * value);
    } else {
        nb_format_digits(out, value, 4);
        if (*unit) nb_strbuf_addf(out, " %s", unit);
    }
}

/* "30.1 % [29.8 %, 30.6 %]"; of an exact one the value alone. */
static void add_interval(struct nb_strbuf *out, const cJSON *figure) {
    const double value = nb_json_get_number(figure, "value"), low = nb_json_get_number(figure, "low"),
                 high = nb_json_get_number(figure, "high");
    const char *unit = nb_claims_text(figure, "unit");
    add_value(out, value, unit);
    if (!isfinite(low) || !isfinite(high) || low == high) return;
    nb_strbuf_add(out, " [");
    add_value(out, low, unit);
    nb_strbuf_add(out, ", ");
    add_value(out, high, unit);
    nb_strbuf_add(out, "]");
}

static const char *figure_name(const cJSON *reading, const cJSON *figure) {
    const cJSON *rules = cJSON_GetObjectItemCaseSensitive(reading, "expect");
    const double at = nb_json_get_number(figure, "rule");
    return nb_claims_text(cJSON_GetArrayItem(rules, at >= 0 && at < 1000 ? (int)at : 0), "figure");
}

struct range {
    const cJSON *first;
    double low, high;
    int n;
    bool mixed; /* figures of several names */
};

static struct range range_of(const cJSON *reading) {
    struct range r = {.low = INFINITY, .high = -INFINITY};
    const cJSON *figure;
    cJSON_ArrayForEach(figure, cJSON_GetObjectItemCaseSensitive(reading, "figures")) {
        const double v = nb_json_get_number(figure, "value");
        if (!isfinite(v)) continue;
        if (!r.first) r.first = figure;
        r.mixed |= strcmp(figure_name(reading, r.first), figure_name(reading, figure)) != 0;
        r.low = fmin(r.low, v);
        r.high = fmax(r.high, v);
        r.n++;
    }
    return r;
}

static void add_ratio(struct nb_strbuf *out, double low, double high) {
    nb_strbuf_addf(out, low == high ? "; ratio %.3g" : "; ratio %.3g to %.3g", 1 / (1 - low), 1 / (1 - high));
}

/* Ends that read alike are said once. */
static void add_range(struct nb_strbuf *out, const struct range *r, const char *unit) {
    struct nb_strbuf low = {0}, high = {0};
    add_value(&low, r->low, unit);
    add_value(&high, r->high, unit);
    nb_strbuf_add(out, low.text);
    if (strcmp(low.text, high.text) != 0) nb_strbuf_addf(out, " to %s", high.text);
    nb_strbuf_release(&low);
    nb_strbuf_release(&high);
}

/* All figures of a reading in one: the value of a single one, else the range of the values, "21.9 % to 44.1 % (12 figures)". Of a
 * cut the ratio stands behind it, so that both conventions are there. */
static void add_measured(struct nb_strbuf *out, const cJSON *reading) {
    const struct range r = range_of(reading);
    const char *unit = r.first ? nb_claims_text(r.first, "unit") : "";
    nb_strbuf_add(out, "");
    if (r.n == 0) return;
    const char *name = figure_name(reading, r.first);
    if (r.mixed) {
        nb_strbuf_addf(out, "%d figures", r.n);
        return;
    }
    nb_strbuf_addf(out, "%s ", name);
    if (r.n == 1)
        add_interval(out, r.first);
    else
        add_range(out, &r, unit);
    if (strcmp(name, "cut") == 0) add_ratio(out, r.low, r.high);
    if (r.n > 1) nb_strbuf_addf(out, " (%d figures)", r.n);
}

/* What the source says: figures of the rules, else "". */
static void add_published(struct nb_strbuf *out, const cJSON *reading) {
    const cJSON *rule;
    bool some = false;
    nb_strbuf_add(out, "");
    cJSON_ArrayForEach(rule, cJSON_GetObjectItemCaseSensitive(reading, "expect")) {
        const double published = nb_json_get_number(rule, "published");
        const char *name = nb_claims_text(rule, "figure");
        const bool share = strstr(name, "cut") != NULL || strcmp(name, "relative_error") == 0;
        if (!isfinite(published)) continue;
        if (some) nb_strbuf_add(out, ", ");
        add_value(out, published, share ? "share" : "");
        some = true;
    }
}

/* ---- tags ---- */

static bool differs(const char *axis, const char *value, const cJSON *figures) {
    const cJSON *figure;
    cJSON_ArrayForEach(figure, figures) {
        const cJSON *tags = cJSON_GetObjectItemCaseSensitive(figure, "tags");
        if (tags && strcmp(nb_claims_text(tags, axis), value) != 0) return true;
    }
    return false;
}

/* A tag that follows from another one adds nothing. */
static bool follows(const char *axis, const cJSON *tags) {
    static const char *const of_kernel[] = {"op", "style", "stats", "stats_dtype", "variance", "against", NULL};
    static const char *const of_shape[] = {"rows", "cols", NULL};
    for (size_t i = 0; of_kernel[i]; i++)
        if (strcmp(axis, of_kernel[i]) == 0 && *nb_claims_text(tags, "kernel")) return true;
    for (size_t i = 0; of_shape[i]; i++)
        if (strcmp(axis, of_shape[i]) == 0 && *nb_claims_text(tags, "shape")) return true;
    return false;
}

/* "style=composed, cols=512", of the tags in which the figures of a reading differ. */
static void add_tags(struct nb_strbuf *out, const cJSON *figure, const cJSON *figures) {
    const cJSON *tags = cJSON_GetObjectItemCaseSensitive(figure, "tags"), *tag;
    const size_t before = out->len;
    nb_strbuf_add(out, "");
    cJSON_ArrayForEach(tag, tags) {
        if (!cJSON_IsString(tag) || follows(tag->string, tags) || !differs(tag->string, tag->valuestring, figures))
            continue;
        nb_strbuf_addf(out, "%s%s=%s", out->len > before ? ", " : "", tag->string, tag->valuestring);
    }
}

void nb_claims_figure(const cJSON *figure, const cJSON *figures, struct nb_strbuf *where, struct nb_strbuf *value) {
    nb_strbuf_add(where, nb_claims_text(figure, "label"));
    add_tags(where, figure, figures);
    add_interval(value, figure);
}

/* ---- sensitivity ---- */

static bool same_question(const cJSON *a, const cJSON *b) {
    return strcmp(nb_claims_text(a, "axis"), nb_claims_text(b, "axis")) == 0 &&
           strcmp(nb_claims_text(a, "reading"), nb_claims_text(b, "reading")) == 0;
}

static bool is_first(const cJSON *list, const cJSON *sensed) {
    const cJSON *p = list->child;
    while (p != sensed && !same_question(p, sensed)) p = p->next;
    return p == sensed;
}

/* "style (norm): composed REPRODUCED, fused NOT REPRODUCED"; the reading is named where it is not the one that decides. */
static void add_axis(struct nb_strbuf *out, const cJSON *first, const char *decides) {
    const char *reading = nb_claims_text(first, "reading");
    int n = 0;
    nb_strbuf_addf(out, "%s%s", out->len ? "; " : "", nb_claims_text(first, "axis"));
    if (strcmp(reading, decides) != 0) nb_strbuf_addf(out, " (%s)", reading);
    nb_strbuf_add(out, ": ");
    for (const cJSON *s = first; s; s = s->next) {
        if (!same_question(s, first)) continue;
        nb_strbuf_addf(out, "%s%s %s", n++ ? ", " : "", nb_claims_text(s, "value"), nb_claims_text(s, "verdict"));
    }
}

void nb_claims_sensitivity(struct nb_strbuf *out, const cJSON *claim) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(claim, "sensitivity"), *sensed;
    nb_strbuf_add(out, "");
    cJSON_ArrayForEach(sensed, list) {
        if (nb_json_get_bool(sensed, "decides") && is_first(list, sensed))
            add_axis(out, sensed, nb_claims_text(claim, "decided_by"));
    }
}

/* Of a bug report the kernels that its input breaks: "breaks layernorm_onepass, layernorm_composed"; "" for none. */
static void add_broken(struct nb_strbuf *out, const cJSON *claim) {
    const cJSON *sensed;
    const size_t before = out->len;
    nb_strbuf_add(out, "");
    cJSON_ArrayForEach(sensed, cJSON_GetObjectItemCaseSensitive(claim, "sensitivity")) {
        const char *verdict = nb_claims_text(sensed, "verdict");
        if (strcmp(nb_claims_text(sensed, "axis"), "kernel") != 0 ||
            (strcmp(verdict, nb_claim_verdict_names[NB_REPRODUCED]) != 0 &&
             strcmp(verdict, nb_claim_verdict_names[NB_PARTLY]) != 0))
            continue;
        nb_strbuf_addf(out, "%s%s", out->len > before ? ", " : "breaks ", nb_claims_text(sensed, "value"));
    }
}

void nb_claims_counts(struct nb_strbuf *out, const cJSON *document) {
    const cJSON *count;
    int n = 0;
    cJSON_ArrayForEach(count, cJSON_GetObjectItemCaseSensitive(document, "counts")) {
        if (!(count->valuedouble > 0)) continue;
        nb_strbuf_addf(out, "%s%.0f %s", n++ ? ", " : "", count->valuedouble, count->string);
    }
    if (n == 0) nb_strbuf_add(out, "no claims");
}

/* ---- lines ---- */

static struct nb_claims_line *add(struct nb_claims_line **lines, size_t *n, const cJSON *claim, const cJSON *judged,
                                  const cJSON *figures_of) {
    struct nb_strbuf measured = {0}, published = {0};
    *lines = nb_realloc(*lines, *n + 1, sizeof **lines);
    add_measured(&measured, figures_of);
    add_published(&published, figures_of);
    (*lines)[*n] = (struct nb_claims_line){.claim = claim,
                                           .name = nb_claims_text(judged, "id"),
                                           .title = nb_claims_text(judged, "title"),
                                           .verdict = nb_claims_text(judged, "verdict"),
                                           .measured = measured.text,
                                           .published = published.text,
                                           .why = nb_strdup(nb_claims_text(judged, "reason"))};
    return &(*lines)[(*n)++];
}

/* What matters of a bug report is which kernels have the bug. */
static void add_bug(struct nb_claims_line **lines, size_t *n, const cJSON *claim) {
    struct nb_claims_line *line = add(lines, n, claim, claim, NULL);
    struct nb_strbuf broken = {0};
    add_broken(&broken, claim);
    free(line->measured);
    line->measured = line->why;
    line->why = broken.text;
}

static void add_claim(struct nb_claims_line **lines, size_t *n, const cJSON *claim) {
    const cJSON *reading;
    add(lines, n, claim, claim, main_reading(claim));
    if (nb_claim_is_decided(nb_claims_text(claim, "verdict"))) return;
    cJSON_ArrayForEach(reading, cJSON_GetObjectItemCaseSensitive(claim, "readings")) {
        if (!nb_claim_is_decided(nb_claims_text(reading, "verdict"))) continue;
        struct nb_claims_line *line = add(lines, n, claim, reading, reading);
        line->reading = reading;
        line->title = nb_claims_text(reading, "text");
    }
}

size_t nb_claims_lines(const cJSON *document, bool bugs, struct nb_claims_line **lines) {
    const cJSON *claim;
    size_t n = 0;
    *lines = NULL;
    cJSON_ArrayForEach(claim, cJSON_GetObjectItemCaseSensitive(document, "claims")) {
        if (nb_claims_is_bug(claim) != bugs) continue;
        if (bugs)
            add_bug(lines, &n, claim);
        else
            add_claim(lines, &n, claim);
    }
    return n;
}

void nb_claims_lines_release(struct nb_claims_line *lines, size_t n) {
    for (size_t i = 0; i < n; i++) {
        free(lines[i].measured);
        free(lines[i].published);
        free(lines[i].why);
    }
    free(lines);
}

/* ---- Arithmetic on printed times, and the Amdahl figure. ---- */

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

/* -1 after nb_error. */
static int paper_read(struct nb_paper *paper) {
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
    const struct nb_interval plain = column_range(paper, offsetof(struct nb_paper_row, step_cut));
    const struct nb_interval partial = column_range(paper, offsetof(struct nb_paper_row, step_cut_p));
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

void nb_paper_sentences(struct nb_strbuf *out) {
    struct nb_paper paper;
    if (paper_read(&paper) == 0) add_sentences(&paper, out);
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
    if (paper_read(&paper) != 0) return;
    nb_grid_init(&grid, titles, 8);
    for (size_t i = 0; i < paper.n; i++) {
        const struct nb_paper_row *r = &paper.rows[i];
        const struct nb_interval norm = measured_of(document, r->claim, "norm");
        const struct nb_interval fused = measured_of(document, r->claim, "fused");
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
        add_sentences(&paper, out);
        nb_strbuf_add(out, "\n");
        nb_grid_add_markdown(&grid, out);
    }
    nb_grid_release(&grid);
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
    if (paper_read(&paper) != 0) return;
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
    add_law(f, PARTIAL, "pRMSNorm, op by op", measured_of(document, "speed-paper-range", "prmsnorm").value, 100);
    nb_figure_sort(f);
    nb_figure_sort_laws(f);
}
