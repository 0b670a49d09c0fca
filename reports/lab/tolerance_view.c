// SPDX-License-Identifier: Apache-2.0
/* A tolerance as a table, as JSON. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/lab/lab.h"
#include "reports/text/grid.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"

/* "rmsnorm, 16 rows of 4096 in bf16 (normal), eps 1e-6, against the exact result" */
static void tolerance_title(const struct nb_tolerance *t, const struct nb_tolerance_request *q, struct nb_strbuf *out) {
    static const char *const references[] = {"the exact result", "the exact result rounded to the dtype",
                                             "another correct kernel"};
    nb_strbuf_addf(out, "%s, %lld rows of %lld in %s (%s), eps %s, against %s", nb_op_names[q->design.op],
                   (long long)t->rows, (long long)q->cols, nb_numbers[q->design.store].name, q->data,
                   q->design.eps_text, references[q->reference]);
}

/* ---- table ------------------------------------------------------------------------------------------------------------- */

/* There were too few tests to find its limit. */
static bool is_absent(const struct nb_criterion *c) {
    return isnan(c->kind == NB_CRITERION_ALLCLOSE ? c->rtol : c->limit);
}

static void add_limit(const struct nb_criterion *c, struct nb_grid *grid) {
    if (is_absent(c))
        nb_grid_add(grid, "too few tests");
    else if (c->kind == NB_CRITERION_ALLCLOSE)
        nb_grid_addf(grid, "rtol %.3g, atol %.3g", c->rtol, c->atol);
    else
        nb_grid_addf(grid, "%.3g", c->limit);
}

/* The correct kernel that fails most often. */
static const struct nb_rate *worst_alarm(const struct nb_tolerance *t, int criterion, const char **name) {
    const struct nb_rate *worst = NULL;
    for (int s = 0; s < t->n_subjects; s++) {
        const struct nb_rate *rate = &t->subjects[s].alarms[criterion];
        if (rate->n == 0 || (worst && rate->high <= worst->high)) continue;
        worst = rate;
        *name = t->subjects[s].name;
    }
    return worst;
}

static void end_table(struct nb_grid *grid, struct nb_strbuf *out) {
    grid->screen = nb_screen_width(stdout);
    nb_strbuf_add(out, "\n");
    nb_grid_add_table(grid, false, out);
    nb_grid_release(grid);
}

static void add_criteria(const struct nb_tolerance *t, struct nb_strbuf *out) {
    struct nb_grid grid = nb_grid_of("criterion", "limit", "false alarms (95% bound)", "worst");
    for (int c = 0; c < t->n_criteria; c++) {
        const char *name = "";
        const struct nb_rate *alarm = worst_alarm(t, c, &name);
        nb_grid_add(&grid, t->criteria[c].name);
        add_limit(&t->criteria[c], &grid);
        if (alarm && !is_absent(&t->criteria[c]))
            nb_grid_addf(&grid, alarm->high > 0.995 ? "%lld of %lld (%.0f%%)" : "%lld of %lld (%.2g%%)",
                         (long long)alarm->seen, (long long)alarm->n, 100 * alarm->high);
        else
            nb_grid_add(&grid, "-");
        nb_grid_add(&grid, alarm && alarm->seen ? name : "");
    }
    end_table(&grid, out);
}

/* "-": the mistake changes no output here. */
static void add_bugs(const struct nb_tolerance *t, struct nb_strbuf *out) {
    const char *titles[1 + NB_MAX_CRITERIA];
    char *heading freed = nb_textf("mistakes detected, of %lld tests", (long long)t->bug_trials);
    struct nb_grid grid;
    titles[0] = heading;
    for (int c = 0; c < t->n_criteria; c++) titles[1 + c] = t->criteria[c].name;
    nb_grid_init(&grid, titles, 1 + (size_t)t->n_criteria);
    for (int b = 0; b < t->n_bugs; b++) {
        const struct nb_bug_result *bug = &t->bugs[b];
        if (bug->changed.n == 0) continue;
        nb_grid_add(&grid, bug->name);
        for (int c = 0; c < t->n_criteria; c++) {
            const double share = (double)bug->caught[c].seen / (double)bug->caught[c].n;
            if (bug->changed.seen > 0 && share > 0 && share < 1) nb_format_percent(&grid.cell, share);
            if (!grid.cell.len) nb_strbuf_add(&grid.cell, bug->changed.seen == 0 ? "-" : share == 1 ? "all" : "none");
            nb_grid_end_cell(&grid);
        }
    }
    end_table(&grid, out);
    nb_strbuf_add(out, "-: changes no output here\n");
}

