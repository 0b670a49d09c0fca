// SPDX-License-Identifier: Apache-2.0
/* Our kernels against others: tables of comparisons, the same as a document, and both files of a run.
 * A ratio is their time over ours: above 1 ours is faster. */
#include "reports/run/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/names.h"
#include "src/record/call_overhead.h"

struct peers {
    const struct nb_peer_comparisons *comparisons;
    const struct nb_page *page;
};

/* An empty line ends a table in Markdown. */
static void print_grid(const struct peers *p, struct nb_grid *grid) {
    nb_page_grid(p->page, grid);
    if (p->page->markdown) nb_strbuf_add(p->page->out, "\n");
}

/* ---- means -------------------------------------------------------------------------------------------------------- */

static void add_count(struct nb_grid *grid, size_t n) { nb_grid_add_known(grid, n > 0, "%zu", n); }

static void mean_to_row(struct nb_grid *grid, const struct nb_peer_mean *m) {
    const struct nb_case *c = &m->first->theirs->c;
    nb_grid_style(grid, m->n_of[NB_PEER_COMPARISON_BEHIND] > 0 ? NB_GRID_BAD : NB_GRID_PLAIN);
    nb_grid_row(grid, m->first->library, nb_op_names[c->op], nb_pass_names[c->pass],
                c->shape.layout == NB_ROWS ? "" : nb_layout_names[c->shape.layout]);
    add_count(grid, m->n);
    nb_grid_put(grid, nb_format_ratio, m->ratio);
    nb_grid_add_known(grid, m->n > 0, "%.2f", m->median);
    nb_grid_add_known(grid, m->n > 0, "%.2f to %.2f", m->least, m->most);
    nb_grid_put(grid, nb_format_percent, m->roofline_share);
    add_count(grid, m->n_of[NB_PEER_COMPARISON_AHEAD]);
    add_count(grid, m->n_of[NB_PEER_COMPARISON_EVEN] + m->n_of[NB_PEER_COMPARISON_NOT_CONFIRMED]);
    add_count(grid, m->n_of[NB_PEER_COMPARISON_LOOKS_BEHIND]);
    add_count(grid, m->n_of[NB_PEER_COMPARISON_BEHIND]);
    add_count(grid, m->n_of[NB_PEER_COMPARISON_UNKNOWN]);
}

static void print_means(const struct peers *p) {
    struct nb_peer_mean *means freed;
    struct nb_grid grid = nb_grid_of("library", "op", "pass", "layout", "cells", "geometric mean", "median", "range",
                                     "% of roofline", "ahead", "even", "looks behind", "behind", "no figure");
    const size_t n = nb_peer_means(p->comparisons, &means);
    grid.right = (const bool[14]){[4] = true, true, true, true, true, true, true, true, true, true};
    for (size_t i = 0; i < n; i++) mean_to_row(&grid, &means[i]);
    nb_page_heading(p->page, 2, "Time of theirs / time of ours, by op");
    print_grid(p, &grid);
}

/* ---- comparisons -------------------------------------------------------------------------------------------------- */

static enum nb_grid_style style_of(enum nb_peer_comparison_verdict v) {
    if (v == NB_PEER_COMPARISON_BEHIND) return NB_GRID_BAD;
    return v == NB_PEER_COMPARISON_LOOKS_BEHIND || v == NB_PEER_COMPARISON_UNKNOWN ? NB_GRID_DOUBTFUL : NB_GRID_PLAIN;
}

static const char *verdict_name(enum nb_peer_comparison_verdict v) {
    static const char *const names[NB_N_PEER_COMPARISON_VERDICTS] = {"ahead",         "even",         "behind",
                                                                     "not_confirmed", "looks_behind", "unknown"};
    return names[v];
}

