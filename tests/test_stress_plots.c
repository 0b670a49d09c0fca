// SPDX-License-Identifier: Apache-2.0
/* Pictures and page of precision: that they hold the figures of stress.json, that foreign text stays text, and that partial or
 * senseless files are drawn or left out, never crashed on. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reports/heat_map.h"
#include "reports/plot_stress.h"
#include "reports/stress_report.h"
#include "src/files.h"
#include "src/json.h"
#include "src/log.h"
#include "tests/test_support_reports.h"

enum { LARGEST = 1 << 24 };

static char folder[] = "/tmp/normbench-stress-plots-XXXXXX";

static void make_folder(void) { cr_assert_not_null(mkdtemp(folder)); }

static void remove_folder(void) {
    pid_t child = fork();
    if (child == 0) {
        execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(127);
    }
    if (child > 0) waitpid(child, NULL, 0);
}

TestSuite(stress_plots, .init = make_folder, .fini = remove_folder);

static char *read_in(const char *name) {
    char *path = nb_path_join(folder, name), *text = nb_file_read(path, LARGEST, NULL);
    cr_assert_not_null(text, "%s", name);
    free(path);
    return text;
}

static bool exists_in(const char *name) {
    char *path = nb_path_join(folder, name);
    bool exists = nb_path_exists(path);
    free(path);
    return exists;
}

static const char map_text[] =
    "{\"log2_scale\":[-8,0,8],\"log2_rho\":[-4,12],"
    "\"log10_ulp\":[[0.2,1.5,null],[-3.0,7.9,2.5]],"
    "\"state\":[[\"ok\",\"ok\",\"nan\"],[\"ok\",\"ok\",\"zero\"]],"
    "\"predicted\":[{\"name\":\"x^2 overflows\",\"line\":[[4,-4],[3,12]]},{\"name\":\"too short\",\"line\":[[1,1]]}]}";

static const char sweeps_text[] =
    "[{\"axis\":\"rho\",\"points\":[{\"at\":1,\"state\":\"ok\",\"scaled_u\":4,\"noise_u\":2},"
    "{\"at\":4,\"state\":\"ok\",\"scaled_u\":64,\"noise_u\":8},{\"at\":16,\"state\":\"nan\",\"scaled_u\":1e9,\"noise_"
    "u\":32}],"
    "\"predicted\":[{\"name\":\"slope 2\",\"points\":[[1,5],[4,80],[16,1280]]}],\"cliffs\":[]},"
    "{\"axis\":\"n\",\"points\":[{\"at\":16,\"state\":\"ok\",\"gain_rms_u\":0.5},{\"at\":64,\"state\":\"ok\",\"gain_"
    "rms_u\":1}],"
    "\"predicted\":[{\"name\":\"rms law\",\"points\":[[16,3],[64,6]]},{\"name\":\"bias law\",\"points\":[[16,4]]},"
    "{\"name\":\"gamma_n\",\"points\":[[16,8],[64,32]]}]}]";

static void add_study(cJSON *stress, const char *variant, const char *dtype) {
    cJSON *study = cJSON_CreateObject();
    nb_json_text(study, "key", variant);
    nb_json_text(study, "variant", variant);
    nb_json_text(study, "dtype", dtype);
    nb_json_text(study, "replay", "normbench replay it");
    nb_json_text(study, "status", "ok");
    cJSON_AddItemToObject(
        study, "frontiers",
        cJSON_Parse("[{\"of\":\"rho_max\",\"demand\":\"accurate\",\"status\":\"found\",\"good\":4,\"bad\":5,"
                    "\"predicted\":4096,\"ratio\":0.001,\"rule\":\"<i>rule</i>\"}]"));
    cJSON_AddItemToObject(study, "worst",
                          cJSON_Parse("[{\"objective\":\"ulp\",\"value\":12.5,\"generator\":\"<u>greedy\","
                                      "\"replay\":\"normbench replay '<q>'\"}]"));
    cJSON_AddItemToObject(study, "sweeps", cJSON_Parse(sweeps_text));
    cJSON_AddItemToObject(study, "map", cJSON_Parse(map_text));
    cJSON_AddItemToArray(cJSON_GetObjectItem(stress, "studies"), study);
}

static void add_grade(cJSON *stress, const char *variant, const char *kernel, const char *formula, const char *grade,
                      const char *text) {
    cJSON *line = cJSON_CreateObject(), *why = cJSON_CreateObject();
    nb_json_text(line, "kernel", kernel);
    nb_json_text(line, "variant", variant);
    nb_json_text(line, "op", "layernorm");
    nb_json_text(line, "pass", "forward");
    nb_json_text(line, "dtype", "f32");
    nb_json_text(line, "width", "256");
    nb_json_text(line, "formula", formula);
    nb_json_text(line, "declared", grade);
    nb_json_text(line, "all", "F");
    nb_json_text(why, "key", "k");
    nb_json_text(why, "replay", "normbench replay 'layernorm'");
    nb_json_text(why, "text", text);
    cJSON_AddItemToObject(line, "why_declared", why);
    cJSON_AddItemToObject(line, "why_all", cJSON_Duplicate(why, true));
    nb_json_number(line, "max_ulp", 17.25);
    nb_json_number(line, "correct", 0.999999);
    nb_json_number(line, "nan", 1024);
    nb_json_number(line, "bias_u", NAN);
    cJSON_AddItemToArray(cJSON_GetObjectItem(stress, "grades"), line);
}

static cJSON *empty_stress(void) {
    return cJSON_Parse(
        "{\"version\":\"1\",\"config\":\"stress\",\"started\":\"2026-01-02T03:04:05Z\",\"complete\":true,"
        "\"fingerprint\":{\"cpu\":{\"model\":\"CPU\"}},\"grades\":[],\"studies\":[],\"bugs\":[]}");
}

static cJSON *small_stress(void) {
    cJSON *stress = empty_stress();
    add_study(stress, "layernorm_onepass_v256_f32", "f32");
    add_study(stress, "layernorm_onepass_v256_f16", "f16");
    add_study(stress, "layernorm_onepass_v512_f32", "f32");
    add_grade(stress, "layernorm_onepass_v256_f32", "layernorm_onepass", "default", "B", "17 ulp");
    add_grade(stress, "layernorm_onepass_v256_f32", "layernorm_onepass", "root:div_sqrt", "A", "1 ulp");
    return stress;
}

static const struct nb_figure *figure_named(const struct nb_figures *figures, const char *name) {
    for (size_t i = 0; i < figures->n; i++)
        if (strcmp(figures->list[i].name, name) == 0) return &figures->list[i];
    cr_assert_fail("no figure %s", name);
    return NULL;
}

static const struct nb_line *line_of(const struct nb_figure *f, size_t panel, const char *entry, bool law) {
    for (size_t i = 0; i < f->n_lines; i++) {
        const struct nb_line *line = &f->lines[i];
        if (line->panel == panel && line->law == law && strcmp(f->entries[line->entry], entry) == 0) return line;
    }
    cr_assert_fail("%s: no line %s", f->name, entry);
    return NULL;
}

/* ---- on a terminal ---- */

