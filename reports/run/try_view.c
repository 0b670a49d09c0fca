// SPDX-License-Identifier: Apache-2.0
/* What `normbench try` ends with: the answers about one kernel; and what `normbench replay` says of one case. */
#include <math.h>
#include <string.h>

#include "reports/figures/sweep.h"
#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "reports/text/output.h"
#include "src/core/format.h"
#include "src/core/names.h"
#include "src/lab/probe/probe.h"

enum { WIDTH = 80, LABEL = 19 };

/* On as many lines as it needs, parted at blanks. */
static void add_line(struct nb_strbuf *out, const char *label, const char *text) {
    struct nb_strbuf line released_by(nb_strbuf_release) = {0}, safe released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(&line, *text ? "%-*s%s" : "%*s%s", *text ? LABEL : 0, label, text);
    nb_escape_terminal(&safe, line.text, nb_utf8_wanted());
    nb_screen_fold(out, safe.text, WIDTH);
}

/* A case that was checked and not timed is not_run where a run was cut. */
static bool is_its(const struct nb_tried *t, const struct nb_record *r) {
    return strcmp(r->c.variant, t->entry->id) == 0 && (r->status != NB_NOT_RUN || (t->is_cut && r->has_accuracy));
}

static bool has_key(const struct nb_results *results, const char *key) {
    for (size_t i = 0; results && i < results->n; i++)
        if (strcmp(results->records[i].key, key) == 0) return true;
    return false;
}

/* ---- right? ------------------------------------------------------------------------------------------------------- */

struct verdict {
    size_t n, n_hard, n_failed, n_skipped;
    int64_t calls;               /* in a row */
    const struct nb_results *of; /* what the first failure is among */
    const struct nb_record *failed, *skipped, *suspect;
};

static bool is_outside(const struct nb_record *r) { return r->has_evidence && !r->evidence.covered; }

/* A row of the range says more than one outside; then an element beyond its bound more than a relation between two calls, and than what
 * stands beside y. */
static bool is_plainer(const struct nb_record *r, const struct nb_record *than) {
    if (!nb_status_wrong(r->status) || !nb_status_wrong(than->status)) return false;
    if (is_outside(r) != is_outside(than)) return is_outside(than);
    return nb_is_beyond_bound(r) && !nb_is_beyond_bound(than);
}

static void count(struct verdict *v, const struct nb_results *results, const struct nb_record *r) {
    if (r->status == NB_SKIPPED) {
        v->n_skipped++;
        v->skipped = r;
        return;
    }
    v->n++;
    if (r->facts.calls > v->calls) v->calls = r->facts.calls;
    if (r->has_timing && r->timing.suspect) v->suspect = r;
    if (!nb_status_failed(r->status)) return;
    v->n_failed++;
    if (v->failed && !is_plainer(r, v->failed)) return;
    v->failed = r;
    v->of = results;
}

/* The run's results repeat the first failures of the checks. */
static struct verdict verdict_of(const struct nb_tried *t) {
    struct verdict v = {0};
    for (size_t i = 0; i < t->results->n; i++) {
        const struct nb_record *r = &t->results->records[i];
        if (is_its(t, r) && !has_key(t->checks, r->key)) count(&v, t->results, r);
    }
    const size_t n_own = v.n;
    for (size_t i = 0; t->checks && i < t->checks->n; i++)
        if (is_its(t, &t->checks->records[i])) count(&v, t->checks, &t->checks->records[i]);
    v.n_hard = v.n - n_own;
    return v;
}

static void add_replay(const struct nb_results *results, const struct nb_record *r, struct nb_strbuf *out) {
    struct nb_strbuf command released_by(nb_strbuf_release) = {0};
    if (!results->dir) return;
    nb_add_replay(results, r, WIDTH - 2, &command);
    if (command.len) nb_strbuf_addf(out, "  %s\n", command.text);
}

static void add_range(const struct nb_record *r, struct nb_strbuf *out) {
    if (is_outside(r))
        nb_strbuf_addf(out, "; the row is outside %s",
                       r->evidence.is_declared ? "the range that the kernel declares"
                                               : "the range of our kernels (it declares none)");
}