/* "ahead"; "behind, 0.91 [0.89, 0.93] on 16 fresh launches" */
static void add_verdict(struct nb_grid *grid, const struct nb_peer_comparison *d) {
    nb_strbuf_add(&grid->cell, verdict_name(d->verdict));
    for (char *at = grid->cell.text; *at; at++)
        if (*at == '_') *at = ' ';
    if (d->n_confirmed > 0) {
        nb_strbuf_add(&grid->cell, ": ");
        nb_format_ratio(&grid->cell, d->confirmed);
        nb_strbuf_addf(&grid->cell, " on %d fresh launches", d->n_confirmed);
    }
    if (d->reason) nb_strbuf_addf(&grid->cell, ": %s", d->reason);
    nb_grid_end_cell(grid);
}

static double time_ns(const struct nb_record *r) { return r && r->has_timing ? r->timing.time_ns.value : (double)NAN; }

static void comparison_to_row(struct nb_grid *grid, const struct nb_peer_comparison *d) {
    const struct nb_record *ours = d->ours;
    const struct nb_case *c = &d->theirs->c;
    const struct nb_roofline *a = ours && ours->has_timing ? &ours->timing.roofline : NULL;
    nb_grid_style(grid, style_of(d->verdict));
    nb_grid_row(grid, d->library, nb_op_names[c->op], nb_pass_names[c->pass], nb_formats[c->dtype].name, c->shape.text,
                c->op == NB_OP_BATCHNORM ? nb_mode_names[c->mode] : "");
    nb_grid_addf(grid, "%d", c->threads);
    if (ours) nb_kernel_name(&ours->c, &grid->cell);
    if (ours) nb_strbuf_addf(&grid->cell, " %s", nb_width_names[ours->c.width]);
    nb_grid_end_cell(grid);
    nb_grid_put(grid, nb_format_time, time_ns(ours));
    nb_grid_put(grid, nb_format_time, time_ns(d->theirs));
    nb_grid_put(grid, nb_format_ratio, d->ratio);
    if (a && a->bottleneck[0]) {
        nb_format_percent(&grid->cell, a->share.value);
        nb_strbuf_addf(&grid->cell, " %s", a->bottleneck);
    }
    nb_grid_end_cell(grid);
    add_verdict(grid, d);
}

static bool is_behind(const struct nb_peer_comparison *d) {
    return d->verdict == NB_PEER_COMPARISON_BEHIND || d->verdict == NB_PEER_COMPARISON_LOOKS_BEHIND ||
           d->verdict == NB_PEER_COMPARISON_NOT_CONFIRMED;
}

/* All comparisons, or those alone that are or were behind; returns how many. */
static size_t print_comparisons(const struct peers *p, bool behind_alone, const char *title) {
    struct nb_grid grid released_by(nb_grid_release) =
        nb_grid_of("library", "op", "pass", "dtype", "shape", "mode", "threads", "ours", "time", "theirs",
                   "theirs / ours", "% of roofline", "verdict");
    size_t n = 0;
    grid.right = (const bool[13]){[6] = true, false, true, true, true, true};
    for (size_t i = 0; i < p->comparisons->n; i++) {
        if (behind_alone && !is_behind(&p->comparisons->items[i])) continue;
        comparison_to_row(&grid, &p->comparisons->items[i]);
        n++;
    }
    if (n > 0) nb_page_heading(p->page, 2, title);
    if (n > 0) print_grid(p, &grid);
    return n;
}

/* ---- the answer, a sentence for each library, and what has no figure ---------------------------------------------- */

static bool same_library(const struct nb_peer_comparison *a, const struct nb_peer_comparison *b) {
    return strcmp(a->library, b->library) == 0;
}

