// SPDX-License-Identifier: Apache-2.0
/* The comparison as a page, on a terminal or in Markdown: first what the runs differ in, since that decides what the figures mean,
 * then the cases that may be ranked, the others with the reason, and what is in one run alone. */
#include "reports/run/compare_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/summary.h"
#include "reports/text/escape.h"
#include "reports/text/format.h"
#include "reports/text/grid.h"
#include "reports/text/key_parts.h"
#include "reports/text/output.h"
#include "reports/text/screen.h"
#include "src/core/log.h"

enum { MOST_ONLY = 20, MOST_ACCURACY = 50 };

struct page {
    const struct nb_comparison *c;
    struct nb_key_parts parts;
    bool markdown, color, utf8;
    size_t screen;
    struct nb_strbuf out, text; /* text: a sentence or cell in the making */
};

static const char *const side_titles[NB_N_SIDES] = {"before", "after"};

static void heading(struct page *p, const char *text) {
    nb_strbuf_addf(&p->out, p->markdown ? "\n### %s\n\n" : "\n%s\n", text);
}

/* The sentence in p->text, which is emptied. */
static void say(struct page *p) {
    if (p->markdown) {
        nb_escape_markdown(&p->out, p->text.text);
        nb_strbuf_add(&p->out, "\n\n");
    } else {
        nb_screen_wrap(&p->out, p->text.text, p->screen, p->utf8);
    }
    nb_strbuf_clear(&p->text);
}

static void print_grid(struct page *p, struct nb_grid *grid) {
    grid->screen = p->screen;
    if (p->markdown)
        nb_grid_add_markdown(grid, &p->out);
    else
        nb_grid_add_table(grid, p->color, &p->out);
    nb_grid_release(grid);
}

/* The text in p->text as a cell. */
static void add_cell(struct page *p, struct nb_grid *grid) {
    nb_grid_add(grid, p->text.text ? p->text.text : "");
    nb_strbuf_clear(&p->text);
    nb_strbuf_add(&p->text, "");
}

/* ---- the runs ----------------------------------------------------------------------------------------------------------- */

static void print_run(struct page *p, int side) {
    const struct nb_results *r = p->c->runs[side];
    const struct nb_run_noise *n = &p->c->noise[side];
    nb_strbuf_addf(&p->text, "%s: %s, %s, %s; %zu timed, %zu noisy", side_titles[side], r->dir ? r->dir : "?",
                   nb_meta_text(r, "config"), nb_meta_text(r, "started"), n->n_timed, n->n_noisy);
    if (isfinite(n->contaminated))
        nb_strbuf_addf(&p->text, ", %.2g %% of the samples disturbed", 100 * n->contaminated);
    if (isfinite(n->wall_per_cpu)) nb_strbuf_addf(&p->text, ", wall time %.2f x CPU time", n->wall_per_cpu);
    say(p);
}

static void print_differences(struct page *p) {
    static const char *const titles[] = {"differs", "before", "after"};
    static const int ranks[] = {NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS};
    struct nb_grid grid;
    heading(p, "The runs");
    for (int side = 0; side < NB_N_SIDES; side++) print_run(p, side);
    nb_strbuf_add(&p->out, "\n");
    if (p->c->n_differences == 0) {
        nb_strbuf_add(&p->text, "The same machine, build and plan.");
        say(p);
        return;
    }
    nb_grid_init(&grid, titles, 3);
    grid.ranks = ranks;
    for (size_t i = 0; i < p->c->n_differences; i++) {
        const struct nb_difference *d = &p->c->differences[i];
        nb_grid_style(&grid, d->forbids_times ? NB_GRID_DOUBTFUL : NB_GRID_PLAIN);
        nb_grid_add(&grid, d->path);
        for (int side = 0; side < NB_N_SIDES; side++) nb_grid_add(&grid, d->values[side]);
    }
    print_grid(p, &grid);
    if (!p->c->same_cpu)
        nb_strbuf_add(&p->text, "Different CPUs, or CPUs not known: times are not compared, only ratios that were "
                                "measured inside each run.");
    if (!p->c->same_plan)
        nb_strbuf_addf(&p->text, "%sMeasured by different plans: nothing is ranked.", p->text.len ? " " : "");
    if (!p->text.len) return;
    nb_strbuf_add(&p->out, "\n");
    say(p);
}

/* ---- cases -------------------------------------------------------------------------------------------------------------- */

