// SPDX-License-Identifier: Apache-2.0
/* Our kernels beside other libraries': the geometric mean of each op, sorted. */
#include <stdlib.h>

#include "reports/figures/plot.h"
#include "reports/run/report.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/peers/peer_comparison.h"

static const char caption[] =
    "Time of the library's kernel over the time of our fastest: the geometric mean over its comparisons, with a 95% interval. Right of the line ours is "
    "faster.";

static int by_ratio(const void *left, const void *right) {
    const struct nb_peer_mean *a = left, *b = right;
    return (a->ratio.value < b->ratio.value) - (a->ratio.value > b->ratio.value);
}

static void add_mean(struct nb_figure *f, const struct nb_peer_mean *m) {
    const struct nb_case *c = &m->first->theirs->c;
    const bool rows = c->shape.layout == NB_ROWS;
    char *label freed =
        nb_textf("%s %s%s%s%s", m->first->library, nb_op_names[c->op], c->pass == NB_BACKWARD ? " backward" : "",
                 rows ? "" : " ", rows ? "" : nb_layout_names[c->shape.layout]);
    nb_figure_add(
        f, 0, label,
        (struct nb_point){m->ratio.value, (double)nb_figure_name(f, label), m->ratio.low, m->ratio.high, false});
}

static void draw(const struct nb_results *results, struct nb_peer_mean *means, size_t n, struct nb_figures *figures) {
    struct nb_figure *f = nb_figures_new(figures, results, nb_strdup("peers"));
    f->title = nb_strdup("Other libraries' time over ours");
    f->caption = nb_strdup(caption);
    f->scattered = true;
    f->panels[0] = (struct nb_panel){NULL, "time of theirs / time of ours", NULL, NB_SCALE_DECADES, NB_SCALE_NAMES};
    f->guides[f->n_guides++] = (struct nb_guide){.x = 1, .label = "even"};
    qsort(means, n, sizeof *means, by_ratio);
    for (size_t i = 0; i < n; i++)
        if (means[i].n > 0) add_mean(f, &means[i]);
    if (f->n_lines == 0) nb_figures_drop_last(figures);
}

void nb_plot_peers(const struct nb_results *results, struct nb_figures *figures) {
    struct nb_peer_comparisons comparisons released_by(nb_peer_comparisons_release) = {0};
    struct nb_peer_mean *means freed = NULL;
    if (!nb_meta(results, "plan.compare") || nb_peer_comparisons_make(&comparisons, results) != 0) return;
    const size_t n = nb_peer_means(&comparisons, &means);
    if (n > 0) draw(results, means, n, figures);
}
