// SPDX-License-Identifier: Apache-2.0
/* What a design's rounding adds up to over the layers of a network. */
#include <math.h>

#include "reports/plot_stress.h"
#include "src/json.h"
#include "src/log.h"

static const char caption[] =
    "The gain is the part of the error that all elements of a row share: a bias of it grows in proportion to the "
    "number "
    "of layers. The residual is random and grows with its square root. Dashed: both laws through the first layer.";

static double first_positive(const cJSON *layers, const char *name, double *layer) {
    const cJSON *item;
    cJSON_ArrayForEach(item, layers) {
        const double value = fabs(nb_json_get_number(item, name));
        *layer = nb_json_get_number(item, "layer");
        if (value > 0 && *layer > 0) return value;
    }
    return NAN;
}

static void add_curve(struct nb_figure *f, const cJSON *layers, const char *name, const char *label, double power) {
    const cJSON *item;
    const size_t entry = nb_figure_entry(f, label);
    double from, start = first_positive(layers, name, &from);
    cJSON_ArrayForEach(item, layers) {
        const double layer = nb_json_get_number(item, "layer");
        if (!(layer > 0)) continue;
        nb_figure_add(f, 0, entry, (struct nb_point){layer, fabs(nb_json_get_number(item, name)), NAN, NAN});
        nb_figure_add_law(f, 0, entry, layer, start * pow(layer / from, power));
    }
}

void nb_plot_depth(const struct nb_results *meta, const cJSON *emulated, struct nb_figures *figures) {
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(emulated, "depth");
    const char *design = nb_json_get_text(emulated, "design");
    if (cJSON_GetArraySize(layers) < 2) return;
    struct nb_figure *f = nb_figures_new(figures, meta, "depth");
    struct nb_strbuf title = {0};
    f->n_panels = 1;
    f->panels[0] =
        (struct nb_panel){NULL, "layers", "error of the residual stream, u", NB_SCALE_LENGTH, NB_SCALE_DECADES};
    add_curve(f, layers, "gain_u", "gain, shared by a row", 1);
    add_curve(f, layers, "residual_u", "residual", 0.5);
    nb_strbuf_addf(&title, "error over depth%s%s", design ? ": " : "", design ? design : "");
    f->title = title.text;
    f->subtitle = nb_strdup("points: emulated; dashed: linear and square-root growth from the first layer");
    f->caption = nb_strdup(caption);
    nb_figure_sort(f);
    if (!f->n_lines) nb_figures_drop_last(figures);
}
