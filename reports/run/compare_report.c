// SPDX-License-Identifier: Apache-2.0
/* The comparison as a page, on a terminal or in Markdown: first what the runs differ in, since that decides what the figures mean,
 * then the cases that may be ranked, the others with the reason, and what is in one run alone. */
#include <math.h>
#include <string.h>

#include "reports/run/report.h"
#include "reports/text/output.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/log.h"

enum { MOST_ONLY = 20, MOST_ACCURACY = 50 };

struct comparing {
    const struct nb_comparison *c;       /* the last run and the first */
    const struct nb_comparison *between; /* the runs between, each with the first */
    size_t n_between;
    struct nb_key_parts parts;
    struct nb_page page;
    struct nb_strbuf text; /* a sentence in the making */
};

static const char *const side_titles[NB_N_SIDES] = {"before", "after"};

/* The sentence in p->text, which is emptied. */
static void say(struct comparing *p) { nb_page_tell(&p->page, &p->text); }

static void add_key(const struct comparing *p, struct nb_grid *grid, const struct nb_compared *c) {
    nb_key_parts_short(&p->parts, c->sides[NB_BEFORE]->key, &grid->cell);
    nb_grid_end_cell(grid);
}

/* ---- the runs ----------------------------------------------------------------------------------------------------------- */

static void print_run(struct comparing *p, int side) {
    const struct nb_results *r = p->c->runs[side];
    const struct nb_run_noise *n = &p->c->noise[side];
    nb_strbuf_addf(&p->text, "%s: %s, %s, %s; %zu timed, %zu noisy", side_titles[side], r->dir ? r->dir : "?",
                   nb_meta_text(r, "config"), nb_meta_text(r, "started"), n->n_timed, n->n_noisy);
    if (isfinite(n->preempted))
        nb_strbuf_addf(&p->text, ", %.2g%% of the samples preempted or migrated", 100 * n->preempted);
    if (isfinite(n->wall_per_cpu)) nb_strbuf_addf(&p->text, ", wall time %.2f x CPU time", n->wall_per_cpu);
    say(p);
}

static void print_differences(struct comparing *p) {
    struct nb_grid grid = nb_grid_of("differs", "before", "after");
    nb_page_heading(&p->page, 3, "The runs");
    for (int side = 0; side < NB_N_SIDES; side++) print_run(p, side);
    nb_strbuf_add(p->page.out, "\n");
    if (p->c->n_differences == 0) {
        nb_strbuf_add(&p->text, "The same machine, build and plan.");
        say(p);
        return;
    }
    for (size_t i = 0; i < p->c->n_differences; i++) {
        const struct nb_difference *d = &p->c->differences[i];
        nb_grid_style(&grid, d->forbids_times ? NB_GRID_DOUBTFUL : NB_GRID_PLAIN);
        nb_grid_add(&grid, d->path);
        for (int side = 0; side < NB_N_SIDES; side++) nb_grid_add(&grid, d->values[side]);
    }
    nb_page_grid(&p->page, &grid);
    if (!p->c->same_cpu)
        nb_strbuf_add(&p->text, "Different CPUs, or CPUs not known: times are not compared, only ratios that were "
                                "measured inside each run.");
    if (!p->c->same_plan)
        nb_strbuf_addf(&p->text, "%sMeasured by different plans: nothing is ranked.", p->text.len ? " " : "");
    if (!p->text.len) return;
    nb_strbuf_add(p->page.out, "\n");
    say(p);
}

/* ---- cases -------------------------------------------------------------------------------------------------------------- */

static void add_interval(struct nb_grid *grid, const struct nb_interval *i, const char *reason) {
    nb_strbuf_add(&grid->cell, reason);
    if (!reason[0]) nb_format_ratio(&grid->cell, *i);
    nb_grid_end_cell(grid);
}

static void add_case(const struct comparing *p, struct nb_grid *grid, const struct nb_compared *c) {
    static const enum nb_grid_style styles[NB_N_CHANGES] = {NB_GRID_PLAIN, NB_GRID_PLAIN, NB_GRID_BAD, NB_GRID_GOOD,
                                                            NB_GRID_DOUBTFUL};
    nb_grid_style(grid, styles[c->change]);
    add_key(p, grid, c);
    if (c->change == NB_CHANGE_REFUSED) {
        nb_grid_add(grid, c->refused);
        return;
    }
    nb_grid_add(grid, nb_change_name(c->change));
    add_interval(grid, &c->to_copy, c->copy_reason);
    add_interval(grid, &c->to_reference, c->reference_reason);
    add_interval(grid, &c->time, c->time_reason);
}

