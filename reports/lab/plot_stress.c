// SPDX-License-Identifier: Apache-2.0
/* Figures from the studies of stress.json. */
#include "reports/lab/stress_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"

/* ---- the studies that are drawn: of each kernel and dtype the first ---- */

struct study_line {
    const cJSON *json;
    const char *kernel, *variant;
    int dtype; /* enum nb_dtype */
};

struct studies {
    struct study_line *list; /* as in the file */
    size_t n;
    size_t n_repeated; /* left out: another width or formula of a kernel that is there already */
};

static bool is_repeated(const struct studies *studies, const char *kernel, int dtype) {
    for (size_t i = 0; i < studies->n; i++)
        if (studies->list[i].dtype == dtype && strcmp(studies->list[i].kernel, kernel) == 0) return true;
    return false;
}

static void studies_init(struct studies *studies, const cJSON *stress) {
    const cJSON *json;
    *studies = (struct studies){0};
    cJSON_ArrayForEach(json, nb_json_get(stress, "studies")) {
        const char *variant = nb_json_get_string(json, "variant");
        const int dtype = nb_dtype_parse(nb_json_get_string(json, "dtype"));
        const cJSON *grade = nb_json_find(nb_json_get(stress, "grades"), "variant", variant);
        const char *kernel = nb_json_get_string(grade, "kernel");
        if (dtype < 0) continue;
        const char *name = *kernel ? kernel : variant;
        if (is_repeated(studies, name, dtype)) {
            studies->n_repeated++;
            continue;
        }
        *NB_PUSH(studies->list, studies->n) = (struct study_line){json, name, variant, dtype};
    }
}

/* ---- Heat maps of error over scale and rho ---- */

static const char map_caption[] =
    "Rows are scale * (rho + z), z standard normal: from left to right they grow over the whole range of the "
    "dtype, upwards their mean grows against their spread. Color is the largest error in ulp at the root mean "
    "square of y, on one scale for all maps; where the result is no number or lost, the cell has a color of its "
    "own. Dashed lines are closed forms, not fits: a theory that is right has the colors change on them.";

enum { LARGEST_MAP = 256, LARGEST_EXPONENT = 100000 };

