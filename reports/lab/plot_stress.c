// SPDX-License-Identifier: Apache-2.0
/* Figures from the studies of stress.json. */
#include "reports/lab/stress_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/plot.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"

/* ---- the studies that are drawn: of each kernel and dtype the first, by op ---- */

struct study_line {
    const cJSON *json;   /* borrowed */
    char *op, *kernel;   /* owned; op "" when unknown */
    const char *variant; /* borrowed */
    int dtype;           /* enum nb_dtype */
};

struct studies {
    struct study_line *list; /* as in the file */
    size_t n;
    size_t n_repeated; /* left out: another width or formula of a kernel that is there already */
};

static const char *op_by_name(const char *variant) {
    const char *colon = strchr(variant, ':'), *name = colon ? colon + 1 : variant;
    for (uint32_t op = 0; op < NB_OP_COPY; op++) {
        const size_t len = strlen(nb_op_names[op]);
        if (strncmp(name, nb_op_names[op], len) == 0 && (name[len] == '_' || name[len] == '\0')) return nb_op_names[op];
    }
    return "";
}

/* The name before the width and the dtype. */
static char *kernel_by_name(const char *variant) {
    static const char *const endings[] = {"_f32",  "_f16",  "_bf16",  "_scalar", "_v128",
                                          "_v256", "_v512", "_v256x", "_native", NULL};
    char *name = nb_strdup(variant);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; endings[i]; i++) {
            const size_t len = strlen(name), end = strlen(endings[i]);
            if (len > end && strcmp(name + len - end, endings[i]) == 0) name[len - end] = '\0';
        }
    return name;
}

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
        const char *op = nb_json_get_string(grade, "op"), *kernel = nb_json_get_string(grade, "kernel");
        if (dtype < 0) continue;
        char *name = *kernel ? nb_strdup(kernel) : kernel_by_name(variant);
        if (is_repeated(studies, name, dtype)) {
            studies->n_repeated++;
            free(name);
            continue;
        }
        studies->list = nb_realloc(studies->list, studies->n + 1, sizeof *studies->list);
        studies->list[studies->n++] =
            (struct study_line){json, nb_strdup(*op ? op : op_by_name(variant)), name, variant, dtype};
    }
}

static void studies_release(struct studies *studies) {
    for (size_t i = 0; i < studies->n; i++) {
        free(studies->list[i].op);
        free(studies->list[i].kernel);
    }
    free(studies->list);
    *studies = (struct studies){0};
}

/* The sweep over an axis (the which-th of that axis); null. */
static const cJSON *study_sweep(const struct study_line *study, const char *axis, int which) {
    const cJSON *sweep;
    cJSON_ArrayForEach(sweep, nb_json_get(study->json, "sweeps")) {
        if (nb_json_is(sweep, "axis", axis) && which-- == 0) return sweep;
    }
    return NULL;
}

/* Dtypes that any of the chosen studies has, in order, as panels: panel_of[dtype] or -1. Returns how many. op, kernel: null: any. */
static size_t studies_panels(const struct studies *studies, const char *op, const char *kernel,
                             int panel_of[NB_N_DTYPES]) {
    size_t n = 0;
    for (int dtype = 0; dtype < NB_N_DTYPES; dtype++) {
        bool there = false;
        for (size_t i = 0; i < studies->n; i++) {
            const struct study_line *s = &studies->list[i];
            there |=
                s->dtype == dtype && (!op || strcmp(s->op, op) == 0) && (!kernel || strcmp(s->kernel, kernel) == 0);
        }
        panel_of[dtype] = there ? (int)n++ : -1;
    }
    return n;
}

/* ---- Heat maps of error over scale and rho ---- */

static const char map_caption[] =
    "Rows are scale * (rho + z), z standard normal: from left to right they grow over the whole range of the "
    "dtype, upwards their mean grows against their spread. Colour is the largest error in ulp at the root mean "
    "square of y, on one scale for all maps; where the result is no number or lost, the cell has a colour of its "
    "own. Dashed lines are closed forms, not fits: a theory that is right has the colours change on them.";

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
        const size_t entry = nb_figure_entry(f, name);
        cJSON_ArrayForEach(pair, line) { nb_figure_add_law(f, panel, entry, number_at(pair, 0), number_at(pair, 1)); }
    }
}

