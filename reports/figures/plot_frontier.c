// SPDX-License-Identifier: Apache-2.0
/* Accuracy against speed: what a digit costs. */
#include <math.h>

#include "reports/figures/plot.h"
#include "reports/figures/sweep.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/names.h"

static const char caption[] =
    "Each point is a case: a kernel at one width with one formula, timed and judged on the same rows; to the left is faster, down is more accurate. "
    "The error is its share of the error bound of its own formula, beyond which a result fails. Cases with rows whose loss the formula predicts are "
    "left out.";

static const char *const free_axes[] = {"root", "cast", "eps_place", "param_dtype", "round_sum", NULL};

struct selection {
    uint32_t op, pass, dtype;
};

static bool is_drawable(const struct nb_record *r, const void *arg) {
    const struct selection *s = arg;
    return r->has_accuracy && r->c.op == s->op && r->c.pass == s->pass && r->c.dtype == s->dtype &&
           r->accuracy.n_rows_lost == 0 && isfinite(r->accuracy.worst_ratio);
}

static void add_points(struct nb_figure *f, const struct nb_results *results, const struct nb_sweep *g) {
    for (size_t i = 0; i < g->n; i++) {
        const struct nb_record *r = &results->records[g->records[i]];
        char *kernel freed = nb_kernel_text(&r->c);
        const double cost_ns = r->timing.time_ns.value / ((double)r->c.shape.rows * (double)r->c.shape.cols);
        nb_figure_add(f, 0, kernel,
                      (struct nb_point){cost_ns, 100 * r->accuracy.worst_ratio, NAN, NAN, r->timing.noisy});
    }
}

/* Fewer kernels show no choice: the table has them. */
enum { FEWEST_KERNELS = 4 };

/* The most cases of one op, dtype and shape that share everything but kernel, width and formula. */
static void draw(const struct nb_results *results, struct nb_figures *figures, const struct selection *s) {
    const char *op = nb_op_names[s->op], *dtype = nb_formats[s->dtype].name;
    struct nb_sweep cases released_by(nb_sweep_release);
    nb_sweep_find(&cases, results, NB_ONE_SHAPE, is_drawable, s, free_axes);
    if (cases.n >= FEWEST_KERNELS) {
        struct nb_figure *f =
            nb_figures_new(figures, results, nb_textf("frontier-%s-%s-%s", op, nb_pass_names[s->pass], dtype));
        f->scattered = true;
        f->panels[0] = (struct nb_panel){NULL, "ns per element", "largest error, % of its bound", NB_SCALE_DECADES,
                                         NB_SCALE_SHARE};
        add_points(f, results, &cases);
        f->title = nb_textf("%s%s %s: accuracy against speed", op, s->pass == NB_BACKWARD ? " backward" : "", dtype);
        f->subtitle = nb_strdup(cases.subtitle);
        f->caption = nb_strdup(caption);
        if (f->entries.n < FEWEST_KERNELS) nb_figures_drop_last(figures);
    }
}

void nb_plot_frontier(const struct nb_results *results, struct nb_figures *figures) {
    const size_t before = figures->n;
    for (uint32_t pass = 0; pass < NB_N_PASSES; pass++)
        for (uint32_t op = 0; op < NB_OP_COPY; op++)
            for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++)
                draw(results, figures, &(struct selection){op, pass, dtype});
    if (figures->n == before)
        nb_figures_note(figures,
                        "accuracy against speed: no four kernels of one op have a time and an accuracy at one shape");
}
