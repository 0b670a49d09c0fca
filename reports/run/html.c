// SPDX-License-Identifier: Apache-2.0
/* DIR/plots/ and DIR/index.html: the answer, the pictures that a reader looks for first, every case, the other pictures. */
#include "reports/run/report.h"

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/names.h"
#include "src/lab/stress/stress.h"

/* ---- pictures: every kernel by its time and what RMSNorm saves come before the table, the rest folded behind it ---- */

static const struct {
    const char *prefix, *title;
    size_t most; /* that come first */
} families[] = {
    {"peers", "Other libraries", 1},
    {"times-", "Kernels by time", 2},
    {"cut-", "Time saved by RMSNorm", 2},
    {"kernels-", "Speed by row length", 0},
    {"frontier-", "Accuracy against speed", 0},
};
enum { N_FAMILIES = sizeof families / sizeof families[0] };

static void add_key_plots(const struct nb_html_pictures *pictures, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<div class=plots>\n");
    for (int i = 0; i < N_FAMILIES; i++) nb_html_figures(pictures, families[i].prefix, 0, families[i].most, out);
    nb_strbuf_add(out, "</div>\n");
}

static void add_plots(struct nb_figures *figures, const struct nb_html_pictures *pictures, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<h2 id=plots>More plots</h2>\n");
    if (!figures->n) nb_strbuf_add(out, "<p>These results allow no plot.</p>\n");
    for (int i = 0; i < N_FAMILIES; i++)
        nb_html_more_figures(pictures, families[i].prefix, families[i].most, families[i].title, out);
    nb_html_not_drawn(figures, out);
}

/* ---- what ran ---- */

static void add_peers(const struct nb_results *results, struct nb_strbuf *out) {
    struct nb_peer_comparisons comparisons released_by(nb_peer_comparisons_release) = {0};
    struct nb_strings sentences released_by(nb_strings_release) = {0};
    if (!nb_meta(results, "plan.compare") || nb_peer_comparisons_make(&comparisons, results) != 0) return;
    nb_peers_sentences(&comparisons, &sentences);
    nb_strbuf_add(out, "<ul>\n");
    for (size_t i = 0; i < sentences.n; i++) nb_html_text(out, "<li>", sentences.items[i], "</li>\n");
    nb_strbuf_add(out, "</ul>\n");
}

static void add_top(const struct nb_summary *summary, const struct nb_results *results, const char *dir,
                    struct nb_strbuf *out) {
    nb_strbuf_add(out, "<h1>normbench");
    nb_html_text(out, ": ", nb_meta_text(results, "config"), "");
    nb_strbuf_add(out, "</h1>\n");
    add_peers(results, out);
    nb_html_answer(results, out);
    nb_strbuf_add(out, "<nav>");
    if (summary->n_failures) nb_strbuf_add(out, "<a class=\"bad\" href=\"#failures\">failures</a>");
    nb_strbuf_add(out, "<a href=\"#results\">results</a><a href=\"#plots\">plots</a>");
    if (summary->n_skips) nb_strbuf_add(out, "<a href=\"#left-out\">left out</a>");
    if (nb_dir_holds(dir, "peers.md")) nb_strbuf_add(out, "<a href=\"peers.md\">peers.md</a>");
    if (nb_dir_holds(dir, NB_STRESS_PAGE)) nb_strbuf_add(out, "<a href=\"" NB_STRESS_PAGE "\">precision</a>");
    nb_strbuf_add(out, "<a href=\"#machine\">machine</a><a href=\"#reproduce\">how to reproduce</a></nav>\n");
}

static void add_failures(const struct nb_summary *summary, const struct nb_results *results, struct nb_strbuf *out) {
    struct nb_strbuf reproducer released_by(nb_strbuf_release) = {0};
    if (summary->n_failures) nb_strbuf_addf(out, "<h2 id=\"failures\">Failures: %zu</h2>\n", summary->n_failures);
    for (size_t i = 0; i < summary->n_failures; i++) {
        const struct nb_record *r = &results->records[summary->failures[i]];
        nb_strbuf_clear(&reproducer);
        nb_failure_reproducer(r, &reproducer);
        nb_strbuf_addf(out, "<article><p><span class=\"bad\">%s</span> ", nb_status_name(r->status));
        nb_html_text(out, "<code>", r->key, "</code>");
        nb_html_text(out, "<br>", reproducer.text, "");
        nb_strbuf_add(out, "</p>\n");
        nb_html_text(out, "<pre>", r->replay, "</pre>\n");
        nb_strbuf_add(out, "</article>\n");
    }
}