static void print_ranked(struct comparing *p) {
    const struct nb_comparison *c = p->c;
    struct nb_grid grid = nb_grid_of("case", "change", "against the copy", "against the reference", "time");
    const size_t n_ranked = c->n_common - c->n_changes[NB_CHANGE_REFUSED];
    if (n_ranked == 0) return;
    nb_page_heading(&p->page, 3, "After / before: above 1 is slower");
    grid.right = (const bool[]){false, false, true, true, true};
    grid.ranks = (const int[]){NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, 2, 1};
    for (size_t i = 0; i < n_ranked; i++) add_case(p, &grid, &c->cases[c->order[i]]);
    nb_page_grid(&p->page, &grid);
    nb_strbuf_add(p->page.out, "\n");
    nb_strbuf_add(&p->text,
                  "Each interval is at 95 % for its case alone: of cases in which nothing changed, one in twenty "
                  "shows something. Times of two moments differ by tens of percent on a shared machine with "
                  "nothing changed, and rank nothing. `normbench gate` decides; this does not.");
    say(p);
}

/* What that comparison says of a case of this one; null: it is not in both of its runs. */
static const struct nb_compared *same_case(const struct nb_comparison *other, const struct nb_compared *c) {
    for (size_t i = 0; i < other->n_common; i++)
        if (strcmp(other->cases[i].sides[NB_BEFORE]->key, c->sides[NB_BEFORE]->key) == 0) return &other->cases[i];
    return NULL;
}

static void print_between(struct comparing *p) {
    const size_t n = p->n_between + 1;
    const char **titles freed = nb_alloc(n + 1, sizeof *titles);
    int *ranks freed = nb_alloc(n + 1, sizeof *ranks);
    struct nb_grid grid;
    nb_page_heading(&p->page, 3, "Every run / the first, by the ratio that ranks");
    titles[0] = "case";
    ranks[0] = ranks[n] = NB_GRID_STAYS;
    for (size_t run = 0; run < n; run++) {
        const char *dir = p->between[run].runs[NB_AFTER]->dir;
        titles[run + 1] = dir ? dir : "?";
    }
    nb_grid_init(&grid, titles, n + 1);
    grid.ranks = ranks;
    for (size_t i = 0; i < p->c->n_common; i++) {
        const struct nb_compared *last = &p->c->cases[p->c->order[i]];
        add_key(p, &grid, last);
        for (size_t run = 0; run < n; run++) {
            const struct nb_compared *c = same_case(&p->between[run], last);
            const bool is_ranked = c && c->change != NB_CHANGE_REFUSED;
            add_interval(&grid, is_ranked ? nb_compared_rank(c) : &last->time, is_ranked ? "" : "-");
        }
    }
    nb_page_grid(&p->page, &grid);
    nb_strbuf_add(p->page.out, "\n");
    nb_strbuf_add(&p->text, "-: the case is not in that run, or not comparable; --format json has the reason.");
    say(p);
}

static void print_refused(struct comparing *p) {
    const struct nb_comparison *c = p->c;
    struct nb_grid grid = nb_grid_of("case", "not ranked because");
    if (c->n_changes[NB_CHANGE_REFUSED] == 0) return;
    nb_page_heading(&p->page, 3, "Not comparable");
    const size_t begin = c->n_common - c->n_changes[NB_CHANGE_REFUSED];
    const char *reason = c->cases[c->order[begin]].refused;
    bool alike = c->n_common - begin > 1;
    for (size_t i = begin; i < c->n_common; i++) alike &= strcmp(c->cases[c->order[i]].refused, reason) == 0;
    if (alike) {
        nb_strbuf_addf(&p->text, "All %zu: %s.", c->n_common - begin, reason);
        say(p);
        return;
    }
    for (size_t i = begin; i < c->n_common; i++) add_case(p, &grid, &c->cases[c->order[i]]);
    nb_page_grid(&p->page, &grid);
}

static void print_only(struct comparing *p, int side) {
    const struct nb_comparison *c = p->c;
    size_t n = 0;
    if (c->n_only[side] == 0) return;
    nb_page_heading(&p->page, 3, side == NB_BEFORE ? "Only before" : "Only after");
    for (size_t i = c->n_common; i < c->n; i++) {
        if (!c->cases[i].sides[side] || ++n > MOST_ONLY) continue;
        nb_key_parts_short(&p->parts, c->cases[i].sides[side]->key, &p->text);
        say(p);
    }
    if (n > MOST_ONLY) nb_strbuf_addf(p->page.out, "... and %zu more\n", n - MOST_ONLY);
}

/* ---- accuracy ----------------------------------------------------------------------------------------------------------- */

/* Where the record has none, no figures. */
static struct nb_accuracy accuracy_of(const struct nb_record *r) {
    return r->has_accuracy ? r->accuracy : (struct nb_accuracy){.max_ulp = NAN, .mean_ulp = NAN, .bias_u = NAN};
}

