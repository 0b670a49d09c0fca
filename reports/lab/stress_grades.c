// SPDX-License-Identifier: Apache-2.0
/* The headline: a line for each kernel, dtype and formula, with the figures of its worst width; and what is below B. */
#include <math.h>
#include <string.h>

#include "reports/lab/stress_parts.h"
#include "src/core/json.h"
#include "src/record/grade.h"

enum { MAX_LOW = 40 };

/* ---- grades --------------------------------------------------------------------------------------------------------- */

static enum nb_grade grade_of(const cJSON *line, const char *name) {
    const char *text = nb_json_get_text(line, name);
    return text ? nb_grade_parse(text) : NB_GRADE_NONE;
}

static bool same_but_for_width(const cJSON *a, const cJSON *b) {
    static const char *const names[] = {"kernel", "pass", "dtype", "formula"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(nb_json_get_text(a, names[i]), nb_json_get_text(b, names[i])) != 0) return false;
    return true;
}

/* No grade is no evidence of anything, and ranks last. */
static int rank(const cJSON *line, const char *name) {
    const enum nb_grade grade = grade_of(line, name);
    return grade == NB_GRADE_NONE ? NB_N_GRADES : (int)grade;
}

static bool is_worse(const cJSON *a, const cJSON *b) {
    const int declared = rank(a, "declared") - rank(b, "declared"), all = rank(a, "all") - rank(b, "all");
    if (declared != 0 || all != 0) return declared != 0 ? declared < 0 : all < 0;
    return nb_json_get_number(a, "componentwise_ulp") > nb_json_get_number(b, "componentwise_ulp");
}

static void add_percent(struct nb_grid *grid, double share) {
    char text[32] = "";
    if (isfinite(share)) snprintf(text, sizeof text, share < 1 && share > 0.9999 ? "99.99%%" : "%.2f%%", 100 * share);
    nb_grid_add(grid, text);
}

static void add_grade_line(struct nb_grid *grid, const cJSON *line, int n_widths, bool timed) {
    char width[48];
    const char *name = nb_json_get_text(line, "width"), *formula = nb_json_get_text(line, "formula");
    const enum nb_grade declared = grade_of(line, "declared"), all = grade_of(line, "all");
    const bool low = declared != NB_GRADE_NONE && declared < NB_GRADE_B;
    nb_grid_style(grid, low ? NB_GRID_BAD : all == NB_GRADE_F ? NB_GRID_DOUBTFUL : NB_GRID_PLAIN);
    snprintf(width, sizeof width, n_widths > 1 ? "%s of %d" : "%s", name, n_widths);
    nb_grid_add(grid, nb_json_get_text(line, "kernel"));
    nb_grid_add(grid, nb_json_get_text(line, "dtype"));
    nb_grid_add(grid, width);
    nb_grid_add(grid, nb_grade_name(declared));
    nb_grid_add(grid, nb_grade_name(all));
    nb_grid_add_number(grid, nb_json_get_number(line, "componentwise_ulp"), 4);
    add_percent(grid, nb_json_get_number(line, "correct"));
    nb_grid_add_number(grid, nb_json_get_number(line, "bias_u"), 2);
    nb_grid_add_number(grid, nb_json_get_number(line, "gain_u"), 2);
    nb_grid_add_number(grid, nb_json_get_number(line, "bound_ratio"), 2);
    nb_grid_add_number(grid, nb_json_get_number(line, "noise_ratio"), 3);
    nb_grid_add_count(grid, nb_json_get_number(line, "nan"));
    nb_grid_add_count(grid, nb_json_get_number(line, "inf"));
    nb_grid_add_count(grid, nb_json_get_number(line, "zero"));
    nb_grid_add(grid, strcmp(formula, "default") == 0 ? "" : formula);
    if (timed) nb_grid_add_number(grid, nb_json_get_number(line, "ns_per_element"), 3);
}

static bool is_timed(const cJSON *lines) {
    const cJSON *line;
    cJSON_ArrayForEach(line, lines) {
        if (isfinite(nb_json_get_number(line, "ns_per_element"))) return true;
    }
    return false;
}