static bool is(const struct nb_column *c, enum nb_measured what) { return !c->axis && c->measured == what; }

static bool is_timed(const struct nb_view *view) {
    for (size_t c = 0; c < view->n_columns; c++)
        if (is(&view->columns[c], NB_MEASURED_TIME)) return true;
    return false;
}

/* Notes may be long sentences, kernels' names never break, figures stand right. A phone shows the time and the ratio beside the name, or
 * the error where nothing was timed; s is for wide screens and paper. */
static const char *cell_class(const struct nb_view *view, const struct nb_column *c) {
    const bool main = is_timed(view) ? is(c, NB_MEASURED_TIME) || is(c, NB_MEASURED_RATIO) : is(c, NB_MEASURED_MAX_ULP);
    const bool second = is(c, NB_MEASURED_RATE) || is(c, NB_MEASURED_PARAMETERS) || is(c, NB_MEASURED_BIAS);
    return main                        ? "n m"
           : second                    ? "n s"
           : c->right                  ? "n"
           : is(c, NB_MEASURED_KERNEL) ? "k"
           : is(c, NB_MEASURED_NOTE)   ? "d"
                                       : "";
}

/* Axes with a column of their own; the others that differ stand in one, "backward, cache cold", but for values that a reader expects. */
static bool has_own_column(const struct nb_column *c) {
    static const char *const names[] = {"width", "dtype", "shape", NULL};
    return !c->axis || nb_name_find(names, c->axis->name) >= 0;
}

static void print_conditions(const struct nb_view *view, const struct nb_section *section, const struct nb_record *r,
                             struct nb_strbuf *out) {
    struct nb_strbuf value released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(out, "");
    for (size_t c = 0; c < view->n_columns; c++) {
        if (section->hidden[c] || has_own_column(&view->columns[c])) continue;
        nb_strbuf_clear(&value);
        nb_column_print(&view->columns[c], r, false, &value);
        if (value.len) nb_view_add_to_heading(view->columns[c].axis, value.text, out);
    }
}

/* What the rows of a section have cells of. */
struct shown {
    size_t columns[NB_VIEW_COLUMNS], n;
    bool conditions;
};

static bool is_shown(const struct nb_view *view, const struct nb_section *section, size_t column) {
    const struct nb_column *c = &view->columns[column];
    bool tells = !is(c, NB_MEASURED_STATUS); /* it does where one is not ok */
    for (size_t i = 0; i < section->n && !tells; i++)
        tells = view->results->records[section->records[i]].status != NB_OK;
    return tells && !section->hidden[column] && has_own_column(c);
}

static void find_shown(struct shown *shown, const struct nb_view *view, const struct nb_section *section) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    *shown = (struct shown){0};
    for (size_t c = 0; c < view->n_columns; c++)
        if (is_shown(view, section, c)) shown->columns[shown->n++] = c;
    for (size_t i = 0; i < section->n; i++)
        print_conditions(view, section, &view->results->records[section->records[i]], &text);
    shown->conditions = text.len > 0;
}

static void add_row(const struct nb_view *view, const struct nb_section *section, const struct shown *shown,
                    const struct nb_record *r, struct nb_strbuf *out) {
    struct nb_strbuf cell released_by(nb_strbuf_release) = {0};
    const bool doubtful = r->has_timing && (r->timing.noisy || r->timing.suspect);
    nb_strbuf_add(out, r->status < NB_N_STATUSES && nb_status_failed(r->status) ? "<tr class=bad>"
                       : doubtful                                               ? "<tr class=doubt>"
                                                                                : "<tr>");
    for (size_t i = 0; i < shown->n; i++) {
        const struct nb_column *c = &view->columns[shown->columns[i]];
        nb_strbuf_clear(&cell);
        nb_column_print(c, r, false, &cell);
        const bool folds = is(c, NB_MEASURED_NOTE); /* the table fits a screen without it */
        nb_html_cell(out, cell_class(view, c), folds ? "" : cell.text);
        if (folds) nb_html_text(out, "<details><summary>why</summary>", cell.text, "</details>");
        if (i > 0 || !shown->conditions) continue;
        nb_strbuf_clear(&cell);
        print_conditions(view, section, r, &cell);
        nb_html_cell(out, "c", cell.text);
    }
    nb_strbuf_add(out, "\n");
}

