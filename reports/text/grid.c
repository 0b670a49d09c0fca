// SPDX-License-Identifier: Apache-2.0
/* The four ways to print a small table. */
#include "reports/text/grid.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "reports/text/escape.h"
#include "src/core/json.h"
#include "src/core/log.h"

void nb_grid_init(struct nb_grid *grid, const char *const *titles, size_t n_columns) {
    *grid = (struct nb_grid){.titles = titles, .n_columns = n_columns};
}

void nb_grid_add(struct nb_grid *grid, const char *text) {
    grid->cells = nb_realloc(grid->cells, grid->n_cells + 1, sizeof *grid->cells);
    grid->cells[grid->n_cells++] = nb_strdup(text);
}

void nb_grid_end_cell(struct nb_grid *grid) {
    nb_grid_add(grid, grid->cell.text ? grid->cell.text : "");
    nb_strbuf_clear(&grid->cell);
    nb_strbuf_add(&grid->cell, "");
}

void nb_grid_add_texts(struct nb_grid *grid, ...) {
    va_list texts;
    va_start(texts, grid);
    for (const char *text; (text = va_arg(texts, const char *)) != NULL;) nb_grid_add(grid, text);
    va_end(texts);
}

void nb_grid_addf(struct nb_grid *grid, const char *format, ...) {
    va_list args;
    va_start(args, format);
    nb_strbuf_addv(&grid->cell, format, args);
    va_end(args);
    nb_grid_end_cell(grid);
}

void nb_grid_release(struct nb_grid *grid) {
    nb_strbuf_release(&grid->cell);
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

static const char *const style_codes[NB_GRID_N_STYLES] = {"", "\033[31m", "\033[33m", "\033[32m"};

static const char *style_of(const struct nb_grid *grid, size_t row) {
    return row < grid->n_styles ? style_codes[grid->styles[row]] : "";
}

static void add_padded(struct nb_strbuf *out, const char *text, size_t width, bool right, bool is_last) {
    const size_t cells = nb_utf8_cells(text), pad = width > cells ? width - cells : 0;
    nb_strbuf_addf(out, "%*s", right ? (int)pad : 0, "");
    nb_strbuf_add(out, text);
    if (!is_last) nb_strbuf_addf(out, "%*s  ", right ? 0 : (int)pad, "");
}

static void trim_line(struct nb_strbuf *out) {
    while (out->len > 0 && out->text[out->len - 1] == ' ') out->text[--out->len] = '\0';
    nb_strbuf_add(out, "\n");
}

struct layout {
    const struct nb_grid *grid;
    struct nb_strbuf *cells; /* escaped */
    size_t *widths;          /* 0: left out */
    bool utf8;
};

static void measure_columns(struct layout *l) {
    const struct nb_grid *grid = l->grid;
    for (size_t c = 0; c < grid->n_columns; c++) l->widths[c] = strlen(grid->titles[c]);
    for (size_t i = 0; i < grid->n_cells; i++) {
        nb_strbuf_add(&l->cells[i], "");
        nb_escape_terminal(&l->cells[i], grid->cells[i], l->utf8);
        size_t width = nb_utf8_cells(l->cells[i].text), *widest = &l->widths[i % grid->n_columns];
        if (width > *widest) *widest = width;
    }
}

static size_t line_width(const struct layout *l) {
    size_t width = 0;
    for (size_t c = 0; c < l->grid->n_columns; c++) width += l->widths[c] ? l->widths[c] + 2 : 0;
    return width ? width - 2 : 0;
}

static size_t widest_column(const struct layout *l) {
    size_t widest = 0;
    for (size_t c = 1; c < l->grid->n_columns; c++)
        if (l->widths[c] > l->widths[widest]) widest = c;
    return widest;
}

/* The column that is left out next; n_columns: all stay. */
static size_t next_victim(const struct layout *l) {
    const struct nb_grid *grid = l->grid;
    size_t victim = grid->n_columns;
    for (size_t c = 0; c < grid->n_columns; c++)
        if (l->widths[c] && grid->ranks[c] < NB_GRID_STAYS &&
            (victim == grid->n_columns || grid->ranks[c] < grid->ranks[victim]))
            victim = c;
    return victim;
}

/* Leaves out columns by rank, then takes from the widest; what is narrower than this cannot be read. */
static void fit(struct layout *l) {
    enum { NARROWEST = 12 };
    const struct nb_grid *grid = l->grid;
    if (!grid->screen || !grid->ranks) return;
    for (size_t victim; line_width(l) > grid->screen && (victim = next_victim(l)) < grid->n_columns;)
        l->widths[victim] = 0;
    while (line_width(l) > grid->screen && l->widths[widest_column(l)] > NARROWEST) l->widths[widest_column(l)]--;
    for (size_t i = 0; i < grid->n_cells; i++)
        nb_utf8_cut(&l->cells[i], l->widths[i % grid->n_columns], l->utf8 ? "…" : "~");
}

static size_t last_column(const struct layout *l) {
    size_t last = 0;
    for (size_t c = 0; c < l->grid->n_columns; c++)
        if (l->widths[c]) last = c;
    return last;
}

static void print_rows(const struct layout *l, bool color, struct nb_strbuf *out) {
    const struct nb_grid *grid = l->grid;
    const size_t last = last_column(l);
    for (size_t c = 0; c < grid->n_columns; c++)
        if (l->widths[c]) add_padded(out, grid->titles[c], l->widths[c], grid->right && grid->right[c], c == last);
    trim_line(out);
    for (size_t row = 0; row * grid->n_columns < grid->n_cells; row++) {
        const char *style = color ? style_of(grid, row) : "";
        nb_strbuf_add(out, style);
        for (size_t c = 0; c < grid->n_columns; c++)
            if (l->widths[c])
                add_padded(out, l->cells[row * grid->n_columns + c].text, l->widths[c], grid->right && grid->right[c],
                           c == last);
        if (*style) nb_strbuf_add(out, "\033[0m");
        trim_line(out);
    }
}

void nb_grid_add_table(const struct nb_grid *grid, bool color, struct nb_strbuf *out) {
    struct layout l = {.grid = grid,
                       .cells = nb_alloc(grid->n_cells, sizeof(struct nb_strbuf)),
                       .widths = nb_alloc(grid->n_columns, sizeof(size_t)),
                       .utf8 = nb_utf8_wanted()};
    measure_columns(&l);
    fit(&l);
    print_rows(&l, color, out);
    for (size_t i = 0; i < grid->n_cells; i++) nb_strbuf_release(&l.cells[i]);
    free(l.cells);
    free(l.widths);
}

/* ---- the others ---- */

void nb_grid_add_markdown(const struct nb_grid *grid, struct nb_strbuf *out) {
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

static void print_markdown(const struct nb_grid *grid, bool color, struct nb_strbuf *out) {
    (void)color;
    nb_grid_add_markdown(grid, out);
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
} formats[] = {{"table", nb_grid_add_table}, {"markdown", print_markdown}, {"csv", print_csv}, {"json", print_json}};

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
