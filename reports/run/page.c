// SPDX-License-Identifier: Apache-2.0
/* What our pages share: head, style and script, cells, pictures. A page needs no other file and no network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h" /* written by the build: page.css, page.js and its hash */
#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "src/core/files.h"

void nb_html_text(struct nb_strbuf *out, const char *before, const char *text, const char *after) {
    if (!text || !*text) return;
    nb_strbuf_add(out, before);
    nb_escape_html(out, text);
    nb_strbuf_add(out, after);
}

/* The policy lets this very script run and no other, whatever gets into the page. */
void nb_html_head(const char *title, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
                       "style-src 'unsafe-inline'; script-src 'sha256-" NB_PAGE_SCRIPT_HASH "'\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>normbench");
    nb_html_text(out, " ", title, "");
    nb_strbuf_add(out, "</title>\n<style>\n");
    nb_strbuf_add(out, nb_page_style);
    nb_strbuf_add(out, "</style>\n</head>\n<body>\n");
}

void nb_html_end(struct nb_strbuf *out) {
    nb_strbuf_add(out, "<script>");
    nb_strbuf_add(out, nb_page_script);
    nb_strbuf_add(out, "</script>\n</body>\n</html>\n");
}

/* Cells have no end tags, which HTML does not need: a page of 10,000 cases has 150,000 of them. */
void nb_html_cell(struct nb_strbuf *out, const char *class, const char *text) {
    nb_strbuf_addf(out, !*class ? "<td>" : strchr(class, ' ') ? "<td class=\"%s\">" : "<td class=%s>", class);
    nb_html_text(out, "", text, "");
}

/* ---- pictures: an SVG inside an <img> runs no script and shares no ids with the page, which inline SVG would ---- */

enum { LARGEST_PICTURE = 16 << 20 };

static void add_base64(struct nb_strbuf *out, const unsigned char *data, size_t len) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        unsigned word =
            (unsigned)data[i] << 16 | (left > 1 ? (unsigned)data[i + 1] << 8 : 0) | (left > 2 ? data[i + 2] : 0);
        const char four[4] = {digits[word >> 18], digits[word >> 12 & 63], left > 1 ? digits[word >> 6 & 63] : '=',
                              left > 2 ? digits[word & 63] : '='};
        nb_strbuf_addn(out, four, 4);
    }
}

/* Copies a tag with its blanks run together, without what SVG takes for granted; attributes get single quotes, since the whole stands
 * in double ones. gnuplot closes groups that have nothing in them: these go. */
static void add_tag(struct nb_strbuf *out, const char *tag, size_t len) {
    static const char *const granted[] = {" stroke-linecap='butt'", " stroke-linejoin='miter'", NULL};
    const size_t start = out->len;
    if (strncmp(tag, "</g>", 4) == 0) {
        const char *last = out->len ? strrchr(out->text, '<') : NULL;
        if (last && strncmp(last, "<g ", 3) == 0 && out->text[out->len - 1] == '>') {
            out->len = (size_t)(last - out->text);
            out->text[out->len] = '\0';
            return;
        }
    }
    for (size_t i = 0; i < len; i++) {
        const char c = strchr("\n\r\t", tag[i]) ? ' ' : tag[i] == '"' ? '\'' : tag[i];
        if (c == ' ' && (out->text[out->len - 1] == ' ' || out->text[out->len - 1] == '(')) continue;
        nb_strbuf_addn(out, &c, 1);
    }
    for (size_t g = 0; granted[g]; g++) {
        char *found = strstr(out->text + start, granted[g]);
        if (!found) continue;
        const size_t n = strlen(granted[g]);
        memmove(found, found + n, strlen(found + n) + 1);
        out->len -= n;
    }
}

/* gnuplot's SVG in less than two thirds of its bytes. */
static void pack_svg(struct nb_strbuf *out, const char *svg) {
    nb_strbuf_add(out, "");
    while (*svg) {
        const size_t text = strcspn(svg, "<"), tag = strcspn(svg + text, ">");
        if (strspn(svg, " \n\r\t") < text) nb_strbuf_addn(out, svg, text);
        svg += text;
        if (!*svg) break;
        const bool whole = svg[tag] == '>';
        if (strncmp(svg, "<?", 2) != 0) add_tag(out, svg, tag + whole);
        svg += tag + whole;
        if (strncmp(svg - tag - whole, "<filter", 7) != 0) continue;
        /* of text boxes, which our figures have none of */
        const char *end = strstr(svg, "</filter>");
        out->len = (size_t)(strrchr(out->text, '<') - out->text);
        out->text[out->len] = '\0';
        svg = end ? end + strlen("</filter>") : svg + strlen(svg);
    }
}

