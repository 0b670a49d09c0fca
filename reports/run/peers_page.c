// SPDX-License-Identifier: Apache-2.0
/* Tables of comparisons. A ratio is their time over ours: above 1 ours is faster. */
#include "reports/run/peers_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/overheads.h"
#include "reports/run/summary.h"
#include "reports/text/escape.h"
#include "reports/text/format.h"
#include "reports/text/grid.h"
#include "reports/text/libraries.h"
#include "reports/text/screen.h"
#include "src/core/case.h"
#include "src/core/dtype.h"

struct page {
    const struct nb_results *results;
    const struct nb_peer_comparisons *comparisons;
    struct nb_peers_style style;
    struct nb_strbuf *out, cell;
};

static void heading(struct page *p, const char *text) {
    nb_strbuf_addf(p->out, p->style.markdown ? "\n## %s\n\n" : "\n%s\n", text);
}

/* A sentence, escaped for the reader. */
static void say(struct page *p, const char *text) {
    if (p->style.markdown) {
        nb_escape_markdown(p->out, text);
        nb_strbuf_add(p->out, "\n\n");
    } else {
        nb_screen_wrap(p->out, text, p->style.screen, nb_utf8_wanted());
    }
}

static void add(struct page *p, struct nb_grid *grid) {
    nb_grid_add(grid, p->cell.text ? p->cell.text : "");
    nb_strbuf_clear(&p->cell);
    nb_strbuf_add(&p->cell, "");
}

static void print_grid(struct page *p, struct nb_grid *grid) {
    grid->screen = p->style.screen;
    if (p->style.markdown) {
        nb_grid_add_markdown(grid, p->out);
        nb_strbuf_add(p->out, "\n"); /* which ends the table */
    } else {
        nb_grid_add_table(grid, p->style.color, p->out);
    }
    nb_grid_release(grid);
}

static const char *layout_of(const struct nb_case *c) {
    return c->shape.layout == NB_ROWS ? "" : nb_layout_name(c->shape.layout);
}

/* ---- means -------------------------------------------------------------------------------------------------------- */

static void add_count(struct page *p, struct nb_grid *grid, size_t n) {
    if (n > 0) nb_strbuf_addf(&p->cell, "%zu", n);
    add(p, grid);
}

static void add_mean(struct page *p, struct nb_grid *grid, const struct nb_peer_mean *m) {
    const struct nb_case *c = &m->first->theirs->c;
    nb_grid_style(grid, m->n_of[NB_PEER_COMPARISON_BEHIND] > 0 ? NB_GRID_BAD : NB_GRID_PLAIN);
    nb_grid_add(grid, m->first->library);
    nb_grid_add(grid, nb_op_name(c->op));
    nb_grid_add(grid, nb_pass_name(c->pass));
    nb_grid_add(grid, layout_of(c));
    add_count(p, grid, m->n);
    nb_format_interval(&p->cell, &m->ratio);
    add(p, grid);
    if (m->n > 0) nb_strbuf_addf(&p->cell, "%.2f", m->median);
    add(p, grid);
    if (m->n > 0) nb_strbuf_addf(&p->cell, "%.2f to %.2f", m->least, m->most);
    add(p, grid);
    nb_format_percent(&p->cell, m->attained);
    add(p, grid);
    add_count(p, grid, m->n_of[NB_PEER_COMPARISON_AHEAD]);
    add_count(p, grid, m->n_of[NB_PEER_COMPARISON_EVEN] + m->n_of[NB_PEER_COMPARISON_NOT_CONFIRMED]);
    add_count(p, grid, m->n_of[NB_PEER_COMPARISON_LOOKS_BEHIND]);
    add_count(p, grid, m->n_of[NB_PEER_COMPARISON_BEHIND]);
    add_count(p, grid, m->n_of[NB_PEER_COMPARISON_UNKNOWN]);
}

static void print_means(struct page *p) {
    static const char *const titles[] = {"library",        "op",           "pass",   "layout",   "cells",
                                         "geometric mean", "median",       "range",  "attained", "ahead",
                                         "even",           "looks behind", "behind", "no figure"};
    static const bool right[] = {false, false, false, false, true, true, true,
                                 true,  true,  true,  true,  true, true, true};
    struct nb_peer_mean *means;
    struct nb_grid grid;
    const size_t n = nb_peer_means(p->comparisons, &means);
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    grid.right = right;
    for (size_t i = 0; i < n; i++) add_mean(p, &grid, &means[i]);
    heading(p, "Time of theirs / time of ours, by op");
    print_grid(p, &grid);
    free(means);
}

/* ---- comparisons -------------------------------------------------------------------------------------------------- */

static enum nb_grid_style style_of(enum nb_peer_comparison_verdict v) {
    if (v == NB_PEER_COMPARISON_BEHIND) return NB_GRID_BAD;
    return v == NB_PEER_COMPARISON_LOOKS_BEHIND || v == NB_PEER_COMPARISON_UNKNOWN ? NB_GRID_DOUBTFUL : NB_GRID_PLAIN;
}

/* "ahead"; "behind, 0.91 [0.89, 0.93] on 16 fresh launches" */
static void add_verdict(struct page *p, struct nb_grid *grid, const struct nb_peer_comparison *d) {
    nb_strbuf_add(&p->cell, nb_peer_comparison_verdict_name(d->verdict));
    for (char *at = p->cell.text; *at; at++)
        if (*at == '_') *at = ' ';
    if (d->n_confirmed > 0) {
        nb_strbuf_add(&p->cell, ": ");
        nb_format_interval(&p->cell, &d->confirmed);
        nb_strbuf_addf(&p->cell, " on %d fresh launches", d->n_confirmed);
    }
    if (d->reason) nb_strbuf_addf(&p->cell, ": %s", d->reason);
    add(p, grid);
}

