// SPDX-License-Identifier: Apache-2.0
/* The judgement of a stress run as text: one listing for each question, with a heading, left out where there is nothing to say. */
#include "reports/lab/stress_report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "reports/text/grid.h"
#include "reports/text/output.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/grade.h"

enum { MAX_FAILURES = 20 };

struct stress_text {
    const cJSON *stress;
    const struct nb_results *results;
    const char *format; /* table or markdown */
    bool utf8;
    FILE *out;
};

/* ---- shared by the parts -------------------------------------------------------------------------------------------- */

static const cJSON *stress_list(const struct stress_text *p, const char *name) { return nb_json_get(p->stress, name); }

static void print_heading(const struct stress_text *p, const char *text) {
    const bool markdown = strcmp(p->format, "markdown") == 0;
    const bool color = !markdown && nb_color_on(fileno(p->out));
    fprintf(p->out, "\n%s%s%s\n%s",
            markdown ? "## "
            : color  ? "\033[1m"
                     : "",
            text, color ? "\033[0m" : "", markdown ? "\n" : "");
}

/* A line as printf() makes it, escaped for its reader. */
static void __attribute__((format(printf, 2, 3))) say(const struct stress_text *p, const char *format, ...) {
    const bool markdown = strcmp(p->format, "markdown") == 0;
    struct nb_strbuf text released_by(nb_strbuf_release) = {0}, safe = nb_strbuf_empty();
    va_list args;
    va_start(args, format);
    nb_strbuf_addv(&text, format, args);
    va_end(args);
    if (markdown)
        nb_escape_markdown(&safe, text.text);
    else
        nb_escape_terminal(&safe, text.text, p->utf8);
    nb_strbuf_add(&safe, "\n");
    (markdown ? nb_output : nb_output_folded)(&safe, p->out);
}

/* ---- The headline: a line for each kernel, dtype and formula, with the figures of its worst width; and what is below B ---- */

enum { MAX_LOW = 40 };

/* In a table for the eye formulas that are not as usual stand only where they are below B; a document has all. */
static bool is_shown(const struct stress_text *p, const cJSON *line) {
    return strcmp(p->format, "table") != 0 || nb_json_is(line, "formula", "default") ||
           nb_stress_is_low(line, "declared");
}

static const char legend[] =
    "max ulp: where y may cancel (means, beta) in ulp of at least rms(y)/16; bias, gain: of the worst case and row, in u; "
    "bound, noise: largest error over its a-priori bound, and over the effect of half an ulp of input noise; all these on "
    "supported inputs. NaN, Inf, 0: elements over all finite inputs where the exact result is an ordinary number.";
enum { WIDE = 130 }; /* cells that all columns take */

static int print_grades(const struct stress_text *p) {
    const char *titles[NB_N_GRADE_COLUMNS];
    int ranks[NB_N_GRADE_COLUMNS];
    bool right[NB_N_GRADE_COLUMNS];
    struct nb_stress_lines lines;
    struct nb_grid grid released_by(nb_grid_release);
    int n_hidden = 0;
    nb_stress_lines_init(&lines, p->stress);
    for (int i = 0; i < NB_N_GRADE_COLUMNS; i++) {
        titles[i] = nb_grade_columns[i].kind == NB_CELL_WIDTH ? "worst width" : nb_grade_columns[i].title;
        ranks[i] = nb_grade_columns[i].rank;
        right[i] = nb_grade_column_is_figure(&nb_grade_columns[i]);
    }
    nb_grid_init(&grid, titles, NB_N_GRADE_COLUMNS);
    grid.right = right;
    grid.ranks = ranks;
    for (size_t k = 0; k < lines.n; k++) {
        const cJSON *line = lines.list[k].line;
        n_hidden += !is_shown(p, line);
        if (!is_shown(p, line)) continue;
        const bool fails = nb_stress_grade(line, "all") == NB_GRADE_F;
        nb_grid_style(&grid, nb_stress_is_low(line, "declared") ? NB_GRID_BAD
                             : fails                            ? NB_GRID_DOUBTFUL
                                                                : NB_GRID_PLAIN);
        for (const struct nb_grade_column *c = nb_grade_columns; c < nb_grade_columns + NB_N_GRADE_COLUMNS; c++) {
            nb_grade_cell(c, &lines.list[k], c->text_digits, &grid.cell);
            nb_grid_end_cell(&grid);
        }
    }
    print_heading(p, "Grades on supported inputs (declared), and on all finite inputs");
    int result = nb_grid_print(&grid, p->format, p->out);
    if (strcmp(p->format, "table") != 0) fputs("\n", p->out);
    say(p, "%s", legend);
    if (n_hidden > 0)
        say(p, "%d other formula%s B or better on supported inputs: --format markdown shows them.", n_hidden,
            n_hidden == 1 ? " is" : "s are");
    if (strcmp(p->format, "table") == 0 && nb_screen_width(p->out) < WIDE)
        say(p, "Narrow: COLUMNS=%d, --format markdown and precision.html have all columns.", WIDE);
    free(lines.list);
    return result;
}