/* As a part of an address in double quotes. */
static void add_address(struct nb_strbuf *out, const char *text) {
    for (; *text; text++)
        nb_strbuf_addf(out, (unsigned char)*text < ' ' || strchr("%#&\"", *text) ? "%%%02X" : "%c",
                       (unsigned char)*text);
}

struct picture {
    char *data;
    size_t len;
    bool pixels; /* PNG: thousands of boxes are smaller as pixels */
    int width, height;
};

static int from_big_endian(const unsigned char *bytes) {
    return bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

/* Where gnuplot was missing there is no picture; data and script are linked all the same. PNGs have two pixels for each of the page's. */
static bool read_picture(struct picture *p, const struct nb_figure *f, const struct nb_html_pictures *from) {
    *p = (struct picture){.pixels = nb_heat_is_in(f)};
    char *path freed = nb_textf("%s/%s/%s.%s", from->dir, from->folder, f->name, p->pixels ? "png" : "svg");
    if (nb_path_exists(path)) p->data = nb_file_read(path, LARGEST_PICTURE, &p->len);
    if (!p->data) return false;
    const unsigned char *bytes = (const unsigned char *)p->data;
    const char *box = p->pixels ? NULL : strstr(p->data, "viewBox=\"0 0 ");
    if (p->pixels && p->len > 24) {
        p->width = from_big_endian(bytes + 16) / 2;
        p->height = from_big_endian(bytes + 20) / 2;
    } else if (box && sscanf(box, "viewBox=\"0 0 %d %d\"", &p->width, &p->height) != 2) {
        p->width = 0;
    }
    return true;
}

static void add_picture(const struct picture *p, const char *title, struct nb_strbuf *out) {
    struct nb_strbuf svg released_by(nb_strbuf_release) = {0};
    nb_html_text(out, "<div class=wrap><img loading=lazy alt=\"", title, "\"");
    if (!p->pixels) nb_strbuf_add(out, " class=drawn");
    if (p->width > 0) nb_strbuf_addf(out, " width=%d height=%d", p->width, p->height);
    nb_strbuf_addf(out, " src=\"data:image/%s,", p->pixels ? "png;base64" : "svg+xml");
    if (p->pixels) {
        add_base64(out, (const unsigned char *)p->data, p->len);
    } else {
        pack_svg(&svg, p->data);
        add_address(out, svg.text);
    }
    nb_strbuf_add(out, "\"></div>\n");
}

static void add_figure(const struct nb_figure *f, const struct nb_html_pictures *from, struct nb_strbuf *out) {
    struct picture picture;
    nb_strbuf_add(out, "<figure>\n");
    if (read_picture(&picture, f, from))
        add_picture(&picture, f->title, out);
    else
        nb_html_text(out, "<p><b>", f->title, "</b> (not drawn: no gnuplot)</p>\n");
    nb_html_text(out, "<figcaption>", f->caption, "");
    nb_strbuf_addf(out, "<br><a href=\"%s/%s.dat\">data</a> <a href=\"%s/%s.gp\">script</a></figcaption>\n</figure>\n",
                   from->folder, f->name, from->folder, f->name);
    free(picture.data);
}

size_t nb_html_figures(const struct nb_html_pictures *from, const char *prefix, size_t first, size_t end,
                       struct nb_strbuf *out) {
    size_t n = 0;
    for (size_t i = 0; i < from->figures->n; i++) {
        const struct nb_figure *f = &from->figures->list[i];
        if (strncmp(f->name, prefix, strlen(prefix)) != 0) continue;
        if (n >= first && n < end) add_figure(f, from, out);
        n++;
    }
    return n;
}

void nb_html_more_figures(const struct nb_html_pictures *from, const char *prefix, size_t first, const char *title,
                          struct nb_strbuf *out) {
    const size_t n = nb_html_figures(from, prefix, 0, 0, out);
    if (n <= first) return;
    nb_strbuf_addf(out, "<details><summary>%s: %zu</summary>\n<div class=plots>\n", title, n - first);
    nb_html_figures(from, prefix, first, n, out);
    nb_strbuf_add(out, "</div></details>\n");
}

void nb_html_not_drawn(struct nb_figures *figures, struct nb_strbuf *out) {
    if (!figures->notes.len) return;
    nb_strbuf_add(out, "<details><summary>Not drawn</summary>\n<ul>\n");
    for (char *rest = NULL, *line = strtok_r(figures->notes.text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest))
        nb_html_text(out, "<li>", line, "</li>\n");
    nb_strbuf_add(out, "</ul></details>\n");
}
