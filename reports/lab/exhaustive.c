// SPDX-License-Identifier: Apache-2.0
/* Each mode has one or more tables over the rows of its answer; a row takes part in a table when it has the table's key field. */
#include "reports/lab/lab.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "reports/text/grid.h"
#include "src/core/format.h"
#include "src/core/json.h"

enum kind { TEXT, COUNT, NUMBER, PERCENT, POWER_OF_TWO, SHARES, PAIRS };

/* The tables of both modes, in the order in which they are printed. */
enum {
    ROOTS = 1 << 0,
    DISTANCES = 1 << 1,
    OUTCOMES = 1 << 2,
    SPECIAL = 1 << 3,
    CONVERSIONS = 1 << 4,
    ROOTS_ALL = ROOTS | DISTANCES | OUTCOMES | SPECIAL,
};

static const struct table {
    unsigned mask;
    const char *mode, *needs; /* the field without which a row is left out */
    const char *heading;
} tables[] = {
    {ROOTS, "roots", "variant", NULL},
    {DISTANCES, "roots", "histogram", "Distance to the correctly rounded value, in representable numbers"},
    {OUTCOMES, "roots", "outcomes", "Results by kind"},
    {SPECIAL, "roots", "special", "At the ends of the classes"},
    {CONVERSIONS, "convert", "function", NULL},
};

/* The columns of all tables from left to right. */
static const struct column {
    const char *field, *title;
    enum kind kind;
    unsigned tables; /* that have it */
} columns[] = {
    {"variant", "variant", TEXT, ROOTS_ALL},
    {"class", "class", TEXT, ROOTS | DISTANCES | OUTCOMES},
    {"histogram", "share of each distance", SHARES, DISTANCES},
    {"outcomes", "outcomes", PAIRS, OUTCOMES},
    {"special", "x: result", PAIRS, SPECIAL},
    {"format", "to", TEXT, CONVERSIONS},
    {"function", "function", TEXT, CONVERSIONS},
    {"inputs", "inputs", COUNT, ROOTS | CONVERSIONS},
    {"wrong", "wrong", COUNT, CONVERSIONS},
    {"max_ulp", "max_ulp", NUMBER, ROOTS},
    {"reproducer", "reproducer", TEXT, ROOTS | CONVERSIONS},
    {"wrong_subnormal", "of_them_f32_subnormal", COUNT, CONVERSIONS},
    {"max_relative_log2", "max_relative", POWER_OF_TWO, ROOTS},
    {"bias_ulp", "bias_ulp", NUMBER, ROOTS},
    {"misrounded", "misrounded", COUNT, ROOTS},
    {"misrounded_share", "share", PERCENT, ROOTS},
    {"other_kind", "not_as_ieee", COUNT, ROOTS},
    {"complete", "complete", TEXT, CONVERSIONS},
    {"seconds", "seconds", NUMBER, ROOTS | CONVERSIONS},
    {"not_here", "not_here", TEXT, ROOTS | CONVERSIONS},
    {"formula", "formula", TEXT, ROOTS},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static void add_pairs(const cJSON *object, bool shares, struct nb_strbuf *cell) {
    double total = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, object) total += item->valuedouble;
    cJSON_ArrayForEach(item, object) {
        nb_strbuf_addf(cell, "%s%s: ", cell->len ? ", " : "", item->string);
        if (cJSON_IsString(item))
            nb_strbuf_add(cell, item->valuestring);
        else if (shares)
            nb_format_percent(cell, item->valuedouble / total);
        else
            nb_strbuf_addf(cell, "%.0f", item->valuedouble);
    }
}

static void add_value(const struct column *column, const cJSON *value, struct nb_strbuf *cell) {
    if (cJSON_IsBool(value)) nb_strbuf_add(cell, cJSON_IsTrue(value) ? "yes" : "no");
    if (cJSON_IsString(value)) nb_strbuf_add(cell, value->valuestring);
    if (cJSON_IsObject(value)) add_pairs(value, column->kind == SHARES, cell);
    if (!cJSON_IsNumber(value)) return;
    if (column->kind == COUNT)
        nb_strbuf_addf(cell, "%" PRId64, (int64_t)value->valuedouble);
    else if (column->kind == PERCENT)
        nb_format_percent(cell, value->valuedouble);
    else
        nb_strbuf_addf(cell, column->kind == POWER_OF_TWO ? "2^%.2f" : "%.4g", value->valuedouble);
}

static bool has(const cJSON *row, const char *field) {
    const cJSON *value = nb_json_get(row, field);
    return value && !cJSON_IsNull(value);
}

/* Columns that no row fills are left out. */
static int print_table(const struct table *t, const cJSON *rows, bool is_first, const char *format, FILE *out) {
    const struct column *shown[N_COLUMNS];
    const char *titles[N_COLUMNS];
    size_t n_shown = 0;
    struct nb_grid grid;
    const cJSON *row;
    for (int i = 0; i < N_COLUMNS; i++) {
        bool filled = false;
        if (!(columns[i].tables & t->mask)) continue;
        cJSON_ArrayForEach(row, rows) filled = filled || (has(row, t->needs) && has(row, columns[i].field));
        if (!filled) continue;
        titles[n_shown] = columns[i].title;
        shown[n_shown++] = &columns[i];
    }
    if (n_shown == 0) return 0;
    nb_grid_init(&grid, titles, n_shown);
    cJSON_ArrayForEach(row, rows) {
        if (!has(row, t->needs)) continue;
        for (size_t i = 0; i < n_shown; i++) {
            struct nb_strbuf cell = {0};
            nb_strbuf_add(&cell, "");
            add_value(shown[i], nb_json_get(row, shown[i]->field), &cell);
            nb_grid_add(&grid, cell.len ? cell.text : "-");
            nb_strbuf_release(&cell);
        }
    }
    if (!is_first) fputc('\n', out);
    if (t->heading) fprintf(out, "%s\n", t->heading);
    const int result = nb_grid_print(&grid, format, out);
    nb_grid_release(&grid);
    return result;
}

int nb_exhaustive_print(const cJSON *answer, const char *format, FILE *out) {
    const char *mode = nb_json_get_text(answer, "mode");
    const cJSON *rows = nb_json_get(answer, "rows");
    bool is_first = true;
    if (strcmp(format, "json") == 0) nb_json_put(answer, out);
    if (strcmp(format, "json") == 0) return 0;
    for (size_t i = 0; mode && i < sizeof tables / sizeof tables[0]; i++) {
        if (strcmp(tables[i].mode, mode) != 0) continue;
        if (print_table(&tables[i], rows, is_first, format, out) != 0) return -1;
        is_first = false;
    }
    return 0;
}