static void add_accuracy(const struct comparing *p, struct nb_grid *grid, const struct nb_compared *c) {
    const struct nb_record *before = c->sides[NB_BEFORE], *after = c->sides[NB_AFTER];
    nb_grid_style(grid, nb_status_failed(after->status) ? NB_GRID_BAD : NB_GRID_PLAIN);
    add_key(p, grid, c);
    nb_strbuf_add(&grid->cell, nb_status_name(before->status));
    if (c->status_differs) nb_strbuf_addf(&grid->cell, " -> %s", nb_status_name(after->status));
    nb_grid_end_cell(grid);
    nb_grid_put(grid, nb_format_digits, accuracy_of(before).max_ulp, 4);
    nb_grid_put(grid, nb_format_digits, accuracy_of(after).max_ulp, 4);
    nb_grid_put(grid, nb_format_digits, accuracy_of(before).bias_u, 4);
    nb_grid_put(grid, nb_format_digits, accuracy_of(after).bias_u, 4);
}

static void print_accuracy(struct comparing *p) {
    struct nb_grid grid = nb_grid_of("case", "status", "max ulp before", "after", "bias/u before", "after");
    size_t n = 0;
    if (p->c->n_inaccurate == 0) return;
    nb_page_heading(&p->page, 3, "Accuracy");
    grid.right = (const bool[]){false, false, true, true, true, true};
    grid.ranks = (const int[]){NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, 1, 1};
    for (size_t i = 0; i < p->c->n_common; i++) {
        const struct nb_compared *c = &p->c->cases[p->c->order[i]];
        if ((c->accuracy_differs || c->status_differs) && ++n <= MOST_ACCURACY) add_accuracy(p, &grid, c);
    }
    nb_page_grid(&p->page, &grid);
    if (n > MOST_ACCURACY)
        nb_strbuf_addf(p->page.out, "\n... and %zu more: --format json has them all.\n", n - MOST_ACCURACY);
}

/* ---- the page ----------------------------------------------------------------------------------------------------------- */

static void print_counts(struct comparing *p) {
    const struct nb_comparison *c = p->c;
    nb_strbuf_addf(&p->text, "%zu case%s in both runs", c->n_common, c->n_common == 1 ? "" : "s");
    for (int change = NB_N_CHANGES - 1; change >= 0; change--)
        if (c->n_changes[change])
            nb_strbuf_addf(&p->text, ", %zu %s", c->n_changes[change], nb_change_name((enum nb_change)change));
    nb_strbuf_addf(&p->text, "; %zu only before, %zu only after; results of %zu differ.", c->n_only[NB_BEFORE],
                   c->n_only[NB_AFTER], c->n_inaccurate);
    say(p);
}

static void init_parts(struct comparing *p) {
    const struct nb_comparison *c = p->c;
    const char **keys freed = nb_alloc(c->n + 1, sizeof *keys);
    for (size_t i = 0; i < c->n; i++)
        keys[i] = c->cases[i].sides[c->cases[i].sides[NB_BEFORE] ? NB_BEFORE : NB_AFTER]->key;
    nb_key_parts_init(&p->parts, keys, c->n);
}

static void print_page(struct comparing *p) {
    init_parts(p);
    if (p->page.markdown) nb_strbuf_add(p->page.out, "## normbench compare\n\n");
    print_counts(p);
    print_differences(p);
    nb_strbuf_add(&p->text, "All cases: ");
    const size_t before = p->text.len;
    nb_key_parts_common(&p->parts, &p->text);
    nb_strbuf_add(p->page.out, "\n");
    if (p->text.len > before) say(p);
    nb_strbuf_clear(&p->text);
    print_ranked(p);
    if (p->n_between > 0) print_between(p);
    print_refused(p);
    print_only(p, NB_BEFORE);
    print_only(p, NB_AFTER);
    print_accuracy(p);
    nb_key_parts_release(&p->parts);
    nb_strbuf_release(&p->text);
}

/* ---- as JSON: reports/schema/compare.schema.json describes it ---- */

static void run_to_json(cJSON *run, const struct nb_comparison *c, int side) {
    const struct nb_results *r = c->runs[side];
    const struct nb_run_noise *noise = &c->noise[side];
    const char *started = nb_meta_text(r, "started");
    nb_json_text(run, "folder", r->dir);
    nb_json_text(run, "config", nb_meta_text(r, "config"));
    nb_json_text(run, "started", *started ? started : NULL);
    cJSON_AddNumberToObject(run, "timed", (double)noise->n_timed);
    cJSON_AddNumberToObject(run, "noisy", (double)noise->n_noisy);
    nb_json_number(run, "preempted", noise->preempted);
    nb_json_number(run, "wall_per_cpu", noise->wall_per_cpu);
}