/* ---- the answer ----------------------------------------------------------------------------------------------------- */

/* How many kernels keep what they promise, which do not, and whether the search was cut. */
static void print_answer(const struct stress_text *p) {
    enum { MOST = 8 };
    struct nb_stress_lines lines;
    size_t n_low = 0, said = 0;
    const cJSON *studies = stress_list(p, "studies"), *study;
    int n_cut = 0;
    cJSON_ArrayForEach(study, studies) n_cut += nb_json_is(study, "status", nb_status_name(NB_NOT_RUN));
    nb_stress_lines_init(&lines, p->stress);
    for (size_t i = 0; i < lines.n; i++) n_low += nb_stress_is_low(lines.list[i].line, "declared");
    if (lines.n)
        say(p, "%zu of %zu kernels and formulas earn grade B or better on the inputs that they declare to support%s",
            lines.n - n_low, lines.n, n_low ? "; these do not:" : ".");
    for (size_t i = 0; i < lines.n && said < MOST; i++) {
        const cJSON *line = lines.list[i].line;
        const bool usual = nb_json_is(line, "formula", "default");
        if (!nb_stress_is_low(line, "declared")) continue;
        struct nb_strbuf ulp released_by(nb_strbuf_release) = {0};
        nb_format_digits(&ulp, nb_json_get_number(line, "componentwise_ulp"), 3);
        say(p, "  %s  %s %s%s%s%s%s", nb_json_get_string(line, "declared"), nb_json_get_string(line, "kernel"),
            nb_json_get_string(line, "dtype"), usual ? "" : ", ", usual ? "" : nb_json_get_string(line, "formula"),
            ulp.len ? ", ulp: " : "", ulp.len ? ulp.text : "");
        said++;
    }
    if (n_low > said) say(p, "  ... and %zu more, below", n_low - said);
    if (n_cut > 0)
        say(p,
            "INCOMPLETE: %d of %d kernels were not searched for worse inputs, so that their grades may be optimistic. "
            "Rerun with a larger --search.",
            n_cut, cJSON_GetArraySize(studies));
    free(lines.list);
}

/* ---- what is below B ------------------------------------------------------------------------------------------------ */

static void print_low(const struct stress_text *p) {
    const cJSON *line;
    int n = 0;
    cJSON_ArrayForEach(line, stress_list(p, "grades")) {
        const cJSON *why = nb_json_get(line, "why_declared");
        if (!nb_stress_is_low(line, "declared")) continue;
        if (n++ == 0) print_heading(p, "Below B on supported inputs");
        if (n > MAX_LOW) continue;
        fputs(strcmp(p->format, "markdown") == 0 ? "- " : "", p->out);
        say(p, "%s  %s %s: %s", nb_json_get_string(line, "declared"), nb_json_get_string(line, "variant"),
            nb_json_get_string(line, "formula"), nb_json_get_string(why, "text"));
        say(p, "     %s", nb_json_get_string(why, "replay"));
    }
    if (n > MAX_LOW) fprintf(p->out, "... and %d more: stress.json has them all.\n", n - MAX_LOW);
}

/* ---- Beside the grades: breakdown frontiers and public bug inputs ---- */

enum { MAX_NAMES = 4 };

/* ---- frontiers ------------------------------------------------------------------------------------------------------ */

static void add_frontier(struct nb_grid *grid, const cJSON *study, const cJSON *f) {
    const char *status = nb_json_get_string(f, "status");
    nb_grid_row(grid, nb_json_get_string(study, "variant"), nb_json_get_string(f, "of"));
    if (strcmp(status, "found") == 0)
        nb_grid_put(grid, nb_format_digits, nb_json_get_number(f, "good"), 4);
    else
        nb_grid_add(grid, strcmp(status, "none") == 0 ? "no limit" : status);
    const double predicted = nb_json_get_number(f, "predicted");
    if (predicted > 0)
        nb_grid_put(grid, nb_format_digits, predicted, 4);
    else
        nb_grid_add(grid, "no limit");
    nb_grid_put(grid, nb_format_digits, nb_json_get_number(f, "ratio"), 3);
    nb_grid_add(grid, nb_json_get_string(f, "rule"));
}

static bool is_asked(const cJSON *f) {
    const char *status = nb_json_get_string(f, "status");
    return *status && strcmp(status, "does_not_apply") != 0;
}