static void add_interval(struct page *p, const struct nb_interval *i, const char *reason) {
    if (reason[0])
        nb_strbuf_add(&p->text, reason);
    else
        nb_format_interval(&p->text, i);
}

static void add_case(struct page *p, struct nb_grid *grid, const struct nb_compared *c) {
    static const enum nb_grid_style styles[NB_N_CHANGES] = {NB_GRID_PLAIN, NB_GRID_PLAIN, NB_GRID_BAD, NB_GRID_GOOD,
                                                            NB_GRID_DOUBTFUL};
    nb_grid_style(grid, styles[c->change]);
    nb_key_parts_short(&p->parts, c->sides[NB_BEFORE]->key, &p->text);
    add_cell(p, grid);
    if (c->change == NB_CHANGE_REFUSED) {
        nb_grid_add(grid, c->refused);
        return;
    }
    nb_grid_add(grid, nb_change_name(c->change));
    add_interval(p, &c->to_roof, c->roof_reason);
    add_cell(p, grid);
    add_interval(p, &c->to_reference, c->reference_reason);
    add_cell(p, grid);
    add_interval(p, &c->time, c->time_reason);
    add_cell(p, grid);
}

static void print_ranked(struct page *p) {
    static const char *const titles[] = {"case", "change", "against the roof", "against the reference", "time"};
    static const bool right[] = {false, false, true, true, true};
    static const int ranks[] = {NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, 2, 1};
    const struct nb_comparison *c = p->c;
    struct nb_grid grid;
    const size_t n_ranked = c->n_common - c->n_changes[NB_CHANGE_REFUSED];
    if (n_ranked == 0) return;
    heading(p, "After / before: above 1 is slower");
    nb_grid_init(&grid, titles, 5);
    grid.right = right;
    grid.ranks = ranks;
    for (size_t i = 0; i < n_ranked; i++) add_case(p, &grid, &c->cases[c->order[i]]);
    print_grid(p, &grid);
    nb_strbuf_add(&p->out, "\n");
    nb_strbuf_add(&p->text,
                  "Each interval is at 95 % for its case alone: of cases in which nothing changed, one in twenty "
                  "shows something. Times of two moments differ by tens of percent on a shared machine with "
                  "nothing changed, and rank nothing. `normbench gate` decides; this does not.");
    say(p);
}

static void print_refused(struct page *p) {
    static const char *const titles[] = {"case", "not ranked because"};
    static const int ranks[] = {NB_GRID_STAYS, NB_GRID_STAYS};
    const struct nb_comparison *c = p->c;
    struct nb_grid grid;
    if (c->n_changes[NB_CHANGE_REFUSED] == 0) return;
    heading(p, "Not comparable");
    nb_grid_init(&grid, titles, 2);
    grid.ranks = ranks;
    for (size_t i = c->n_common - c->n_changes[NB_CHANGE_REFUSED]; i < c->n_common; i++)
        add_case(p, &grid, &c->cases[c->order[i]]);
    print_grid(p, &grid);
}

static void print_only(struct page *p, int side) {
    const struct nb_comparison *c = p->c;
    size_t n = 0;
    if (c->n_only[side] == 0) return;
    heading(p, side == NB_BEFORE ? "Only before" : "Only after");
    for (size_t i = c->n_common; i < c->n; i++) {
        if (!c->cases[i].sides[side] || ++n > MOST_ONLY) continue;
        nb_strbuf_add(&p->out, p->markdown ? "- " : "");
        nb_key_parts_short(&p->parts, c->cases[i].sides[side]->key, &p->text);
        if (p->markdown)
            nb_escape_markdown(&p->out, p->text.text);
        else
            nb_escape_terminal(&p->out, p->text.text, p->utf8);
        nb_strbuf_add(&p->out, "\n");
        nb_strbuf_clear(&p->text);
    }
    if (n > MOST_ONLY) nb_strbuf_addf(&p->out, "%s... and %zu more\n", p->markdown ? "- " : "", n - MOST_ONLY);
}

/* ---- accuracy ----------------------------------------------------------------------------------------------------------- */

static void add_figure(struct page *p, struct nb_grid *grid, const struct nb_record *r, double value) {
    if (r->has_accuracy) nb_format_digits(&p->text, value, 4);
    add_cell(p, grid);
}