static void add_headings(const struct nb_view *view, const struct shown *shown, struct nb_strbuf *out) {
    for (size_t i = 0; i < shown->n; i++) {
        const struct nb_column *c = &view->columns[shown->columns[i]];
        nb_strbuf_addf(out, "<th class=\"%s\">", cell_class(view, c));
        nb_html_text(out, "", c->title, "");
        if (i == 0 && shown->conditions) nb_strbuf_add(out, "<th class=c>case");
    }
    nb_strbuf_add(out, "\n");
}

static void add_section(const struct nb_view *view, const struct nb_section *section, bool open,
                        struct nb_strbuf *out) {
    struct shown shown;
    find_shown(&shown, view, section);
    nb_strbuf_add(out, open ? "<details open><summary>" : "<details><summary>");
    nb_html_text(out, "", section->heading.len ? section->heading.text : "all cases", "");
    nb_strbuf_addf(out, " (%zu)</summary>\n%s<div class=\"wrap full\"><table class=rows>\n<thead><tr>", section->n,
                   open ? "" : "<noscript>");
    add_headings(view, &shown, out);
    nb_strbuf_add(out, "<tbody>\n");
    for (size_t i = 0; i < section->n; i++)
        add_row(view, section, &shown, &view->results->records[section->records[i]], out);
    nb_strbuf_addf(out, "</table></div>%s</details>\n", open ? "" : "</noscript>");
}

static const char legend[] =
    "Time: median over launches, with its 95% interval. % of copy: time of a copy of the same bytes / time of the case; % of roofline: time "
    "of the copy or, where that is larger, of the arithmetic / time of the case, and the bottleneck. Of bound: largest error / error bound of the "
    "declared formula; above 1 fails. Colored rows are too noisy to rank; “why” says why.";

/* One table; of more rows, one for each heading. A browser takes seconds for thousands of rows: folded ones come as text, which the script
 * makes tables of when they are opened. */
enum { MOST_IN_ONE = 1000, MOST_OPEN = 200 };

static void add_table(const struct nb_results *results, struct nb_strbuf *out) {
    const bool flat = results->n <= MOST_IN_ONE;
    struct nb_view view released_by(nb_view_release);
    nb_view_init(&view, results, flat);
    nb_strbuf_add(out, "<h2 id=\"results\">Results</h2>\n");
    nb_html_text(out, "<p class=dim>", view.n_sections ? legend : "No case ran.", "");
    nb_html_text(out, " All cases: ", view.constants.text, ".");
    nb_strbuf_add(out, "</p>\n");
    for (size_t i = 0, n = 0; i < view.n_sections; i++) {
        n += view.sections[i].n;
        add_section(&view, &view.sections[i], flat || n <= MOST_OPEN, out);
    }
}

static void add_skips(const struct nb_summary *summary, struct nb_strbuf *out) {
    if (!summary->n_skips) return;
    nb_strbuf_addf(out, "<h2 id=\"left-out\">Left out: %zu cells</h2>\n<div class=\"wrap\"><table>\n",
                   summary->n_skipped_cells);
    nb_strbuf_add(out, "<tr><th class=\"n\">cells</th><th>reason</th></tr>\n");
    for (size_t i = 0; i < summary->n_skips; i++) {
        nb_strbuf_addf(out, "<tr><td class=\"n\">%zu</td><td class=\"w\">", summary->skips[i].n);
        nb_html_text(out, "", summary->skips[i].text, "");
        nb_strbuf_add(out, "</td></tr>\n");
    }
    nb_strbuf_add(out, "</table></div>\n");
}

/* ---- the machine and the build, and the lines that measure the same again ---- */