static void add_comparison(struct page *p, struct nb_grid *grid, const struct nb_peer_comparison *d) {
    const struct nb_record *ours = d->ours;
    const struct nb_case *c = &d->theirs->c;
    const struct nb_attainable *a = ours && ours->has_timing ? &ours->timing.attainable : NULL;
    nb_grid_style(grid, style_of(d->verdict));
    nb_grid_add(grid, d->library);
    nb_grid_add(grid, nb_op_name(c->op));
    nb_grid_add(grid, nb_pass_name(c->pass));
    nb_grid_add(grid, nb_formats[c->dtype].name);
    nb_grid_add(grid, c->shape.text);
    nb_grid_add(grid, c->op == NB_OP_BATCHNORM ? nb_mode_names[c->mode] : "");
    nb_strbuf_addf(&p->cell, "%d", c->threads);
    add(p, grid);
    nb_strbuf_add(&p->cell, "");
    if (ours) nb_kernel_name(&ours->c, &p->cell);
    if (ours) nb_strbuf_addf(&p->cell, " %s", nb_width_name(ours->c.width));
    add(p, grid);
    if (ours && ours->has_timing) nb_format_time(&p->cell, ours->timing.time_ns.value);
    add(p, grid);
    if (d->theirs->has_timing) nb_format_time(&p->cell, d->theirs->timing.time_ns.value);
    add(p, grid);
    nb_format_interval(&p->cell, &d->ratio);
    add(p, grid);
    if (a && a->bound[0]) {
        nb_format_percent(&p->cell, a->share.value);
        nb_strbuf_addf(&p->cell, " %s", a->bound);
    }
    add(p, grid);
    add_verdict(p, grid, d);
}

static bool is_behind(const struct nb_peer_comparison *d) {
    return d->verdict == NB_PEER_COMPARISON_BEHIND || d->verdict == NB_PEER_COMPARISON_LOOKS_BEHIND ||
           d->verdict == NB_PEER_COMPARISON_NOT_CONFIRMED;
}

/* All comparisons, or those alone that are or were behind; returns how many. */
static size_t print_comparisons(struct page *p, bool behind_alone, const char *title) {
    static const char *const titles[] = {"library", "op",   "pass",   "dtype",         "shape",    "mode",   "threads",
                                         "ours",    "time", "theirs", "theirs / ours", "attained", "verdict"};
    static const bool right[] = {false, false, false, false, false, false, true, false, true, true, true, true, false};
    struct nb_grid grid;
    size_t n = 0;
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    grid.right = right;
    for (size_t i = 0; i < p->comparisons->n; i++) {
        if (behind_alone && !is_behind(&p->comparisons->items[i])) continue;
        add_comparison(p, &grid, &p->comparisons->items[i]);
        n++;
    }
    if (n > 0) {
        heading(p, title);
        print_grid(p, &grid);
    } else {
        nb_grid_release(&grid);
    }
    return n;
}

static void print_rules(struct page *p) {
    struct nb_strbuf text = {0};
    const struct nb_compare_settings *s = &p->comparisons->settings;
    nb_strbuf_addf(&text, "%zu comparisons", p->comparisons->n_comparisons);
    nb_strbuf_addf(
        &text,
        ". A ratio is the time of theirs over the time of ours, from samples of the same blocks, with its 95%% "
        "interval: above 1 ours is faster. Behind is what is slower by more than %.3g %% with its whole "
        "interval and, measured again in at least %d fresh processes, is so there; attained is what ours "
        "has of the larger of copy and core.",
        100 * s->behind, s->confirm_launches);
    say(p, text.text);
    nb_strbuf_release(&text);
}

/* Lines that other parts of the reports make. */
static void print_lines(struct page *p, const char *title,
                        void (*print)(const struct nb_results *results, struct nb_strbuf *out)) {
    struct nb_strbuf text = {0};
    nb_strbuf_add(&text, "");
    print(p->results, &text);
    if (text.len > 0) heading(p, title);
    for (char *line = strtok(text.text, "\n"); line; line = strtok(NULL, "\n")) say(p, line);
    nb_strbuf_release(&text);
}

void nb_peers_print(const struct nb_results *results, const struct nb_peer_comparisons *comparisons,
                    const struct nb_peers_style *style, struct nb_strbuf *out) {
    struct page p = {.results = results, .comparisons = comparisons, .style = *style, .out = out};
    struct nb_strbuf footer = {0};
    nb_meta_footer(results, &footer);
    nb_strbuf_add(out, style->markdown ? "# Our kernels and others\n\n" : "");
    if (footer.len > 0) say(&p, footer.text);
    print_rules(&p);
    if (comparisons->n == 0)
        say(&p, "Nothing to compare with: no other library's kernel ran. `normbench list peers` says what is missing "
                "and how to get it.");
    if (comparisons->n > 0) print_means(&p);
    if (comparisons->n > 0 && print_comparisons(&p, true, "Behind, or looking so at first") == 0)
        say(&p, "No comparison looks behind.");
    print_comparisons(&p, false, "All comparisons");
    print_lines(&p, "Libraries", nb_libraries_print);
    print_lines(&p, "What a call costs", nb_overheads_print);
    nb_strbuf_release(&footer);
    nb_strbuf_release(&p.cell);
}