static char *rendered(const char *json, bool color) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    cJSON *map = cJSON_Parse(json);
    nb_render_heat_map(out, map, color);
    fclose(out);
    cJSON_Delete(map);
    return text;
}

Test(stress_plots, terminal_map_has_rho_upwards_and_a_letter_for_what_is_lost) {
    char *text = rendered(map_text, false);
    const char *cells = "  2^12.0   +.@0\n     rho   |.:N\n           +--\n           2^-8  scale\n";
    cr_assert_eq(strncmp(text, cells, strlen(cells)), 0, "%s", text);
    cr_assert_not_null(strstr(text, "error in ulp at rms(y):  . <1e1  : <1e2"));
    free(text);
    text = rendered(map_text, true);
    cr_assert_not_null(strstr(text, "\033[38;5;196mN\033[0m"));
    free(text);
}

Test(stress_plots, terminal_says_why_there_is_no_map) {
    char *text = rendered("{\"reason\":\"only \\u001b[31mforward\"}", false);
    cr_assert_str_eq(text, "  no map: only \\x1B[31mforward\n");
    free(text);
    text = rendered("null", false);
    cr_assert_str_eq(text, "  no map: not measured\n");
    free(text);
}

Test(stress_plots, cells_that_are_missing_or_senseless_are_unknown) {
    cJSON *map =
        cJSON_Parse("{\"log2_scale\":[0,1],\"log2_rho\":[0,1],\"log10_ulp\":[[\"x\",null]],\"state\":[[\"ok\",7],3]}");
    double value;
    for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++) cr_assert_eq(nb_map_cell(map, r, s, &value), NB_HEAT_UNKNOWN);
    cJSON_Delete(map);
}

