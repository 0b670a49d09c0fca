// SPDX-License-Identifier: Apache-2.0
/* All figures of a stress run, in the order in which the page shows them. */
#include "reports/lab/plot_stress.h"

void nb_stress_figures_init(struct nb_figures *figures, const cJSON *stress, const cJSON *depth,
                            const struct nb_results *results) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)stress}; /* has what a footer is made of */
    struct nb_studies studies;
    *figures = (struct nb_figures){0};
    nb_strbuf_add(&figures->notes, "");
    nb_studies_init(&studies, stress);
    nb_plot_sweeps(&meta, &studies, figures);
    nb_plot_maps(&meta, &studies, figures);
    if (results) nb_plot_histogram(results, figures);
    if (results) nb_plot_frontier(results, figures);
    if (depth) nb_plot_depth(&meta, depth, figures);
    if (studies.n_repeated)
        nb_figures_note(figures, "%zu studies of another width or formula: of each kernel and dtype the first is drawn",
                        studies.n_repeated);
    nb_studies_release(&studies);
}