static void differences_to_json(cJSON *json, const struct nb_comparison *c) {
    cJSON *list = cJSON_AddArrayToObject(json, "differences");
    for (size_t i = 0; i < c->n_differences; i++) {
        const struct nb_difference *d = &c->differences[i];
        cJSON *one = nb_json_add_object(list);
        nb_json_text(one, "path", d->path);
        for (int side = 0; side < NB_N_SIDES; side++) nb_json_text(one, side_titles[side], d->values[side]);
        cJSON_AddBoolToObject(one, "forbids_times", d->forbids_times);
    }
}

static void ratio_to_json(cJSON *json, const char *name, const struct nb_interval *i, const char *reason) {
    nb_json_interval(json, name, i);
    nb_json_text(nb_json_get(json, name), "reason", reason[0] ? reason : NULL);
}

static void accuracy_to_json(cJSON *json, const struct nb_compared *c) {
    cJSON *accuracy = cJSON_AddObjectToObject(json, "accuracy");
    cJSON_AddBoolToObject(accuracy, "differs", c->accuracy_differs);
    for (int side = 0; side < NB_N_SIDES; side++) {
        const struct nb_accuracy a = accuracy_of(c->sides[side]);
        cJSON *one = cJSON_AddObjectToObject(accuracy, side_titles[side]);
        nb_json_text(one, "status", nb_status_name(c->sides[side]->status));
        nb_json_number(one, "max_ulp", a.max_ulp);
        nb_json_number(one, "mean_ulp", a.mean_ulp);
        nb_json_number(one, "bias_u", a.bias_u);
    }
}

static cJSON *case_to_json(const struct nb_compared *c) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "key", c->sides[NB_BEFORE]->key);
    nb_json_text(json, "change", nb_change_name(c->change));
    nb_json_text(json, "refused", c->refused[0] ? c->refused : NULL);
    ratio_to_json(json, "to_copy", &c->to_copy, c->copy_reason);
    ratio_to_json(json, "to_reference", &c->to_reference, c->reference_reason);
    ratio_to_json(json, "time", &c->time, c->time_reason);
    accuracy_to_json(json, c);
    return json;
}

static void cases_to_json(cJSON *json, const struct nb_comparison *c) {
    cJSON *cases = cJSON_AddArrayToObject(json, "cases");
    for (size_t i = 0; i < c->n_common; i++) cJSON_AddItemToArray(cases, case_to_json(&c->cases[c->order[i]]));
}

static cJSON *comparison_to_json(const struct comparing *p) {
    const struct nb_comparison *c = p->c;
    bool whole = nb_comparison_is_whole(c);
    cJSON *json = nb_json_document("1.1");
    for (size_t i = 0; i < p->n_between; i++) whole &= nb_comparison_is_whole(&p->between[i]);
    cJSON_AddBoolToObject(json, "whole", whole);
    cJSON_AddBoolToObject(json, "same_cpu", c->same_cpu);
    cJSON_AddBoolToObject(json, "same_plan", c->same_plan);
    for (int side = 0; side < NB_N_SIDES; side++)
        run_to_json(cJSON_AddObjectToObject(json, side_titles[side]), c, side);
    cJSON *between = cJSON_AddArrayToObject(json, "between");
    for (size_t i = 0; i < p->n_between; i++) {
        cJSON *one = nb_json_add_object(between);
        run_to_json(cJSON_AddObjectToObject(one, "run"), &p->between[i], NB_AFTER);
        cases_to_json(one, &p->between[i]);
    }
    differences_to_json(json, c);
    cases_to_json(json, c);
    cJSON *only = cJSON_AddObjectToObject(json, "only");
    for (int side = 0; side < NB_N_SIDES; side++) {
        cJSON *keys = cJSON_AddArrayToObject(only, side_titles[side]);
        for (size_t i = c->n_common; i < c->n; i++)
            if (c->cases[i].sides[side]) cJSON_AddItemToArray(keys, cJSON_CreateString(c->cases[i].sides[side]->key));
    }
    return json;
}

/* ---- formats ---- */

int nb_compare_print(const struct nb_comparison *comparisons, size_t n, const char *format, FILE *out) {
    struct nb_strbuf text = {0};
    struct comparing p = {.c = &comparisons[n - 1], .between = comparisons, .n_between = n - 1};
    if (strcmp(format, "json") == 0) return nb_output_json(comparison_to_json(&p), out);
    p.page = nb_page_for(out, strcmp(format, "markdown") == 0, &text);
    print_page(&p);
    return nb_output(&text, out);
}