/* ---- figures ---- */

Test(stress_plots, map_figure_holds_the_cells_and_the_predicted_lines) {
    cJSON *stress = small_stress();
    struct nb_figures figures;
    nb_stress_figures_init(&figures, stress, NULL, NULL);
    const struct nb_figure *f = figure_named(&figures, "map-layernorm_onepass");
    cr_assert_eq(f->n_panels, 2, "f32 and f16; the other width is not drawn again");
    cr_assert_str_eq(f->panels[0].title, "f32");
    cr_assert_str_eq(f->panels[1].title, "f16");
    const struct nb_heat *heat = &f->heats[0];
    cr_assert_eq(heat->n_x, 3);
    cr_assert_eq(heat->n_y, 2);
    static const unsigned char states[] = {NB_HEAT_VALUE, NB_HEAT_VALUE, NB_HEAT_NAN,
                                           NB_HEAT_VALUE, NB_HEAT_VALUE, NB_HEAT_ZERO};
    cr_assert_arr_eq(heat->state, states, sizeof states);
    cr_assert_float_eq(heat->value[4], 7.9, 1e-12);
    cr_assert_eq(f->n_entries, 1, "a line of one point is none");
    const struct nb_line *line = line_of(f, 0, "x^2 overflows", true);
    cr_assert_float_eq(line->points[1].x, 3, 1e-12);
    cr_assert_not_null(strstr(figures.notes.text, "1 studies of another width"));
    nb_figures_release(&figures);
    cJSON_Delete(stress);
}

Test(stress_plots, sweep_figures_hold_the_points_the_law_and_the_noise) {
    cJSON *stress = small_stress();
    struct nb_figures figures;
    nb_stress_figures_init(&figures, stress, NULL, NULL);
    const struct nb_figure *rho = figure_named(&figures, "error-rho-layernorm");
    const struct nb_line *line = line_of(rho, 0, "layernorm_onepass", false);
    cr_assert_eq(line->n, 2, "NaN has no point");
    cr_assert_float_eq(line->points[1].x, 2, 1e-12, "an exponent of two");
    cr_assert_float_eq(line->points[1].y, 64, 1e-12);
    cr_assert_eq(line_of(rho, 0, "layernorm_onepass", true)->n, 3);
    cr_assert_float_eq(line_of(rho, 1, "half an ulp of noise in x", true)->points[2].y, 32, 1e-12);
    const struct nb_figure *n = figure_named(&figures, "error-n-layernorm");
    line = line_of(n, 0, "layernorm_onepass", true);
    cr_assert_eq(line->n, 1, "the law ends where its second part does");
    cr_assert_float_eq(line->points[0].y, 5, 1e-12, "random and one-sided parts are independent: 3 and 4 make 5");
    cr_assert_eq(line_of(n, 0, "gamma_n", true)->n, 2);
    nb_figures_release(&figures);
    cJSON_Delete(stress);
}

/* A script that counts blocks otherwise than the data file would draw cells of one state in the colour of another. */
Test(stress_plots, script_and_data_agree_about_the_blocks) {
    cJSON *stress = small_stress();
    struct nb_figures figures;
    nb_stress_figures_init(&figures, stress, NULL, NULL);
    const struct nb_figure *f = figure_named(&figures, "map-layernorm_onepass");
    struct nb_strbuf data = {0}, script = {0};
    nb_figure_data(f, &data);
    nb_figure_script(f, &script);
    char wanted[100];
    size_t block = 0;
    for (char *rest = data.text, *end; rest; rest = end ? end + 3 : NULL, block++) {
        end = strstr(rest, "\n\n\n");
        if (end) *end = '\0';
        const bool nan = strstr(rest, "# cells: NaN"), numbers = strstr(rest, "# cells: numbers");
        if (!nan && !numbers) continue;
        snprintf(wanted, sizeof wanted, nan ? "index %zu using 1:2:3:4 with" : "index %zu using 1:2:3:4:5 with", block);
        const char *found = strstr(script.text, wanted);
        cr_assert_not_null(found, "%s", wanted);
        cr_assert_eq(strncmp(strstr(found, " fc ") + 4, nan ? "rgb '#d7191c'" : "palette", 7), 0);
    }
    cr_assert_eq(block, f->n_lines + 6, "numbers, NaN and 0 of two panels");
    nb_strbuf_release(&data);
    nb_strbuf_release(&script);
    nb_figures_release(&figures);
    cJSON_Delete(stress);
}

