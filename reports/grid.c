// SPDX-License-Identifier: Apache-2.0
/* The four ways to print a small table. */
#include "reports/grid.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "reports/escape.h"
#include "src/json.h"
#include "src/log.h"

void nb_grid_init(struct nb_grid *grid, const char *const *titles, size_t n_columns) {
    *grid = (struct nb_grid){.titles = titles, .n_columns = n_columns};
}

void nb_grid_add(struct nb_grid *grid, const char *text) {
    grid->cells = nb_realloc(grid->cells, grid->n_cells + 1, sizeof *grid->cells);
    grid->cells[grid->n_cells++] = nb_strdup(text);
}

void nb_grid_release(struct nb_grid *grid) {
    for (size_t i = 0; i < grid->n_cells; i++) free(grid->cells[i]);
    free(grid->cells);
    free(grid->styles);
    *grid = (struct nb_grid){0};
}

void nb_grid_style(struct nb_grid *grid, enum nb_grid_style style) {
    const size_t row = grid->n_cells / grid->n_columns;
    grid->styles = nb_realloc(grid->styles, row + 1, sizeof *grid->styles);
    while (grid->n_styles <= row) grid->styles[grid->n_styles++] = NB_GRID_PLAIN;
    grid->styles[row] = style;
}

/* ---- table ---- */

static const char *const style_codes[NB_GRID_N_STYLES] = {"", "\033[31m", "\033[33m"};

static void add_padded(struct nb_strbuf *out, const char *text, size_t width, bool right, bool is_last) {
    const size_t cells = nb_utf8_cells(text), pad = width > cells ? width - cells : 0;
    nb_strbuf_addf(out, "%*s", right ? (int)pad : 0, "");
    nb_strbuf_add(out, text);
    if (!is_last) nb_strbuf_addf(out, "%*s  ", right ? 0 : (int)pad, "");
}

static const char *style_of(const struct nb_grid *grid, size_t row) {
    return row < grid->n_styles ? style_codes[grid->styles[row]] : "";
}

static void trim_line(struct nb_strbuf *out) {
    while (out->len > 0 && out->text[out->len - 1] == ' ') out->text[--out->len] = '\0';
    nb_strbuf_add(out, "\n");
}

static void print_table(const struct nb_grid *grid, bool color, struct nb_strbuf *out) {
    const bool utf8 = nb_utf8_wanted();
    size_t *widths = nb_alloc(grid->n_columns, sizeof *widths);
    struct nb_strbuf *cells = nb_alloc(grid->n_cells, sizeof *cells);
    for (size_t c = 0; c < grid->n_columns; c++) widths[c] = strlen(grid->titles[c]);
    for (size_t i = 0; i < grid->n_cells; i++) {
        nb_strbuf_add(&cells[i], "");
        nb_escape_terminal(&cells[i], grid->cells[i], utf8);
        size_t width = nb_utf8_cells(cells[i].text), *widest = &widths[i % grid->n_columns];
        if (width > *widest) *widest = width;
    }
    for (size_t c = 0; c < grid->n_columns; c++)
        add_padded(out, grid->titles[c], widths[c], grid->right && grid->right[c], c + 1 == grid->n_columns);
    trim_line(out);
    for (size_t i = 0; i < grid->n_cells; i++) {
        const size_t c = i % grid->n_columns;
        const char *style = color ? style_of(grid, i / grid->n_columns) : "";
        const bool is_last = c + 1 == grid->n_columns;
        if (c == 0) nb_strbuf_add(out, style);
        add_padded(out, cells[i].text, widths[c], grid->right && grid->right[c], is_last);
        if (is_last && *style) nb_strbuf_add(out, "\033[0m");
        if (is_last) trim_line(out);
        nb_strbuf_release(&cells[i]);
    }
    free(cells);
    free(widths);
}

/* ---- the others ---- */

static void print_markdown(const struct nb_grid *grid, bool color, struct nb_strbuf *out) {
    (void)color;
    for (size_t c = 0; c < grid->n_columns; c++) nb_strbuf_addf(out, "| %s ", grid->titles[c]);
    nb_strbuf_add(out, "|\n");
    for (size_t c = 0; c < grid->n_columns; c++) nb_strbuf_add(out, grid->right && grid->right[c] ? "|--:" : "|---");
    nb_strbuf_add(out, "|\n");
    for (size_t i = 0; i < grid->n_cells; i++) {
        nb_strbuf_add(out, "| ");
        nb_escape_markdown(out, grid->cells[i]);
        nb_strbuf_add(out, (i + 1) % grid->n_columns ? " " : " |\n");
    }
}

static void print_csv(const struct nb_grid *grid, bool color, struct nb_strbuf *out) {
    (void)color;
    for (size_t c = 0; c < grid->n_columns; c++) {
        nb_escape_csv(out, grid->titles[c]);
        nb_strbuf_add(out, c + 1 < grid->n_columns ? "," : "\n");
    }
    for (size_t i = 0; i < grid->n_cells; i++) {
        nb_escape_csv(out, grid->cells[i]);
        nb_strbuf_add(out, (i + 1) % grid->n_columns ? "," : "\n");
    }
}

static void print_json(const struct nb_grid *grid, bool color, struct nb_strbuf *out) {
    (void)color;
    cJSON *rows = cJSON_CreateArray(), *row = NULL;
    for (size_t i = 0; i < grid->n_cells; i++) {
        if (i % grid->n_columns == 0) cJSON_AddItemToArray(rows, row = cJSON_CreateObject());
        nb_json_text(row, grid->titles[i % grid->n_columns], grid->cells[i]);
    }
    nb_json_print_pretty(rows, 0, out);
    nb_strbuf_add(out, "\n");
    cJSON_Delete(rows);
}

static const struct {
    const char *name;
    void (*print)(const struct nb_grid *grid, bool color, struct nb_strbuf *out);
} formats[] = {{"table", print_table}, {"markdown", print_markdown}, {"csv", print_csv}, {"json", print_json}};

bool nb_grid_format_known(const char *format) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, format) == 0) return true;
    return false;
}

int nb_grid_print(const struct nb_grid *grid, const char *format, FILE *out) {
    struct nb_strbuf text = {0};
    assert(grid->n_cells % grid->n_columns == 0);
    nb_strbuf_add(&text, "");
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, format) == 0)
            formats[i].print(grid, fileno(out) >= 0 && nb_color_on(fileno(out)), &text);
    bool written = fwrite(text.text, 1, text.len, out) == text.len && fflush(out) == 0;
    nb_strbuf_release(&text);
    return written ? 0 : nb_error("the listing cannot be written");
}
