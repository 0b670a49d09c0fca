// SPDX-License-Identifier: Apache-2.0
/* Plots and the page: that their data are the figures of the records, that names stay names in scripts, pictures and markup, and
 * that empty and partial results are drawn or left out, never crashed on. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/figure.h"
#include "reports/figures/sweep.h"
#include "reports/run/report.h"
#include "src/core/log.h"
#include "tests/support/files.h"
#include "tests/support/reports.h"

static char *folder;
static struct nb_results results;
static struct nb_figures figures; /* of the results, where a test makes them */

static void make_folder(void) { folder = new_folder(); }
static void release(void) {
    nb_figures_release(&figures);
    nb_results_release(&results);
}
TestSuite(plots, .init = make_folder, .fini = release);

static void expect_point(const struct nb_point *p, double x, double y, double low, double high) {
    const double got[] = {p->x, p->y, p->low, p->high}, want[] = {x, y, low, high};
    for (int i = 0; i < 4; i++)
        cr_assert(isnan(want[i]) ? isnan(got[i]) : fabs(got[i] - want[i]) <= 1e-9 * fabs(want[i]),
                  "value %d: %g, not %g", i, got[i], want[i]);
}

/* ---- what is drawn ---- */

Test(plots, cut_pairs_only_what_was_timed_together_and_alike) {
    nb_test_sweep(&results);
    struct nb_cut *cuts;
    cr_assert_eq(nb_cuts_find(&results, &cuts), 3);
    cr_assert_eq(cuts[1].layernorm, 2);
    cr_assert_eq(cuts[1].rmsnorm, 3);
    cr_assert_float_eq(cuts[1].cut.value, 0.3, 1e-12);
    free(cuts);
    results.records[1].c.style = NB_COMPOSED; /* another style */
    free(results.records[3].timing.reference);
    results.records[3].timing.reference = nb_strdup("another/reference");
    results.records[5].status = NB_INACCURATE;
    cr_assert_eq(nb_cuts_find(&results, &cuts), 0);
    free(cuts);
}

Test(plots, lines_hold_the_figures_of_the_records) {
    nb_test_sweep(&results);
    nb_test_accuracy(nb_test_add(&results, "rmsnorm_serial_v256_f32", NB_OP_RMSNORM, "64x256"), 0.5, 0);
    nb_figures_init(&figures, &results);
    const struct nb_figure *cut = figure_named(&figures, "cut-length-forward-f32");
    cr_assert_eq(cut->n_lines, 1);
    cr_assert_eq(cut->lines[0].n, 3);
    expect_point(&cut->lines[0].points[0], 256, 20, 19, 21);
    expect_point(&cut->lines[0].points[2], 4096, 40, 39, 41);
    const struct nb_figure *speed = figure_named(&figures, "kernels-rmsnorm-forward-f32");
    expect_point(&speed->lines[0].points[1], 1024, 80, 79, 81);
}

Test(plots, a_curve_is_of_one_machine_and_names_it) {
    nb_test_sweep(&results);
    nb_test_part(&results, "64x256");
    nb_figures_init(&figures, &results);
    static const char *const names[] = {"cut-length-forward-f32", "kernels-rmsnorm-forward-f32"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct nb_figure *f = figure_named(&figures, names[i]);
        cr_expect_eq(f->lines[0].n, 2, "%s: times of two machines on one curve", f->name);
        cr_expect_not_null(strstr(f->subtitle, "machine 1, "), "%s: %s", f->name, f->subtitle);
        cr_expect_not_null(strstr(f->caption, "machine 1, "), "%s: %s", f->name, f->caption);
    }
}