static const struct nb_bug_result *find_bug(const struct nb_tolerance *t, const char *name) {
    for (int b = 0; b < t->n_bugs; b++)
        if (strcmp(t->bugs[b].name, name) == 0 && t->bugs[b].changed.n > 0) return &t->bugs[b];
    return NULL;
}

/* What rtol and atol cannot see. */
static void add_advice(const struct nb_tolerance *t, struct nb_strbuf *out) {
    const struct nb_bug_result *truncation = find_bug(t, "truncates");
    if (!truncation) return;
    const struct nb_rate *by_line = &truncation->caught[NB_DERIVED], *by_mean = &truncation->caught[NB_MEAN_ERROR_TEST];
    nb_strbuf_addf(out, "\n  A truncating store is detected by rtol and atol in %lld of %lld tests",
                   (long long)by_line->seen, (long long)by_line->n);
    if (isnan(t->criteria[NB_MEAN_ERROR_TEST].limit))
        nb_strbuf_add(out, "; there are too few tests to measure the mean error.\n");
    else
        nb_strbuf_addf(out, ", by the mean error in %lld.\n", (long long)by_mean->seen);
}

/* Which limit a test should have. */
static void add_choice(const struct nb_tolerance *t, struct nb_strbuf *out) {
    const char *before = "; the calibrated one where it must detect";
    nb_strbuf_add(
        out, "  use         the derived line: no correct kernel fails it (--format torch, numpy or c prints the test)");
    for (int b = 0; b < t->n_bugs && !isnan(t->calibrated_share); b++) {
        const struct nb_bug_result *bug = &t->bugs[b];
        const struct nb_rate *by = &bug->caught[NB_CALIBRATED], *derived = &bug->caught[NB_DERIVED];
        if (2 * by->seen <= by->n || 2 * derived->seen > derived->n) continue;
        nb_strbuf_addf(out, "%s '%s'", before, bug->name);
        before = ",";
    }
    if (*before == ',') nb_strbuf_addf(out, " and can bear %.2g%% of false alarms", 100 * t->calibrated_alarm);
    nb_strbuf_add(out, "; the ulp line where your test counts ulp\n");
}

static void add_verdict(const struct nb_tolerance *t, const struct nb_tolerance_request *q, struct nb_strbuf *out) {
    const struct nb_subject *s = &t->subjects[0];
    for (int i = 1; i < t->n_subjects && !s->under_test; i++)
        if (t->subjects[i].worst > s->worst) s = &t->subjects[i];
    const struct nb_rate *bias = &s->alarms[NB_MEAN_ERROR_TEST];
    if (s->reason[0]) {
        nb_strbuf_addf(out, "%s was not run: %s\n", s->name, s->reason);
        return;
    }
    nb_strbuf_addf(out, "%s%s ", s->under_test ? "" : "Of correct kernels ", s->under_test ? q->kernel->id : s->name);
    if (isinf(s->worst))
        nb_strbuf_add(out, "EXCEEDS it: NaN or Inf");
    else if (s->worst > 1)
        nb_strbuf_addf(out, "EXCEEDS it by %.2fx", s->worst);
    else
        nb_strbuf_addf(out, "KEEPS it: %.2f of the limit", s->worst);
    if (s->worst > 0)
        nb_strbuf_addf(out, " at row %lld, column %lld (seed %llu)", (long long)s->worst_row, (long long)s->worst_col,
                       (unsigned long long)s->worst_seed);
    if (s->under_test && 2 * bias->seen > bias->n)
        nb_strbuf_addf(out, ", but its errors lie on one side: the mean error EXCEEDS its limit in %lld of %lld tests",
                       (long long)bias->seen, (long long)bias->n);
    nb_strbuf_add(out, "\n");
}

