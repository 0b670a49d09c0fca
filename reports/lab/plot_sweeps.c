// SPDX-License-Identifier: Apache-2.0
/* Error against one parameter: rho, row length, eps, scale. */
#include <math.h>
#include <string.h>

#include "reports/lab/plot_stress.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"

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
     "Dashed in a kernel's colour: what its way to take the variance predicts (slope 2 for E[x^2] - mean^2, 1 for two "
     "passes and updating, 0 where the mean is corrected or not subtracted), twice the standard deviation. A kernel "
     "below "
     "the noise of its inputs loses nothing that storing them had left. Where the result is NaN or Inf there is no "
     "point."},
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
     "kernel; "
     "sqrt(n) u is the usual rule of thumb, which stagnation breaks. What lies under the last rounding is noise of "
     "that."},
    {"eps",
     0,
     "error-eps",
     "error against eps, where eps and the mean square are alike",
     "scaled_u",
     "eps",
     "largest error, u rms(y)",
     NB_SCALE_DECADES,
     {{"eps_effect_u", "what eps takes from y"}},
     {NULL},
     "Rows of root mean square 2^-8. Below 1 u of effect the choice of eps cannot be seen in y. Dashed in a kernel's "
     "colour: the error of eps as its statistics store it."},
    {"eps",
     1,
     "error-eps-alone",
     "error against eps, where eps is all there is",
     "scaled_u",
     "eps",
     "largest error, u rms(y)",
     NB_SCALE_DECADES,
     {{"eps_effect_u", "what eps takes from y"}},
     {NULL},
     "Rows of root mean square 2^-14, whose squares are 0 in f16. Statistics in f16 hold eps in steps of 2^-24, below "
     "3e-8 not at all: there the result is NaN or Inf, and no point is drawn."},
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
     "Rows without an offset over the whole range of the dtype. A jump to 1/u is a row lost to 0; where the result is "
     "NaN "
     "or Inf there is no point."},
};
enum { N_FAMILIES = sizeof families / sizeof *families, MOST_KERNELS = 14, MOST_CLIFFS = 5 };

static double place(const struct family *y, double at) { return y->x_scale == NB_SCALE_POWERS ? log2(at) : at; }

static void add_points(struct nb_figure *f, const struct family *y, size_t panel, const char *label, const char *figure,
                       const cJSON *sweep, bool law) {
    const cJSON *point;
    const size_t entry = nb_figure_entry(f, label);
    cJSON_ArrayForEach(point, cJSON_GetObjectItemCaseSensitive(sweep, "points")) {
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
    const cJSON *law;
    cJSON_ArrayForEach(law, cJSON_GetObjectItemCaseSensitive(sweep, "predicted")) {
        const char *text = nb_json_get_text(law, "name");
        if (text && strcmp(text, name) == 0) return cJSON_GetObjectItemCaseSensitive(law, "points");
    }
    return NULL;
}

static double number_at(const cJSON *pair, int i) {
    const cJSON *item = cJSON_GetArrayItem(pair, i);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static double value_at(const cJSON *points, double x) {
    const cJSON *pair;
    cJSON_ArrayForEach(pair, points) if (number_at(pair, 0) == x) return number_at(pair, 1);
    return NAN;
}

/* A kernel's own law. Over n its two parts are independent, and end where the second does. */
static void add_own_law(struct nb_figure *f, const struct family *y, size_t panel, const char *label,
                        const cJSON *sweep) {
    const cJSON *pair, *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(sweep, "predicted"), 0);
    const bool over_n = strcmp(y->axis, "n") == 0;
    const cJSON *points = over_n ? law_named(sweep, "rms law") : cJSON_GetObjectItemCaseSensitive(first, "points");
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
    const cJSON *cliff, *points = cJSON_GetObjectItemCaseSensitive(sweep, "points");
    const double first = nb_json_get_number(cJSON_GetArrayItem(points, 0), "at");
    const double last = nb_json_get_number(cJSON_GetArrayItem(points, cJSON_GetArraySize(points) - 1), "at");
    size_t n_here = 0;
    for (size_t i = 0; i < f->n_guides; i++) n_here += f->guides[i].panel == panel;
    cJSON_ArrayForEach(cliff, cJSON_GetObjectItemCaseSensitive(sweep, "cliffs")) {
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
static void fill(struct nb_figure *f, const struct family *y, const struct nb_studies *studies, const char *op,
                 const int panel_of[NB_N_DTYPES], size_t *n_left_out) {
    const cJSON *first[NB_N_DTYPES] = {NULL};
    for (size_t i = 0; i < studies->n; i++) {
        const struct nb_study_line *s = &studies->list[i];
        const cJSON *sweep = strcmp(s->op, op) == 0 ? nb_study_sweep(s, y->axis, y->which) : NULL;
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

static void draw(const struct nb_results *meta, const struct nb_studies *studies, const char *op,
                 const struct family *y, struct nb_figures *figures) {
    struct nb_strbuf name = {0}, title = {0};
    int panel_of[NB_N_DTYPES];
    size_t n_left_out = 0;
    nb_strbuf_addf(&name, "%s-%s", y->name, op);
    struct nb_figure *f = nb_figures_new(figures, meta, name.text);
    f->n_panels = nb_studies_panels(studies, op, NULL, panel_of);
    for (int dtype = 0; dtype < NB_N_DTYPES; dtype++) {
        if (panel_of[dtype] < 0) continue;
        const size_t panel = (size_t)panel_of[dtype];
        f->panels[panel] = (struct nb_panel){nb_formats[dtype].name, y->x_title, panel ? NULL : y->y_title, y->x_scale,
                                             NB_SCALE_DECADES};
    }
    fill(f, y, studies, op, panel_of, &n_left_out);
    nb_strbuf_addf(&title, "%s: %s", *op ? op : "other ops", y->title);
    f->title = title.text;
    f->subtitle = nb_strdup("points: measured; dashed: predicted; u: half the dtype's epsilon");
    f->caption = nb_strdup(y->caption);
    nb_figure_sort(f);
    if (n_left_out) nb_figures_note(figures, "%s: %zu curves more than fit", name.text, n_left_out);
    if (!f->n_lines) nb_figures_drop_last(figures);
    nb_strbuf_release(&name);
}

void nb_plot_sweeps(const struct nb_results *meta, const struct nb_studies *studies, struct nb_figures *figures) {
    const size_t before = figures->n;
    for (size_t i = 0; i < studies->n; i++) {
        const char *op = studies->list[i].op;
        bool drawn = false;
        for (size_t k = 0; k < i; k++) drawn |= strcmp(studies->list[k].op, op) == 0;
        for (int y = 0; y < N_FAMILIES && !drawn; y++) draw(meta, studies, op, &families[y], figures);
    }
    if (figures->n == before) nb_figures_note(figures, "error against rho, n, eps and scale: no study has sweeps");
}