/* The same number of rows of other lengths is no curve against the working set. */
Test(plots, a_curve_by_working_set_is_of_one_row_length_and_shows_the_caches) {
    nb_test_sweep(&results);
    nb_test_part(&results, "64x256");
    nb_figures_init(&figures, &results);
    for (size_t i = 0; i < figures.n; i++) cr_expect_null(strstr(figures.list[i].name, "working-set"));
    nb_figures_release(&figures);
    for (size_t i = 0; i < results.n; i++) results.records[i].c.shape.cols = 1024;
    nb_figures_init(&figures, &results);
    const struct nb_figure *f = figure_named(&figures, "cut-working-set-forward-f32");
    expect_point(&f->lines[0].points[0], 64 * 1024 * 8, 30, 29, 31);
    cr_expect_eq(f->guides[0].x, 49152, "the caches of that machine");
}

Test(plots, kernels_are_sorted_by_time_and_named) {
    static const struct {
        const char *variant;
        double time_ns;
    } cases[] = {{"rmsnorm_b_v256_f32", 2000},
                 {"rmsnorm_a_v256_f32", 3000},
                 {"rmsnorm_a_v512_f32", 1000},  /* the fastest width of a */
                 {"rmsnorm_c_v256_f32", 9000}}; /* at another shape */
    for (int i = 0; i < 4; i++) {
        struct nb_record *r = nb_test_add(&results, cases[i].variant, NB_OP_RMSNORM, i < 3 ? "10x100" : "10x200");
        nb_test_times(r, cases[i].time_ns, (struct nb_interval){1, 1, 1}, "reference");
        if (i == 2) r->c.width = NB_512;
    }
    results.records[0].timing.noisy = true;
    nb_figures_init(&figures, &results);
    const struct nb_figure *f = figure_named(&figures, "times-hot");
    cr_assert_eq(f->names.n, 2, "%zu: %s, %s", f->names.n, f->names.items[0], f->names.items[1]);
    cr_expect_eq(strncmp(f->names.items[0], "rmsnorm_a ", 10), 0, "%s", f->names.items[0]);
    cr_expect_float_eq(f->lines[0].points[0].x, 1, 1e-12);
    cr_expect(!f->lines[0].points[0].noisy && f->lines[1].points[0].noisy);
}

/* ---- axes ---- */

/* The script of a figure of one panel with these points, eleven lines of three unless they are fewer. */
static const char *script_of(enum nb_scale scale, const struct nb_point *points, size_t n) {
    static struct nb_strbuf text;
    struct nb_figure f released_by(nb_figure_release);
    char entry[8];
    nb_figure_init(&f, "axes");
    f.panels[0] = (struct nb_panel){"p", "x", "y", NB_SCALE_LINEAR, scale};
    for (size_t i = 0; i < n; i++) {
        snprintf(entry, sizeof entry, "%zu", i / 3);
        nb_figure_add(&f, 0, entry, points[i]);
    }
    nb_strbuf_clear(&text);
    nb_figure_script(&f, &text);
    return text.text;
}

static void expect_y_range(const char *script, double low, double high) {
    double got[2] = {NAN, NAN};
    const char *range = strstr(script, "set yrange [");
    cr_assert_not_null(range);
    cr_assert_eq(sscanf(range, "set yrange [%lf:%lf]", &got[0], &got[1]), 2, "%.60s", range);
    cr_assert(got[0] >= low && got[1] <= high, "[%g:%g] is beyond [%g:%g]", got[0], got[1], low, high);
}

Test(plots, one_spike_does_not_flatten_the_other_curves) {
    struct nb_point points[33];
    for (int i = 0; i < 33; i++) points[i] = (struct nb_point){i % 3, 40 + i % 7, NAN, NAN, false};
    cr_assert_null(strstr(script_of(NB_SCALE_PERCENT, points, 33), "↑"), "nothing lies beyond");
    points[16].y = 4000;
    const char *script = script_of(NB_SCALE_PERCENT, points, 33);
    expect_y_range(script, 0, 100);
    cr_assert_not_null(strstr(script, "set label '↑ 4e+03%' at first 1, graph 0.99"),
                       "and the picture says where it lies");
    points[16].y = -4000;
    script = script_of(NB_SCALE_PERCENT, points, 33);
    expect_y_range(script, -50, 100);
    cr_assert_not_null(strstr(script, "'↓ -4e+03%'"));
    for (int i = 0; i < 33; i += 3) points[i].y = 4000;
    cr_assert_null(strstr(script_of(NB_SCALE_PERCENT, points, 33), "↑ "), "a third of the points is no spike");
}