Test(stress_plots, depth_curve_shows_both_parts_and_their_growth) {
    cJSON *depth = cJSON_Parse(
        "{\"designs\":[{\"design\":\"llama\",\"depth\":{\"gain_u\":[-1,-2,-3,-4],\"residual_u\":[3,4,5,6]}},"
        "{\"design\":\"flat\",\"depth\":null},{\"design\":7}]}");
    struct nb_figures figures;
    nb_stress_figures_init(&figures, NULL, depth, NULL);
    const struct nb_figure *f = figure_named(&figures, "depth");
    cr_assert_float_eq(line_of(f, 0, "llama", false)->points[2].y, 3, 1e-12);
    cr_assert_float_eq(line_of(f, 0, "llama", true)->points[0].y, 1, 1e-12, "in proportion");
    cr_assert_float_eq(line_of(f, 1, "llama", true)->points[0].y, 3, 1e-12, "with the root");
    nb_figures_release(&figures);
    cJSON_Delete(depth);
}

Test(stress_plots, frontier_joins_the_cases_that_none_beats) {
    struct nb_results results = {0};
    struct nb_figures figures = {0};
    static const struct {
        const char *variant;
        double time_ns, max_ulp;
    } cases[] = {{"rmsnorm_a_v256_f32", 1000, 8},
                 {"rmsnorm_b_v256_f32", 2000, 2},
                 {"rmsnorm_c_v256_f32", 3000, 4}, /* slower and less accurate than b */
                 {"rmsnorm_d_v256_f32", 4000, 1}};
    for (int i = 0; i < 4; i++) {
        struct nb_record *r = nb_test_add(&results, cases[i].variant, NB_OP_RMSNORM, "10x100");
        nb_test_times(r, cases[i].time_ns, (struct nb_interval){1, 1, 1}, "reference");
        nb_test_accuracy(r, cases[i].max_ulp, 0);
    }
    nb_test_add(&results, "rmsnorm_a_v256_f32", NB_OP_RMSNORM, "10x200"); /* neither time nor accuracy */
    nb_strbuf_add(&figures.notes, "");
    nb_plot_frontier(&results, &figures);
    const struct nb_figure *f = figure_named(&figures, "frontier-rmsnorm-forward-f32");
    const struct nb_line *set = line_of(f, 0, "not beaten in both", true);
    cr_assert_eq(set->n, 3);
    cr_assert_float_eq(set->points[0].x, 1, 1e-12);
    cr_assert_float_eq(set->points[1].y, 2, 1e-12);
    cr_assert_float_eq(set->points[2].y, 1, 1e-12);
    cr_assert_float_eq(line_of(f, 0, "rmsnorm_c", false)->points[0].x, 3, 1e-12);
    nb_figures_release(&figures);
    nb_results_release(&results);
}

Test(stress_plots, histogram_is_in_parts_of_all_elements_of_a_kernel) {
    struct nb_results results = {0};
    struct nb_figures figures = {0};
    for (int i = 0; i < 2; i++) {
        struct nb_record *r = nb_test_add(&results, "rmsnorm_a_v256_f32", NB_OP_RMSNORM, i ? "1x10" : "1x20");
        nb_test_accuracy(r, 1, 0);
        memset(r->accuracy.histogram, 0, sizeof r->accuracy.histogram);
        r->accuracy.histogram[0] = i ? 50 : 30;
        r->accuracy.histogram[2] = i ? 0 : 20;
    }
    nb_strbuf_add(&figures.notes, "");
    nb_plot_histogram(&results, &figures);
    const struct nb_line *line = line_of(figure_named(&figures, "histogram-rmsnorm-forward"), 0, "rmsnorm_a", false);
    cr_assert_eq(line->n, 2);
    cr_assert_float_eq(line->points[0].x, -1, 1e-12, "up to 2^-1 ulp");
    cr_assert_float_eq(line->points[0].y, 80, 1e-12);
    cr_assert_float_eq(line->points[1].x, 1, 1e-12, "up to 2 ulp");
    cr_assert_float_eq(line->points[1].y, 20, 1e-12);
    nb_figures_release(&figures);
    nb_results_release(&results);
}

