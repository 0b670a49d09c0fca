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

void nb_grid_add(struct nb_grid *grid, const char *text) { *NB_PUSH(grid->cells, grid->n_cells) = nb_strdup(text); }

void nb_grid_end_cell(struct nb_grid *grid) {
    nb_grid_add(grid, grid->cell.text ? grid->cell.text : "");
    nb_strbuf_clear(&grid->cell);
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
    while (grid->n_styles <= row) *NB_PUSH(grid->styles, grid->n_styles) = NB_GRID_PLAIN;
    grid->styles[row] = style;
}

/* ---- table ---- */

static const char *const style_codes[NB_GRID_N_STYLES] = {"", "\033[31m", "\033[33m", "\033[32m"};

static void trim_line(struct nb_strbuf *out) {
    while (out->len > 0 && out->text[out->len - 1] == ' ') out->text[--out->len] = '\0';
    nb_strbuf_add(out, "\n");
}

struct layout {
    const struct nb_grid *grid;
    struct nb_strbuf *cells; /* escaped; the titles first */
    size_t n_rows, *widths, *narrow,
        *wanted; /* by column; 0: left out; as narrow as its words allow, as wide as its cells */
};

static const char *cell_at(const struct layout *l, size_t row, size_t column) {
    return l->cells[row * l->grid->n_columns + column].text;
}

/* Keys of cases go on behind their slashes; no other word is broken unless nothing else helps. */
static size_t longest_word(const char *text) {
    enum { LONGEST = 28 };
    size_t longest = 0, n = 0;
    for (; *text; text++) {
        n = *text == ' ' ? 0 : n + 1;
        if (n > longest) longest = n;
    }
    return longest < LONGEST ? longest : LONGEST;
}

/* The titles, then the cells. */
static const char *text_at(const struct nb_grid *grid, size_t i) {
    return i < grid->n_columns ? grid->titles[i] : grid->cells[i - grid->n_columns];
}

static void measure_columns(struct layout *l, bool utf8) {
    const struct nb_grid *grid = l->grid;
    for (size_t i = 0; i < l->n_rows * grid->n_columns; i++) {
        const size_t c = i % grid->n_columns;
        nb_strbuf_add(&l->cells[i], "");
        nb_escape_terminal(&l->cells[i], text_at(grid, i), utf8);
        for (char *s = l->cells[i].text; grid->keyed && i < grid->n_columns && (s = strchr(s, '_'));) *s = ' ';
        const size_t width = nb_utf8_cells(l->cells[i].text), word = longest_word(l->cells[i].text);
        if (width > l->widths[c]) l->widths[c] = width;
        if (word > l->narrow[c]) l->narrow[c] = word;
    }
}

static size_t line_width(const struct layout *l) {
    size_t width = 0;
    for (size_t c = 0; c < l->grid->n_columns; c++) width += l->widths[c] ? l->widths[c] + 2 : 0;
    return width ? width - 2 : 0;
}

/* The column that is left out next; n_columns: all stay. */
static size_t next_victim(const struct layout *l) {
    const struct nb_grid *grid = l->grid;
    size_t victim = grid->n_columns;
    for (size_t c = 0; grid->ranks && c < grid->n_columns; c++)
        if (l->widths[c] && grid->ranks[c] < NB_GRID_STAYS &&
            (victim == grid->n_columns || grid->ranks[c] < grid->ranks[victim]))
            victim = c;
    return victim;
}

/* Lines that the cells of a column take at a width. */
static size_t lines_of(const struct layout *l, size_t column, size_t width) {
    size_t n = 0;
    for (size_t row = 0; row < l->n_rows; row++) {
        const char *rest = cell_at(l, row, column);
        do {
            rest += nb_utf8_line(rest, width);
            rest += strspn(rest, " ");
            n++;
        } while (*rest);
    }
    return n;
}

