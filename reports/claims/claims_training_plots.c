// SPDX-License-Identifier: Apache-2.0
/* Curves of trainings: losses by step, and the standard deviation of activations and gradients by layer, at the start and at the end. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/claims/claims_text.h"
#include "reports/claims/claims_training.h"
#include "src/core/json.h"
#include "src/core/log.h"

enum { MOST_FIGURES = 12 };

static const cJSON *courses(const cJSON *document) {
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(document, "training"), "courses");
}

static bool same_course(const cJSON *a, const cJSON *b) {
    return strcmp(nb_claims_text(a, "workload"), nb_claims_text(b, "workload")) == 0 &&
           nb_json_get_number(a, "steps") == nb_json_get_number(b, "steps");
}

static bool is_first(const cJSON *all, const cJSON *course) {
    const cJSON *other;
    cJSON_ArrayForEach(other, all) {
        if (other == course) return true;
        if (same_course(other, course)) return false;
    }
    return true;
}

static struct nb_figure *new_figure(struct nb_figures *figures, const struct nb_results *meta, const cJSON *course,
                                    const char *what, const char *title) {
    char name[120], subtitle[160];
    const char *workload = nb_claims_text(course, "workload");
    const double steps = nb_json_get_number(course, "steps");
    snprintf(name, sizeof name, "%s-%s-%.0f", what, workload, steps);
    snprintf(subtitle, sizeof subtitle, "%s, %.0f steps, medians over seeds", workload, steps);
    struct nb_figure *f = nb_figures_new(figures, meta, name);
    f->title = nb_strdup(title);
    f->subtitle = nb_strdup(subtitle);
    return f;
}

/* Points (x, y) of two lists; x null: 0, 1, 2, .. */
static void add_line(struct nb_figure *f, size_t panel, const char *arm, const cJSON *x, const cJSON *y) {
    const size_t entry = nb_figure_entry(f, arm);
    for (int i = 0; i < cJSON_GetArraySize(y); i++) {
        const cJSON *at = x ? cJSON_GetArrayItem(x, i) : NULL, *value = cJSON_GetArrayItem(y, i);
        if (!cJSON_IsNumber(value) || (x && !cJSON_IsNumber(at))) continue;
        nb_figure_add(f, panel, entry, (struct nb_point){at ? at->valuedouble : i, value->valuedouble, NAN, NAN});
    }
}

static void draw_losses(struct nb_figures *figures, const struct nb_results *meta, const cJSON *all,
                        const cJSON *first) {
    struct nb_figure *f = new_figure(figures, meta, first, "loss", "Loss while training");
    const cJSON *course;
    f->caption =
        nb_strdup("Every arm starts from the same weights and sees the same batches in the same order. Nats; what "
                  "knows nothing has the logarithm of the number of classes.");
    f->n_panels = 1;
    f->panels[0] = (struct nb_panel){NULL, "step", "loss", NB_SCALE_LINEAR, NB_SCALE_LINEAR};
    cJSON_ArrayForEach(course, all) {
        const cJSON *loss = cJSON_GetObjectItemCaseSensitive(course, "loss");
        if (same_course(course, first))
            add_line(f, 0, nb_claims_text(course, "arm"), cJSON_GetObjectItemCaseSensitive(loss, "steps"),
                     cJSON_GetObjectItemCaseSensitive(loss, "median"));
    }
    nb_figure_sort(f);
}

static const cJSON *site_of(const cJSON *course, const char *list, const char *site, bool gradient) {
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(course, list)) {
        if (strcmp(nb_claims_text(one, "site"), site) == 0 && nb_json_get_bool(one, "gradient") == gradient) return one;
    }
    return NULL;
}

static void draw_site(struct nb_figures *figures, const struct nb_results *meta, const cJSON *all, const cJSON *first,
                      const cJSON *site) {
    const char *name = nb_claims_text(site, "site");
    const bool gradient = nb_json_get_bool(site, "gradient");
    char what[100], title[120];
    const cJSON *course;
    snprintf(what, sizeof what, "%s-%s", gradient ? "gradient" : "activation", name);
    snprintf(title, sizeof title, "Standard deviation of %s %s", gradient ? "the gradient at" : "activations at", name);
    struct nb_figure *f = new_figure(figures, meta, first, what, title);
    f->caption =
        nb_strdup("By layer at the first step and at the last, and of the last layer over the training. Logarithmic: "
                  "what keeps its width is level.");
    f->n_panels = 3;
    f->panels[0] = (struct nb_panel){"first step", "layer", "standard deviation", NB_SCALE_LINEAR, NB_SCALE_DECADES};
    f->panels[1] = (struct nb_panel){"last step", "layer", "standard deviation", NB_SCALE_LINEAR, NB_SCALE_DECADES};
    f->panels[2] = (struct nb_panel){"last layer", "step", "standard deviation", NB_SCALE_LINEAR, NB_SCALE_DECADES};
    cJSON_ArrayForEach(course, all) {
        const cJSON *layers = site_of(course, "layers", name, gradient);
        const cJSON *last = site_of(course, "last_layer", name, gradient);
        const char *arm = nb_claims_text(course, "arm");
        if (!same_course(course, first)) continue;
        add_line(f, 0, arm, NULL, cJSON_GetObjectItemCaseSensitive(layers, "start"));
        add_line(f, 1, arm, NULL, cJSON_GetObjectItemCaseSensitive(layers, "end"));
        add_line(f, 2, arm, cJSON_GetObjectItemCaseSensitive(last, "steps"),
                 cJSON_GetObjectItemCaseSensitive(last, "std"));
    }
    nb_figure_sort(f);
    if (f->n_lines == 0) nb_figures_drop_last(figures);
}

/* The sites that claims are about: what a sublayer takes in, what it hands on, and the gradient of what it makes. */
static bool is_drawn(const cJSON *site) {
    const char *name = nb_claims_text(site, "site");
    return nb_json_get_bool(site, "gradient")
               ? strcmp(name, "feed_forward.output") == 0
               : strcmp(name, "feed_forward.input") == 0 || strcmp(name, "feed_forward.stream") == 0;
}

void nb_claims_training_figures(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta) {
    const cJSON *all = courses(document), *course, *site;
    size_t n = figures->n;
    cJSON_ArrayForEach(course, all) {
        if (!is_first(all, course) || figures->n - n >= MOST_FIGURES) continue;
        draw_losses(figures, meta, all, course);
        cJSON_ArrayForEach(site, cJSON_GetObjectItemCaseSensitive(course, "layers")) {
            if (is_drawn(site)) draw_site(figures, meta, all, course, site);
        }
    }
}