static void add_accuracy(struct page *p, struct nb_grid *grid, const struct nb_compared *c) {
    const struct nb_record *before = c->sides[NB_BEFORE], *after = c->sides[NB_AFTER];
    nb_grid_style(grid, nb_status_failed(after->status) ? NB_GRID_BAD : NB_GRID_PLAIN);
    nb_key_parts_short(&p->parts, before->key, &p->text);
    add_cell(p, grid);
    nb_strbuf_add(&p->text, nb_status_name(before->status));
    if (c->status_differs) nb_strbuf_addf(&p->text, " -> %s", nb_status_name(after->status));
    add_cell(p, grid);
    add_figure(p, grid, before, before->accuracy.max_ulp);
    add_figure(p, grid, after, after->accuracy.max_ulp);
    add_figure(p, grid, before, before->accuracy.bias_u);
    add_figure(p, grid, after, after->accuracy.bias_u);
}

static void print_accuracy(struct page *p) {
    static const char *const titles[] = {"case", "status", "max ulp before", "after", "bias/u before", "after"};
    static const bool right[] = {false, false, true, true, true, true};
    static const int ranks[] = {NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, 1, 1};
    struct nb_grid grid;
    size_t n = 0;
    if (p->c->n_inaccurate == 0) return;
    heading(p, "Accuracy");
    nb_grid_init(&grid, titles, 6);
    grid.right = right;
    grid.ranks = ranks;
    for (size_t i = 0; i < p->c->n_common; i++) {
        const struct nb_compared *c = &p->c->cases[p->c->order[i]];
        if ((c->accuracy_differs || c->status_differs) && ++n <= MOST_ACCURACY) add_accuracy(p, &grid, c);
    }
    print_grid(p, &grid);
    if (n > MOST_ACCURACY)
        nb_strbuf_addf(&p->out, "\n... and %zu more: --format json has them all.\n", n - MOST_ACCURACY);
}

/* ---- the page ----------------------------------------------------------------------------------------------------------- */

static void print_counts(struct page *p) {
    const struct nb_comparison *c = p->c;
    nb_strbuf_addf(&p->text, "%zu case%s in both runs", c->n_common, c->n_common == 1 ? "" : "s");
    for (int change = NB_N_CHANGES - 1; change >= 0; change--)
        if (c->n_changes[change])
            nb_strbuf_addf(&p->text, ", %zu %s", c->n_changes[change], nb_change_name((enum nb_change)change));
    nb_strbuf_addf(&p->text, "; %zu only before, %zu only after; results of %zu differ.", c->n_only[NB_BEFORE],
                   c->n_only[NB_AFTER], c->n_inaccurate);
    say(p);
}

static void init_parts(struct page *p) {
    const struct nb_comparison *c = p->c;
    const char **keys = nb_alloc(c->n + 1, sizeof *keys);
    for (size_t i = 0; i < c->n; i++)
        keys[i] = c->cases[i].sides[c->cases[i].sides[NB_BEFORE] ? NB_BEFORE : NB_AFTER]->key;
    nb_key_parts_init(&p->parts, keys, c->n);
    free((void *)keys);
}

static void print_page(struct page *p) {
    init_parts(p);
    if (p->markdown) nb_strbuf_add(&p->out, "## normbench compare\n");
    print_differences(p);
    nb_strbuf_add(&p->text, "All cases: ");
    const size_t before = p->text.len;
    nb_key_parts_common(&p->parts, &p->text);
    nb_strbuf_add(&p->out, "\n");
    if (p->text.len > before) say(p);
    nb_strbuf_clear(&p->text);
    print_ranked(p);
    print_refused(p);
    print_only(p, NB_BEFORE);
    print_only(p, NB_AFTER);
    print_accuracy(p);
    nb_strbuf_add(&p->out, "\n");
    print_counts(p);
    nb_key_parts_release(&p->parts);
    nb_strbuf_release(&p->text);
}

bool nb_compare_format_known(const char *format) {
    return strcmp(format, "table") == 0 || strcmp(format, "markdown") == 0 || strcmp(format, "json") == 0;
}

int nb_compare_print(const struct nb_comparison *c, const char *format, FILE *out) {
    struct page page = {.c = c, .markdown = strcmp(format, "markdown") == 0, .utf8 = nb_utf8_wanted()};
    if (strcmp(format, "json") == 0) {
        nb_compare_add_json(c, &page.out);
        return nb_output(&page.out, out);
    }
    page.color = nb_screen_color(out);
    page.screen = nb_screen_width(out);
    print_page(&page);
    return nb_output(&page.out, out);
}