/* In a table for the eye formulas that are not as usual stand only where they are below B; a document has all. */
static bool is_shown(const struct nb_stress_text *p, const cJSON *line) {
    return strcmp(p->format, "table") != 0 || strcmp(nb_json_get_text(line, "formula"), "default") == 0 ||
           rank(line, "declared") < NB_GRADE_B;
}

/* The lines that differ in nothing but their width as one, with the figures of the worst. Returns how many are not shown. */
static int add_grade_lines(struct nb_grid *grid, const struct nb_stress_text *p, bool timed) {
    const cJSON *line, *worst = NULL;
    int n_widths = 0, n_hidden = 0;
    for (line = nb_stress_list(p, "grades")->child; line || worst; line = line ? line->next : NULL) {
        const bool more = worst && line && same_but_for_width(worst, line);
        if (worst && !more && is_shown(p, worst)) add_grade_line(grid, worst, n_widths, timed);
        if (worst && !more && !is_shown(p, worst)) n_hidden++;
        n_widths = more ? n_widths + 1 : 1;
        if (!line)
            worst = NULL;
        else if (!more || is_worse(line, worst))
            worst = line;
    }
    return n_hidden;
}

static const char legend[] =
    "max ulp: where y may cancel (means, beta) in ulp of at least rms(y)/16; bias, gain: of the worst case and row, in "
    "u;\n"
    "bound, noise: largest error / a-priori bound, / effect of half an ulp of input noise; these in the declared "
    "range.\n"
    "NaN, Inf, 0: elements over all finite inputs where the exact result is an ordinary number.\n";

int nb_stress_print_grades(const struct nb_stress_text *p) {
    static const char *const titles[] = {"kernel",  "dtype",  "worst width", "declared",  "all",   "max ulp",
                                         "correct", "bias u", "gain u",      "bound",     "noise", "NaN",
                                         "Inf",     "0",      "formula",     "ns/element"};
    static const bool right[] = {false, false, false, false, false, true, true,  true,
                                 true,  true,  true,  true,  true,  true, false, true};
    const bool timed = is_timed(nb_stress_list(p, "grades"));
    struct nb_grid grid;
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0] - !timed);
    grid.right = right;
    const int n_hidden = add_grade_lines(&grid, p, timed);
    nb_stress_heading(p, "Grades: in the range that the kernel declares, and over all finite inputs");
    int result = nb_grid_print(&grid, p->format, p->out);
    fprintf(p->out, "%s%s", strcmp(p->format, "table") == 0 ? "" : "\n", legend);
    if (n_hidden > 0)
        fprintf(p->out, "%d other formula%s B or better where declared: --format markdown shows them.\n", n_hidden,
                n_hidden == 1 ? " is" : "s are");
    nb_grid_release(&grid);
    return result;
}

/* ---- what is below B ------------------------------------------------------------------------------------------------ */

void nb_stress_print_low(const struct nb_stress_text *p) {
    const cJSON *line;
    int n = 0;
    cJSON_ArrayForEach(line, nb_stress_list(p, "grades")) {
        const enum nb_grade grade = grade_of(line, "declared");
        const cJSON *why = cJSON_GetObjectItemCaseSensitive(line, "why_declared");
        if (grade == NB_GRADE_NONE || grade >= NB_GRADE_B) continue;
        if (n++ == 0) nb_stress_heading(p, "Below B in the declared range");
        if (n > MAX_LOW) continue;
        fprintf(p->out, "%s%s  ", strcmp(p->format, "markdown") == 0 ? "- " : "", nb_grade_name(grade));
        nb_stress_say(p, nb_json_get_text(line, "variant"));
        fprintf(p->out, " %s: ", nb_json_get_text(line, "formula"));
        nb_stress_say(p, nb_json_get_text(why, "text"));
        fputs("\n     ", p->out);
        nb_stress_say(p, nb_json_get_text(why, "replay"));
        fputs("\n", p->out);
    }
    if (n > MAX_LOW) fprintf(p->out, "... and %d more: stress.json has them all.\n", n - MAX_LOW);
}