/* From which mean / sd on NaN or Inf comes out of finite rows; NaN: it does not. */
static double broken_from(const struct nb_tried *t) {
    const struct nb_results *const results[] = {t->results, t->checks};
    double rho = NAN;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; results[k] && i < results[k]->n; i++) {
            const struct nb_record *r = &results[k]->records[i];
            if (is_its(t, r) && r->has_evidence && r->evidence.n_broken > 0) rho = fmin(rho, r->evidence.broken_rho);
        }
    return nb_op_centres(t->entry->kernel->op) ? rho : (double)NAN;
}

/* Why it is wrong: what the probe found, and what the failing cases have in common. */
static void add_why(const struct nb_tried *t, struct nb_strbuf *out) {
    struct nb_strbuf probe released_by(nb_strbuf_release) = {0}, pattern released_by(nb_strbuf_release) = {0};
    const double rho = broken_from(t);
    nb_failure_factor(t->results, t->checks, t->entry->id, &probe);
    if (t->differs) nb_strbuf_addf(&probe, "%s%s", probe.len ? "; " : "", t->differs);
    if (!isnan(rho)) nb_strbuf_addf(&probe, "%sNaN or Inf ", !probe.len ? "" : ": ");
    if (isfinite(rho) && rho >= 1)
        nb_strbuf_addf(&probe, "from mean/sd = %.4g on", rho);
    else if (!isnan(rho))
        nb_strbuf_add(&probe, isinf(rho) ? "in rows of equal elements" : "whatever mean/sd is");
    nb_failure_pattern(t->results, t->checks, t->entry->id, &pattern);
    if (probe.len) add_line(out, "  why", probe.text);
    if (pattern.len) add_line(out, "  where", pattern.text);
}

static const char cut[] = "it was ended before";

/* Its declared grades: "yes" beside an F would be a contradiction. */
static void add_right(const struct nb_tried *t, const struct verdict *v, const struct nb_grade_line *declared,
                      struct nb_strbuf *out) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0}, reproducer released_by(nb_strbuf_release) = {0};
    const bool is_loose = declared && declared->declared.grade == NB_GRADE_F;
    if (v->n == 0) {
        nb_strbuf_addf(&text, "not tried: %s",
                       v->skipped && v->skipped->reason ? v->skipped->reason
                       : t->is_cut                      ? cut
                                                        : "it takes none of the calls that were planned for it");
    } else if (v->n_failed == 0 && t->is_cut) {
        nb_strbuf_addf(&text, "so far: %zu cases, none beyond its bound; not all were tried", v->n);
    } else if (v->n_failed == 0 && v->suspect) {
        nb_strbuf_addf(
            &text,
            "SUSPECT: no case of %zu is beyond its bound, but %.0f%% faster than a copy of the same bytes at least: "
            "it leaves work out while it is timed, or the copy was slowed",
            v->n, 100 * (v->suspect->timing.vs_copy.low - 1));
    } else if (v->n_failed == 0 && is_loose) {
        nb_strbuf_addf(&text, "in part: %zu cases within the bound of what it declares, which allows too much", v->n);
    } else if (v->n_failed == 0) {
        nb_strbuf_addf(&text, "yes: %zu cases, %zu of them hard rows, none beyond its bound", v->n, v->n_hard);
        if (v->calls) nb_strbuf_addf(&text, "; the same bits in each of %lld calls", (long long)v->calls);
    } else {
        nb_strbuf_addf(&text, "NO: %s in %zu of %zu cases", nb_status_name(v->failed->status), v->n_failed, v->n);
        nb_failure_reproducer(v->failed, &reproducer);
        add_range(v->failed, &reproducer);
    }
    add_line(out, "right?", text.text);
    if (v->failed || is_loose) add_why(t, out);
    if (reproducer.len) add_line(out, "  first", reproducer.text);
    if (v->failed) add_replay(v->of, v->failed, out);
}

/* ---- how accurate? ------------------------------------------------------------------------------------------------ */