/* The column that can be narrower at the price of the fewest lines, of several the widest; n_columns: none. */
static size_t next_narrower(const struct layout *l) {
    size_t best = l->grid->n_columns, price = 0;
    for (size_t c = 0; c < l->grid->n_columns; c++) {
        const size_t width = l->widths[c];
        if (width <= l->narrow[c]) continue;
        const size_t own = lines_of(l, c, width - 1) - lines_of(l, c, width);
        if (best < l->grid->n_columns && (own > price || (own == price && width <= l->widths[best]))) continue;
        best = c;
        price = own;
    }
    return best;
}

static bool is_empty(const struct layout *l, size_t column) {
    for (size_t row = 1; row < l->n_rows; row++)
        if (*cell_at(l, row, column)) return false;
    return true;
}

/* Leaves out what is empty, and columns by rank, then takes from those whose cells go on in the next
 * line; where that is not enough, the first column, which stands in every part, stays as it is. */
static void fit(struct layout *l) {
    const size_t n = l->grid->n_columns, screen = l->grid->screen;
    for (size_t c = 1; c < n; c++)
        if (line_width(l) > screen && is_empty(l, c)) l->widths[c] = 0;
    for (size_t c; line_width(l) > screen && (c = next_victim(l)) < n;) l->widths[c] = 0;
    const size_t first = l->widths[0];
    for (size_t c; line_width(l) > screen && (c = next_narrower(l)) < n;) l->widths[c]--;
    if (line_width(l) > screen) l->widths[0] = first < screen / 2 ? first : screen / 2;
}

static bool is_right(const struct nb_grid *grid, size_t column) { return grid->right && grid->right[column]; }

/* The next part of each cell of a row; false: nothing is left of any. */
static bool print_line(const struct layout *l, const char **rest, bool first, struct nb_strbuf *out) {
    bool more = false;
    size_t pad = 0;
    for (size_t c = 0; c < l->grid->n_columns; c++) {
        if (!l->widths[c]) continue;
        const bool right = is_right(l->grid, c);
        const size_t indent = !first && *rest[c] && !right && l->widths[c] > l->narrow[c] + 2 ? 2 : 0;
        const size_t n = nb_utf8_line(rest[c], l->widths[c] - indent);
        struct nb_strbuf part released_by(nb_strbuf_release) = nb_strbuf_empty();
        nb_strbuf_addn(&part, rest[c], n);
        const size_t cells = nb_utf8_cells(part.text), left = l->widths[c] - indent - cells;
        nb_strbuf_addf(out, "%*s%s", (int)(pad + indent + (right ? left : 0)), "", part.text);
        pad = 2 + (right ? 0 : left);
        rest[c] += n;
        rest[c] += strspn(rest[c], " ");
        more |= *rest[c] != '\0';
    }
    return more;
}

static void print_rows(const struct layout *l, bool color, struct nb_strbuf *out) {
    const char **rest freed = nb_alloc(l->grid->n_columns, sizeof *rest);
    for (size_t row = 0; row < l->n_rows; row++) {
        const bool styled = color && row > 0 && row <= l->grid->n_styles;
        const char *style = styled ? style_codes[l->grid->styles[row - 1]] : "";
        for (size_t c = 0; c < l->grid->n_columns; c++) rest[c] = cell_at(l, row, c);
        for (bool first = true, more = true; more; first = false) {
            nb_strbuf_add(out, style);
            more = print_line(l, rest, first, out);
            if (*style) nb_strbuf_add(out, "\033[0m");
            trim_line(out);
        }
    }
}

/* The room that a part of the columns leaves goes to those that were made narrower. */
static void widen(struct layout *l, size_t begin, size_t end) {
    for (size_t c = begin; c < end; c++)
        while (l->widths[c] && l->widths[c] < l->wanted[c] && line_width(l) < l->grid->screen) l->widths[c]++;
}