static void as_table(const struct nb_tolerance *t, const struct nb_tolerance_request *q, struct nb_strbuf *out) {
    struct nb_strbuf design released_by(nb_strbuf_release) = {0};
    const struct nb_criterion *derived = &t->criteria[NB_DERIVED], *calibrated = &t->criteria[NB_CALIBRATED];
    nb_design_print(&q->design, &design);
    tolerance_title(t, q, out);
    nb_strbuf_addf(out, "\n%s, at most %lld roundings in a chain\n\n", q->kernel ? q->kernel->id : design.text,
                   (long long)t->chain);
    nb_strbuf_addf(
        out,
        "  derived     rtol %.3g, atol %.3g: covers the bound of every element; of %lld elements of other rows %lld are beyond it\n",
        derived->rtol, derived->atol, (long long)t->n_held_out, (long long)t->n_uncovered);
    if (isnan(t->calibrated_share))
        nb_strbuf_addf(out, "  calibrated  too few tests: %d of correct kernels are needed; --trials gives more\n",
                       NB_FEWEST_TESTS);
    else
        nb_strbuf_addf(
            out,
            "  calibrated  rtol %.3g, atol %.3g: %.2g of that, by the errors of correct kernels in other tests than those "
            "below, of which at most %.2g%% are beyond it\n",
            calibrated->rtol, calibrated->atol, t->calibrated_share, 100 * t->calibrated_alarm);
    nb_strbuf_addf(out,
                   "  ulp         %.3g ulp of the reference, at the element that needs most; rms of the outputs %.3g\n",
                   t->criteria[NB_ULPS].limit, t->rms);
    if (t->n_lost > 0)
        nb_strbuf_addf(out, "  %lld of %lld elements are lost in this arithmetic and are left out\n",
                       (long long)t->n_lost, (long long)t->n_elements);
    add_choice(t, out);
    nb_strbuf_add(out, "\n");
    add_verdict(t, q, out);
    add_criteria(t, out);
    add_bugs(t, out);
    add_advice(t, out);
    nb_strbuf_add(out, "\n  correct kernels run:");
    for (int s = 0; s < t->n_subjects; s++)
        nb_strbuf_addf(out, "%s %s (%.3g%s%s)", s ? "," : "", t->subjects[s].name, t->subjects[s].worst,
                       t->subjects[s].reason[0] ? ": " : "", t->subjects[s].reason);
    if (t->calibrated_share < 0.5 && !q->kernel)
        nb_strbuf_add(
            out,
            "\n"
            "  The bound has room for the worst row in the worst order; --kernel, or a --design with its lanes, narrows it.");
    nb_strbuf_add(out, "\n  in brackets the largest error, as a share of the derived tolerance\n");
}

/* ---- JSON -------------------------------------------------------------------------------------------------------------- */

static const struct nb_member rate_members[] = {
    NB_MEMBER(COUNT, struct nb_rate, seen),
    NB_MEMBER(COUNT, struct nb_rate, n),
    NB_MEMBER_AS("low95", NUMBER, struct nb_rate, low),
    NB_MEMBER_AS("high95", NUMBER, struct nb_rate, high),
    NB_MEMBERS_END,
};

static cJSON *rates_json(const struct nb_tolerance *t, const struct nb_rate *rates) {
    cJSON *o = cJSON_CreateObject();
    for (int c = 0; c < t->n_criteria; c++)
        cJSON_AddItemToObject(o, t->criteria[c].name, nb_json_of_members(rate_members, &rates[c]));
    return o;
}

