// SPDX-License-Identifier: Apache-2.0
/* Speed against row length, three ways: the kernels of an op, the widths of a kernel, the dtypes of a kernel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/figure.h"
#include "reports/figures/sweep.h"
#include "reports/run/view.h"
#include "src/core/dtype.h"
#include "src/core/log.h"

enum compared { KERNELS, WIDTHS, DTYPES };

struct subject { /* what one figure is about */
    enum compared compared;
    uint32_t op, pass, dtype;
    char *kernel;   /* WIDTHS, DTYPES; owned where it is in a list */
    uint32_t width; /* DTYPES: the one width that is drawn */
};

static const char caption[] =
    "Left: bytes that the operation must move, over the time of a call. Right: time of the copy, which moves the same "
    "bytes "
    "and computes nothing, over the time of the kernel; 100% is the roof. Bars are 95% intervals over launches. ";

static bool belongs(const struct nb_record *r, const void *arg) {
    const struct subject *s = arg;
    struct nb_strbuf kernel = {0};
    bool fits = r->c.op == s->op && r->c.pass == s->pass && (s->compared == DTYPES || r->c.dtype == s->dtype) &&
                (s->compared != DTYPES || r->c.width == s->width);
    if (!fits || s->compared == KERNELS) return fits;
    nb_kernel_name(&r->c, &kernel);
    fits = strcmp(kernel.text, s->kernel) == 0;
    nb_strbuf_release(&kernel);
    return fits;
}

static void label_of(const struct nb_record *r, enum compared compared, struct nb_strbuf *out) {
    if (compared == KERNELS)
        nb_kernel_name(&r->c, out);
    else if (compared == WIDTHS)
        nb_strbuf_add(out, nb_width_names[r->c.width]);
    else
        nb_strbuf_add(out, nb_formats[r->c.dtype].name);
}

/* GB/s falls where the time rises: the bounds change places. */
static struct nb_point rate_point(const struct nb_record *r) {
    const struct nb_timing *t = &r->timing;
    double scale = t->gbytes_per_s * t->time_ns.value;
    return (struct nb_point){(double)r->c.shape.cols, t->gbytes_per_s, scale / t->time_ns.high, scale / t->time_ns.low};
}

static struct nb_point roof_point(const struct nb_record *r) {
    const struct nb_interval *roof = &r->timing.roof;
    return (struct nb_point){(double)r->c.shape.cols, 100 * roof->value, 100 * roof->low, 100 * roof->high};
}

/* Of a kernel's widths at one row length, the one that moves most bytes. */
static bool is_fastest_width(const struct nb_results *results, const struct nb_sweep *sweep,
                             const struct nb_record *r) {
    struct nb_strbuf mine = {0}, other = {0};
    bool fastest = true;
    nb_kernel_name(&r->c, &mine);
    for (size_t i = 0; i < sweep->n && fastest; i++) {
        const struct nb_record *o = &results->records[sweep->records[i]];
        if (o->c.shape.cols != r->c.shape.cols || o->timing.gbytes_per_s <= r->timing.gbytes_per_s) continue;
        nb_strbuf_clear(&other);
        nb_kernel_name(&o->c, &other);
        fastest = strcmp(mine.text, other.text) != 0;
    }
    nb_strbuf_release(&mine);
    nb_strbuf_release(&other);
    return fastest;
}

/* Widths and dtypes stand in the legend in their own order, whichever was measured first. */
static void order_legend(struct nb_figure *f, const struct subject *s, const struct nb_results *results,
                         const struct nb_sweep *sweep) {
    uint32_t n_values = s->compared == WIDTHS ? NB_N_WIDTHS : s->compared == DTYPES ? NB_N_DTYPES : 0;
    struct nb_strbuf label = {0};
    for (uint32_t value = 0; value < n_values; value++)
        for (size_t i = 0; i < sweep->n; i++) {
            const struct nb_record *r = &results->records[sweep->records[i]];
            if ((s->compared == WIDTHS ? r->c.width : r->c.dtype) != value) continue;
            nb_strbuf_clear(&label);
            label_of(r, s->compared, &label);
            nb_figure_entry(f, label.text);
        }
    nb_strbuf_release(&label);
}

static void fill(struct nb_figure *f, const struct subject *s, const struct nb_results *results,
                 const struct nb_sweep *sweep) {
    struct nb_strbuf label = {0};
    f->n_panels = 2;
    f->panels[0] = (struct nb_panel){"Compulsory bytes moved", "row length", "GB/s", NB_SCALE_LENGTH, NB_SCALE_LINEAR};
    f->panels[1] = (struct nb_panel){"Share of the attainable", "row length", NULL, NB_SCALE_LENGTH, NB_SCALE_ROOF};
    order_legend(f, s, results, sweep);
    for (size_t i = 0; i < sweep->n; i++) {
        const struct nb_record *r = &results->records[sweep->records[i]];
        if (s->compared == KERNELS && !is_fastest_width(results, sweep, r)) continue;
        nb_strbuf_clear(&label);
        label_of(r, s->compared, &label);
        size_t entry = nb_figure_entry(f, label.text);
        nb_figure_add(f, 0, entry, rate_point(r));
        nb_figure_add(f, 1, entry, roof_point(r));
    }
    nb_figure_sort(f);
    nb_strbuf_release(&label);
}

