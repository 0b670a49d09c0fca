// SPDX-License-Identifier: Apache-2.0
/* DIR/precision.html. */
#include "reports/lab/stress_report.h"

#include <stdlib.h>

#include "reports/lab/html_stress.h"
#include "reports/lab/plot_stress.h"
#include "reports/run/html.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/lab/stress/stress.h"

enum { LARGEST_FILE = 1 << 26 };

static void add_top(const struct nb_results *meta, const cJSON *stress, struct nb_strbuf *out) {
    struct nb_strbuf text = {0};
    nb_html_head("precision", out);
    nb_strbuf_add(out, "<h1>Precision");
    nb_html_text(out, ": ", nb_meta_text(meta, "config"), "");
    nb_strbuf_add(out, "</h1>\n");
    nb_meta_footer(meta, &text);
    nb_html_text(out, "<p class=\"dim\">", text.text, "</p>\n");
    if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(stress, "complete")))
        nb_strbuf_add(out,
                      "<p class=\"bad\">The run did not come to all cases or studies: grades may be too good.</p>\n");
    nb_strbuf_add(out, "<nav><a href=\"#grades\">grades</a><a href=\"#bugs\">public bugs</a><a href=\"#frontiers\">"
                       "frontiers</a><a href=\"#worst\">worst rows</a><a href=\"#curves\">curves</a><a href=\"#maps\">"
                       "maps</a><a href=\"#replay\">how to see it again</a></nav>\n");
    nb_strbuf_release(&text);
}

/* Maps and the rest apart, since there is one for each kernel. */
static void add_figures(struct nb_figures *figures, const char *dir, struct nb_strbuf *out) {
    static const char *const curves[] = {"error-", "histogram-", "frontier-", "depth"};
    nb_strbuf_add(out, "<h2 id=\"curves\">Error against one thing at a time</h2>\n");
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++)
        nb_html_figures(figures, curves[i], dir, NB_STRESS_PLOTS, out);
    nb_strbuf_add(out, "<h2 id=\"maps\">Error over scale and offset</h2>\n");
    nb_html_figures(figures, "map-", dir, NB_STRESS_PLOTS, out);
    nb_html_not_drawn(figures, out);
}

/* Null when it is not there, or no JSON, which is said. */
static cJSON *read_depth(const char *dir) {
    char *path = nb_path_join(dir, NB_DEPTH_FILE), *text = NULL;
    if (nb_path_exists(path)) text = nb_file_read(path, LARGEST_FILE, NULL);
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    if (text && !json) nb_warn("%s is no JSON: its curve is not drawn", path);
    free(text);
    free(path);
    return json;
}

int nb_stress_report(const char *dir, const cJSON *stress, const struct nb_results *results) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)stress};
    struct nb_figures figures;
    struct nb_strbuf page = {0};
    cJSON *depth = read_depth(dir);
    char *path = nb_path_join(dir, NB_STRESS_PAGE);
    nb_stress_figures_init(&figures, stress, depth, results);
    int result = nb_figures_write(&figures, dir, NB_STRESS_PLOTS);
    add_top(&meta, stress, &page);
    nb_html_grades(stress, &page);
    nb_html_bugs(stress, &page);
    nb_html_frontiers(stress, &page);
    nb_html_worst(stress, &page);
    add_figures(&figures, dir, &page);
    nb_html_replays(stress, &page);
    nb_strbuf_add(&page, "<p>The files beside this page: <a href=\"" NB_STRESS_FILE "\">" NB_STRESS_FILE
                         "</a>, <a href=\"" NB_STRESS_PLOTS "/\">" NB_STRESS_PLOTS "/</a>.</p>\n</body>\n</html>\n");
    if (nb_file_write(path, page.text, page.len) != 0) result = -1;
    nb_strbuf_release(&page);
    nb_figures_release(&figures);
    cJSON_Delete(depth);
    free(path);
    return result;
}

int nb_stress_report_read(const char *dir, const struct nb_results *results) {
    if (!nb_stress_exists(dir)) return 1;
    cJSON *stress = nb_stress_read(dir);
    if (!stress) return -1;
    int result = nb_stress_report(dir, stress, results);
    cJSON_Delete(stress);
    return result;
}