/* False: nothing was found, and nothing predicted as far as was searched (to the end of what the dtype can store). */
static bool is_limit(const cJSON *f) {
    const double predicted = nb_json_get_number(f, "predicted"), end = nb_json_get_number(f, "searched_to");
    const bool downwards = nb_json_is(f, "of", "scale_min");
    if (!nb_json_is(f, "status", "none")) return true;
    return predicted > 0 && (downwards ? predicted > end : predicted < end);
}

static const char *kernel_of(const struct stress_text *p, const char *variant) {
    const cJSON *line = nb_json_find(stress_list(p, "grades"), "variant", variant);
    return line ? nb_json_get_string(line, "kernel") : variant;
}

static bool is_same(const cJSON *f, const cJSON *g) {
    const double good = nb_json_get_number(f, "good"), other = nb_json_get_number(g, "good");
    return nb_json_same_text(f, g, "of") && nb_json_same_text(f, g, "status") && !(good > 2 * other) &&
           !(good < other / 2);
}

/* Another width of the kernel, listed before, that breaks down within a factor of two of it. */
static bool is_listed(const struct stress_text *p, const cJSON *study, const cJSON *f) {
    const char *dtype = nb_json_get_string(study, "dtype"),
               *kernel = kernel_of(p, nb_json_get_string(study, "variant"));
    const cJSON *g;
    for (const cJSON *before = stress_list(p, "studies")->child; before != study; before = before->next) {
        if (!nb_json_is(before, "dtype", dtype) ||
            strcmp(kernel_of(p, nb_json_get_string(before, "variant")), kernel) != 0)
            continue;
        cJSON_ArrayForEach(g, nb_json_get(before, "frontiers")) {
            if (is_asked(g) && is_same(f, g)) return true;
        }
    }
    return false;
}

static int print_frontiers(const struct stress_text *p) {
    const bool all = strcmp(p->format, "table") != 0;
    struct nb_grid grid released_by(nb_grid_release) =
        nb_grid_of("variant", "limit", "holds to", "predicted", "ratio", "predicted by");
    const cJSON *study, *f;
    int result = 0;
    grid.right = (const bool[]){false, false, true, true, true, false};
    cJSON_ArrayForEach(study, stress_list(p, "studies")) {
        cJSON_ArrayForEach(f, nb_json_get(study, "frontiers")) {
            if (is_asked(f) && (all || (is_limit(f) && !is_listed(p, study, f)))) add_frontier(&grid, study, f);
        }
    }
    if (grid.n_cells > 0) {
        print_heading(p, "Operating limits: measured, and predicted by theory");
        result = nb_grid_print(&grid, p->format, p->out);
        if (!all) say(p, "Not shown: widths within a factor of 2 of one above, and what has no limit, as predicted.");
    }
    return result;
}

/* ---- bugs ----------------------------------------------------------------------------------------------------------- */

/* "layernorm_onepass, rmsnorm_lowp and 2 more": each kernel once, whatever its width and dtype. */
static void add_names(struct nb_grid *grid, const cJSON *list) {
    const cJSON *who;
    int n = 0;
    cJSON_ArrayForEach(who, list) {
        if (nb_stress_is_named_before(list, who)) continue;
        if (n++ < MAX_NAMES) nb_strbuf_addf(&grid->cell, "%s%s", n > 1 ? ", " : "", nb_json_get_string(who, "kernel"));
    }
    if (n > MAX_NAMES) nb_strbuf_addf(&grid->cell, " and %d more", n - MAX_NAMES);
    nb_grid_end_cell(grid);
}

/* In a table for the eye the reports that nothing fails are counted. */
static int print_bugs(const struct stress_text *p) {
    const cJSON *bug, *bugs = stress_list(p, "bugs");
    struct nb_grid grid released_by(nb_grid_release) =
        nb_grid_of("report", "essence", "fail", "survive", "who fails", "who survives");
    int n_broken = 0;
    grid.right = (const bool[]){false, false, true, true, false, false};
    grid.ranks = (const int[]){NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, 1};
    cJSON_ArrayForEach(bug, bugs) {
        const cJSON *failed = nb_json_get(bug, "failed"), *survived = nb_json_get(bug, "survived");
        const int n_failed = cJSON_GetArraySize(failed), n_survived = cJSON_GetArraySize(survived);
        n_broken += n_failed > 0;
        if (strcmp(p->format, "table") == 0 && n_failed == 0) continue;
        nb_grid_row(&grid, nb_json_get_string(bug, "label"), nb_json_get_string(bug, "text"));
        nb_grid_add_known(&grid, n_failed > 0, "%d", n_failed);
        nb_grid_add_known(&grid, n_survived > 0, "%d", n_survived);
        add_names(&grid, failed);
        add_names(&grid, survived);
    }
    char *heading freed =
        nb_textf("Inputs of %d public bug reports: %d break a kernel here", cJSON_GetArraySize(bugs), n_broken);
    if (cJSON_GetArraySize(bugs) > 0) print_heading(p, heading);
    const int result = grid.n_cells > 0 ? nb_grid_print(&grid, p->format, p->out) : 0;
    if (grid.n_cells > 0)
        say(p, "Counts are of variants and formulas. To fail: NaN, Inf or 0, or half of the digits lost.");
    return result;
}