/* The lowest grades of its formulas, in the range and over all finite rows; null: none. */
static void find_lowest(const struct nb_tried *t, const struct nb_grade_line **declared,
                        const struct nb_grade_line **all) {
    for (size_t i = 0; i < t->grades->n; i++) {
        const struct nb_grade_line *line = &t->grades->lines[i];
        if (strcmp(line->first->c.variant, t->entry->id) != 0) continue;
        if (!*declared || nb_graded_is_worse(&line->declared, &(*declared)->declared)) *declared = line;
        if (!*all || nb_graded_is_worse(&line->all, &(*all)->all)) *all = line;
    }
}

static void add_accurate(const struct nb_tried *t, const struct verdict *v, const struct nb_grade_line *declared,
                         const struct nb_grade_line *all, struct nb_strbuf *out) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0}, worst released_by(nb_strbuf_release) = {0};
    if (!all || all->all.grade == NB_GRADE_NONE) return;
    const bool in_range = declared->declared.grade != NB_GRADE_NONE;
    const struct nb_grade_line *line = in_range ? declared : all;
    const struct nb_graded *graded = in_range ? &line->declared : &line->all;
    const struct nb_record *why = in_range ? line->why_declared : line->why_all;
    const bool own = in_range && why && why->has_evidence && !why->evidence.is_declared;
    nb_strbuf_addf(&text, "grade %s %s", nb_grade_name(graded->grade),
                   !in_range ? "on all finite rows"
                   : own     ? "in the range of our kernels (it declares none)"
                             : "in its declared range");
    if (in_range && all->all.grade < graded->grade)
        nb_strbuf_addf(&text, ", beyond it %s", nb_grade_name(all->all.grade));
    add_line(out, "how accurate?", text.text);
    if (why && why != v->failed) { /* else it is said already */
        nb_strbuf_addf(&worst, "%s, data %s: %s", why->c.shape.text, why->c.data, graded->text);
        add_line(out, "  worst", worst.text);
        add_replay(t->checks ? t->checks : t->results, why, out);
    }
}

/* ---- how fast? ---------------------------------------------------------------------------------------------------- */

/* A row with a cell for the rows in a cache and one for those in memory, which are released. */
static void add_cells(struct nb_grid *grid, const char *label, struct nb_strbuf cells[2]) {
    nb_grid_row(grid, label, cells[0].len ? cells[0].text : "", cells[1].len ? cells[1].text : "");
    for (int p = 0; p < 2; p++) nb_strbuf_release(&cells[p]);
}

static void add_share(const struct nb_record *r, struct nb_strbuf *cell) {
    const struct nb_roofline *a = &r->timing.roofline;
    const bool core = strcmp(a->bottleneck, "core") == 0;
    const double share = isfinite(a->share.value) ? a->share.value : r->timing.vs_copy.value;
    if (isfinite(share)) nb_strbuf_addf(cell, "%.0f%% of %s", 100 * share, core ? "core" : "copy");
}

/* "2.41x faster [2.38, 2.44]" of the other, from the ratio of the kernel's time to the other's. */
static void add_ratio(struct nb_interval ratio, struct nb_strbuf *cell) {
    const bool faster = ratio.value >= 1;
    const struct nb_interval inverse = {1 / ratio.value, 1 / ratio.high, 1 / ratio.low};
    if (!isfinite(ratio.value)) return;
    nb_format_interval(cell, faster ? ratio : inverse, faster ? "x faster" : "x slower");
    if (!nb_interval_known(&ratio)) nb_strbuf_add(cell, ", no interval");
}

/* The case of a variant that stands beside one of the kernel's. */
static const struct nb_record *beside(const struct nb_tried *t, const struct nb_record *own, const char *variant) {
    for (size_t i = 0; own && i < t->results->n; i++) {
        const struct nb_record *r = &t->results->records[i];
        const char *rest = strchr(r->key, '/'), *own_rest = strchr(own->key, '/');
        if (strcmp(r->c.variant, variant) == 0 && rest && own_rest && strcmp(rest, own_rest) == 0) return r;
    }
    return NULL;
}

/* "  our fast one", "  onednn", "  mine:other". */
static void add_name(const struct nb_record *r, struct nb_strbuf *out) {
    char *name freed = nb_kernel_text(&r->c);
    const char *colon = strchr(name, ':');
    if (!colon)
        nb_strbuf_addf(out, "  our %s", nb_text_ends(name, "_fast") ? "fast one" : "reference");
    else if (r->c.is_peer)
        nb_strbuf_addf(out, "  %.*s", (int)(colon - name), name);
    else
        nb_strbuf_addf(out, "  %s", colon + 1);
}

