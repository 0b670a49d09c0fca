// SPDX-License-Identifier: Apache-2.0
/* Width, colour and line breaks; pages; the end of every renderer. */
#include "reports/text/output.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "reports/text/escape.h"
#include "src/core/json.h"

bool nb_screen_color(FILE *out) {
    int fd = fileno(out);
    return fd >= 0 && nb_color_on(fd);
}

static void add_words(struct nb_strbuf *out, const char *text, size_t column, size_t hanging, size_t limit, bool utf8) {
    struct nb_strbuf safe released_by(nb_strbuf_release) = nb_strbuf_empty();
    bool begun = false;
    nb_escape_terminal(&safe, text, utf8);
    for (char *rest = NULL, *word = strtok_r(safe.text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        const size_t cells = nb_utf8_cells(word);
        const bool breaks = begun && column + 1 + cells > limit;
        nb_strbuf_addf(out, breaks ? "\n%*s%s" : "%.*s%s", breaks ? (int)hanging : begun, breaks ? "" : " ", word);
        column = cells + (breaks ? hanging : column + begun);
        begun = true;
    }
    nb_strbuf_add(out, "\n");
}

void nb_screen_wrap(struct nb_strbuf *out, const char *text, size_t screen, bool utf8) {
    add_words(out, text, 0, 2, screen ? screen : NB_USUAL_WIDTH, utf8);
}

void nb_screen_hang(struct nb_strbuf *out, const char *text, size_t at, size_t screen) {
    add_words(out, text, at, at, screen, nb_utf8_wanted());
}

/* Where the last text of a line begins that two blanks part from its labels; else two cells behind its first word. */
static size_t text_of_row(const char *line, size_t n, size_t screen) {
    const size_t indent = strspn(line, " ");
    size_t found = indent + 2;
    for (size_t i = indent; i + 1 < n && i < screen / 2; i++) {
        if (line[i] != ' ' || line[i + 1] != ' ') continue;
        i += strspn(line + i, " ");
        if (i <= screen / 2) found = i;
    }
    return found;
}

static bool is_command(const char *line) {
    line += strspn(line, " ");
    const char *name = strstr(line, "normbench");
    return name && name < line + strcspn(line, " ");
}

void nb_screen_fold(struct nb_strbuf *out, const char *text, size_t screen) {
    for (const char *end; *text; text = *end ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        struct nb_strbuf line released_by(nb_strbuf_release) = nb_strbuf_empty();
        nb_strbuf_addn(&line, text, (size_t)(end - text));
        const size_t hanging = text_of_row(line.text, line.len, screen);
        const char *rest = line.text;
        size_t n = is_command(rest) ? line.len : nb_utf8_line(rest, screen);
        for (nb_strbuf_addn(out, rest, n); *(rest += n); nb_strbuf_addn(out, rest, n)) {
            rest += strspn(rest, " ");
            nb_strbuf_addf(out, "\n%*s", (int)hanging, "");
            n = nb_utf8_line(rest, screen - hanging);
        }
        nb_strbuf_add(out, "\n");
    }
}

struct nb_page nb_page_for(FILE *stream, bool markdown, struct nb_strbuf *out) {
    return (struct nb_page){
        .markdown = markdown, .color = nb_screen_color(stream), .screen = nb_screen_width(stream), .out = out};
}

void nb_page_heading(const struct nb_page *page, int level, const char *text) {
    if (page->markdown)
        nb_strbuf_addf(page->out, "\n%.*s %s\n\n", level, "######", text);
    else
        nb_strbuf_addf(page->out, "\n%s\n", text);
}

void nb_page_say(const struct nb_page *page, const char *text) {
    if (!text || !*text) return;
    if (page->markdown) {
        nb_escape_markdown(page->out, text);
        nb_strbuf_add(page->out, "\n\n");
    } else {
        nb_screen_wrap(page->out, text, page->screen, nb_utf8_wanted());
    }
}

void nb_page_tell(const struct nb_page *page, struct nb_strbuf *text) {
    nb_page_say(page, text->text);
    nb_strbuf_clear(text);
}

void nb_page_grid(const struct nb_page *page, struct nb_grid *grid) {
    grid->screen = page->screen;
    (page->markdown ? nb_grid_add_markdown : nb_grid_add_table)(grid, page->color, page->out);
    nb_grid_release(grid);
}

void nb_print_line(FILE *out, const char *format, ...) {
    released_by(nb_strbuf_release) struct nb_strbuf text = nb_strbuf_empty(), safe = nb_strbuf_empty();
    va_list args;
    va_start(args, format);
    nb_strbuf_addv(&text, format, args);
    va_end(args);
    nb_escape_terminal(&safe, text.text, true);
    fprintf(out, "%s\n", safe.text);
}

int nb_output(struct nb_strbuf *text, FILE *out) {
    size_t written = text->len ? fwrite(text->text, 1, text->len, out) : 0;
    bool whole = written == text->len && fflush(out) == 0;
    int reason = errno;
    nb_strbuf_release(text);
    if (!whole && reason == EPIPE) return 0; /* the reader (head, less) has seen enough */
    return whole ? 0 : nb_error("cannot write the report: %s", strerror(reason));
}

int nb_output_folded(struct nb_strbuf *text, FILE *out) {
    struct nb_strbuf folded = nb_strbuf_empty();
    nb_screen_fold(&folded, text->text ? text->text : "", nb_screen_width(out));
    nb_strbuf_release(text);
    return nb_output(&folded, out);
}

int nb_output_document(const cJSON *json, FILE *out) {
    struct nb_strbuf text = {0};
    nb_json_print_pretty(json, 0, &text);
    nb_strbuf_add(&text, "\n");
    return nb_output(&text, out);
}

int nb_output_json(cJSON *json, FILE *out) {
    const int result = nb_output_document(json, out);
    cJSON_Delete(json);
    return result;
}
