// SPDX-License-Identifier: Apache-2.0
/* Every kernel at one shape, sorted by its time: what a reader asks first. Where a run has LayerNorm and RMSNorm, of these alone; one picture for rows
 * in cache, one for rows from memory. */
#include <stdlib.h>
#include <string.h>

#include "reports/figures/plot.h"
#include "reports/figures/sweep.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/names.h"

static const char caption[] =
    "Time of one call, each kernel at its fastest width: the median over launches with its 95% interval. The vertical line is a copy of the same bytes. ";

static const char *const free_axes[] = {"affine", "weight_offset", "param_dtype", NULL};

struct selection {
    bool norms; /* LayerNorm and RMSNorm alone */
    uint32_t cache;
};

static bool is_norm(const struct nb_record *r) { return r->c.op == NB_OP_LAYERNORM || r->c.op == NB_OP_RMSNORM; }

static bool belongs(const struct nb_record *r, const void *arg) {
    const struct selection *s = arg;
    return r->c.op != NB_OP_COPY && r->c.cache == s->cache && (!s->norms || is_norm(r));
}

struct row {
    char *kernel; /* owned */
    const struct nb_record *record;
};

static int by_time(const void *left, const void *right) {
    const struct row *a = left, *b = right;
    const double x = a->record->timing.time_ns.value, y = b->record->timing.time_ns.value;
    return (x > y) - (x < y);
}

/* Each kernel once, the fastest first; returns how many. */
static size_t sorted_rows(struct row *rows, const struct nb_results *results, const struct nb_sweep *cases) {
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < cases->n; i++) {
        const struct nb_record *r = &results->records[cases->records[i]];
        rows[n++] = (struct row){nb_kernel_text(&r->c), r};
    }
    if (n) qsort(rows, n, sizeof *rows, by_time);
    for (size_t i = 0; i < n; i++) {
        size_t known = 0;
        while (known < kept && strcmp(rows[known].kernel, rows[i].kernel) != 0) known++;
        if (known < kept)
            free(rows[i].kernel);
        else
            rows[kept++] = rows[i];
    }
    return kept;
}

static void fill(struct nb_figure *f, const struct row *rows, size_t n) {
    enum { MOST = 32 };
    const struct nb_timing *fastest = &rows[0].record->timing;
    f->scattered = true;
    f->panels[0] = (struct nb_panel){NULL, "time of a call, us", NULL, NB_SCALE_DECADES, NB_SCALE_NAMES};
    for (size_t i = 0; i < n && i < MOST; i++) {
        const struct nb_record *r = rows[i].record;
        const struct nb_interval *t = &r->timing.time_ns;
        char *label freed = nb_textf("%s %s", rows[i].kernel, nb_width_names[r->c.width]);
        const size_t y = nb_figure_name(f, label);
        nb_figure_add(f, 0, label,
                      (struct nb_point){t->value / 1e3, (double)y, t->low / 1e3, t->high / 1e3, r->timing.noisy});
    }
    f->guides[f->n_guides++] =
        (struct nb_guide){.x = fastest->vs_copy.value * fastest->time_ns.value / 1e3, .label = "copy"};
}

static void draw(const struct nb_results *results, const struct selection *s, struct nb_figures *figures) {
    struct nb_sweep cases released_by(nb_sweep_release);
    nb_sweep_find(&cases, results, NB_ONE_SHAPE, belongs, s, free_axes);
    struct row *rows = nb_alloc(cases.n + 1, sizeof *rows);
    const size_t n = sorted_rows(rows, results, &cases);
    if (n > 1) {
        const struct nb_case *c = &rows[0].record->c;
        const bool from_memory = s->cache == NB_COLD || strcmp(rows[0].record->timing.roofline.bottleneck, "DRAM") == 0;
        struct nb_figure *f =
            nb_figures_new(figures, results, nb_textf("times-%s", s->cache == NB_COLD ? "cold" : "hot"));
        fill(f, rows, n);
        f->title = nb_textf("%s %s, %s %s", s->norms ? "LayerNorm and RMSNorm" : "Kernels", nb_formats[c->dtype].name,
                            c->shape.text, from_memory ? "from memory" : "in cache");
        f->subtitle = nb_strdup(cases.subtitle);
        f->caption = nb_textf("%sFixed: %s.", caption, cases.constants);
    }
    for (size_t i = 0; i < n; i++) free(rows[i].kernel);
    free(rows);
}

void nb_plot_times(const struct nb_results *results, struct nb_figures *figures) {
    struct selection s = {0};
    for (size_t i = 0; i < results->n; i++)
        s.norms |= nb_record_timed(&results->records[i]) && is_norm(&results->records[i]);
    for (s.cache = 0; s.cache <= NB_COLD; s.cache++) draw(results, &s, figures);
}