static void name_figure(const struct subject *s, struct nb_strbuf *name, struct nb_strbuf *title) {
    const char *dtype = nb_formats[s->dtype].name, *backward = s->pass == NB_BACKWARD ? ", backward" : "";
    switch (s->compared) {
    case KERNELS:
        nb_strbuf_addf(name, "kernels-%s-%s-%s", nb_op_names[s->op], nb_pass_names[s->pass], dtype);
        nb_strbuf_addf(title, "%s %s%s: kernels, each at its fastest width", nb_op_names[s->op], dtype, backward);
        break;
    case WIDTHS:
        nb_strbuf_addf(name, "widths-%s-%s", s->kernel, dtype);
        nb_strbuf_addf(title, "%s %s%s: SIMD widths", s->kernel, dtype, backward);
        break;
    case DTYPES:
        nb_strbuf_addf(name, "dtypes-%s", s->kernel);
        nb_strbuf_addf(title, "%s%s: dtypes at width %s", s->kernel, backward, nb_width_names[s->width]);
        break;
    }
}

static const char *const free_with_dtype[] = {"dtype", "cast", "param_dtype", "round_sum", NULL};

static size_t count_dtypes(const struct nb_results *results, const struct nb_sweep *sweep) {
    size_t n[NB_N_DTYPES] = {0}, different = 0;
    for (size_t i = 0; i < sweep->n; i++) different += n[results->records[sweep->records[i]].c.dtype]++ == 0;
    return different;
}

/* DTYPES: of the widths that compare several, the one with the most cases, then the widest. */
static void choose_width(struct subject *s, const struct nb_results *results) {
    uint32_t best = NB_N_WIDTHS;
    size_t most = 0;
    for (uint32_t width = 0; width < NB_N_WIDTHS; width++) {
        struct nb_sweep sweep;
        s->width = width;
        nb_sweep_find(&sweep, results, NB_BY_LENGTH, belongs, s, free_with_dtype);
        bool compares = sweep.n_steps > 1 && count_dtypes(results, &sweep) > 1;
        if (compares && sweep.n >= most) {
            most = sweep.n;
            best = width;
        }
        nb_sweep_release(&sweep);
    }
    s->width = best;
}

/* Returns whether the results allow the figure. */
static bool draw(struct nb_figures *figures, const struct nb_results *results, struct subject *s) {
    struct nb_sweep sweep;
    struct nb_strbuf name = {0}, title = {0}, caption_text = {0};
    if (s->compared == DTYPES) choose_width(s, results);
    if (s->width == NB_N_WIDTHS) return false;
    nb_sweep_find(&sweep, results, NB_BY_LENGTH, belongs, s, s->compared == DTYPES ? free_with_dtype : NULL);
    name_figure(s, &name, &title);
    struct nb_figure *f = nb_figures_new(figures, results, name.text);
    fill(f, s, results, &sweep);
    bool drawn = sweep.n_steps > 1 && (s->compared == KERNELS || f->n_entries > 1);
    if (drawn) {
        f->title = nb_strdup(title.text);
        f->subtitle = nb_strdup(sweep.subtitle);
        nb_strbuf_addf(&caption_text, "%sEqual everywhere: %s.", caption, sweep.constants);
        f->caption = caption_text.text;
    } else {
        nb_figures_drop_last(figures);
    }
    nb_strbuf_release(&name);
    nb_strbuf_release(&title);
    nb_sweep_release(&sweep);
    return drawn;
}

/* ---- which figures there are to draw ---- */

struct subjects {
    struct subject *list;
    size_t n;
};

static bool same_subject(const struct subject *a, const struct subject *b) {
    if (a->compared != b->compared || a->op != b->op || a->pass != b->pass) return false;
    if (a->compared != DTYPES && a->dtype != b->dtype) return false;
    return a->compared == KERNELS || strcmp(a->kernel, b->kernel) == 0;
}

static void add_subject(struct subjects *all, struct subject s) {
    for (size_t i = 0; i < all->n; i++)
        if (same_subject(&all->list[i], &s)) return;
    all->list = nb_realloc(all->list, all->n + 1, sizeof *all->list);
    s.kernel = nb_strdup(s.kernel);
    all->list[all->n++] = s;
}

static void find_subjects(struct subjects *all, const struct nb_results *results, enum compared compared) {
    struct nb_strbuf kernel = {0};
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_case *c = &results->records[i].c;
        if (!nb_record_timed(&results->records[i]) || c->op == NB_OP_COPY) continue;
        nb_strbuf_clear(&kernel);
        nb_kernel_name(c, &kernel);
        add_subject(all, (struct subject){compared, c->op, c->pass, c->dtype, kernel.text, c->width});
    }
    nb_strbuf_release(&kernel);
}

static void add_missing(const struct subject *s, struct nb_strbuf *missing) {
    nb_strbuf_addf(missing, "%s%s", missing->len ? ", " : "", s->compared == KERNELS ? nb_op_names[s->op] : s->kernel);
    if (s->compared != DTYPES) nb_strbuf_addf(missing, " %s", nb_formats[s->dtype].name);
}

void nb_plot_speed(const struct nb_results *results, struct nb_figures *figures) {
    static const char *const needs[] = {
        "kernels of an op: fewer than two row lengths with everything else equal",
        "widths of a kernel: fewer than two row lengths, or widths, with everything else equal",
        "dtypes of a kernel: fewer than two row lengths, or dtypes, with everything else equal"};
    for (int compared = KERNELS; compared <= DTYPES; compared++) {
        struct subjects all = {0};
        struct nb_strbuf missing = {0};
        find_subjects(&all, results, (enum compared)compared);
        for (size_t i = 0; i < all.n; i++)
            if (!draw(figures, results, &all.list[i])) add_missing(&all.list[i], &missing);
        if (missing.len) nb_figures_note(figures, "%s: %s", needs[compared], missing.text);
        for (size_t i = 0; i < all.n; i++) free(all.list[i].kernel);
        free(all.list);
        nb_strbuf_release(&missing);
    }
}
