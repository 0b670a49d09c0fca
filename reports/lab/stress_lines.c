// SPDX-License-Identifier: Apache-2.0
/* Lines come sorted, so that the widths of a kernel stand together. */
#include "reports/lab/stress_report.h"

#include <math.h>
#include <string.h>

#include "reports/text/grid.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/log.h"

enum nb_grade nb_stress_grade(const cJSON *line, const char *name) {
    const char *text = nb_json_get_string(line, name);
    return *text ? nb_grade_parse(text) : NB_GRADE_NONE;
}

bool nb_stress_is_low(const cJSON *line, const char *name) {
    const enum nb_grade grade = nb_stress_grade(line, name);
    return grade != NB_GRADE_NONE && grade < NB_GRADE_B;
}

bool nb_stress_is_named_before(const cJSON *list, const cJSON *until) {
    for (const cJSON *who = list->child; who && who != until; who = who->next)
        if (nb_json_same_text(who, until, "kernel")) return true;
    return false;
}

/* ---- lines ---- */

static bool differ_in_width_alone(const cJSON *a, const cJSON *b) {
    static const char *const names[] = {"op", "kernel", "pass", "dtype", "formula"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!nb_json_same_text(a, b, names[i])) return false;
    return true;
}

/* No grade ranks last. */
static int rank(const cJSON *line, const char *name) {
    const enum nb_grade grade = nb_stress_grade(line, name);
    return grade == NB_GRADE_NONE ? NB_N_GRADES : (int)grade;
}

static bool is_worse(const cJSON *a, const cJSON *b) {
    const int declared = rank(a, "declared") - rank(b, "declared"), all = rank(a, "all") - rank(b, "all");
    if (declared != 0 || all != 0) return declared != 0 ? declared < 0 : all < 0;
    return nb_json_get_number(a, "componentwise_ulp") > nb_json_get_number(b, "componentwise_ulp");
}

void nb_stress_lines_init(struct nb_stress_lines *out, const cJSON *stress) {
    const cJSON *line, *lines = nb_json_get(stress, "grades");
    *out = (struct nb_stress_lines){.list =
                                        nb_alloc((unsigned long long)cJSON_GetArraySize(lines) + 1, sizeof *out->list)};
    cJSON_ArrayForEach(line, lines) {
        struct nb_stress_line *last = out->n ? &out->list[out->n - 1] : NULL;
        if (!last || !differ_in_width_alone(last->line, line)) {
            out->list[out->n++] = (struct nb_stress_line){line, 1};
            continue;
        }
        last->n_widths++;
        if (is_worse(line, last->line)) last->line = line;
    }
}

/* ---- columns ---- */

enum { STAYS = NB_GRID_STAYS };
const struct nb_grade_column nb_grade_columns[NB_N_GRADE_COLUMNS] = {
    {"kernel", "", "kernel", NB_CELL_TEXT, 0, 0, STAYS},
    {"dtype", "", "dtype", NB_CELL_TEXT, 0, 0, STAYS},
    {"width", "of several the worst", "width", NB_CELL_WIDTH, 0, 0, 8},
    {"declared", "grade over the rows for which the kernel claims its accuracy", "declared", NB_CELL_GRADE, 0, 0,
     STAYS},
    {"all", "grade over all finite rows", "all", NB_CELL_GRADE, 0, 0, STAYS},
    {"max ulp", "largest error in ulp of the exact result", "componentwise_ulp", NB_CELL_FIGURE, 4, 4, STAYS},
    {"correct", "share of correctly rounded elements", "correct", NB_CELL_SHARE, 0, 0, 4},
    {"bias u", "largest one-sided error on random rows", "bias_u", NB_CELL_FIGURE, 2, 2, 3},
    {"gain u", "largest error that a row shares", "gain_u", NB_CELL_FIGURE, 3, 2, 2},
    {"bound", "largest error over the a-priori bound of the declared formula; above 1 is a bug", "bound_ratio",
     NB_CELL_FIGURE, 2, 2, STAYS},
    {"noise", "largest error over what half an ulp of input noise does to the exact result", "noise_ratio",
     NB_CELL_FIGURE, 3, 3, 1},
    {"NaN", "elements, over all finite rows", "nan", NB_CELL_COUNT, 0, 0, 7},
    {"Inf", "elements, over all finite rows", "inf", NB_CELL_COUNT, 0, 0, 6},
    {"0", "elements that are 0 in place of a number, over all finite rows", "zero", NB_CELL_COUNT, 0, 0, 5},
    {"formula", "what is not as usual", "formula", NB_CELL_TEXT, 0, 0, STAYS},
};

void nb_grade_cell(const struct nb_grade_column *column, const struct nb_stress_line *graded, int digits,
                   struct nb_strbuf *out) {
    const char *text = nb_json_get_string(graded->line, column->key);
    const double value = nb_json_get_number(graded->line, column->key);
    switch (column->kind) {
    case NB_CELL_TEXT:
        nb_strbuf_add(out, strcmp(column->key, "formula") == 0 && strcmp(text, "default") == 0 ? "" : text);
        break;
    case NB_CELL_WIDTH:
        nb_strbuf_add(out, text);
        if (graded->n_widths > 1) nb_strbuf_addf(out, " of %d", graded->n_widths);
        break;
    case NB_CELL_GRADE:
        nb_strbuf_add(out, *text ? text : nb_grade_name(NB_GRADE_NONE));
        break;
    case NB_CELL_SHARE: /* 99.9996 % is not 100 % */
        if (isfinite(value)) nb_strbuf_addf(out, "%.2f%%", value < 1 && value > 0.9999 ? 99.99 : 100 * value);
        break;
    case NB_CELL_COUNT: /* nothing where there was nothing to count */
        if (value > 0) nb_strbuf_addf(out, "%.0f", value);
        break;
    case NB_CELL_FIGURE:
        nb_format_digits(out, value, digits);
        break;
    }
}