/* Of the comparisons from `first` on, which are of one library; returns how many. */
static size_t say_library(const struct nb_peer_comparison *first, size_t n, struct nb_strings *out) {
    double sum = 0, least = INFINITY, most = 0;
    size_t n_all = 0, n_figures = 0, n_ahead = 0, n_behind = 0;
    while (n_all < n && same_library(first, &first[n_all])) {
        const struct nb_peer_comparison *d = &first[n_all++];
        if (d->verdict == NB_PEER_COMPARISON_UNKNOWN) continue;
        n_figures++;
        n_ahead += d->verdict == NB_PEER_COMPARISON_AHEAD;
        n_behind += d->verdict == NB_PEER_COMPARISON_BEHIND || d->verdict == NB_PEER_COMPARISON_LOOKS_BEHIND;
        sum += log(d->ratio.value);
        least = fmin(least, d->ratio.value);
        most = fmax(most, d->ratio.value);
    }
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(&text, "%s: ", first->library);
    if (n_figures == 0)
        nb_strbuf_add(&text, "no comparison has a figure.");
    else
        nb_strbuf_addf(&text,
                       "ours is faster in %zu of %zu comparisons, slower in %zu; theirs takes %.2g times as long",
                       n_ahead, n_figures, n_behind, exp(sum / (double)n_figures));
    if (n_figures == 1) nb_strbuf_add(&text, ".");
    if (n_figures > 1) nb_strbuf_addf(&text, " (geometric mean; %.2g to %.2g over these %zu).", least, most, n_figures);
    nb_strings_add(out, text.text);
    return n_all;
}

static bool failed(const struct nb_peer_comparison *d) {
    return !d->theirs->has_timing && nb_status_failed(d->theirs->status);
}

/* Failures of a library by op, pass and dtype; all else by the reason. */
static bool alike(const struct nb_peer_comparison *a, const struct nb_peer_comparison *b) {
    const struct nb_case *p = &a->theirs->c, *q = &b->theirs->c;
    if (a->verdict != b->verdict || strcmp(a->reason, b->reason) != 0 || failed(a) != failed(b)) return false;
    return !failed(a) || (same_library(a, b) && p->op == q->op && p->pass == q->pass && p->dtype == q->dtype);
}

/* "No figure in 6 comparisons, onednn rmsnorm backward f32: theirs failed its check: ..."; once for all that are alike. */
static void say_unknown(const struct nb_peer_comparisons *d, size_t at, struct nb_strings *out) {
    const struct nb_peer_comparison *first = &d->items[at];
    const struct nb_case *c = &first->theirs->c;
    const char *why = first->theirs->reason;
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        if (!alike(first, &d->items[i])) continue;
        if (i < at) return;
        n++;
    }
    nb_strbuf_addf(&text, "No figure in %zu comparison%s", n, n == 1 ? "" : "s");
    if (failed(first))
        nb_strbuf_addf(&text, ", %s %s %s %s", first->library, nb_op_names[c->op], nb_pass_names[c->pass],
                       nb_formats[c->dtype].name);
    nb_strbuf_addf(&text, ": %s", first->reason);
    if (failed(first) && why && *why) nb_strbuf_addf(&text, ", %s", why);
    nb_strbuf_add(&text, ".");
    nb_strings_add(out, text.text);
}

void nb_peers_sentences(const struct nb_peer_comparisons *d, struct nb_strings *out) {
    for (size_t i = 0; i < d->n;) i += say_library(&d->items[i], d->n - i, out);
    for (size_t i = 0; i < d->n; i++)
        if (d->items[i].verdict == NB_PEER_COMPARISON_UNKNOWN) say_unknown(d, i, out);
}

static void print_answer(const struct peers *p) {
    struct nb_strings sentences released_by(nb_strings_release) = {0};
    nb_peers_sentences(p->comparisons, &sentences);
    for (size_t i = 0; i < sentences.n; i++) nb_page_say(p->page, sentences.items[i]);
}

static void print_rules(const struct peers *p) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    const struct nb_compare_settings *s = &p->comparisons->settings;
    nb_strbuf_addf(
        &text,
        "%zu cases, %zu comparisons with a library. "
        "A ratio is the time of theirs over the time of ours, from samples of the same blocks, with its 95%% "
        "interval: above 1 ours is faster. Behind is what is slower by more than %.3g %% with its whole "
        "interval and, measured again in at least %d fresh processes, is so there; the roofline "
        "is the larger of the times of copy and core.",
        p->comparisons->n_comparisons, p->comparisons->n, 100 * s->behind, s->confirm_launches);
    nb_page_say(p->page, text.text);
}

static void print_lines(const struct peers *p, const char *title, char *lines) {
    if (*lines) nb_page_heading(p->page, 2, title);
    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) nb_page_say(p->page, line);
}

