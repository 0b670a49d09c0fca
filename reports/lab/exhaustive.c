// SPDX-License-Identifier: Apache-2.0
/* Each mode has one or more tables over the rows of its answer; a row takes part in a table when it has the table's key field. */
#include "reports/lab/lab.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "reports/text/grid.h"
#include "src/core/json.h"
#include "src/core/log.h"

enum kind { TEXT, COUNT, NUMBER, PERCENT, POWER_OF_TWO, SHARES, PAIRS };

struct column {
    const char *field, *title;
    enum kind kind;
};
enum { MAX_COLUMNS = 16 };
struct table {
    const char *mode, *needs; /* the field without which a row is left out */
    const char *heading;
    struct column columns[MAX_COLUMNS];
};

static const struct table tables[] = {
    {"rsqrt",
     "variant",
     NULL,
     {{"variant", "variant", TEXT},
      {"class", "class", TEXT},
      {"inputs", "inputs", COUNT},
      {"max_ulp", "max_ulp", NUMBER},
      {"witness", "witness", TEXT},
      {"max_relative_log2", "max_relative", POWER_OF_TWO},
      {"bias_ulp", "bias_ulp", NUMBER},
      {"misrounded", "misrounded", COUNT},
      {"misrounded_share", "share", PERCENT},
      {"other_kind", "not_as_ieee", COUNT},
      {"seconds", "seconds", NUMBER},
      {"not_here", "not_here", TEXT},
      {"formula", "formula", TEXT}}},
    {"rsqrt",
     "histogram",
     "Distance to the correctly rounded value, in representable numbers",
     {{"variant", "variant", TEXT}, {"class", "class", TEXT}, {"histogram", "share of each distance", SHARES}}},
    {"rsqrt",
     "outcomes",
     "Results by kind",
     {{"variant", "variant", TEXT}, {"class", "class", TEXT}, {"outcomes", "outcomes", PAIRS}}},
    {"rsqrt", "special", "At the ends of the classes", {{"variant", "variant", TEXT}, {"special", "x: result", PAIRS}}},
    {"row1",
     "formula",
     NULL,
     {{"source", "source", TEXT},
      {"formula", "formula", TEXT},
      {"eps", "eps", TEXT},
      {"inputs", "inputs", COUNT},
      {"correct_share", "correct", PERCENT},
      {"misrounded", "misrounded", COUNT},
      {"max_ulp", "max_ulp", NUMBER},
      {"witness", "witness", TEXT},
      {"non_finite", "non_finite", COUNT},
      {"undecided", "undecided", COUNT},
      {"widths", "widths", TEXT}}},
    {"row2",
     "formula",
     NULL,
     {{"source", "source", TEXT},
      {"formula", "formula", TEXT},
      {"eps", "eps", TEXT},
      {"n_rows", "rows", COUNT},
      {"correct_share", "correct", PERCENT},
      {"misrounded", "misrounded", COUNT},
      {"max_ulp", "max_ulp", NUMBER},
      {"witness", "witness", TEXT},
      {"non_finite", "non_finite", COUNT},
      {"undecided", "undecided", COUNT},
      {"complete", "complete", TEXT},
      {"seconds", "seconds", NUMBER}}},
    {"convert",
     "function",
     NULL,
     {{"format", "to", TEXT},
      {"function", "function", TEXT},
      {"inputs", "inputs", COUNT},
      {"wrong", "wrong", COUNT},
      {"witness", "witness", TEXT},
      {"wrong_subnormal", "of_them_f32_subnormal", COUNT},
      {"complete", "complete", TEXT},
      {"seconds", "seconds", NUMBER},
      {"not_here", "not_here", TEXT}}},
    {"stage",
     "double_rounded",
     "x * rstd in f32, then rounded to the dtype: rounded twice, where it shows",
     {{"format", "dtype", TEXT},
      {"inputs", "products", COUNT},
      {"double_rounded", "double_rounded", COUNT},
      {"share", "share", PERCENT},
      {"witness", "witness", TEXT},
      {"complete", "complete", TEXT},
      {"seconds", "seconds", NUMBER}}},
    {"stage",
     "formula",
     "1 / sqrt(v + eps) for every variance v of the dtype",
     {{"formula", "formula", TEXT},
      {"eps", "eps", TEXT},
      {"inputs", "inputs", COUNT},
      {"correct_share", "correct", PERCENT},
      {"max_ulp", "max_ulp", NUMBER},
      {"witness", "witness", TEXT},
      {"non_finite", "non_finite", COUNT},
      {"absorbed", "eps_absorbed", COUNT},
      {"undecided", "undecided", COUNT}}},
};