static cJSON *criteria_json(const struct nb_tolerance *t) {
    static const char *const kinds[] = {"allclose", "ulp", "nmse", "mean_error", NULL};
    static const struct nb_member members[] = {
        NB_MEMBER(BORROWED, struct nb_criterion, name), NB_MEMBER_NAMED(struct nb_criterion, kind, kinds),
        NB_MEMBER(NUMBER, struct nb_criterion, rtol),   NB_MEMBER(NUMBER, struct nb_criterion, atol),
        NB_MEMBER(NUMBER, struct nb_criterion, limit),  NB_MEMBERS_END,
    };
    cJSON *list = cJSON_CreateArray();
    for (int c = 0; c < t->n_criteria; c++) cJSON_AddItemToArray(list, nb_json_of_members(members, &t->criteria[c]));
    return list;
}

static void as_json(const struct nb_tolerance *t, const struct nb_tolerance_request *q, struct nb_strbuf *out) {
    cJSON *root released_by(nb_json_release) = cJSON_CreateObject(), *subjects = cJSON_CreateArray(),
                *bugs = cJSON_CreateArray();
    struct nb_strbuf design released_by(nb_strbuf_release) = {0};
    nb_design_print(&q->design, &design);
    cJSON_AddStringToObject(root, "op", nb_op_names[q->design.op]);
    cJSON_AddStringToObject(root, "dtype", nb_numbers[q->design.store].name);
    cJSON_AddStringToObject(root, "design", design.text);
    nb_json_text(root, "kernel", q->kernel ? q->kernel->id : NULL);
    cJSON_AddStringToObject(root, "data", q->data);
    cJSON_AddStringToObject(root, "reference", nb_reference_kind_names[q->reference]);
    nb_json_number(root, "rows", (double)t->rows);
    nb_json_number(root, "cols", (double)q->cols);
    nb_json_number(root, "eps", q->design.eps);
    nb_json_number(root, "chain", (double)t->chain);
    nb_json_number(root, "rms", t->rms);
    nb_json_number(root, "calibrated_alarm", t->calibrated_alarm);
    nb_json_number(root, "held_out", (double)t->n_held_out);
    nb_json_number(root, "uncovered", (double)t->n_uncovered);
    nb_json_number(root, "lost", (double)t->n_lost);
    cJSON_AddStringToObject(root, "verdict", nb_tolerance_is_kept(t) ? "keeps" : "exceeds");
    cJSON_AddItemToObject(root, "criteria", criteria_json(t));
    for (int s = 0; s < t->n_subjects; s++) {
        cJSON *o = nb_json_add_object(subjects);
        cJSON_AddStringToObject(o, "name", t->subjects[s].name);
        nb_json_text(o, "reason", t->subjects[s].reason[0] ? t->subjects[s].reason : NULL);
        nb_json_number(o, "worst", t->subjects[s].worst);
        cJSON_AddItemToObject(o, "alarms", rates_json(t, t->subjects[s].alarms));
    }
    for (int b = 0; b < t->n_bugs; b++) {
        if (t->bugs[b].changed.n == 0) continue;
        cJSON *o = nb_json_add_object(bugs);
        cJSON_AddStringToObject(o, "name", t->bugs[b].name);
        cJSON_AddStringToObject(o, "help", t->bugs[b].help);
        cJSON_AddItemToObject(o, "changed", nb_json_of_members(rate_members, &t->bugs[b].changed));
        cJSON_AddItemToObject(o, "caught", rates_json(t, t->bugs[b].caught));
    }
    cJSON_AddItemToObject(root, "correct", subjects);
    cJSON_AddItemToObject(root, "mistakes", bugs);
    char *text freed = cJSON_Print(root);
    nb_strbuf_addf(out, "%s\n", text);
}

void nb_tolerance_view(const struct nb_tolerance *t, const struct nb_tolerance_request *q, const char *format,
                       struct nb_strbuf *out) {
    if (strcmp(format, "table") == 0)
        as_table(t, q, out);
    else if (strcmp(format, "json") == 0)
        as_json(t, q, out);
    else {
        struct nb_strbuf title released_by(nb_strbuf_release) = {0};
        tolerance_title(t, q, &title);
        nb_tolerance_code(t, q, title.text, format, out);
    }
}