void nb_peers_print(const struct nb_results *results, const struct nb_peer_comparisons *comparisons,
                    const struct nb_page *page) {
    const struct peers p = {comparisons, page};
    struct nb_summary summary released_by(nb_summary_release);
    nb_summary_init(&summary, results);
    nb_strbuf_add(page->out, page->markdown ? "# Our kernels and others\n\n" : "");
    nb_page_say(page, summary.footer.text);
    print_answer(&p);
    print_rules(&p);
    if (comparisons->n == 0)
        nb_page_say(
            page, "Nothing to compare with: no other library's kernel ran. `normbench list peers` says what is missing "
                  "and how to get it.");
    if (comparisons->n > 0) print_means(&p);
    if (comparisons->n > 0 && print_comparisons(&p, true, "Behind, or looking so at first") == 0)
        nb_page_say(page, "No comparison looks behind.");
    print_comparisons(&p, false, "All comparisons");
    print_lines(&p, "Libraries", summary.libraries.text);
    print_lines(&p, "What a call costs", summary.overheads.text);
}

/* ---- as a document: reports/schema/peers.schema.json ---- */

static void add_case(cJSON *json, const struct nb_peer_comparison *d) {
    const struct nb_case *c = &d->theirs->c;
    nb_json_text(json, "library", d->library);
    nb_json_text(json, "op", nb_op_names[c->op]);
    nb_json_text(json, "pass", nb_pass_names[c->pass]);
    nb_json_text(json, "layout", nb_layout_names[c->shape.layout]);
}

static void add_side(cJSON *json, const char *name, const struct nb_record *r) {
    if (!r) {
        cJSON_AddNullToObject(json, name);
        return;
    }
    cJSON *side = cJSON_AddObjectToObject(json, name);
    nb_json_text(side, "key", r->key);
    nb_json_text(side, "status", nb_status_name(r->status));
    nb_json_number(side, "time_ns", time_ns(r));
    nb_json_text(side, "library", r->facts.library);
    nb_json_text(side, "implementation", r->facts.implementation);
    nb_json_number(side, "roofline_share", r->has_timing ? r->timing.roofline.share.value : (double)NAN);
    nb_json_text(side, "bottleneck",
                 r->has_timing && r->timing.roofline.bottleneck[0] ? r->timing.roofline.bottleneck : NULL);
}

static void add_comparison(cJSON *list, const struct nb_peer_comparison *d) {
    cJSON *json = nb_json_add_object(list);
    add_case(json, d);
    nb_json_text(json, "dtype", nb_formats[d->theirs->c.dtype].name);
    nb_json_text(json, "shape", d->theirs->c.shape.text);
    nb_json_text(json, "mode", d->theirs->c.op == NB_OP_BATCHNORM ? nb_mode_names[d->theirs->c.mode] : NULL);
    cJSON_AddNumberToObject(json, "threads", d->theirs->c.threads);
    add_side(json, "ours", d->ours);
    add_side(json, "theirs", d->theirs);
    nb_json_interval(json, "ratio", &d->ratio);
    cJSON_AddNumberToObject(json, "launches", d->n_launches);
    nb_json_interval(json, "confirmed", &d->confirmed);
    cJSON_AddNumberToObject(json, "confirming_launches", d->n_confirmed);
    nb_json_text(json, "verdict", verdict_name(d->verdict));
    nb_json_text(json, "reason", d->reason);
}

static void add_mean(cJSON *list, const struct nb_peer_mean *m) {
    cJSON *json = nb_json_add_object(list);
    add_case(json, m->first);
    nb_json_interval(json, "ratio", &m->ratio);
    nb_json_number(json, "median", m->median);
    nb_json_number(json, "least", m->n > 0 ? m->least : (double)NAN);
    nb_json_number(json, "most", m->n > 0 ? m->most : (double)NAN);
    nb_json_number(json, "roofline_share", m->roofline_share);
    cJSON_AddNumberToObject(json, "cells", (double)m->n);
    cJSON *counts = cJSON_AddObjectToObject(json, "verdicts");
    for (int v = 0; v < NB_N_PEER_COMPARISON_VERDICTS; v++)
        cJSON_AddNumberToObject(counts, verdict_name((enum nb_peer_comparison_verdict)v), (double)m->n_of[v]);
}

