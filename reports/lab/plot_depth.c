// SPDX-License-Identifier: Apache-2.0
/* What a design's rounding adds up to over the layers of a network. */
#include <math.h>

#include "reports/lab/plot_stress.h"
#include "src/core/json.h"
#include "src/core/log.h"

static const char caption[] =
    "Left: the part of the error that a row shares, averaged over rows. A rounding with a preferred side makes it grow "
    "in "
    "proportion to the number of blocks. Right: the rest, which is random and grows with the root. Dashed: growth in "
    "proportion and with the root through the last block, as far as it goes: what lies above on the left has no "
    "preferred "
    "side.";

enum { MOST_BLOCKS = 1 << 20 };

/* Blocks 1, 2, 3, 4, 6, 8, 12 ... and the last: as many as a logarithmic axis shows. */
static int next_block(int block, int last) {
    const int step = block < 4 ? 1 : (block & (block - 1)) == 0 ? block / 2 : block / 3;
    return block == last || block + step < last ? block + step : last;
}

static void add_curve(struct nb_figure *f, size_t panel, const char *label, const cJSON *series, double power) {
    const int last = cJSON_GetArraySize(series);
    const size_t entry = nb_figure_entry(f, label);
    if (last < 2 || last > MOST_BLOCKS) return;
    const cJSON *end = cJSON_GetArrayItem(series, last - 1);
    const double reached = cJSON_IsNumber(end) ? fabs(end->valuedouble) : NAN;
    const cJSON *item = series->child;
    for (int block = 1, at = 1; block <= last; block++, item = item->next) {
        if (block != at) continue;
        at = next_block(block, last);
        const double value = cJSON_IsNumber(item) ? fabs(item->valuedouble) : NAN;
        nb_figure_add(f, panel, entry, (struct nb_point){block, value, NAN, NAN});
        nb_figure_add_law(f, panel, entry, block, reached * pow((double)block / last, power));
    }
}

void nb_plot_depth(const struct nb_results *meta, const cJSON *emulated, struct nb_figures *figures) {
    const cJSON *one;
    struct nb_figure *f = nb_figures_new(figures, meta, "depth");
    f->n_panels = 2;
    f->panels[0] = (struct nb_panel){"shared by a row (gain)", "residual blocks", "error of the stream, u",
                                     NB_SCALE_LENGTH, NB_SCALE_DECADES};
    f->panels[1] = (struct nb_panel){"the rest (residual)", "residual blocks", NULL, NB_SCALE_LENGTH, NB_SCALE_DECADES};
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(emulated, "designs")) {
        const char *design = nb_json_get_text(one, "design");
        const cJSON *depth = cJSON_GetObjectItemCaseSensitive(one, "depth");
        add_curve(f, 0, design ? design : "design", cJSON_GetObjectItemCaseSensitive(depth, "gain_u"), 1);
        add_curve(f, 1, design ? design : "design", cJSON_GetObjectItemCaseSensitive(depth, "residual_u"), 0.5);
    }
    f->title = nb_strdup("error over depth");
    f->subtitle = nb_strdup("points: emulated; dashed: in proportion to the blocks, and to their root");
    f->caption = nb_strdup(caption);
    nb_figure_sort(f);
    if (f->n_lines) return;
    nb_figures_drop_last(figures);
    nb_figures_note(figures, "error over depth: depth.json has no design with a depth");
}
