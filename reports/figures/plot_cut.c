// SPDX-License-Identifier: Apache-2.0
/* What RMSNorm saves of LayerNorm's time, by row length and by working set: a curve for each pair of kernels. */
#include <stdlib.h>
#include <string.h>

#include "reports/figures/plot.h"
#include "reports/figures/sweep.h"
#include "reports/run/report.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/names.h"

static const char caption[] =
    "Share of LayerNorm's time that RMSNorm saves, from ratios paired within one group; below 0 RMSNorm is slower. Unfused (composed) kernels run "
    "operation by operation with temporaries, as an eager framework does. Bars add the half-widths of both ratios' 95% intervals. ";

struct pairs {
    const struct nb_results *results;
    struct nb_cut *cuts;
    size_t n;
    size_t *of_layernorm;        /* by record: its place in cuts + 1, or 0 */
    uint32_t dtype, pass, width; /* which of them are drawn */
};

static bool is_drawn(const struct pairs *p, size_t i) {
    const struct nb_case *c = &p->results->records[p->cuts[i].layernorm].c;
    return c->dtype == p->dtype && c->pass == p->pass && c->width == p->width;
}

/* The width with the most pairs, of several the widest. */
static bool choose_width(struct pairs *p) {
    size_t most = 0;
    uint32_t widest = 0;
    for (uint32_t width = 0; width < NB_N_WIDTHS; width++) {
        size_t n = 0;
        p->width = width;
        for (size_t i = 0; i < p->n; i++) n += is_drawn(p, i);
        if (n == 0 || n < most) continue;
        most = n;
        widest = width;
    }
    p->width = widest;
    return most > 0;
}

/* "twopass"; "welford / twopass" where the kernels differ. */
static void label_of(const struct pairs *p, const struct nb_cut *cut, struct nb_strbuf *out) {
    char *ln freed = nb_kernel_suffix(&p->results->records[cut->layernorm]),
             *rms freed = nb_kernel_suffix(&p->results->records[cut->rmsnorm]);
    nb_strbuf_add(out, ln + (*ln == '_'));
    if (strcmp(ln, rms) != 0) nb_strbuf_addf(out, " / %s", rms + (*rms == '_'));
}

static bool is_layernorm_drawn(const struct nb_record *r, const void *arg) {
    const struct pairs *p = arg;
    size_t place = p->of_layernorm[r - p->results->records];
    return place && is_drawn(p, place - 1);
}

static void add_cut(struct nb_figure *f, const struct pairs *p, size_t i, double x) {
    const struct nb_interval *cut = &p->cuts[i].cut;
    struct nb_strbuf label released_by(nb_strbuf_release) = {0};
    label_of(p, &p->cuts[i], &label);
    const struct nb_record *ln = &p->results->records[p->cuts[i].layernorm],
                           *rms = &p->results->records[p->cuts[i].rmsnorm];
    nb_figure_add(
        f, 0, label.text,
        (struct nb_point){x, 100 * cut->value, 100 * cut->low, 100 * cut->high, ln->timing.noisy || rms->timing.noisy});
}

static void finish(struct nb_figure *f, const struct pairs *p, const char *against, const char *subtitle,
                   const char *constants) {
    f->title = nb_textf("Time saved by RMSNorm, by %s (%s%s)", against, nb_formats[p->dtype].name,
                        p->pass == NB_BACKWARD ? ", backward" : "");
    f->subtitle = nb_textf("width %s, %s", nb_width_names[p->width], subtitle);
    f->caption = nb_textf("%sFixed: width %s, %s.", caption, nb_width_names[p->width], constants);
}

/* Those of the machine whose cases are drawn. */
static void add_caches(struct nb_figure *f, const struct nb_results *results, int machine) {
    const cJSON *cpu = nb_meta_of_machine(results, machine, "cpu");
    const struct nb_guide guides[] = {{.x = nb_json_get_number(cpu, "l1d_bytes"), .label = "L1"},
                                      {.x = nb_json_get_number(cpu, "l2_bytes"), .label = "L2"},
                                      {.x = nb_json_get_number(cpu, "l3_bytes"), .label = "L3"}};
    for (size_t i = 0; i < 3; i++)
        if (guides[i].x > 0) f->guides[f->n_guides++] = guides[i];
}

static void draw(const struct pairs *p, enum nb_sweep_by by, struct nb_figures *figures) {
    const char *against = by == NB_BY_LENGTH ? "row length" : "working set";
    struct nb_sweep sweep released_by(nb_sweep_release);
    nb_sweep_find(&sweep, p->results, by, is_layernorm_drawn, p, NULL);
    if (sweep.n_steps < 2) {
        nb_figures_note(figures, "time saved by %s, %s: one value only", against, nb_formats[p->dtype].name);
        return;
    }
    char *name = nb_textf("cut-%s-%s-%s", by == NB_BY_LENGTH ? "length" : "working-set", nb_pass_names[p->pass],
                          nb_formats[p->dtype].name);
    struct nb_figure *f = nb_figures_new(figures, p->results, name);
    f->panels[0] = (struct nb_panel){NULL, by == NB_BY_LENGTH ? "row length, elements" : "working set", "time saved",
                                     by == NB_BY_LENGTH ? NB_SCALE_LENGTH : NB_SCALE_BYTES, NB_SCALE_PERCENT};
    for (size_t i = 0; i < sweep.n; i++) {
        const struct nb_record *ln = &p->results->records[sweep.records[i]];
        add_cut(f, p, p->of_layernorm[sweep.records[i]] - 1, by == NB_BY_LENGTH ? (double)ln->c.shape.cols : ln->bytes);
    }
    nb_figure_sort(f);
    if (by == NB_BY_BYTES) add_caches(f, p->results, p->results->records[sweep.records[0]].machine);
    finish(f, p, against, sweep.subtitle, sweep.constants);
}

void nb_plot_cut(const struct nb_results *results, struct nb_figures *figures) {
    struct pairs p = {.results = results};
    p.n = nb_cuts_find(results, &p.cuts);
    p.of_layernorm = nb_alloc(results->n + 1, sizeof *p.of_layernorm);
    for (size_t i = 0; i < p.n; i++) p.of_layernorm[p.cuts[i].layernorm] = i + 1;
    if (!p.n)
        nb_figures_note(
            figures,
            "time saved by RMSNorm over LayerNorm: no LayerNorm and RMSNorm cases that were timed in one group with "
            "one style, width and formula");
    for (uint32_t pass = 0; pass < NB_N_PASSES; pass++)
        for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++) {
            p.pass = pass;
            p.dtype = dtype;
            if (!choose_width(&p)) continue;
            draw(&p, NB_BY_LENGTH, figures);
            draw(&p, NB_BY_BYTES, figures);
        }
    free(p.of_layernorm);
    free(p.cuts);
}