/* ---- the page ---- */

static const char hostile[] = "rms'norm\"`id`\\<script>alert(1)</script>&\n$(id)@x_v256_f32";

static cJSON *hostile_stress(void) {
    cJSON *stress = small_stress(), *bug = cJSON_CreateObject();
    add_study(stress, hostile, "bf16");
    add_grade(stress, hostile, hostile, hostile, hostile, "\" onmouseover='x' <b>");
    add_grade(stress, hostile, hostile, "default", "F", "\" onmouseover='x' <b>");
    cJSON_ReplaceItemInObject(stress, "config", cJSON_CreateString("</title><script>x</script>"));
    cJSON *map = cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(stress, "studies"), 0), "map");
    cJSON *line = cJSON_GetArrayItem(cJSON_GetObjectItem(map, "predicted"), 0);
    cJSON_ReplaceItemInObject(line, "name", cJSON_CreateString("'; system('id'); '<script>"));
    nb_json_text(bug, "label", "<script>label</script>");
    nb_json_text(bug, "text", "<img src=x>");
    cJSON_AddItemToObject(bug, "failed",
                          cJSON_Parse("[{\"variant\":\"<a>\",\"grade\":\"<f>\",\"text\":\"<script>\"}]"));
    cJSON_AddItemToArray(cJSON_GetObjectItem(stress, "bugs"), bug);
    return stress;
}

Test(stress_plots, page_shows_markup_as_text) {
    cJSON *stress = hostile_stress();
    nb_log_quiet(true);
    cr_assert_eq(nb_stress_report(folder, stress, NULL), 0);
    char *page = read_in(NB_STRESS_PAGE);
    static const char *const forbidden[] = {"<script", "<b> ", "<img src=x", "<a>",      "<f>",           "<i>rule",
                                            "<u>",     "<q>",  "http://",    "https://", "\" onmouseover"};
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
        cr_assert_null(strstr(page, forbidden[i]), "%s", forbidden[i]);
    cr_assert_not_null(strstr(page, "&lt;script&gt;alert(1)&lt;/script&gt;"));
    cr_assert_not_null(strstr(page, "Content-Security-Policy"));
    cr_assert_not_null(strstr(page, ">17.25<"));
    cr_assert_not_null(strstr(page, ">99.99%<"), "not 100 %%, since some are wrong");
    cr_assert_not_null(strstr(page, "<td class=\"g gB\""));
    cr_assert_not_null(strstr(page, "normbench replay &#39;layernorm&#39;"));
    cr_assert_null(strstr(page, ">nan<"), "what was not measured is empty");
    free(page);
    cJSON_Delete(stress);
}

Test(stress_plots, scripts_keep_names_inside_single_quotes) {
    cJSON *stress = hostile_stress();
    struct nb_figures figures;
    nb_stress_figures_init(&figures, stress, NULL, NULL);
    cr_assert_gt(figures.n, 3);
    for (size_t i = 0; i < figures.n; i++) {
        struct nb_strbuf script = {0};
        nb_figure_script(&figures.list[i], &script);
        for (const char *line = script.text; *line; line += strcspn(line, "\n") + 1) {
            bool quoted = false;
            for (const char *s = line; *s && *s != '\n'; s++) {
                if (*s == '\'') quoted = !quoted;
                cr_assert(quoted || !strchr("`\"@", *s), "%s: %.80s", figures.list[i].name, line);
            }
            cr_assert(!quoted, "a string that does not end on its line: %.80s", line);
        }
        cr_assert_null(strpbrk(figures.list[i].name, "'\"`\\/ <>&$()"));
        nb_strbuf_release(&script);
    }
    nb_figures_release(&figures);
    cJSON_Delete(stress);
}

