// SPDX-License-Identifier: Apache-2.0
/* Figures of precision: that they hold the figures of stress.json and of the records. */
#include <criterion/criterion.h>
#include <string.h>

#include "reports/figures/plot.h"
#include "reports/lab/plot_stress.c"
#include "tests/support/files.h"
#include "tests/support/reports.h"

static struct nb_results results;
static struct nb_figures figures;

static void release(void) {
    nb_figures_release(&figures);
    nb_results_release(&results);
}
TestSuite(stress_plots, .fini = release);

static void draw(void) {
    static const char *const others[] = {"layernorm_onepass_v256_f16", "layernorm_onepass_v512_f32"};
    cJSON *stress = kept_json(nb_test_stress());
    for (int i = 0; i < 2; i++) nb_test_add_grade(stress, others[i], "layernorm_onepass", "default", "B", "1 ulp");
    nb_stress_figures_init(&figures, stress);
}

Test(stress_plots, cells_that_are_missing_or_senseless_are_unknown) {
    cJSON *map released_by(nb_json_release) =
        cJSON_Parse("{\"log2_scale\":[0,1],\"log2_rho\":[0,1],\"log10_ulp\":[[\"x\",null]],\"state\":[[\"ok\",7],3]}");
    struct nb_figure f = {.n_panels = 1};
    cr_assert(heat_read(&f.heats[0], map));
    cr_assert(f.heats[0].n_x == 2 && f.heats[0].n_y == 2);
    for (int i = 0; i < 4; i++) cr_assert_eq(f.heats[0].state[i], NB_HEAT_UNKNOWN);
    nb_figure_release(&f);
    cr_assert(!heat_read(&f.heats[0], NULL));
}

static const struct nb_line *line_of(const struct nb_figure *f, size_t panel, const char *entry, bool law) {
    for (size_t i = 0; i < f->n_lines; i++) {
        const struct nb_line *line = &f->lines[i];
        if (line->panel == panel && line->law == law && strcmp(f->entries.items[line->entry], entry) == 0) return line;
    }
    cr_assert_fail("%s: no line %s", f->name, entry);
    return NULL;
}

/* ---- figures ---- */

Test(stress_plots, map_figure_holds_the_cells_and_the_predicted_lines) {
    draw();
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
    cr_assert_eq(f->entries.n, 1, "a line of one point is none");
    const struct nb_line *line = line_of(f, 0, "x^2 overflows", true);
    cr_assert_float_eq(line->points[1].x, 3, 1e-12);
    cr_assert_not_null(strstr(figures.notes.text, "1 studies of another width"));
}

Test(stress_plots, frontier_has_the_share_of_each_bound) {
    static const struct {
        const char *variant;
        double time_ns, ratio;
    } cases[] = {{"rmsnorm_a_v256_f32", 1000, 0.8},
                 {"rmsnorm_b_v256_f32", 2000, 0.2},
                 {"rmsnorm_c_v256_f32", 3000, 0.4},
                 {"rmsnorm_d_v256_f32", 4000, 0.1}};
    for (int i = 0; i < 4; i++) {
        struct nb_record *r = nb_test_add(&results, cases[i].variant, NB_OP_RMSNORM, "10x100");
        nb_test_times(r, cases[i].time_ns, (struct nb_interval){1, 1, 1}, "reference");
        nb_test_accuracy(r, 1e6, 0);
        r->accuracy.worst_ratio = cases[i].ratio;
    }
    nb_test_add(&results, "rmsnorm_a_v256_f32", NB_OP_RMSNORM, "10x200"); /* neither time nor accuracy */
    nb_strbuf_add(&figures.notes, "");
    nb_plot_frontier(&results, &figures);
    const struct nb_point *c =
        line_of(figure_named(&figures, "frontier-rmsnorm-forward-f32"), 0, "rmsnorm_c", false)->points;
    cr_assert_float_eq(c->x, 3, 1e-12);
    cr_assert_float_eq(c->y, 40, 1e-9);
}