static void add_other(const struct nb_tried *t, const struct nb_record *const own[2], const char *variant,
                      struct nb_grid *grid) {
    struct nb_strbuf name released_by(nb_strbuf_release) = {0}, cells[2] = {{0}};
    for (int p = 0; p < 2; p++) {
        const struct nb_record *r = beside(t, own[p], variant);
        if (!r) continue;
        if (!name.text) add_name(r, &name);
        if (nb_record_timed(r))
            add_ratio(nb_paired_ratio(t->samples, own[p]->key, r->key, NULL).ratio, &cells[p]);
        else
            nb_strbuf_add(&cells[p], nb_status_name(r->status));
    }
    add_cells(grid, name.text ? name.text : variant, cells);
}

/* Of its op; of the plugin's others those that are right. */
static bool is_comparable(const struct nb_tried *t, const struct nb_record *r) {
    return !is_its(t, r) && r->c.op == t->entry->kernel->op &&
           (nb_record_timed(r) || r->c.is_peer || !strchr(r->c.variant, ':'));
}

static bool stands_beside(const struct nb_tried *t, const struct nb_record *const own[2], const struct nb_record *r) {
    return is_comparable(t, r) && (r == beside(t, own[0], r->c.variant) || r == beside(t, own[1], r->c.variant));
}

/* Every other variant that stands beside the kernel, once. */
static void add_others(const struct nb_tried *t, const struct nb_record *const own[2], struct nb_grid *grid) {
    const struct nb_record *all = t->results->records;
    for (size_t i = 0; i < t->results->n; i++) {
        bool said = !stands_beside(t, own, &all[i]);
        for (size_t k = 0; k < i && !said; k++)
            said = strcmp(all[k].c.variant, all[i].c.variant) == 0 && stands_beside(t, own, &all[k]);
        if (!said) add_other(t, own, all[i].c.variant, grid);
    }
}

/* "Python adds 0.9 us to a call": what a call of nothing takes there. */
static void add_language(const struct nb_record *const own[2], struct nb_grid *grid) {
    struct nb_strbuf cells[2] = {{0}};
    bool adds = false;
    for (int p = 0; p < 2; p++) {
        if (!own[p] || !isfinite(own[p]->timing.floor_ns)) continue;
        const char *library = own[p]->facts.library ? own[p]->facts.library : "its program";
        nb_strbuf_addf(&cells[p], "%.*s adds ",
                       own[p]->facts.library ? (int)strcspn(library, " ,") : (int)strlen(library), library);
        nb_format_time(&cells[p], own[p]->timing.floor_ns);
        nb_strbuf_add(&cells[p], p == 0 ? " to a call" : "");
        adds = true;
    }
    if (adds) add_cells(grid, "  of which", cells);
}

static void add_fast(const struct nb_tried *t, struct nb_strbuf *out) {
    static const char *const names[2] = {"in cache", "from memory"};
    const struct nb_record *own[2] = {NULL, NULL};
    struct nb_strbuf heading[2] = {{0}}, times[2] = {{0}}, shares[2] = {{0}};
    struct nb_grid grid;
    for (size_t i = 0; i < t->results->n; i++) {
        const struct nb_record *r = &t->results->records[i];
        const int p = r->c.cache == NB_COLD;
        if (is_its(t, r) && nb_record_timed(r) && !own[p]) own[p] = r;
    }
    if (!own[0] && !own[1]) {
        char *why freed = nb_textf("not timed: %s", t->is_cut ? cut : "it is wrong on the shapes that are timed");
        add_line(out, "how fast?", why);
        return;
    }
    for (int p = 0; p < 2; p++) {
        if (!own[p]) continue;
        nb_strbuf_addf(&heading[p], "%s: %s", names[p], own[p]->c.shape.text);
        nb_format_time_interval(&times[p], own[p]->timing.time_ns);
        add_share(own[p], &shares[p]);
    }
    const char *titles[] = {"how fast?", heading[0].len ? heading[0].text : "", heading[1].len ? heading[1].text : ""};
    nb_grid_init(&grid, titles, 3);
    grid.screen = WIDTH;
    add_cells(&grid, "  it takes", times);
    add_cells(&grid, "  speed", shares);
    add_language(own, &grid);
    add_others(t, own, &grid);
    nb_grid_add_table(&grid, false, out);
    nb_grid_release(&grid);
    for (int p = 0; p < 2; p++) nb_strbuf_release(&heading[p]);
}