static double number_at(const cJSON *array, int i) {
    const cJSON *item = cJSON_GetArrayItem(array, i);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* Exponents of two in increasing order. */
static bool is_axis(const cJSON *axis, int n) {
    double before = -INFINITY;
    for (int i = 0; i < n; i++) {
        const double at = number_at(axis, i);
        if (!(fabs(at) <= LARGEST_EXPONENT && at > before)) return false;
        before = at;
    }
    return n > 0 && n <= LARGEST_MAP;
}

static enum nb_heat_state state_of(const cJSON *state, double log10_ulp) {
    static const char *const names[NB_HEAT_UNKNOWN] = {[NB_HEAT_VALUE] = "ok",
                                                       [NB_HEAT_NAN] = "nan",
                                                       [NB_HEAT_INF] = "inf",
                                                       [NB_HEAT_ZERO] = "zero",
                                                       [NB_HEAT_UNSTORABLE] = "unstorable"};
    for (int s = 0; cJSON_IsString(state) && s < NB_HEAT_UNKNOWN; s++)
        if (strcmp(state->valuestring, names[s]) == 0 && (s != NB_HEAT_VALUE || isfinite(log10_ulp)))
            return (enum nb_heat_state)s;
    return NB_HEAT_UNKNOWN;
}

/* Room for n_x x n_y cells, all unknown. */
static void heat_init(struct nb_heat *heat, size_t n_x, size_t n_y) {
    *heat = (struct nb_heat){.n_x = n_x, .n_y = n_y};
    heat->x = nb_alloc(n_x, sizeof *heat->x);
    heat->y = nb_alloc(n_y, sizeof *heat->y);
    heat->value = nb_alloc(n_x * n_y, sizeof *heat->value);
    heat->state = nb_alloc(n_x * n_y, sizeof *heat->state);
    for (size_t i = 0; i < n_x * n_y; i++) heat->state[i] = NB_HEAT_UNKNOWN;
}

/* The map of a study (stress.json, "map"; src/lab/stress/search.h says what is in it), read safely. False: there is none that could be
 * drawn. */
static bool heat_read(struct nb_heat *heat, const cJSON *map) {
    const cJSON *x = nb_json_get(map, "log2_scale");
    const cJSON *y = nb_json_get(map, "log2_rho");
    const cJSON *ulps = nb_json_get(map, "log10_ulp");
    const cJSON *states = nb_json_get(map, "state");
    const int n_scales = cJSON_GetArraySize(x), n_rhos = cJSON_GetArraySize(y);
    if (!is_axis(x, n_scales) || !is_axis(y, n_rhos)) return false;
    heat_init(heat, (size_t)n_scales, (size_t)n_rhos);
    for (int s = 0; s < n_scales; s++) heat->x[s] = number_at(x, s);
    for (int r = 0; r < n_rhos; r++) heat->y[r] = number_at(y, r);
    for (int r = 0; r < n_rhos; r++)
        for (int s = 0; s < n_scales; s++) {
            const int i = r * n_scales + s;
            heat->value[i] = number_at(cJSON_GetArrayItem(ulps, r), s);
            heat->state[i] =
                (unsigned char)state_of(cJSON_GetArrayItem(cJSON_GetArrayItem(states, r), s), heat->value[i]);
        }
    return true;
}

/* Lines are drawn where the panel's cells are. */
static void add_predicted(struct nb_figure *f, size_t panel, const cJSON *map) {
    const cJSON *item, *pair;
    cJSON_ArrayForEach(item, nb_json_get(map, "predicted")) {
        const char *name = nb_json_get_text(item, "name");
        const cJSON *line = nb_json_get(item, "line");
        if (!name || cJSON_GetArraySize(line) < 2) continue;
        cJSON_ArrayForEach(pair, line) { nb_figure_add_law(f, panel, name, number_at(pair, 0), number_at(pair, 1)); }
    }
}

/* A panel for the study; none where it has no map. */
static void add_map(struct nb_figure *f, const struct study_line *study, struct nb_strbuf *variants) {
    const cJSON *map = nb_json_get(study->json, "map");
    if (!heat_read(&f->heats[f->n_panels], map)) return;
    add_predicted(f, f->n_panels, map);
    f->panels[f->n_panels++] = (struct nb_panel){nb_formats[study->dtype].name, "scale of the row",
                                                 "rho = |mean| / spread", NB_SCALE_POWERS, NB_SCALE_POWERS};
    nb_strbuf_addf(variants, "%s%s", variants->len ? ", " : "", study->variant);
}

static void draw_map(const struct nb_results *meta, const struct studies *studies, const char *kernel,
                     struct nb_figures *figures) {
    struct nb_strbuf variants = {0};
    struct nb_figure *f = nb_figures_new(figures, meta, nb_textf("map-%s", kernel));
    f->n_panels = 0;
    f->heat_low = -1;
    f->heat_high = 8;
    f->heat_title = "log10 of the error in ulp";
    for (int dtype = 0; dtype < NB_N_DTYPES; dtype++)
        for (size_t i = 0; i < studies->n && f->n_panels < NB_FIGURE_PANELS; i++)
            if (studies->list[i].dtype == dtype && strcmp(studies->list[i].kernel, kernel) == 0)
                add_map(f, &studies->list[i], &variants);
    f->subtitle = variants.text;
    f->title = nb_textf("%s: error over scale and offset", kernel);
    f->caption = nb_strdup(map_caption);
    if (!f->n_panels) nb_figures_drop_last(figures);
}

/* Error over scale and rho, one figure a kernel, one panel a dtype. meta: whose footer the figures have. */
static void plot_maps(const struct nb_results *meta, const struct studies *studies, struct nb_figures *figures) {
    const size_t before = figures->n;
    for (size_t i = 0; i < studies->n; i++) {
        bool drawn = false;
        for (size_t k = 0; k < i; k++) drawn |= strcmp(studies->list[k].kernel, studies->list[i].kernel) == 0;
        if (!drawn) draw_map(meta, studies, studies->list[i].kernel, figures);
    }
    if (figures->n == before) nb_figures_note(figures, "error over scale and offset: no study has a map");
}

/* ---- All figures of a stress run, in the order in which the page shows them ---- */

void nb_stress_figures_init(struct nb_figures *figures, const cJSON *stress) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)stress}; /* has what a footer is made of */
    struct studies studies;
    *figures = (struct nb_figures){.notes = nb_strbuf_empty()};
    studies_init(&studies, stress);
    plot_maps(&meta, &studies, figures);
    if (studies.n_repeated)
        nb_figures_note(figures, "%zu studies of another width or formula: of each kernel and dtype the first is drawn",
                        studies.n_repeated);
    free(studies.list);
}