Test(plots, a_logarithmic_axis_is_as_long_as_its_data) {
    double range[2];
    const struct nb_point points[] = {{0, 0.25, NAN, NAN, false}, {1, 1.2, NAN, NAN, false}, {2, 0.9, NAN, NAN, false}};
    const char *script = script_of(NB_SCALE_DECADES, points, 3);
    cr_assert_not_null(strstr(script, "set ytics ('0.5' 5e-1, '1' 1e0)"), "%s", strstr(script, "set ytics"));
    cr_assert_eq(sscanf(strstr(script, "LEAST_y = "), "LEAST_y = %lf", &range[0]), 1);
    cr_assert_eq(sscanf(strstr(script, "[LEAST_y:"), "[LEAST_y:%lf]", &range[1]), 1);
    cr_assert(range[0] > 0.1 && range[0] < 0.25 && range[1] > 1.2 && range[1] < 2, "[%g, %g]", range[0], range[1]);
    const struct nb_point zero[] = {{0, 0, NAN, NAN, false}, {1, 1.2, NAN, NAN, false}};
    cr_assert_eq(sscanf(strstr(script_of(NB_SCALE_DECADES, zero, 2), "LEAST_y = "), "LEAST_y = %lf", &range[0]), 1);
    cr_assert(range[0] <= 0.12, "0 stands a decade below the least: %g", range[0]);
}

/* ---- what a reader finds in the picture ---- */

/* Of however many lines and whatever lengths, each has its name in the picture once, and all names stand inside. */
static void expect_legend(const struct nb_figure *f, const char *dir) {
    char name[200], word[80];
    snprintf(name, sizeof name, "plots/%s.svg", f->name);
    char *svg = get_file(dir, name);
    double width = 0, height = 0;
    cr_assert_eq(sscanf(strstr(svg, "viewBox"), "viewBox=\"0 0 %lf %lf\"", &width, &height), 2);
    for (size_t e = 0; e < f->entries.n; e++) {
        snprintf(word, sizeof word, ">%s<", f->entries.items[e]);
        cr_expect_eq(times_in(svg, word), 1, "%s: %s is there %d times", f->name, f->entries.items[e],
                     times_in(svg, word));
        for (size_t other = 0; other < e; other++)
            cr_expect_str_neq(f->entries.items[other], f->entries.items[e], "%s: two alike", f->name);
    }
    for (const char *at = strstr(svg, "translate("); at; at = strstr(at + 1, "translate(")) {
        double x = 0, y = 0;
        cr_assert_eq(sscanf(at, "translate(%lf,%lf)", &x, &y), 2);
        cr_expect(x >= 0 && x < width && y >= 0 && y < height, "%s: a text at %g, %g of %g, %g", f->name, x, y, width,
                  height);
    }
}

Test(plots, every_line_is_in_the_legend_of_the_picture) {
    if (!have_gnuplot()) cr_skip("no gnuplot");
    char entry[64];
    nb_test_sweep(&results);
    nb_figures_init(&figures, &results);
    struct nb_figure *many = nb_figures_new(&figures, &results, nb_strdup("many"));
    many->title = nb_strdup("many lines");
    many->n_panels = 3;
    for (size_t p = 0; p < 3; p++)
        many->panels[p] = (struct nb_panel){"p", "x", "y", NB_SCALE_LINEAR, NB_SCALE_PERCENT};
    for (int i = 0; i < 40; i++) {
        snprintf(entry, sizeof entry, "arm %d%s", i, i % 3 ? "" : " with a name of some length");
        if (i % 5)
            nb_figure_add(many, (size_t)i % 3, entry, (struct nb_point){i, i, i - 1, i + 1, i % 2});
        else
            nb_figure_add_law(many, (size_t)i % 3, entry, i, i);
    }
    cr_assert_eq(nb_figures_write(&figures, folder, "plots"), 0);
    for (size_t i = 0; i < figures.n; i++) expect_legend(&figures.list[i], folder);
    cr_expect_not_null(strstr(get_file(folder, "plots/many.svg"), "hollow: too noisy to rank"));
}