/* ---- all of it ---------------------------------------------------------------------------------------------------- */

static void add_inside(const struct nb_tried *t, struct nb_strbuf *out) {
    const char *summary = nb_json_get_text(t->probe, "summary"), *reason = nb_json_get_text(t->probe, "reason");
    const char *text = t->not_probed ? t->not_probed
                       : summary     ? summary
                       : reason      ? reason
                       : t->is_cut   ? cut
                                     : "it gave no answer";
    struct nb_strbuf all released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(&all, text);
    nb_probe_undetermined(t->probe, &all);
    add_line(out, "inside", all.text);
}

void nb_try_view(const struct nb_tried *t, struct nb_strbuf *out) {
    const struct nb_kernel *k = t->entry->kernel;
    const struct verdict v = verdict_of(t);
    char *what freed = nb_textf("%s: %s %s %s of %s", t->entry->id, nb_op_names[k->op], nb_pass_names[k->pass],
                                nb_dtype_names[k->dtype], t->entry->file);
    add_line(out, what, "");
    const struct nb_grade_line *declared = NULL, *all = NULL;
    find_lowest(t, &declared, &all);
    add_right(t, &v, declared, out);
    add_accurate(t, &v, declared, all, out);
    add_fast(t, out);
    add_inside(t, out);
}

/* ---- one case ----------------------------------------------------------------------------------------------------- */

static void add_error(const struct nb_record *r, struct nb_strbuf *out) {
    const struct nb_accuracy *a = &r->accuracy;
    const double parameters = nb_accuracy_parameters_ratio(a);
    if (!r->has_accuracy || !isfinite(a->max_ulp)) return;
    nb_strbuf_addf(out, "at most %.4g ulp, mean %.3g ulp", a->max_ulp, a->mean_ulp);
    if (isfinite(a->worst_ratio)) nb_strbuf_addf(out, "; %.3g of its bound", a->worst_ratio);
    if (isfinite(parameters)) nb_strbuf_addf(out, "; gradients of parameters %.3g of theirs", parameters);
}

static void add_time(const struct nb_record *r, struct nb_strbuf *out) {
    if (!nb_record_timed(r)) {
        nb_strbuf_add(out, r->timing_reason ? r->timing_reason : "not timed");
        return;
    }
    nb_format_time_interval(out, r->timing.time_ns);
    nb_strbuf_add(out, ", ");
    add_share(r, out);
    if (r->timing.noisy) nb_strbuf_addf(out, "; too noisy to rank: %s", r->timing.noise);
}

void nb_case_view(const struct nb_results *results, struct nb_strbuf *out) {
    const struct nb_record *r = &results->records[0];
    struct nb_strbuf lines[5] = {{0}};
    static const char *const labels[] = {"  case", "  found", "  why", "  error", "  time"};
    const char *said = nb_status_wrong(r->status)    ? "WRONG"
                       : nb_status_failed(r->status) ? "FAILED"
                       : r->status == NB_OK          ? "right"
                       : nb_status_timed(r->status)  ? "lost, as its formula predicts"
                                                     : "not run";
    const char *axes = strchr(r->key, '/');
    char *verdict freed = nb_textf("%s: %s (%s)", r->c.variant, said, nb_status_name(r->status));
    nb_strbuf_add(&lines[0], axes ? axes + 1 : r->key);
    if (r->status != NB_OK) nb_failure_reproducer(r, &lines[1]);
    if (nb_status_failed(r->status)) add_range(r, &lines[1]);
    nb_failure_factor(results, NULL, r->c.variant, &lines[2]);
    add_error(r, &lines[3]);
    add_time(r, &lines[4]);
    add_line(out, verdict, "");
    for (int i = 0; i < 5; i++) {
        if (lines[i].len) add_line(out, labels[i], lines[i].text);
        nb_strbuf_release(&lines[i]);
    }
}