/* ---- what failed ---------------------------------------------------------------------------------------------------- */

static void print_failed_studies(const struct stress_text *p) {
    const cJSON *study;
    int n = 0;
    cJSON_ArrayForEach(study, stress_list(p, "studies")) {
        const char *status = nb_json_get_string(study, "status"), *reason = nb_json_get_string(study, "reason");
        if (!*status || strcmp(status, nb_status_name(NB_OK)) == 0) continue;
        if (strcmp(status, nb_status_name(NB_NOT_RUN)) == 0) continue; /* counted on top */
        if (n++ == 0) print_heading(p, "Searches that did not finish");
        if (n > MAX_FAILURES) continue;
        say(p, "%s: %s%s%s", nb_json_get_string(study, "variant"), status, *reason ? ", " : "", reason);
    }
    if (n > MAX_FAILURES) fprintf(p->out, "... and %d more\n", n - MAX_FAILURES);
}

static void print_relations(const struct stress_text *p) {
    const cJSON *list = stress_list(p, "relations"), *relation;
    int n = 0;
    cJSON_ArrayForEach(relation, list) {
        if (n++ == 0) print_heading(p, "Relations between calls that do not hold");
        if (n > MAX_FAILURES) continue;
        say(p, "%s: %s", nb_json_get_string(relation, "relation"), nb_json_get_string(relation, "text"));
        say(p, "  %s", nb_json_get_string(relation, "replay"));
    }
    if (n > MAX_FAILURES) fprintf(p->out, "... and %d more: stress.json has them all.\n", n - MAX_FAILURES);
}

/* What the failing cases of each kernel share, once. */
static void print_patterns(const struct stress_text *p, const struct nb_summary *summary) {
    for (size_t i = 0; i < summary->n_failures; i++) {
        const char *variant = p->results->records[summary->failures[i]].c.variant;
        struct nb_strbuf pattern released_by(nb_strbuf_release) = {0};
        bool said = false;
        for (size_t k = 0; k < i && !said; k++)
            said = strcmp(p->results->records[summary->failures[k]].c.variant, variant) == 0;
        if (!said) nb_failure_pattern(p->results, NULL, variant, &pattern);
        if (pattern.len) say(p, "%s fails %s", variant, pattern.text);
    }
}

/* An element beyond its bound says more than a relation between two calls: those come first. */
static void print_failed_cases(const struct stress_text *p, const struct nb_summary *summary) {
    size_t n = 0;
    char *heading freed = nb_textf("%zu failed", summary->n_failures);
    print_heading(p, heading);
    print_patterns(p, summary);
    for (int beyond = 1; beyond >= 0; beyond--)
        for (size_t i = 0; i < summary->n_failures && n < MAX_FAILURES; i++) {
            const struct nb_record *r = &p->results->records[summary->failures[i]];
            struct nb_strbuf reproducer released_by(nb_strbuf_release) = nb_strbuf_empty();
            if (nb_is_beyond_bound(r) != beyond) continue;
            nb_failure_reproducer(r, &reproducer);
            say(p, "%s: %s", nb_status_name(r->status), r->key);
            say(p, "  %s", reproducer.text);
            say(p, "  %s", r->replay);
            n++;
        }
    if (summary->n_failures > n)
        fprintf(p->out, "... and %zu more: results.json has them all.\n", summary->n_failures - n);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------- */

int nb_stress_print(const cJSON *stress, const struct nb_results *results, const char *format, FILE *out) {
    const struct stress_text p = {
        .stress = stress, .results = results, .format = format, .utf8 = nb_utf8_wanted(), .out = out};
    if (strcmp(format, "json") == 0) return nb_output_document(stress, out);
    struct nb_summary summary released_by(nb_summary_release);
    nb_summary_init(&summary, results);
    say(&p, "%s", summary.footer.text);
    print_answer(&p);
    int result = print_grades(&p) != 0 || print_frontiers(&p) != 0 || print_bugs(&p) != 0 ? -1 : 0;
    print_low(&p);
    print_failed_studies(&p);
    if (summary.n_failures > 0) print_failed_cases(&p, &summary);
    print_relations(&p);
    fprintf(out, "\n%s\n", summary.counts_text);
    if (results->dir) say(&p, "Results: %s (stress.json, results.json, precision.html, index.html)", results->dir);
    return result;
}
