// SPDX-License-Identifier: Apache-2.0
/* The page's pictures. An SVG inside an <img> runs no script and shares no ids with the page, which inline SVG would. */
#include <stdlib.h>
#include <string.h>

#include "reports/html.h"
#include "reports/plots.h"
#include "src/files.h"

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

/* Where gnuplot was missing there is no picture; data and script are linked all the same. */
static bool add_picture(const struct nb_figure *f, const char *dir, struct nb_strbuf *out) {
    struct nb_strbuf path = {0};
    size_t len = 0;
    nb_strbuf_addf(&path, "%s/plots/%s.svg", dir, f->name);
    char *svg = nb_path_exists(path.text) ? nb_file_read(path.text, LARGEST_PICTURE, &len) : NULL;
    nb_strbuf_release(&path);
    if (!svg) return false;
    nb_html_text(out, "<img alt=\"", f->title, "\" src=\"data:image/svg+xml;base64,");
    add_base64(out, (const unsigned char *)svg, len);
    nb_strbuf_add(out, "\">\n");
    free(svg);
    return true;
}

static void add_figure(const struct nb_figure *f, const char *dir, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<figure>\n");
    if (!add_picture(f, dir, out)) nb_html_text(out, "<p><b>", f->title, "</b> (not drawn: no gnuplot)</p>\n");
    nb_html_text(out, "<figcaption>", f->caption, "");
    nb_strbuf_addf(out,
                   "<br><a href=\"plots/%s.dat\">data</a> <a href=\"plots/%s.gp\">script</a></figcaption>\n</figure>\n",
                   f->name, f->name);
}

void nb_html_plots(const struct nb_results *results, const char *dir, struct nb_strbuf *out) {
    struct nb_figures figures;
    nb_figures_init(&figures, results);
    nb_strbuf_add(out, "<h2 id=\"plots\">Plots</h2>\n");
    if (!figures.n) nb_strbuf_add(out, "<p>These results allow no plot.</p>\n");
    for (size_t i = 0; i < figures.n; i++) add_figure(&figures.list[i], dir, out);
    if (figures.notes.len) nb_strbuf_add(out, "<details><summary>Not drawn</summary>\n<ul>\n");
    for (char *rest = NULL, *line = strtok_r(figures.notes.text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        nb_html_text(out, "<li>", line, "</li>\n");
    if (figures.notes.len) nb_strbuf_add(out, "</ul></details>\n");
    nb_figures_release(&figures);
}
