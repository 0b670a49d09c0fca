// SPDX-License-Identifier: Apache-2.0
/* The LayerNorm-to-RMSNorm cut against row length and against the working set, a curve for each pair of kernels, composed
 * and fused. */
#include <stdlib.h>
#include <string.h>

#include "reports/figures/plot.h"
#include "reports/figures/sweep.h"
#include "reports/run/summary.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/names.h"

static const char caption[] =
    "Share of LayerNorm's time that RMSNorm saves, 1 - t(rmsnorm) / t(layernorm), from ratios paired within one group. "
    "Below 0 "
    "RMSNorm is slower. Composed kernels run op by op with temporaries, as an eager framework does; fused ones sweep "
    "the row "
    "with the statistics in registers. Bars add the half-widths of both ratios' 95% intervals. ";

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

/* "fused: layernorm_welford / rmsnorm_twopass", without what the op's name says anyway. */
static void label_of(const struct pairs *p, const struct nb_cut *cut, struct nb_strbuf *out) {
    const struct nb_record *ln = &p->results->records[cut->layernorm], *rms = &p->results->records[cut->rmsnorm];
    struct nb_strbuf l = {0}, r = {0};
    nb_kernel_name(&ln->c, &l);
    nb_kernel_name(&rms->c, &r);
    const char *left = strncmp(l.text, "layernorm_", 10) == 0 ? l.text + 10 : l.text;
    const char *right = strncmp(r.text, "rmsnorm_", 8) == 0 ? r.text + 8 : r.text;
    nb_strbuf_add(out, nb_style_names[ln->c.style]);
    if (strcmp(left, right) != 0)
        nb_strbuf_addf(out, ": %s / %s", left, right);
    else if (strcmp(left, out->text) != 0)
        nb_strbuf_addf(out, ": %s", left);
    nb_strbuf_release(&l);
    nb_strbuf_release(&r);
}

static bool is_layernorm_drawn(const struct nb_record *r, const void *arg) {
    const struct pairs *p = arg;
    size_t place = p->of_layernorm[r - p->results->records];
    return place && is_drawn(p, place - 1);
}

static void add_cut(struct nb_figure *f, const struct pairs *p, size_t i, double x) {
    const struct nb_interval *cut = &p->cuts[i].cut;
    struct nb_strbuf label = {0};
    label_of(p, &p->cuts[i], &label);
    nb_figure_add(f, 0, nb_figure_entry(f, label.text),
                  (struct nb_point){x, 100 * cut->value, 100 * cut->low, 100 * cut->high});
    nb_strbuf_release(&label);
}

static void finish(struct nb_figure *f, const struct pairs *p, const char *against, const char *subtitle,
                   const char *constants) {
    f->title = nb_textf("LayerNorm-to-RMSNorm cut against %s, %s%s", against, nb_formats[p->dtype].name,
                        p->pass == NB_BACKWARD ? ", backward" : "");
    f->subtitle = nb_textf("width %s, %s", nb_width_names[p->width], subtitle);
    f->caption = nb_textf("%sEqual everywhere: width %s, %s.", caption, nb_width_names[p->width], constants);
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
    const char *against = by == NB_BY_LENGTH ? "row length" : "the working set";
    struct nb_sweep sweep;
    nb_sweep_find(&sweep, p->results, by, is_layernorm_drawn, p, NULL);
    if (sweep.n_steps < 2) {
        nb_figures_note(figures, "cut against %s, %s: one value only", against, nb_formats[p->dtype].name);
        nb_sweep_release(&sweep);
        return;
    }
    char *name = nb_textf("cut-%s-%s-%s", by == NB_BY_LENGTH ? "length" : "working-set", nb_pass_names[p->pass],
                          nb_formats[p->dtype].name);
    struct nb_figure *f = nb_figures_new(figures, p->results, name);
    f->n_panels = 1;
    f->panels[0] = (struct nb_panel){NULL, by == NB_BY_LENGTH ? "row length" : "working set", "time saved",
                                     by == NB_BY_LENGTH ? NB_SCALE_LENGTH : NB_SCALE_BYTES, NB_SCALE_PERCENT};
    for (size_t i = 0; i < sweep.n; i++) {
        const struct nb_record *ln = &p->results->records[sweep.records[i]];
        add_cut(f, p, p->of_layernorm[sweep.records[i]] - 1, by == NB_BY_LENGTH ? (double)ln->c.shape.cols : ln->bytes);
    }
    nb_figure_sort(f);
    if (by == NB_BY_BYTES) add_caches(f, p->results, p->results->records[sweep.records[0]].machine);
    finish(f, p, against, sweep.subtitle, sweep.constants);
    nb_sweep_release(&sweep);
}

void nb_plot_cut(const struct nb_results *results, struct nb_figures *figures) {
    struct pairs p = {.results = results};
    p.n = nb_cuts_find(results, &p.cuts);
    p.of_layernorm = nb_alloc(results->n + 1, sizeof *p.of_layernorm);
    for (size_t i = 0; i < p.n; i++) p.of_layernorm[p.cuts[i].layernorm] = i + 1;
    if (!p.n)
        nb_figures_note(figures,
                        "LayerNorm-to-RMSNorm cut: no LayerNorm and RMSNorm cases that were timed in one group with "
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