/* One row a value; "cpu.model" is its path. Plain lists stand in one cell. */
static void add_tree(const cJSON *item, const char *path, struct nb_strbuf *out) {
    const cJSON *child;
    if (!cJSON_IsObject(item) && !(item && cJSON_IsObject(item->child))) {
        char *value freed = nb_json_shown(item);
        nb_html_text(out, "<tr><td>", path, "</td>");
        nb_html_text(out, "<td class=\"w\">", value, "</td></tr>\n");
        return;
    }
    cJSON_ArrayForEach(child, item) {
        char *inner freed = nb_textf("%s%s%s", path, *path ? "." : "", child->string ? child->string : "");
        add_tree(child, inner, out);
    }
}

static void add_fingerprint(const cJSON *fingerprint, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<div class=\"wrap\"><table>\n");
    add_tree(fingerprint, "", out);
    nb_strbuf_add(out, "</table></div>\n");
}

static void add_machine(const struct nb_results *results, struct nb_strbuf *out) {
    const cJSON *machines = nb_meta(results, "machines"), *own = nb_meta(results, "fingerprint"), *machine;
    int i = 0;
    nb_strbuf_add(out, "<h2 id=\"machine\">Machine and build</h2>\n");
    if (cJSON_GetArraySize(machines) > 1) {
        cJSON_ArrayForEach(machine, machines) {
            nb_strbuf_addf(out, "<details><summary>machine %d</summary>\n", i++);
            add_fingerprint(nb_json_get(machine, "fingerprint"), out);
            nb_strbuf_add(out, "</details>\n");
        }
    } else if (own) {
        add_fingerprint(own, out);
    } else {
        nb_strbuf_add(out, "<p>These results say nothing about their machine.</p>\n");
    }
}

static void add_reproduce(const struct nb_results *results, struct nb_strbuf *out) {
    struct nb_strbuf command released_by(nb_strbuf_release) = {0};
    const cJSON *word;
    cJSON_ArrayForEach(word, nb_meta(results, "argv")) {
        if (cJSON_IsString(word)) nb_add_shell_word(&command, SIZE_MAX, word->valuestring);
    }
    nb_strbuf_add(out, "<h2 id=\"reproduce\">How to reproduce</h2>\n");
    nb_html_text(out, "<p>These results came from</p>\n<pre>", command.text, "</pre>\n");
    nb_html_text(out, "<p>plan ", nb_meta_text(results, "plan.hash"), ", ");
    nb_html_text(out, "order seed ", nb_meta_text(results, "plan.order_seed"), ".</p>\n");
    nb_strbuf_add(out, "<p>One case alone, checked and timed again:</p>\n<pre>normbench replay DIR CASE-KEY</pre>\n"
                       "<p>This page, the plots and the table again:</p>\n<pre>normbench report DIR</pre>\n"
                       "<p>The files beside this page: <a href=\"results.json\">results.json</a>, <a "
                       "href=\"plots/\">plots/</a>.</p>\n");
}

/* Where the work was done, and what a call costs before its first row. */
static void add_libraries(const struct nb_summary *summary, struct nb_strbuf *out) {
    if (!*summary->libraries.text && !*summary->overheads.text) return;
    nb_strbuf_add(out, "<pre class=dim>");
    nb_html_text(out, "", summary->libraries.text, "");
    nb_html_text(out, "", summary->overheads.text, "");
    nb_strbuf_add(out, "</pre>\n");
}

int nb_html_write(const struct nb_results *results, const char *dir) {
    struct nb_summary summary released_by(nb_summary_release);
    struct nb_figures figures released_by(nb_figures_release);
    struct nb_strbuf page released_by(nb_strbuf_release) = {0};
    char *path freed = nb_path_join(dir, "index.html");
    const struct nb_html_pictures pictures = {&figures, dir, "plots"};
    nb_summary_init(&summary, results);
    nb_figures_init(&figures, results);
    const int drawn = nb_figures_write(&figures, dir, pictures.folder);
    nb_html_head(nb_meta_text(results, "config"), &page);
    add_top(&summary, results, dir, &page);
    add_failures(&summary, results, &page);
    add_key_plots(&pictures, &page);
    add_table(results, &page);
    add_libraries(&summary, &page);
    add_plots(&figures, &pictures, &page);
    add_skips(&summary, &page);
    add_machine(results, &page);
    add_reproduce(results, &page);
    nb_html_end(&page);
    return nb_file_write(path, page.text, page.len) == 0 ? drawn : -1;
}
