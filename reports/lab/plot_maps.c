// SPDX-License-Identifier: Apache-2.0
/* Heat maps of error over scale and rho. */
#include <math.h>
#include <string.h>

#include "reports/figures/figure_heat.h"
#include "reports/figures/heat_map.h"
#include "reports/lab/plot_stress.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"

static const char caption[] =
    "Rows are scale * (rho + z), z standard normal: from left to right they grow over the whole range of the dtype, "
    "upwards their mean grows against their spread. Colour is the largest error in ulp at the root mean square of y, "
    "on one scale for all maps; where the result is no number or lost, the cell has a colour of its own. Dashed lines "
    "are closed forms, not fits: a theory that is right has the colours change on them.";

static void fill(struct nb_heat *heat, const cJSON *map) {
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(map, "log2_scale");
    const cJSON *y = cJSON_GetObjectItemCaseSensitive(map, "log2_rho");
    for (size_t i = 0; i < heat->n_x; i++) heat->x[i] = nb_map_number(x, (int)i);
    for (size_t i = 0; i < heat->n_y; i++) heat->y[i] = nb_map_number(y, (int)i);
    for (size_t r = 0; r < heat->n_y; r++)
        for (size_t s = 0; s < heat->n_x; s++) {
            const size_t i = r * heat->n_x + s;
            heat->state[i] = (unsigned char)nb_map_cell(map, (int)r, (int)s, &heat->value[i]);
        }
}

/* Lines are drawn where the panel's cells are. */
static void add_predicted(struct nb_figure *f, size_t panel, const cJSON *map) {
    const cJSON *item, *pair;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(map, "predicted")) {
        const char *name = nb_json_get_text(item, "name");
        const cJSON *line = cJSON_GetObjectItemCaseSensitive(item, "line");
        if (!name || cJSON_GetArraySize(line) < 2) continue;
        const size_t entry = nb_figure_entry(f, name);
        cJSON_ArrayForEach(pair, line) {
            nb_figure_add_law(f, panel, entry, nb_map_number(pair, 0), nb_map_number(pair, 1));
        }
    }
}

static bool add_map(struct nb_figure *f, size_t panel, const struct nb_study_line *study) {
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(study->json, "map");
    int n_scales, n_rhos;
    if (!nb_map_size(map, &n_scales, &n_rhos)) return false;
    nb_heat_init(&f->heats[panel], (size_t)n_scales, (size_t)n_rhos);
    fill(&f->heats[panel], map);
    add_predicted(f, panel, map);
    return true;
}

static void draw(const struct nb_results *meta, const struct nb_studies *studies, const char *kernel,
                 struct nb_figures *figures) {
    struct nb_strbuf text = {0};
    int panel_of[NB_N_DTYPES];
    bool any = false;
    nb_strbuf_addf(&text, "map-%s", kernel);
    struct nb_figure *f = nb_figures_new(figures, meta, text.text);
    f->n_panels = nb_studies_panels(studies, NULL, kernel, panel_of);
    f->heat_low = -1;
    f->heat_high = 8;
    f->heat_title = "log10 of the error in ulp";
    nb_strbuf_clear(&text);
    for (size_t i = 0; i < studies->n; i++) {
        const struct nb_study_line *s = &studies->list[i];
        if (strcmp(s->kernel, kernel) != 0) continue;
        const size_t panel = (size_t)panel_of[s->dtype];
        f->panels[panel] = (struct nb_panel){nb_formats[s->dtype].name, "scale of the row",
                                             panel ? NULL : "rho = |mean| / spread", NB_SCALE_POWERS, NB_SCALE_POWERS};
        any |= add_map(f, panel, s);
        nb_strbuf_addf(&text, "%s%s", text.len ? ", " : "", s->variant);
    }
    f->subtitle = text.text;
    struct nb_strbuf title = {0};
    nb_strbuf_addf(&title, "%s: error over scale and offset", kernel);
    f->title = title.text;
    f->caption = nb_strdup(caption);
    if (!any) nb_figures_drop_last(figures);
}

void nb_plot_maps(const struct nb_results *meta, const struct nb_studies *studies, struct nb_figures *figures) {
    const size_t before = figures->n;
    for (size_t i = 0; i < studies->n; i++) {
        bool drawn = false;
        for (size_t k = 0; k < i; k++) drawn |= strcmp(studies->list[k].kernel, studies->list[i].kernel) == 0;
        if (!drawn) draw(meta, studies, studies->list[i].kernel, figures);
    }
    if (figures->n == before) nb_figures_note(figures, "error over scale and offset: no study has a map");
}