static bool have_gnuplot(void) {
    pid_t child = fork();
    int status = 1;
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout)) _exit(127);
        execlp("gnuplot", "gnuplot", "--version", (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

Test(stress_plots, gnuplot_draws_every_figure) {
    if (!have_gnuplot()) cr_skip("no gnuplot");
    cJSON *stress = hostile_stress();
    cr_assert_eq(nb_stress_report(folder, stress, NULL), 0);
    cr_assert(!exists_in(NB_STRESS_PLOTS "/gnuplot.log"), "gnuplot complained");
    cr_assert(exists_in(NB_STRESS_PLOTS "/map-layernorm_onepass.png"));
    cr_assert(exists_in(NB_STRESS_PLOTS "/error-rho-layernorm.svg"));
    char *page = read_in(NB_STRESS_PAGE);
    cr_assert_not_null(strstr(page, "src=\"data:image/png;base64,"));
    cr_assert_not_null(strstr(page, "src=\"data:image/svg+xml;base64,"));
    free(page);
    cJSON_Delete(stress);
}

Test(stress_plots, without_gnuplot_data_scripts_and_page_are_there) {
    cJSON *stress = small_stress();
    nb_log_quiet(true);
    setenv("PATH", folder, 1);
    cr_assert_eq(nb_stress_report(folder, stress, NULL), 0);
    setenv("PATH", "/usr/bin:/bin", 1);
    cr_assert(exists_in(NB_STRESS_PLOTS "/map-layernorm_onepass.dat"));
    cr_assert(exists_in(NB_STRESS_PLOTS "/map-layernorm_onepass.gp"));
    cr_assert(!exists_in(NB_STRESS_PLOTS "/map-layernorm_onepass.svg"));
    cr_assert(exists_in(NB_STRESS_PAGE));
    cJSON_Delete(stress);
}

/* ---- what may not crash ---- */

Test(stress_plots, senseless_files_are_rendered) {
    static const char *const texts[] = {
        "{}",
        "{\"grades\":5,\"studies\":\"x\",\"bugs\":{\"a\":1}}",
        "{\"grades\":[1,null,{},[],{\"declared\":5,\"why_all\":7}],\"studies\":[1,null,{},{\"dtype\":\"f32\"}],"
        "\"bugs\":[1,{}]}",
        "{\"studies\":[{\"variant\":\"v\",\"dtype\":\"f16\",\"map\":5,\"sweeps\":5,\"frontiers\":5,\"worst\":5}]}",
        "{\"studies\":[{\"variant\":\"v\",\"dtype\":\"f16\",\"map\":{\"log2_scale\":[null,\"x\"],\"log2_rho\":[1e300]},"
        "\"sweeps\":[{\"axis\":\"rho\",\"points\":[{\"at\":-1,\"scaled_u\":1},{\"at\":0},{\"at\":1e300,\"scaled_u\":"
        "1e308}],"
        "\"predicted\":[{\"name\":\"n\",\"points\":[[1],[],5,[\"x\",2]]}]}],\"frontiers\":[5,{}],\"worst\":[5,{"
        "\"value\":1}]}]}",
    };
    nb_log_quiet(true);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cJSON *stress = cJSON_Parse(texts[i]);
        cr_assert_not_null(stress, "%s", texts[i]);
        cr_assert_eq(nb_stress_report(folder, stress, NULL), 0, "%s", texts[i]);
        if (have_gnuplot())
            cr_assert(!exists_in(NB_STRESS_PLOTS "/gnuplot.log"), "gnuplot complained about %s", texts[i]);
        cJSON_Delete(stress);
    }
}

Test(stress_plots, a_folder_without_a_judgement_is_left_as_it_is) {
    cr_assert_eq(nb_stress_report_read(folder, NULL), 1);
    cr_assert(!exists_in(NB_STRESS_PAGE));
}

/* gnuplot 5.4 loses count of doubled quotes that stand first or follow each other, and such a name kept all figures from being
 * drawn. */
Test(stress_plots, quotes_in_names_stop_no_figure_and_run_nothing) {
    static const char *const names[] = {"'; system('touch ran'); '", "a''; system('touch ran'); ''",
                                        "'' . system('touch ran') . ''"};
    if (!have_gnuplot()) cr_skip("no gnuplot");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cJSON *stress = small_stress();
        add_study(stress, names[i], "bf16");
        cr_assert_eq(nb_stress_report(folder, stress, NULL), 0, "%s", names[i]);
        cr_assert(!exists_in(NB_STRESS_PLOTS "/gnuplot.log"), "gnuplot complained");
        cr_assert(!exists_in(NB_STRESS_PLOTS "/ran"), "%s", names[i]);
        cJSON_Delete(stress);
    }
}