Test(plots, an_algorithm_looks_the_same_in_all_figures) {
    static const char *const labels[2][3] = {{"rmsnorm_fast", "rmsnorm_composed", "unknown"},
                                             {"composed", "zeta", "layernorm_backward_fast"}};
    static const int fast[] = {1, 3}, composed[] = {2, 1};
    char colors[2][2][16], style[40];
    for (int i = 0; i < 2; i++) {
        struct nb_figure f released_by(nb_figure_release);
        struct nb_strbuf script released_by(nb_strbuf_release) = {0};
        nb_figure_init(&f, "colors");
        for (int k = 0; k < 3; k++) nb_figure_entry(&f, labels[i][k]);
        nb_figure_script(&f, &script);
        for (int k = 0; k < 2; k++) {
            snprintf(style, sizeof style, "set style line %d lc rgb ", k ? composed[i] : fast[i]);
            snprintf(colors[i][k], sizeof colors[i][k], "%.9s", strstr(script.text, style) + strlen(style));
        }
    }
    for (int k = 0; k < 2; k++) cr_expect_str_eq(colors[0][k], colors[1][k]);
    cr_expect_str_neq(colors[0][0], colors[0][1]);
}

/* ---- files ---- */

static const char hostile[] = "rms'norm\"`id`\\<script>alert(1)</script>&\n$(id)@x_v256_f32";

static void make_hostile_results(void) {
    results = nb_test_small();
    for (int i = 0; i < 2; i++) {
        struct nb_record *r = nb_test_add(&results, hostile, NB_OP_RMSNORM, i ? "64x1024" : "64x256");
        nb_test_times(r, 5000 << i, (struct nb_interval){1, 1, 1}, r->key);
        nb_test_accuracy(r, 0.5, 0);
        r->reason = nb_strdup("<b>\"reason\"</b>");
    }
    results.records[4].status = NB_CRASHED;
    cJSON_ReplaceItemInObject(results.meta, "config", cJSON_CreateString("</title><script>x</script>"));
    cJSON_AddStringToObject(cJSON_GetObjectItem(results.meta, "fingerprint"), "<k>", "<v onload='x'>");
    struct nb_record *r = nb_test_add(&results, hostile, NB_OP_RMSNORM, "64x4096");
    nb_test_times(r, 20000, (struct nb_interval){1, 1, 1}, r->key);
}

Test(plots, page_shows_markup_in_names_as_text) {
    make_hostile_results();
    setenv("PATH", folder, 1); /* no pictures, whose SVG names its standard by an address */
    nb_log_quiet(true);
    cr_assert_eq(nb_html_write(&results, folder), 0);
    char *page = get_file(folder, "index.html");
    const char *script = strstr(page, "<script");
    cr_assert_not_null(script);
    cr_assert_null(strstr(script + 1, "<script"), "our own alone");
    cr_assert_not_null(strstr(page, "script-src 'sha256-"));
    LACKS(page, "<b>\"reason\"", "<v ");
    HAS(page, "&lt;script&gt;alert(1)&lt;/script&gt;", "<pre>normbench run &#39;it&#39;\\&#39;&#39;s&#39;</pre>");
    LACKS(page, "http://", "https://");
    cr_assert_lt(strstr(page, "id=\"failures\""), strstr(page, "id=\"results\""), "failures come first");
}

Test(plots, scripts_keep_names_inside_single_quotes) {
    make_hostile_results();
    nb_figures_init(&figures, &results);
    cr_assert_gt(figures.n, 0);
    expect_names_quoted(&figures);
}