/* As many columns at once as fit, the first in each part. */
static void print_parts(struct layout *l, bool color, struct nb_strbuf *out) {
    const size_t n = l->grid->n_columns, screen = l->grid->screen;
    size_t *all freed = nb_alloc(n, sizeof *all), at = 1;
    memcpy(all, l->widths, n * sizeof *all);
    do {
        const size_t begin = at;
        memset(l->widths + 1, 0, (n - 1) * sizeof *l->widths);
        for (; at < n && (at == begin || !screen || line_width(l) + 2 + all[at] <= screen); at++)
            l->widths[at] = all[at];
        widen(l, begin, at);
        nb_strbuf_add(out, begin > 1 ? "\n" : "");
        print_rows(l, color, out);
        while (at < n && !all[at]) at++;
    } while (at < n);
}

void nb_grid_add_table(const struct nb_grid *grid, bool color, struct nb_strbuf *out) {
    const size_t n = grid->n_cells + grid->n_columns;
    struct layout l = {.grid = grid,
                       .cells = nb_alloc(n, sizeof(struct nb_strbuf)),
                       .n_rows = n / grid->n_columns,
                       .widths = nb_alloc(grid->n_columns, sizeof(size_t)),
                       .narrow = nb_alloc(grid->n_columns, sizeof(size_t)),
                       .wanted = nb_alloc(grid->n_columns, sizeof(size_t))};
    measure_columns(&l, nb_utf8_wanted());
    memcpy(l.wanted, l.widths, grid->n_columns * sizeof *l.widths);
    if (grid->screen) fit(&l);
    print_parts(&l, color, out);
    for (size_t i = 0; i < n; i++) nb_strbuf_release(&l.cells[i]);
    nb_free_all(l.cells, l.widths, l.narrow, l.wanted);
}

/* ---- the others ---- */

void nb_grid_add_markdown(const struct nb_grid *grid, bool color, struct nb_strbuf *out) {
    for (size_t c = 0; c < grid->n_columns; c++) nb_strbuf_addf(out, "| %s ", grid->titles[c]);
    nb_strbuf_add(out, "|\n");
    for (size_t c = 0; c < grid->n_columns; c++) nb_strbuf_add(out, is_right(grid, c) ? "|--:" : "|---");
    nb_strbuf_add(out, "|\n");
    for (size_t i = 0; i < grid->n_cells; i++) {
        nb_strbuf_add(out, "| ");
        nb_escape_markdown(out, grid->cells[i]);
        nb_strbuf_add(out, (i + 1) % grid->n_columns ? " " : " |\n");
    }
}

static void print_csv(const struct nb_grid *grid, bool color, struct nb_strbuf *out) {
    for (size_t i = 0; i < grid->n_columns + grid->n_cells; i++) {
        nb_escape_csv(out, text_at(grid, i));
        nb_strbuf_add(out, (i + 1) % grid->n_columns ? "," : "\n");
    }
}

static void print_json(const struct nb_grid *grid, bool color, struct nb_strbuf *out) {
    cJSON *rows released_by(nb_json_release) = cJSON_CreateArray(), *row = NULL;
    for (size_t i = 0; i < grid->n_cells; i++) {
        if (i % grid->n_columns == 0) cJSON_AddItemToArray(rows, row = cJSON_CreateObject());
        nb_json_text(row, grid->titles[i % grid->n_columns], grid->cells[i]);
    }
    nb_json_print_pretty(rows, 0, out);
    nb_strbuf_add(out, "\n");
}

static const struct {
    const char *name;
    void (*print)(const struct nb_grid *grid, bool color, struct nb_strbuf *out);
} formats[] = {
    {"table", nb_grid_add_table}, {"markdown", nb_grid_add_markdown}, {"csv", print_csv}, {"json", print_json}};

int nb_grid_print(const struct nb_grid *grid, const char *format, FILE *out) {
    struct nb_strbuf text released_by(nb_strbuf_release) = nb_strbuf_empty();
    assert(grid->n_cells % grid->n_columns == 0);
    struct nb_grid sized = *grid;
    sized.keyed = true;
    if (!grid->wide) sized.screen = nb_screen_width(out);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, format) == 0)
            formats[i].print(&sized, fileno(out) >= 0 && nb_color_on(fileno(out)), &text);
    bool written = fwrite(text.text, 1, text.len, out) == text.len && fflush(out) == 0;
    return written ? 0 : nb_error("the listing cannot be written");
}
