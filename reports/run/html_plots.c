// SPDX-License-Identifier: Apache-2.0
/* The page's pictures. An SVG inside an <img> runs no script and shares no ids with the page, which inline SVG would. */
#include <stdlib.h>
#include <string.h>

#include "reports/figures/figure.h"
#include "reports/run/html.h"
#include "src/core/files.h"

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
static bool add_picture(const struct nb_figure *f, const char *dir, const char *folder, struct nb_strbuf *out) {
    struct nb_strbuf path = {0};
    const bool cells = nb_heat_is_in(f); /* thousands of boxes are smaller as pixels */
    size_t len = 0;
    nb_strbuf_addf(&path, "%s/%s/%s.%s", dir, folder, f->name, cells ? "png" : "svg");
    char *picture = nb_path_exists(path.text) ? nb_file_read(path.text, LARGEST_PICTURE, &len) : NULL;
    nb_strbuf_release(&path);
    if (!picture) return false;
    nb_html_text(out, "<img alt=\"", f->title, "\" src=\"data:image/");
    nb_strbuf_add(out, cells ? "png;base64," : "svg+xml;base64,");
    add_base64(out, (const unsigned char *)picture, len);
    nb_strbuf_add(out, "\">\n");
    free(picture);
    return true;
}

static void add_figure(const struct nb_figure *f, const char *dir, const char *folder, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<figure>\n");
    if (!add_picture(f, dir, folder, out)) nb_html_text(out, "<p><b>", f->title, "</b> (not drawn: no gnuplot)</p>\n");
    nb_html_text(out, "<figcaption>", f->caption, "");
    nb_strbuf_addf(out, "<br><a href=\"%s/%s.dat\">data</a> <a href=\"%s/%s.gp\">script</a></figcaption>\n</figure>\n",
                   folder, f->name, folder, f->name);
}

void nb_html_figures(const struct nb_figures *figures, const char *prefix, const char *dir, const char *folder,
                     struct nb_strbuf *out) {
    for (size_t i = 0; i < figures->n; i++)
        if (strncmp(figures->list[i].name, prefix, strlen(prefix)) == 0)
            add_figure(&figures->list[i], dir, folder, out);
}

void nb_html_not_drawn(struct nb_figures *figures, struct nb_strbuf *out) {
    if (!figures->notes.len) return;
    nb_strbuf_add(out, "<details><summary>Not drawn</summary>\n<ul>\n");
    for (char *rest = NULL, *line = strtok_r(figures->notes.text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest))
        nb_html_text(out, "<li>", line, "</li>\n");
    nb_strbuf_add(out, "</ul></details>\n");
}

void nb_html_plots(const struct nb_results *results, const char *dir, struct nb_strbuf *out) {
    struct nb_figures figures;
    nb_figures_init(&figures, results);
    nb_strbuf_add(out, "<h2 id=\"plots\">Plots</h2>\n");
    if (!figures.n) nb_strbuf_add(out, "<p>These results allow no plot.</p>\n");
    nb_html_figures(&figures, "", dir, "plots", out);
    nb_html_not_drawn(&figures, out);
    nb_figures_release(&figures);
}