Test(plots, gnuplot_draws_every_figure_of_hostile_results) {
    if (!have_gnuplot()) cr_skip("no gnuplot");
    make_hostile_results();
    /* Panels without any data, and lines without intervals. */
    for (size_t i = 0; i < results.n; i++) {
        results.records[i].timing.vs_copy = (struct nb_interval){NAN, NAN, NAN};
        results.records[i].timing.time_ns.low = NAN;
    }
    cr_assert_eq(nb_html_write(&results, folder), 0);
    cr_assert(!has_file(folder, "plots/gnuplot.log"), "gnuplot complained");
    nb_figures_init(&figures, &results);
    for (size_t i = 0; i < figures.n; i++) {
        char name[200];
        snprintf(name, sizeof name, "plots/%s.png", figures.list[i].name);
        cr_assert(has_file(folder, name), "%s", name);
        snprintf(name, sizeof name, "plots/%s.svg", figures.list[i].name);
        char *svg = get_file(folder, name);
        LACKS(svg, "<script", "scale(0.0"); /* scaled by 0, librsvg refuses the whole picture */
        HAS(svg, "</svg>");
    }
    char *page = get_file(folder, "index.html");
    cr_assert_not_null(strstr(page, "src=\"data:image/svg+xml,<svg"));
    cr_assert_null(strstr(page, "<g></g>"));
}

Test(plots, without_gnuplot_data_and_scripts_are_there) {
    nb_test_sweep(&results);
    setenv("PATH", folder, 1);
    nb_log_quiet(true);
    cr_assert_eq(nb_html_write(&results, folder), 0);
    setenv("PATH", "/usr/bin:/bin", 1);
    cr_assert(has_file(folder, "plots/cut-length-forward-f32.dat"));
    cr_assert(has_file(folder, "plots/cut-length-forward-f32.gp"));
    cr_assert(!has_file(folder, "plots/cut-length-forward-f32.svg"));
    cr_assert(!has_file(folder, "plots/gnuplot.log"));
    cr_assert_not_null(strstr(get_file(folder, "plots/all.gp"), "load 'cut-length-forward-f32.gp'\n"));
}

/* ---- what may not crash ---- */

static void render_everything(void) {
    static const char *const formats[] = {"table", "csv", "markdown", "json"};
    for (size_t i = 0; i < 4; i++) free(nb_test_render(formats[i], &results));
    cr_assert_eq(nb_html_write(&results, folder), 0);
}

Test(plots, empty_results_are_rendered) {
    render_everything();
    char *page = get_file(folder, "index.html"), *readme = get_file(folder, "plots/README.md");
    cr_assert_not_null(strstr(page, "No case ran."));
    cr_assert_not_null(strstr(readme, "Not drawn"));
}

Test(plots, records_with_nothing_but_nan_and_huge_names_are_rendered) {
    char name[NB_VARIANT_MAX];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 3; i++) {
        struct nb_record *r = nb_test_add(&results, name, NB_OP_LAYERNORM, i ? "1x1" : "3x9");
        if (i == 0) r->c.shape.cols = INT64_MAX;
        nb_test_times(r, NAN, (struct nb_interval){NAN, INFINITY, -INFINITY}, "none");
        r->timing.gbytes_per_s = r->timing.vs_copy.value = i == 1 ? 1e300 : -INFINITY;
        if (i == 1) r->timing.time_ns = (struct nb_interval){1e-300, NAN, 1e300};
        nb_test_accuracy(r, i ? 1e308 : NAN, i ? -1e308 : 5e-324);
        r->accuracy.reproducer.got = NAN;
        r->status = i == 2 ? NB_CRASHED : NB_OK;
    }
    nb_free_all(results.records[0].key, results.records[0].replay, results.records[0].timing.reference);
    results.records[0].key = results.records[0].replay = results.records[0].timing.reference = NULL;
    render_everything();
    if (have_gnuplot()) cr_assert(!has_file(folder, "plots/gnuplot.log"), "gnuplot complained");
}