/* A percentage that is 100 or 0 only when it is exactly so. */
static void add_percent(double share, struct nb_strbuf *cell) {
    const char *format = share > 0.9999 || share < 0.0001 ? "%.6f %%" : "%.2f %%";
    if (share == 0 || share == 1) format = "%.0f %%";
    nb_strbuf_addf(cell, format, 100 * share);
}

static void add_pairs(const cJSON *object, bool shares, struct nb_strbuf *cell) {
    double total = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, object) total += item->valuedouble;
    cJSON_ArrayForEach(item, object) {
        nb_strbuf_addf(cell, "%s%s: ", cell->len ? ", " : "", item->string);
        if (cJSON_IsString(item))
            nb_strbuf_add(cell, item->valuestring);
        else if (shares)
            add_percent(item->valuedouble / total, cell);
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
        add_percent(value->valuedouble, cell);
    else
        nb_strbuf_addf(cell, column->kind == POWER_OF_TWO ? "2^%.2f" : "%.4g", value->valuedouble);
}

static bool has(const cJSON *row, const char *field) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(row, field);
    return value && !cJSON_IsNull(value);
}

/* Columns that no row fills are left out. */
static int print_table(const struct table *t, const cJSON *rows, bool is_first, FILE *out) {
    const struct column *shown[MAX_COLUMNS];
    const char *titles[MAX_COLUMNS];
    size_t n_shown = 0;
    struct nb_grid grid;
    const cJSON *row;
    for (int i = 0; i < MAX_COLUMNS && t->columns[i].field; i++) {
        bool filled = false;
        cJSON_ArrayForEach(row, rows) filled = filled || (has(row, t->needs) && has(row, t->columns[i].field));
        if (!filled) continue;
        titles[n_shown] = t->columns[i].title;
        shown[n_shown++] = &t->columns[i];
    }
    if (n_shown == 0) return 0;
    nb_grid_init(&grid, titles, n_shown);
    cJSON_ArrayForEach(row, rows) {
        if (!has(row, t->needs)) continue;
        for (size_t i = 0; i < n_shown; i++) {
            struct nb_strbuf cell = {0};
            nb_strbuf_add(&cell, "");
            add_value(shown[i], cJSON_GetObjectItemCaseSensitive(row, shown[i]->field), &cell);
            nb_grid_add(&grid, cell.len ? cell.text : "-");
            nb_strbuf_release(&cell);
        }
    }
    if (!is_first) fputc('\n', out);
    if (t->heading) fprintf(out, "%s\n", t->heading);
    const int result = nb_grid_print(&grid, "table", out);
    nb_grid_release(&grid);
    return result;
}

int nb_exhaustive_print(const cJSON *answer, FILE *out) {
    const char *mode = nb_json_get_text(answer, "mode");
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(answer, "rows");
    bool is_first = true;
    for (size_t i = 0; mode && i < sizeof tables / sizeof tables[0]; i++) {
        if (strcmp(tables[i].mode, mode) != 0) continue;
        if (print_table(&tables[i], rows, is_first, out) != 0) return -1;
        is_first = false;
    }
    return 0;
}
