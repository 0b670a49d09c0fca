// SPDX-License-Identifier: Apache-2.0
/* Speed against row length: for each op, pass and dtype its kernels, each at its fastest width. */
#include <string.h>

#include "reports/figures/plot.h"
#include "reports/figures/sweep.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/names.h"

struct subject { /* what one figure is about */
    uint32_t op, pass, dtype;
};

static const char caption[] =
    "Time of a copy of the same bytes over the time of the kernel: 100% is as fast as memcpy. Each kernel at its fastest width; bars are 95% intervals over launches. ";

static bool belongs(const struct nb_record *r, const void *arg) {
    const struct subject *s = arg;
    return r->c.op == s->op && r->c.pass == s->pass && r->c.dtype == s->dtype;
}

static struct nb_point point_of(const struct nb_record *r) {
    const struct nb_interval *share = &r->timing.vs_copy;
    return (struct nb_point){(double)r->c.shape.cols, 100 * share->value, 100 * share->low, 100 * share->high,
                             r->timing.noisy};
}

/* Of a kernel's widths at one row length, the one that moves most bytes. */
static bool is_fastest_width(const struct nb_results *results, const struct nb_sweep *sweep,
                             const struct nb_record *r) {
    char *mine freed = nb_kernel_text(&r->c);
    bool fastest = true;
    for (size_t i = 0; i < sweep->n && fastest; i++) {
        const struct nb_record *o = &results->records[sweep->records[i]];
        if (o->c.shape.cols != r->c.shape.cols || o->timing.gbytes_per_s <= r->timing.gbytes_per_s) continue;
        char *other freed = nb_kernel_text(&o->c);
        fastest = strcmp(mine, other) != 0;
    }
    return fastest;
}

static void fill(struct nb_figure *f, const struct nb_results *results, const struct nb_sweep *sweep) {
    f->panels[0] =
        (struct nb_panel){NULL, "row length, elements", "% of memcpy speed", NB_SCALE_LENGTH, NB_SCALE_SHARE};
    for (size_t i = 0; i < sweep->n; i++) {
        const struct nb_record *r = &results->records[sweep->records[i]];
        if (!is_fastest_width(results, sweep, r)) continue;
        char *label freed = nb_kernel_text(&r->c);
        nb_figure_add(f, 0, label, point_of(r));
    }
    nb_figure_sort(f);
}

/* Returns whether the results allow the figure. */
static bool draw(struct nb_figures *figures, const struct nb_results *results, const struct subject *s) {
    const char *op = nb_op_names[s->op], *dtype = nb_formats[s->dtype].name;
    struct nb_sweep sweep released_by(nb_sweep_release);
    nb_sweep_find(&sweep, results, NB_BY_LENGTH, belongs, s, NULL);
    const bool drawn = sweep.n_steps > 1;
    if (drawn) {
        char *name = nb_textf("kernels-%s-%s-%s", op, nb_pass_names[s->pass], dtype);
        struct nb_figure *f = nb_figures_new(figures, results, name);
        fill(f, results, &sweep);
        f->title = nb_textf("%s %s%s: speed by row length", op, dtype, s->pass == NB_BACKWARD ? ", backward" : "");
        f->subtitle = nb_strdup(sweep.subtitle);
        f->caption = nb_textf("%sFixed: %s.", caption, sweep.constants);
    }
    return drawn;
}

static bool is_there(const struct nb_results *results, const struct subject *s) {
    for (size_t i = 0; i < results->n; i++)
        if (nb_record_timed(&results->records[i]) && belongs(&results->records[i], s)) return true;
    return false;
}

void nb_plot_speed(const struct nb_results *results, struct nb_figures *figures) {
    struct nb_strbuf missing released_by(nb_strbuf_release) = {0};
    for (uint32_t op = 0; op < NB_OP_COPY; op++)
        for (uint32_t pass = 0; pass < NB_N_PASSES; pass++)
            for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++) {
                const struct subject s = {op, pass, dtype};
                if (is_there(results, &s) && !draw(figures, results, &s))
                    nb_strbuf_addf(&missing, "%s%s %s", missing.len ? ", " : "", nb_op_names[op],
                                   nb_formats[dtype].name);
            }
    if (missing.len)
        nb_figures_note(figures, "kernels of an op: fewer than two row lengths with everything else equal: %s",
                        missing.text);
}
