// SPDX-License-Identifier: Apache-2.0
/* Share of results by how many ulp they are off, in the manner of glibc's tables. */
#include <math.h>
#include <stdlib.h>

#include "reports/figures/plot.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/names.h"

static const char caption[] = "All elements of all cases of a kernel, by |computed - exact| in ulp of the exact value: "
                              "a point at 1/2 stands for errors up "
                              "to 1/2 ulp, one at 1 for those between 1/2 and 1, and so on by powers of two. A single "
                              "correct rounding leaves nothing "
                              "beyond 1/2. LayerNorm has elements near 0, where a small error is many ulp.";

struct tally {
    double counts[NB_ULP_BUCKETS], total;
};

static void add(struct tally *t, const struct nb_accuracy *a) {
    for (int b = 0; b < NB_ULP_BUCKETS; b++) {
        t->counts[b] += (double)a->histogram[b];
        t->total += (double)a->histogram[b];
    }
}

static void add_curve(struct nb_figure *f, size_t panel, size_t entry, const struct tally *t) {
    for (int b = 0; b < NB_ULP_BUCKETS && t->total > 0; b++)
        if (t->counts[b] > 0)
            nb_figure_add(f, panel, entry, (struct nb_point){b - 1, 100 * t->counts[b] / t->total, NAN, NAN});
}

static void draw_panel(struct nb_figure *f, const struct nb_results *results, uint32_t op, uint32_t pass,
                       uint32_t dtype) {
    struct tally *tallies = nb_alloc(results->n + f->n_entries + 1, sizeof *tallies);
    struct nb_strbuf kernel = {0};
    const size_t panel = f->n_panels, before = f->n_lines;
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (!r->has_accuracy || r->c.op != op || r->c.pass != pass || r->c.dtype != dtype) continue;
        nb_strbuf_clear(&kernel);
        nb_kernel_name(&r->c, &kernel);
        add(&tallies[nb_figure_entry(f, kernel.text)], &r->accuracy);
    }
    for (size_t e = 0; e < f->n_entries; e++) add_curve(f, panel, e, &tallies[e]);
    free(tallies);
    nb_strbuf_release(&kernel);
    if (f->n_lines == before) return;
    f->panels[panel] = (struct nb_panel){nb_formats[dtype].name, "error up to, ulp", panel ? NULL : "% of results",
                                         NB_SCALE_POWERS, NB_SCALE_DECADES};
    f->n_panels++;
}

static void draw(const struct nb_results *results, struct nb_figures *figures, uint32_t op, uint32_t pass) {
    char *name = nb_textf("histogram-%s-%s", nb_op_names[op], nb_pass_names[pass]);
    struct nb_figure *f = nb_figures_new(figures, results, name);
    f->same_axes = true;
    for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++) draw_panel(f, results, op, pass, dtype);
    f->title =
        nb_textf("%s%s: share of results by their error", nb_op_names[op], pass == NB_BACKWARD ? " backward" : "");
    f->subtitle = nb_strdup("all elements of all cases of a kernel");
    f->caption = nb_strdup(caption);
    if (!f->n_lines) nb_figures_drop_last(figures);
}

void nb_plot_histogram(const struct nb_results *results, struct nb_figures *figures) {
    for (uint32_t pass = 0; pass < NB_N_PASSES; pass++)
        for (uint32_t op = 0; op < NB_OP_COPY; op++) draw(results, figures, op, pass);
}