static void add_overheads(cJSON *json, const struct nb_results *results) {
    struct nb_kernel_overhead *found;
    const size_t n = nb_overheads(results->records, results->n, &found);
    cJSON *list = cJSON_AddArrayToObject(json, "call_overheads");
    for (size_t i = 0; i < n; i++) {
        cJSON *one = nb_json_add_object(list);
        nb_json_text(one, "variant", found[i].record->c.variant);
        cJSON_AddNumberToObject(one, "cols", (double)found[i].record->c.shape.cols);
        cJSON_AddNumberToObject(one, "threads", found[i].record->c.threads);
        nb_json_interval(one, "ns", &found[i].overhead.ns);
        nb_json_number(one, "ns_per_byte", found[i].overhead.ns_per_byte);
        nb_json_text(one, "reason", found[i].overhead.reason[0] ? found[i].overhead.reason : NULL);
    }
    free(found);
}

/* reports/schema/peers.schema.json */
static cJSON *peers_to_json(const struct nb_results *results, const struct nb_peer_comparisons *comparisons) {
    static const char *const copied[] = {"program", "version", "started", "config", "fingerprint"};
    struct nb_peer_mean *means freed;
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "schema", "1.0");
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++) nb_json_copy(json, results->meta, copied[i]);
    cJSON_AddItemToObject(json, "compare", nb_compare_settings_to_json(&comparisons->settings));
    cJSON_AddNumberToObject(json, "n_comparisons", (double)comparisons->n_comparisons);
    cJSON *list = cJSON_AddArrayToObject(json, "comparisons"), *sums = cJSON_AddArrayToObject(json, "means");
    for (size_t i = 0; i < comparisons->n; i++) add_comparison(list, &comparisons->items[i]);
    const size_t n = nb_peer_means(comparisons, &means);
    for (size_t i = 0; i < n; i++) add_mean(sums, &means[i]);
    add_overheads(json, results);
    return json;
}

/* ---- formats and files ---- */

/* The page where page.out is set, and the document where json is. */
static int make(const struct nb_results *results, const struct nb_page *page, cJSON **json) {
    struct nb_peer_comparisons comparisons released_by(nb_peer_comparisons_release) = {0};
    if (nb_peer_comparisons_make(&comparisons, results) != 0) return -1;
    if (page) nb_peers_print(results, &comparisons, page);
    if (json) *json = peers_to_json(results, &comparisons);
    return 0;
}

int nb_peers_write(const struct nb_results *results, const char *dir) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    cJSON *json released_by(nb_json_release) = NULL;
    if (make(results, &(struct nb_page){.markdown = true, .out = &text}, &json) != 0) return -1;
    char *page freed = nb_path_join(dir, "peers.md"), *document freed = nb_path_join(dir, "peers.json");
    return nb_file_write(page, text.text, text.len) == 0 ? nb_json_write(json, document) : -1;
}

static int render_page(const struct nb_results *results, FILE *out, bool markdown) {
    struct nb_strbuf text = {0};
    const struct nb_page page = nb_page_for(out, markdown, &text);
    return make(results, &page, NULL) == 0 ? nb_output(&text, out) : -1;
}

static int render_peers(const struct nb_results *results, FILE *out) { return render_page(results, out, false); }
static int render_peers_markdown(const struct nb_results *results, FILE *out) {
    return render_page(results, out, true);
}
static int render_peers_json(const struct nb_results *results, FILE *out) {
    cJSON *json;
    return make(results, NULL, &json) == 0 ? nb_output_json(json, out) : -1;
}

const struct nb_renderer nb_renderer_peers[] = {
    {"peers", "our kernels against other libraries", render_peers},
    {"peers_json", "the same as a document", render_peers_json},
    {"peers_markdown", "the same as tables for GitHub", render_peers_markdown},
    {0}};
