// SPDX-License-Identifier: Apache-2.0
/* Cuts against working set and row length; which figures there are. */
#include "reports/claims/claims_plots.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/claims/claims_amdahl.h"
#include "reports/claims/claims_text.h"
#include "reports/claims/claims_training.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/text.h"

static const char cut_caption[] =
    "Share of LayerNorm's time that RMSNorm saves, 1 - t(rmsnorm) / t(layernorm), from pairs within blocks of one "
    "process; bars are 95 % intervals over launches. Below 0 RMSNorm is slower. composed runs op by op with "
    "temporaries, "
    "as an eager framework does; the others are fused, one sweep with the statistics in registers. One thread, 256 "
    "bits, f32.";

struct curve {
    const char *name, *title, *claim, *readings[2]; /* fused, op by op */
    enum nb_scale scale;
    const char *x_title;
};
static const struct curve curves[] = {
    {"cut-working-set",
     "LayerNorm-to-RMSNorm cut against the working set",
     "speed-fused",
     {"caches", "op-by-op"},
     NB_SCALE_BYTES,
     "working set"},
    {"cut-length",
     "LayerNorm-to-RMSNorm cut against row length",
     "speed-high-dimension",
     {"every-length-fused", "every-length"},
     NB_SCALE_LENGTH,
     "row length"},
};

static bool is_plain(const cJSON *tags) {
    return strcmp(nb_claims_text(tags, "width"), "256") == 0 && strcmp(nb_claims_text(tags, "threads"), "1") == 0 &&
           strcmp(nb_claims_text(tags, "cache"), "hot") == 0 && strcmp(nb_claims_text(tags, "dtype"), "f32") == 0;
}

/* "twopass" of "rmsnorm_twopass". */
static const char *kind_of(const cJSON *tags) {
    const char *kernel = nb_claims_text(tags, "kernel"), *end = strchr(kernel, '_');
    return end ? end + 1 : kernel;
}

static void add_cuts(struct nb_figure *f, const struct curve *c, const cJSON *figures) {
    const cJSON *figure;
    cJSON_ArrayForEach(figure, figures) {
        const cJSON *tags = cJSON_GetObjectItemCaseSensitive(figure, "tags");
        const double rows = atof(nb_claims_text(tags, "rows")), cols = atof(nb_claims_text(tags, "cols"));
        if (!is_plain(tags)) continue;
        const double x = c->scale == NB_SCALE_BYTES ? 2 * rows * cols * sizeof(float) : cols;
        nb_figure_add(f, 0, nb_figure_entry(f, kind_of(tags)),
                      (struct nb_point){x, 100 * nb_json_get_number(figure, "value"),
                                        100 * nb_json_get_number(figure, "low"),
                                        100 * nb_json_get_number(figure, "high")});
    }
}

static void add_caches(struct nb_figure *f, const cJSON *document) {
    static const char *const names[][2] = {{"l1d_bytes", "L1"}, {"l2_bytes", "L2"}, {"l3_bytes", "L3"}};
    const cJSON *cpu =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(document, "fingerprint"), "cpu");
    for (int i = 0; i < 3; i++) {
        const double bytes = nb_json_get_number(cpu, names[i][0]);
        if (bytes > 0) f->guides[f->n_guides++] = (struct nb_guide){.x = bytes, .label = names[i][1]};
    }
}

static void draw_curve(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta,
                       const struct curve *c) {
    struct nb_figure *f = nb_figures_new(figures, meta, c->name);
    f->title = nb_strdup(c->title);
    f->subtitle = nb_strdup("256 bits, one thread, f32");
    f->caption = nb_strdup(cut_caption);
    f->n_panels = 1;
    f->panels[0] = (struct nb_panel){NULL, c->x_title, "time saved", c->scale, NB_SCALE_PERCENT};
    for (int i = 0; i < 2; i++) add_cuts(f, c, nb_claims_figures(document, c->claim, c->readings[i]));
    if (c->scale == NB_SCALE_BYTES) add_caches(f, document);
    nb_figure_sort(f);
    if (f->n_lines > 0) return;
    nb_figures_drop_last(figures);
    nb_figures_note(figures, "%s: claim %s was not measured", c->title, c->claim);
}

void nb_claims_figures_init(struct nb_figures *figures, const cJSON *document) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)document};
    *figures = (struct nb_figures){0};
    nb_strbuf_add(&figures->notes, "");
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++) draw_curve(figures, document, &meta, &curves[i]);
    nb_claims_amdahl_figure(figures, document, &meta);
    nb_claims_training_figures(figures, document, &meta);
}