static bool add_map(struct nb_figure *f, size_t panel, const struct study_line *study) {
    const cJSON *map = nb_json_get(study->json, "map");
    if (!heat_read(&f->heats[panel], map)) return false;
    add_predicted(f, panel, map);
    return true;
}

static void draw_map(const struct nb_results *meta, const struct studies *studies, const char *kernel,
                     struct nb_figures *figures) {
    struct nb_strbuf text = {0};
    int panel_of[NB_N_DTYPES];
    bool any = false;
    struct nb_figure *f = nb_figures_new(figures, meta, nb_textf("map-%s", kernel));
    f->n_panels = studies_panels(studies, NULL, kernel, panel_of);
    f->heat_low = -1;
    f->heat_high = 8;
    f->heat_title = "log10 of the error in ulp";
    for (size_t i = 0; i < studies->n; i++) {
        const struct study_line *s = &studies->list[i];
        if (strcmp(s->kernel, kernel) != 0) continue;
        const size_t panel = (size_t)panel_of[s->dtype];
        f->panels[panel] = (struct nb_panel){nb_formats[s->dtype].name, "scale of the row",
                                             panel ? NULL : "rho = |mean| / spread", NB_SCALE_POWERS, NB_SCALE_POWERS};
        any |= add_map(f, panel, s);
        nb_strbuf_addf(&text, "%s%s", text.len ? ", " : "", s->variant);
    }
    f->subtitle = text.text;
    f->title = nb_textf("%s: error over scale and offset", kernel);
    f->caption = nb_strdup(map_caption);
    if (!any) nb_figures_drop_last(figures);
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

/* ---- Error against one parameter: rho, row length, eps, scale ---- */

struct family {
    const char *axis;
    int which; /* of the sweeps over that axis */
    const char *name, *title, *figure, *x_title, *y_title;
    enum nb_scale x_scale;
    const char *context[2][2]; /* figures of the first study that all share: JSON name, label */
    const char *laws[2];       /* names of laws that all share, in u; null: none */
    const char *caption;
};

static const struct family families[] = {
    {"rho",
     0,
     "error-rho",
     "error against offset",
     "scaled_u",
     "rho = |mean| / spread",
     "largest error, u rms(y)",
     NB_SCALE_POWERS,
     {{"noise_u", "half an ulp of noise in x"}},
     {NULL},
     "Dashed in a kernel's colour: what its variance algorithm predicts (slope 2 for E[x^2] - mean^2, 1 for two "
     "passes and updating, 0 where the mean is corrected or not subtracted), twice the standard deviation. A kernel "
     "below the noise of its inputs loses less than storing them already did. Where the result is NaN or Inf there "
     "is no point."},
    {"n",
     0,
     "error-n",
     "error against row length",
     "gain_rms_u",
     "elements of a row",
     "error that a row shares, rms, u",
     NB_SCALE_LENGTH,
     {{NULL}},
     {"sqrt(n) u", "gamma_n"},
     "Dashed in a kernel's colour: the law for its longest chain of additions, a random part that grows with its "
     "length over sqrt(n), and stagnation that grows with its 3/2 power. gamma_n is the worst case of the first "
     "kernel; sqrt(n) u is the usual rule of thumb, which stagnation breaks. What lies under the last rounding is "
     "noise of that."},
    {"eps",
     0,
     "error-eps",
     "error against eps, where eps and the mean square are alike",
     "scaled_u",
     "eps",
     "largest error, u rms(y)",
     NB_SCALE_DECADES,
     {{"eps_effect_u", "effect of eps on y"}},
     {NULL},
     "Rows of root mean square 2^-8. Below 1 u of effect the choice of eps cannot be seen in y. Dashed in a "
     "kernel's colour: the error of eps as its statistics store it."},
    {"eps",
     1,
     "error-eps-alone",
     "error against eps, where eps is all there is",
     "scaled_u",
     "eps",
     "largest error, u rms(y)",
     NB_SCALE_DECADES,
     {{"eps_effect_u", "effect of eps on y"}},
     {NULL},
     "Rows of root mean square 2^-14, whose squares are 0 in f16. Statistics in f16 hold eps in steps of 2^-24, "
     "below 3e-8 not at all: there the result is NaN or Inf, and no point is drawn."},
    {"scale",
     0,
     "error-scale",
     "error against scale",
     "scaled_u",
     "scale of the row",
     "largest error, u rms(y)",
     NB_SCALE_POWERS,
     {{NULL}},
     {NULL},
     "Rows without an offset over the whole range of the dtype. A jump to 1/u is a row lost to 0; where the result "
     "is NaN or Inf there is no point."},
};
enum { N_FAMILIES = sizeof families / sizeof *families, MOST_KERNELS = 14, MOST_CLIFFS = 5 };

static double place(const struct family *y, double at) { return y->x_scale == NB_SCALE_POWERS ? log2(at) : at; }

static void add_points(struct nb_figure *f, const struct family *y, size_t panel, const char *label, const char *figure,
                       const cJSON *sweep, bool law) {
    const cJSON *point;
    const size_t entry = nb_figure_entry(f, label);
    cJSON_ArrayForEach(point, nb_json_get(sweep, "points")) {
        const char *state = nb_json_get_text(point, "state");
        const double x = place(y, nb_json_get_number(point, "at")), value = fabs(nb_json_get_number(point, figure));
        const bool numbers = !state || strcmp(state, "ok") == 0 || strcmp(state, "zero") == 0;
        if (law)
            nb_figure_add_law(f, panel, entry, x, value);
        else if (numbers)
            nb_figure_add(f, panel, entry, (struct nb_point){x, value, NAN, NAN});
    }
}

static const cJSON *law_named(const cJSON *sweep, const char *name) {
    return nb_json_get(nb_json_find(nb_json_get(sweep, "predicted"), "name", name), "points");
}

static double value_at(const cJSON *points, double x) {
    const cJSON *pair;
    cJSON_ArrayForEach(pair, points) if (number_at(pair, 0) == x) return number_at(pair, 1);
    return NAN;
}

/* A kernel's own law. Over n its two parts are independent, and end where the second does. */
static void add_own_law(struct nb_figure *f, const struct family *y, size_t panel, const char *label,
                        const cJSON *sweep) {
    const cJSON *pair, *first = cJSON_GetArrayItem(nb_json_get(sweep, "predicted"), 0);
    const bool over_n = strcmp(y->axis, "n") == 0;
    const cJSON *points = over_n ? law_named(sweep, "rms law") : nb_json_get(first, "points");
    const cJSON *bias = over_n ? law_named(sweep, "bias law") : NULL;
    const size_t entry = nb_figure_entry(f, label);
    cJSON_ArrayForEach(pair, points) {
        const double at = number_at(pair, 0), value = number_at(pair, 1);
        nb_figure_add_law(f, panel, entry, place(y, at), over_n ? hypot(value, value_at(bias, at)) : value);
    }
}

static void add_shared(struct nb_figure *f, const struct family *y, size_t panel, const cJSON *sweep) {
    const cJSON *pair;
    for (int i = 0; i < 2 && y->context[i][0]; i++)
        add_points(f, y, panel, y->context[i][1], y->context[i][0], sweep, true);
    for (int i = 0; i < 2 && y->laws[i]; i++) {
        const size_t entry = nb_figure_entry(f, y->laws[i]);
        cJSON_ArrayForEach(pair, law_named(sweep, y->laws[i]))
            nb_figure_add_law(f, panel, entry, number_at(pair, 0), number_at(pair, 1));
    }
}

static bool is_marked(const struct nb_figure *f, size_t panel, const char *label) {
    for (size_t i = 0; i < f->n_guides; i++)
        if (f->guides[i].panel == panel && strcmp(f->guides[i].label, label) == 0) return true;
    return false;
}

/* Where the axis crosses a closed form: once for each that kernels share, as many as a panel has room for. */
static void add_cliffs(struct nb_figure *f, const struct family *y, size_t panel, const cJSON *sweep) {
    const cJSON *cliff, *points = nb_json_get(sweep, "points");
    const double first = nb_json_get_number(cJSON_GetArrayItem(points, 0), "at");
    const double last = nb_json_get_number(cJSON_GetArrayItem(points, cJSON_GetArraySize(points) - 1), "at");
    size_t n_here = 0;
    for (size_t i = 0; i < f->n_guides; i++) n_here += f->guides[i].panel == panel;
    cJSON_ArrayForEach(cliff, nb_json_get(sweep, "cliffs")) {
        const char *name = nb_json_get_text(cliff, "name");
        const double at = nb_json_get_number(cliff, "at");
        if (!name || !(at > first && at < last) || is_marked(f, panel, name)) continue;
        if (f->n_guides == NB_FIGURE_GUIDES || n_here++ == MOST_CLIFFS) return;
        f->guides[f->n_guides++] = (struct nb_guide){.x = place(y, at), .label = name, .upright = true, .panel = panel};
    }
}

static bool is_entry(const struct nb_figure *f, const char *label) {
    for (size_t i = 0; i < f->n_entries; i++)
        if (strcmp(f->entries[i], label) == 0) return true;
    return false;
}

/* The curves of all kernels, then what the first of each panel gives for all. */
static void fill_sweeps(struct nb_figure *f, const struct family *y, const struct studies *studies, const char *op,
                        const int panel_of[NB_N_DTYPES], size_t *n_left_out) {
    const cJSON *first[NB_N_DTYPES] = {NULL};
    for (size_t i = 0; i < studies->n; i++) {
        const struct study_line *s = &studies->list[i];
        const cJSON *sweep = strcmp(s->op, op) == 0 ? study_sweep(s, y->axis, y->which) : NULL;
        if (!sweep) continue;
        if (f->n_entries >= MOST_KERNELS && !is_entry(f, s->kernel)) {
            ++*n_left_out;
            continue;
        }
        add_points(f, y, (size_t)panel_of[s->dtype], s->kernel, y->figure, sweep, false);
        add_own_law(f, y, (size_t)panel_of[s->dtype], s->kernel, sweep);
        add_cliffs(f, y, (size_t)panel_of[s->dtype], sweep);
        if (!first[s->dtype]) first[s->dtype] = sweep;
    }
    for (int dtype = 0; dtype < NB_N_DTYPES; dtype++)
        if (first[dtype]) add_shared(f, y, (size_t)panel_of[dtype], first[dtype]);
}

static void draw_sweeps(const struct nb_results *meta, const struct studies *studies, const char *op,
                        const struct family *y, struct nb_figures *figures) {
    int panel_of[NB_N_DTYPES];
    size_t n_left_out = 0;
    struct nb_figure *f = nb_figures_new(figures, meta, nb_textf("%s-%s", y->name, op));
    f->n_panels = studies_panels(studies, op, NULL, panel_of);
    for (int dtype = 0; dtype < NB_N_DTYPES; dtype++) {
        if (panel_of[dtype] < 0) continue;
        const size_t panel = (size_t)panel_of[dtype];
        f->panels[panel] = (struct nb_panel){nb_formats[dtype].name, y->x_title, panel ? NULL : y->y_title, y->x_scale,
                                             NB_SCALE_DECADES};
    }
    fill_sweeps(f, y, studies, op, panel_of, &n_left_out);
    f->title = nb_textf("%s: %s", *op ? op : "other ops", y->title);
    f->subtitle = nb_strdup("points: measured; dashed: predicted; u: half the dtype's epsilon");
    f->caption = nb_strdup(y->caption);
    nb_figure_sort(f);
    if (n_left_out) nb_figures_note(figures, "%s-%s: %zu curves more than fit", y->name, op, n_left_out);
    if (!f->n_lines) nb_figures_drop_last(figures);
}

/* Error against rho, n, eps and scale, one figure an op, one panel a dtype, one line a kernel. */
static void plot_sweeps(const struct nb_results *meta, const struct studies *studies, struct nb_figures *figures) {
    const size_t before = figures->n;
    for (size_t i = 0; i < studies->n; i++) {
        const char *op = studies->list[i].op;
        bool drawn = false;
        for (size_t k = 0; k < i; k++) drawn |= strcmp(studies->list[k].op, op) == 0;
        for (int y = 0; y < N_FAMILIES && !drawn; y++) draw_sweeps(meta, studies, op, &families[y], figures);
    }
    if (figures->n == before) nb_figures_note(figures, "error against rho, n, eps and scale: no study has sweeps");
}

/* ---- All figures of a stress run, in the order in which the page shows them ---- */

void nb_stress_figures_init(struct nb_figures *figures, const cJSON *stress, const struct nb_results *results) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)stress}; /* has what a footer is made of */
    struct studies studies;
    *figures = (struct nb_figures){0};
    nb_strbuf_add(&figures->notes, "");
    studies_init(&studies, stress);
    plot_sweeps(&meta, &studies, figures);
    plot_maps(&meta, &studies, figures);
    if (results) nb_plot_histogram(results, figures);
    if (studies.n_repeated)
        nb_figures_note(figures, "%zu studies of another width or formula: of each kernel and dtype the first is drawn",
                        studies.n_repeated);
    studies_release(&studies);
}
