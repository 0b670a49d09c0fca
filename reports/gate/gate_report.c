// SPDX-License-Identifier: Apache-2.0
/* What a gate found: figures of the whole, the sentences that say them, and the formats for people and for programs. */
#include "reports/gate/gate_report.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/text/escape.h"
#include "reports/text/exports.h"
#include "reports/text/format.h"
#include "reports/text/output.h"
#include "src/accuracy/accuracy.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/registry.h"
#include "src/core/stats.h"
#include "src/core/tuning.h"
#include "src/gate/gate_subject.h"
#include "src/record/fingerprint.h"
#include "src/record/record.h"

/* Verdicts from this one on call for something to be done. */
#define FIRST_OPEN NB_VERDICT_SUSPECT

/* What all formats are made of. */
struct view {
    const struct nb_gate *g;
    struct nb_gate_summary summary;
    cJSON *fingerprint;
};

/* Was the case timed to a judgement? One that broke while it was timed has launches, but none. */
static bool is_judged(const struct nb_gate_case *c) { return c->n_screen > 0 && c->judgement.ratio.value != 0; }

static bool is_timed(const struct nb_gate_case *c) { return is_judged(c) && isfinite(c->judgement.ratio.value); }

static bool is_open(const struct nb_gate_case *c) { return c->verdict >= FIRST_OPEN; }

/* ---- order ---------------------------------------------------------------------------------------------------------- */

struct ranked {
    size_t index;
    enum nb_verdict verdict;
    double ratio;
};

/* Verdicts are numbered from the best to the worst; among equals the slowest comes first, then the order of the plan. */
static int by_badness(const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    if (a->verdict != b->verdict) return a->verdict < b->verdict ? 1 : -1;
    if (a->ratio != b->ratio) return a->ratio < b->ratio ? 1 : -1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void make_order(struct nb_gate_summary *s) {
    struct ranked *ranked = nb_alloc(s->g->n_cases + 1, sizeof *ranked);
    for (size_t i = 0; i < s->g->n_cases; i++) {
        const struct nb_gate_case *c = &s->g->cases[i];
        ranked[i] = (struct ranked){i, c->verdict, is_timed(c) ? c->judgement.ratio.value : 0};
    }
    if (s->g->n_cases) qsort(ranked, s->g->n_cases, sizeof *ranked, by_badness);
    s->order = nb_alloc(s->g->n_cases + 1, sizeof *s->order);
    for (size_t i = 0; i < s->g->n_cases; i++) s->order[i] = ranked[i].index;
    free(ranked);
}

/* ---- geometric mean ------------------------------------------------------------------------------------------------- */

static double launch_at(const struct nb_gate_case *c, size_t i) {
    return i < c->n_screen ? c->screen[i].ratio : c->confirm[i - c->n_screen].ratio;
}

/* The case's launches drawn again with replacement, and their median. */
static double redrawn(const struct nb_gate_case *c, uint64_t *state, double *drawn) {
    const size_t n = c->n_screen + c->n_confirm;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const double value = launch_at(c, (size_t)(nb_random_next(state) % n));
        if (isfinite(value)) drawn[kept++] = value;
    }
    return kept ? nb_median(drawn, kept) : log(c->judgement.ratio.value);
}

/* Bootstrap over launches, the independent units. Percentiles of the spread about the bootstrap's own centre: medians of draws
 * and Hodges-Lehmann of the launches need not agree. */
static struct nb_interval geometric_mean(const struct nb_gate *g, size_t n_timed) {
    enum { DRAWS = 500 };
    double draws[DRAWS] = {0}, mean = 0;
    size_t most = 1;
    uint64_t state = g->plan.seed;
    if (n_timed == 0) return (struct nb_interval){NAN, NAN, NAN};
    for (size_t i = 0; i < g->n_cases; i++)
        if (g->cases[i].n_screen + g->cases[i].n_confirm > most) most = g->cases[i].n_screen + g->cases[i].n_confirm;
    double *drawn = nb_alloc(most, sizeof *drawn);
    for (size_t i = 0; i < g->n_cases; i++) {
        if (!is_timed(&g->cases[i])) continue;
        mean += log(g->cases[i].judgement.ratio.value) / (double)n_timed;
        for (int d = 0; d < DRAWS; d++) draws[d] += redrawn(&g->cases[i], &state, drawn) / (double)n_timed;
    }
    free(drawn);
    const double centre = nb_median(draws, DRAWS);
    return (struct nb_interval){exp(mean), exp(mean + nb_quantile(draws, DRAWS, 0.025) - centre),
                                exp(mean + nb_quantile(draws, DRAWS, 0.975) - centre)};
}

/* ---- signs and sensitivity -------------------------------------------------------------------------------------------- */

/* Is a split so one-sided that a fair coin gives it in less than 1 % (two-sided)? */
static bool leans(size_t k, size_t n) {
    const size_t most = k > n - k ? k : n - k;
    return n > 0 && nb_proportion_lower((int64_t)most, (int64_t)n, 0.995) > 0.5;
}

static void count_signs(struct nb_gate_summary *s, const struct nb_gate_case *c) {
    const double ratio = c->judgement.ratio.value, control = c->judgement.control.value;
    if (fabs(log(ratio)) < log1p(s->g->plan.rule.fail_margin)) {
        s->n_null++;
        s->n_slower += ratio > 1;
    }
    if (!isfinite(control)) return;
    s->n_control++;
    s->n_control_slower += control > 1;
}

static void count_timed(struct nb_gate_summary *s) {
    double *effects = nb_alloc(s->g->n_cases + 1, sizeof *effects);
    size_t n = 0;
    for (size_t i = 0; i < s->g->n_cases; i++) {
        const struct nb_gate_case *c = &s->g->cases[i];
        if (!is_timed(c)) continue;
        s->n_timed++;
        count_signs(s, c);
        if (isfinite(c->judgement.smallest_effect)) effects[n++] = c->judgement.smallest_effect;
    }
    s->smallest_effect = n ? nb_median(effects, n) : (double)NAN;
    s->largest_smallest = n ? nb_quantile(effects, n, 1) : (double)NAN;
    free(effects);
}

static void gate_summary_init(struct nb_gate_summary *s, const struct nb_gate *g) {
    *s = (struct nb_gate_summary){.g = g, .n_layouts = g->builds.n_layouts};
    const char **keys = nb_alloc(g->n_cases + 1, sizeof *keys);
    for (size_t i = 0; i < g->n_cases; i++) {
        const enum nb_verdict v = g->cases[i].verdict;
        keys[i] = g->cases[i].key;
        s->counts[v]++;
        if (v > s->verdict) s->verdict = v;
    }
    nb_key_parts_init(&s->parts, keys, g->n_cases);
    free((void *)keys);
    make_order(s);
    count_timed(s);
    s->mean = geometric_mean(g, s->n_timed);
}

static void gate_summary_release(struct nb_gate_summary *s) {
    nb_key_parts_release(&s->parts);
    free(s->order);
    *s = (struct nb_gate_summary){0};
}

/* ---- in words -------------------------------------------------------------------------------------------------------- */

static void say_counts(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    const char *separator = ": ";
    nb_strbuf_addf(out, "%zu case%s", s->g->n_cases, s->g->n_cases == 1 ? "" : "s");
    for (int v = NB_N_VERDICTS - 1; v >= 0; v--) {
        if (!s->counts[v]) continue;
        nb_strbuf_addf(out, "%s%zu %s", separator, s->counts[v], nb_verdict_name((enum nb_verdict)v));
        separator = ", ";
    }
    nb_strbuf_addf(out, "; %.0f s", s->g->elapsed_s);
    if (s->g->ended_by) nb_strbuf_addf(out, ", ended by signal %d", s->g->ended_by);
}

static void say_mean(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    const struct nb_interval *m = &s->mean;
    nb_strbuf_add(out, "");
    if (s->n_timed == 0) return;
    nb_strbuf_addf(out, "%zu case%s timed: candidate / baseline %.4f", s->n_timed, s->n_timed == 1 ? "" : "s",
                   m->value);
    if (nb_interval_known(m)) nb_strbuf_addf(out, " [%.4f, %.4f]", m->low, m->high);
    nb_strbuf_add(out, s->n_timed == 1 ? "." : " (geometric mean).");
    if (!isfinite(s->smallest_effect)) return;
    nb_strbuf_addf(out,
                   " The smallest slowdown that this run would have called a REGRESSION in 95 %% of cases: %.1f %%",
                   100 * s->smallest_effect);
    if (s->n_timed > 1) nb_strbuf_addf(out, " for the median case, %.1f %% for the worst", 100 * s->largest_smallest);
    nb_strbuf_add(out, ".");
}

static void say_layouts(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    nb_strbuf_add(out, "");
    if (s->n_timed == 0) return;
    if (s->n_layouts > 1)
        nb_strbuf_addf(out, "%d layouts of the code examined.", s->n_layouts);
    else
        nb_strbuf_add(out,
                      "Layout not examined: one build of each side, whose place in memory alone may be worth about "
                      "1 %. --baseline and --candidate can be given several times.");
}

/* The sign test as a sentence; empty where nothing leans. */
static void gate_say_leaning(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    nb_strbuf_add(out, "");
    if (!leans(s->n_slower, s->n_null)) return;
    const bool slower = 2 * s->n_slower > s->n_null;
    nb_strbuf_addf(
        out, "%zu of %zu cases inside the margin lean to the %s side, which chance does in less than 1 %% of runs: ",
        slower ? s->n_slower : s->n_null - s->n_slower, s->n_null, slower ? "slow" : "fast");
    const bool control = leans(s->n_control_slower, s->n_control) && (2 * s->n_control_slower > s->n_control) == slower;
    nb_strbuf_add(
        out, control ? "so do the copies of the baseline, so that the measurement leans and not the change."
                     : "something small changed everywhere (flags, compiler, layout), while copies of the baseline "
                       "do not lean.");
}

static const char *text_at(const cJSON *json, const char *object, const char *name) {
    const char *text = nb_json_get_text(nb_json_get(json, object), name);
    return text ? text : "";
}

static void say_machine(const cJSON *fingerprint, struct nb_strbuf *out) {
    static const char *const places[][2] = {
        {"cpu", "model"}, {"cpu", "hypervisor"}, {"system", "kernel"}, {"system", "os"}};
    const char *separator = "";
    nb_strbuf_add(out, "");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *text = text_at(fingerprint, places[i][0], places[i][1]);
        if (!*text) continue;
        nb_strbuf_addf(out, "%s%s", separator, text);
        separator = ", ";
    }
}

/* What a person does about a verdict; "" when nothing. */
static const char *advice_of(enum nb_verdict v) {
    switch (v) {
    case NB_VERDICT_WRONG:
        return "The candidate computes something wrong, or breaks: mend it first, its speed means nothing. "
               "`normbench replay` of a kernel says where it is worst.";
    case NB_VERDICT_LESS_ACCURATE:
        return "The candidate's results are worse than the baseline's beyond the margin. "
               "`normbench stress --plugin CANDIDATE.so` shows for which inputs; if the loss is wanted, say so in the "
               "change.";
    case NB_VERDICT_REGRESSION:
        return "Slower by more than the margin, seen in launches made to confirm it, or above a budget of "
               "instructions. Compare the machine code of both builds (objdump -d); the same command with "
               "--filter KEY, of functions --function NAME, repeats a case alone.";
    case NB_VERDICT_NOT_COMPARABLE:
        return "There is nothing to compare with. Expected where a kernel was added, renamed or removed; otherwise the "
               "reason says what to mend.";
    case NB_VERDICT_SUSPECT:
        return "Faster than it can be: by its instructions, counted in one small call, or than a copy of the same bytes; or what stands beside it is slowed. Either it leaves "
               "work out while it is timed, or the improvement is real and the reason says what to look at.";
    case NB_VERDICT_INCONCLUSIVE:
        return "Neither shown to be slower nor shown to be within the margin; this is no failure of the change. A "
               "quieter machine, a larger --budget or more layouts decide it.";
    default:
        return "";
    }
}

typedef void sentence(const struct nb_gate_summary *s, struct nb_strbuf *text);
static sentence *const sentences[] = {say_counts, say_mean, gate_say_leaning, say_layouts};
static const char *const sentence_names[] = {"counts", "ratio", "leaning", "layouts"};
enum { COUNTS, N_SENTENCES = sizeof sentences / sizeof *sentences };

static void say(const struct view *view, int which, const struct nb_page *page) {
    struct nb_strbuf text = {0};
    sentences[which](&view->summary, &text);
    nb_page_say(page, text.text);
    nb_strbuf_release(&text);
}

/* ---- cells of all three -------------------------------------------------------------------------------------- */

/* The columns of the table, of the terminal and of Markdown: short texts without escapes. */
enum gate_column {
    VERDICT,
    CASE,
    CHANGE,
    INTERVAL,
    SEEN_FROM,
    CONTROL,
    INSTRUCTIONS, /* exact counts of one row, or one call of a function: candidate against baseline */
    LAUNCHES,
    SECONDS,
    REASON,
    N_COLUMNS
};

static const char *const column_titles[N_COLUMNS] = {"verdict", "case",   "change",   "interval", "seen from",
                                                     "control", "instr.", "launches", "s",        "reason"};
static const bool is_right[N_COLUMNS] = {false, false, true, true, true, true, true, true, true, false};
static const int ranks[N_COLUMNS] = {NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, 6, 5, 4, 3, 1, 2, NB_GRID_STAYS};

static const char *title_of(const struct view *view, enum gate_column column) {
    return column == INSTRUCTIONS ? view->g->subject->instructions : column_titles[column];
}

static void add_percent(struct nb_strbuf *out, const char *format, double ratio) {
    if (isfinite(ratio)) nb_strbuf_addf(out, format, 100 * (ratio - 1));
}

static void add_cell(const struct view *view, const struct nb_gate_case *c, enum gate_column column,
                     struct nb_strbuf *out) {
    const struct nb_gate_judgement *j = &c->judgement;
    nb_strbuf_add(out, "");
    if (column == VERDICT) nb_strbuf_add(out, nb_verdict_name(c->verdict));
    if (column == CASE) nb_key_parts_short(&view->summary.parts, c->key, out);
    if (column == REASON) nb_strbuf_add(out, c->reason);
    if (column == SECONDS && c->seconds > 0) nb_strbuf_addf(out, "%.1f", c->seconds);
    if (column == INSTRUCTIONS)
        add_percent(out, "%+.2f %%", c->instructions[NB_BUILD_CANDIDATE] / c->instructions[NB_BUILD_BASELINE]);
    if (!is_judged(c)) return;
    if (column == CHANGE) add_percent(out, "%+.2f %%", j->ratio.value);
    if (column == INTERVAL && nb_interval_known(&j->ratio))
        nb_strbuf_addf(out, "[%+.2f, %+.2f]", 100 * (j->ratio.low - 1), 100 * (j->ratio.high - 1));
    if (column == SEEN_FROM) add_percent(out, "%.1f %%", 1 + j->smallest_effect);
    if (column == CONTROL) add_percent(out, "%+.2f %%", j->control.value);
    if (column == LAUNCHES) nb_strbuf_addf(out, "%zu", c->n_screen + c->n_confirm);
}

/* Has any case a text in this column? */
static bool has_column(const struct view *view, enum gate_column column) {
    struct nb_strbuf cell = {0};
    for (size_t i = 0; i < view->g->n_cases && !cell.len; i++) add_cell(view, &view->g->cases[i], column, &cell);
    const bool has = cell.len > 0;
    nb_strbuf_release(&cell);
    return has;
}

static enum nb_grid_style style_of(enum nb_verdict v) {
    if (v >= NB_VERDICT_REGRESSION) return NB_GRID_BAD;
    if (v >= FIRST_OPEN) return NB_GRID_DOUBTFUL;
    return v == NB_VERDICT_IMPROVED ? NB_GRID_GOOD : NB_GRID_PLAIN;
}

enum chosen { ALL_CASES, OPEN_CASES, PASSED_CASES };

/* On a terminal the columns that say something, in Markdown all; the reason beside cases that are open, which a terminal has below. */
static size_t choose_columns(const struct view *view, bool markdown, enum chosen chosen, enum gate_column *columns) {
    size_t n = 0;
    for (int c = 0; c < N_COLUMNS; c++)
        if (c == REASON ? chosen == OPEN_CASES : markdown || has_column(view, (enum gate_column)c))
            columns[n++] = (enum gate_column)c;
    return n;
}

/* The table of the chosen cases, of which there are as many as it returns. */
static size_t add_cases(const struct view *view, enum chosen chosen, size_t most, const struct nb_page *page) {
    const char *titles[N_COLUMNS];
    bool right[N_COLUMNS];
    int kept_ranks[N_COLUMNS];
    enum gate_column columns[N_COLUMNS];
    struct nb_grid grid;
    size_t n = 0;
    const size_t n_columns = choose_columns(view, page->markdown, chosen, columns);
    for (size_t k = 0; k < n_columns; k++) {
        titles[k] = title_of(view, columns[k]);
        right[k] = is_right[columns[k]];
        kept_ranks[k] = ranks[columns[k]];
    }
    nb_grid_init(&grid, titles, n_columns);
    grid.right = right;
    grid.ranks = kept_ranks;
    for (size_t i = 0; i < view->g->n_cases; i++) {
        const struct nb_gate_case *c = &view->g->cases[view->summary.order[i]];
        if ((chosen != ALL_CASES && is_open(c) != (chosen == OPEN_CASES)) || ++n > most) continue;
        nb_grid_style(&grid, style_of(c->verdict));
        for (size_t k = 0; k < n_columns; k++) {
            add_cell(view, c, columns[k], &grid.cell);
            nb_grid_end_cell(&grid);
        }
    }
    if (n)
        nb_page_grid(page, &grid);
    else
        nb_grid_release(&grid);
    if (n > most) nb_strbuf_addf(page->out, "\n... and %zu more: gate.json has them all.\n", n - most);
    return n;
}

/* What repeats a wrong kernel alone; owned. Null: there is none (functions have their names, the gate's own figures the gate). */
static char *replay_of(const struct nb_gate *g, const struct nb_gate_case *c) {
    const char *file = g->builds.sources[0][NB_BUILD_CANDIDATE];
    if (c->verdict != NB_VERDICT_WRONG || g->subject != &nb_gate_kernels || !file) return NULL;
    char *plugin = nb_plugin_name(file), *key = nb_textf("%s:%s", plugin, c->key), *tuning = nb_tuning_replay();
    char *command =
        nb_replay_command(&(struct nb_replay){key, c->wrong_when_timed ? NULL : "--check-only", file, tuning});
    free(plugin);
    free(key);
    free(tuning);
    return command;
}

/* ---- on a terminal ------------------------------------------------------------------------------------------------------ */

static void add_open(const struct view *view, enum nb_verdict v, const struct nb_page *page) {
    enum { MOST = 20 };
    struct nb_strbuf line = {0};
    size_t n = 0;
    for (size_t i = 0; i < view->g->n_cases; i++) {
        const struct nb_gate_case *c = &view->g->cases[view->summary.order[i]];
        if (c->verdict != v || ++n > MOST) continue;
        nb_strbuf_clear(&line);
        nb_strbuf_addf(&line, "%s ", nb_verdict_name(v));
        nb_key_parts_short(&view->summary.parts, c->key, &line);
        nb_strbuf_addf(&line, ": %s", c->reason);
        nb_page_say(page, line.text);
        char *replay = replay_of(view->g, c);
        if (replay) { /* never wrapped: it is there to be copied */
            nb_strbuf_add(page->out, "  ");
            nb_escape_terminal(page->out, replay, nb_utf8_wanted());
            nb_strbuf_add(page->out, "\n");
        }
        free(replay);
    }
    if (n > MOST) nb_strbuf_addf(page->out, "... and %zu more\n", n - MOST);
    nb_strbuf_release(&line);
    if (n == 0) return;
    struct nb_page indented = *page;
    if (page->screen) indented.screen -= 2;
    nb_strbuf_add(page->out, "  ");
    nb_page_say(&indented, advice_of(v));
    nb_strbuf_add(page->out, "\n");
}

static void add_table(const struct view *view, const struct nb_page *page) {
    struct nb_strbuf text = {0};
    say_machine(view->fingerprint, &text);
    nb_page_say(page, text.text);
    nb_strbuf_clear(&text);
    nb_strbuf_add(&text, "All cases: ");
    const size_t before = text.len;
    nb_key_parts_common(&view->summary.parts, &text);
    if (text.len > before) nb_page_say(page, text.text);
    nb_strbuf_release(&text);
    nb_strbuf_add(page->out, "\n");
    add_cases(view, ALL_CASES, SIZE_MAX, page);
    nb_strbuf_add(page->out, "\n");
    for (int v = NB_N_VERDICTS - 1; v >= FIRST_OPEN; v--) add_open(view, (enum nb_verdict)v, page);
    for (int i = 0; i < N_SENTENCES; i++) say(view, i, page);
}

/* ---- Markdown -------------------------------------------------------------------------------------------------------- */

/* The gate as a CI's job summary ($GITHUB_STEP_SUMMARY): the verdict first, then what to do about it, then the figures; cases that
 * passed are folded away. GitHub takes at most 1 MiB of a step. */

enum { MOST_OPEN = 500, MOST_PASSED = 1000 };

static void add_headline(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    const enum nb_verdict v = s->verdict;
    const char *word = v == NB_VERDICT_NONE                                    ? "nothing was compared"
                       : v == NB_VERDICT_IDENTICAL || v == NB_VERDICT_IMPROVED ? "PASS"
                                                                               : nb_verdict_name(v);
    nb_strbuf_addf(out, "## normbench gate: %s\n\n", word);
}

static void add_advice(const struct view *view, struct nb_strbuf *out) {
    bool any = false;
    for (int v = NB_N_VERDICTS - 1; v >= FIRST_OPEN; v--) {
        if (!view->summary.counts[v]) continue;
        if (!any) nb_strbuf_add(out, "### What to do\n\n");
        any = true;
        nb_strbuf_addf(out, "- **%s** (%zu): %s\n", nb_verdict_name((enum nb_verdict)v), view->summary.counts[v],
                       advice_of((enum nb_verdict)v));
    }
    if (any) nb_strbuf_add(out, "\n");
}

static void add_markdown(const struct view *view, const struct nb_page *page) {
    const struct nb_gate_summary *s = &view->summary;
    struct nb_strbuf text = {0}, passed = {0};
    const struct nb_page folded = {.markdown = true, .out = &passed};
    add_headline(s, page->out);
    say(view, COUNTS, page);
    add_advice(view, page->out);
    if (add_cases(view, OPEN_CASES, MOST_OPEN, page)) nb_strbuf_add(page->out, "\n");
    const size_t n_passed = add_cases(view, PASSED_CASES, MOST_PASSED, &folded);
    if (n_passed)
        nb_strbuf_addf(page->out, "<details><summary>%zu case%s passed</summary>\n\n%s\n</details>\n\n", n_passed,
                       n_passed == 1 ? "" : "s", passed.text);
    for (int i = COUNTS + 1; i < N_SENTENCES; i++) say(view, i, page);
    say_machine(view->fingerprint, &text);
    nb_escape_markdown(page->out, text.text);
    nb_strbuf_clear(&text);
    nb_key_parts_common(&s->parts, &text);
    if (text.len) {
        nb_strbuf_add(page->out, ". All cases: ");
        nb_escape_markdown(page->out, text.text);
    }
    nb_strbuf_add(page->out, ".\n");
    nb_strbuf_release(&text);
    nb_strbuf_release(&passed);
}

/* ---- JUnit ----------------------------------------------------------------------------------------------------------- */

/* The gate as a JUnit test suite: a case is a test; what is neither passed nor failed is skipped, with the reason. */

/* "change +2.10 %, interval [..], .." */
static void add_figures(const struct view *view, const struct nb_gate_case *c, struct nb_strbuf *out) {
    struct nb_strbuf cell = {0};
    nb_strbuf_add(out, nb_verdict_name(c->verdict));
    if (c->reason[0]) nb_strbuf_addf(out, ": %s", c->reason);
    for (int column = CHANGE; column < SECONDS; column++) {
        nb_strbuf_clear(&cell);
        add_cell(view, c, (enum gate_column)column, &cell);
        if (cell.len) nb_strbuf_addf(out, "; %s %s", title_of(view, (enum gate_column)column), cell.text);
    }
    nb_strbuf_release(&cell);
}

static void add_junit_case(const struct view *view, const struct nb_gate_case *c, struct nb_junit *junit) {
    struct nb_strbuf figures = {0};
    add_figures(view, c, &figures);
    const bool undecided =
        c->verdict == NB_VERDICT_INCONCLUSIVE || c->verdict == NB_VERDICT_SUSPECT || c->verdict == NB_VERDICT_NONE;
    const bool open = undecided || c->verdict == NB_VERDICT_NOT_COMPARABLE;
    const bool failed = c->verdict >= NB_VERDICT_REGRESSION || (undecided && view->g->plan.inconclusive_fails);
    char *why = nb_textf("%s: %s", nb_verdict_name(c->verdict), c->reason);
    nb_junit_add(junit, &(struct nb_junit_case){.class_name = "normbench.gate",
                                                .name = c->key,
                                                .time_s = c->seconds,
                                                .failure = failed ? nb_verdict_name(c->verdict) : NULL,
                                                .skipped = open && !failed ? why : NULL,
                                                .message = c->reason,
                                                .output = figures.text});
    free(why);
    nb_strbuf_release(&figures);
}

static void add_junit(const struct view *view, const struct nb_page *page) {
    struct nb_junit junit = {0};
    struct nb_strbuf text = {0};
    say_machine(view->fingerprint, &text);
    nb_junit_property(&junit, "machine", text.text);
    for (int i = 0; i < N_SENTENCES; i++) {
        nb_strbuf_clear(&text);
        sentences[i](&view->summary, &text);
        nb_junit_property(&junit, sentence_names[i], text.text);
    }
    nb_strbuf_release(&text);
    for (size_t i = 0; i < view->g->n_cases; i++) add_junit_case(view, &view->g->cases[view->summary.order[i]], &junit);
    nb_junit_finish(&junit, "normbench gate", "", view->g->elapsed_s, page->out);
}

/* ---- JSON: reports/schema/gate.schema.json describes it -------------------------------------------------------------- */

static void add_launches(cJSON *object, const char *name, const struct nb_gate_launch *launches, size_t n) {
    cJSON *array = cJSON_AddArrayToObject(object, name);
    for (size_t i = 0; i < n; i++) {
        cJSON *json = nb_json_add_object(array);
        nb_json_number(json, "ln_ratio", launches[i].ratio);
        nb_json_number(json, "ln_control", launches[i].control);
        for (int s = NB_UNCONTENDED; s < NB_ANY_STATE && launches[i].is_probed; s++) {
            cJSON *in = cJSON_AddObjectToObject(json, nb_state_names[s]);
            nb_json_number(in, "ln_ratio", launches[i].ratio_in.ln[s]);
            nb_json_number(in, "ln_control", launches[i].control_in.ln[s]);
        }
        nb_json_number(json, "ln_ratio_min", launches[i].ratio_min);
        nb_json_number(json, "order_effect", launches[i].order_effect);
        nb_json_number(json, "preempted", launches[i].preempted);
        cJSON_AddNumberToObject(json, "layout", launches[i].layout);
    }
}

static void add_judgement(cJSON *json, const struct nb_gate_case *c) {
    const struct nb_gate_judgement *j = &c->judgement;
    nb_json_text(json, "state", nb_state_names[j->state]);
    nb_json_interval(json, "ratio", &j->ratio);
    nb_json_interval(json, "confirmed", &j->confirmed);
    nb_json_interval(json, "control", &j->control);
    nb_json_interval(json, "t_ratio", &j->t_ratio);
    nb_json_number(json, "ratio_min", j->ratio_min);
    nb_json_number(json, "order_effect", j->order_effect);
    nb_json_number(json, "preempted", j->preempted);
    nb_json_number(json, "launch_sd", j->launch_sd);
    nb_json_number(json, "smallest_effect", j->smallest_effect);
    nb_json_number(json, "layout_spread", j->layout_spread);
    cJSON_AddBoolToObject(json, "flagged", j->flagged);
}

static cJSON *case_to_json(const struct nb_gate *g, const struct nb_gate_case *c) {
    cJSON *json = cJSON_CreateObject(), *builds = cJSON_CreateObject();
    char *replay = replay_of(g, c);
    nb_json_text(json, "key", c->key);
    struct nb_strbuf variant = {0};
    nb_strbuf_addf(&variant, "%.*s", (int)strcspn(c->key, "/"), c->key);
    nb_json_text(json, "variant", variant.text);
    nb_strbuf_release(&variant);
    nb_json_text(json, "verdict", nb_verdict_name(c->verdict));
    nb_json_text(json, "reason", c->reason[0] ? c->reason : NULL);
    nb_json_text(json, "replay", replay);
    free(replay);
    nb_json_number(json, "seconds", c->seconds);
    cJSON_AddBoolToObject(json, "over_budget", c->over_budget);
    nb_json_text(json, "uncounted", c->uncounted[0] ? c->uncounted : NULL);
    cJSON_AddItemToObject(json, "builds", builds);
    for (int b = 0; b < NB_N_BUILDS; b++) {
        cJSON *build = cJSON_AddObjectToObject(builds, nb_build_names[b]);
        nb_json_number(build, "call_ns", is_judged(c) ? c->call_ns[b] : (double)NAN);
        nb_json_number(build, "instructions", c->instructions[b]);
        if (c->has_accuracy[b])
            cJSON_AddItemToObject(build, "accuracy", nb_accuracy_to_json(&c->accuracy[b], nb_number_of(c->c.dtype)));
    }
    if (!is_judged(c)) return json;
    add_judgement(json, c);
    cJSON_AddBoolToObject(json, "chunked", c->chunked);
    add_launches(json, "screen", c->screen, c->n_screen);
    add_launches(json, "confirm", c->confirm, c->n_confirm);
    return json;
}

/* "PASS" for all that pass: which way each passed is its case's. Null: no case. */
static const char *overall(const struct nb_gate_summary *s) {
    const bool passed = s->verdict == NB_VERDICT_IDENTICAL || s->verdict == NB_VERDICT_IMPROVED;
    if (s->verdict == NB_VERDICT_NONE) return NULL;
    return nb_verdict_name(passed ? NB_VERDICT_PASS : s->verdict);
}

static void add_signs(cJSON *object, const char *name, size_t n_slower, size_t n) {
    cJSON *json = cJSON_AddObjectToObject(object, name);
    cJSON_AddNumberToObject(json, "slower", (double)n_slower);
    cJSON_AddNumberToObject(json, "of", (double)n);
    cJSON_AddBoolToObject(json, "leans", leans(n_slower, n));
}

static void add_summary(cJSON *object, const struct nb_gate_summary *s) {
    cJSON *json = cJSON_AddObjectToObject(object, "summary"), *counts = cJSON_AddObjectToObject(json, "counts");
    for (int v = 0; v < NB_N_VERDICTS; v++)
        if (s->counts[v]) cJSON_AddNumberToObject(counts, nb_verdict_name((enum nb_verdict)v), (double)s->counts[v]);
    cJSON_AddNumberToObject(json, "timed", (double)s->n_timed);
    nb_json_interval(json, "geometric_mean", &s->mean);
    nb_json_number(json, "smallest_effect_median", s->smallest_effect);
    nb_json_number(json, "smallest_effect_worst", s->largest_smallest);
    add_signs(json, "signs", s->n_slower, s->n_null);
    add_signs(json, "control_signs", s->n_control_slower, s->n_control);
}

static void add_plan(cJSON *object, const struct nb_gate_plan *plan) {
    cJSON *json = cJSON_AddObjectToObject(object, "plan"), *rule = cJSON_AddObjectToObject(object, "rule");
    cJSON_AddNumberToObject(json, "screen_launches", plan->screen_launches);
    cJSON_AddNumberToObject(json, "confirm_launches", plan->confirm_launches);
    cJSON_AddNumberToObject(json, "blocks", plan->blocks);
    nb_json_number(json, "sample_ms", plan->sample_ms);
    nb_json_number(json, "budget_s", plan->budget_s > 0 ? plan->budget_s : (double)NAN);
    nb_json_uint64(json, "seed", plan->seed);
    cJSON_AddBoolToObject(json, "time_identical", plan->ignore_identity);
    nb_json_number(rule, "fail_margin", plan->rule.fail_margin);
    nb_json_number(rule, "pass_margin", plan->rule.pass_margin);
    nb_json_number(rule, "run_level", plan->rule.run_level);
    nb_json_number(rule, "pass_level", plan->rule.pass_level);
    nb_json_number(rule, "screen_level", plan->rule.screen_level);
    nb_json_number(rule, "most_preempted", plan->rule.most_preempted);
}

/* The files as the user named them, one list entry a layout, and what was in them. */
static void add_builds(cJSON *object, const struct nb_gate_builds *b) {
    static const int arms[] = {NB_BUILD_BASELINE, NB_BUILD_CANDIDATE};
    cJSON *json = cJSON_AddObjectToObject(object, "builds");
    for (size_t i = 0; i < 2; i++) {
        cJSON *list = cJSON_AddArrayToObject(json, nb_build_names[arms[i]]);
        for (int l = 0; l < b->n_layouts; l++) {
            char hash[20] = "";
            cJSON *file = nb_json_add_object(list);
            if (b->files[l][arms[i]]) nb_file_hash(b->files[l][arms[i]], hash);
            nb_json_text(file, "file", b->sources[l][arms[i]]);
            nb_json_text(file, "hash", hash[0] ? hash : NULL);
        }
    }
}

static void add_json(const struct view *view, const struct nb_page *page) {
    const struct nb_gate *g = view->g;
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "schema", "2.0");
    nb_json_text(json, "program", "normbench");
    nb_json_text(json, "version", NB_VERSION);
    nb_json_text(json, "verdict", overall(&view->summary));
    nb_json_number(json, "elapsed_s", g->elapsed_s);
    cJSON_AddNumberToObject(json, "layouts", g->builds.n_layouts);
    add_summary(json, &view->summary);
    add_plan(json, &g->plan);
    add_builds(json, &g->builds);
    cJSON *cases = cJSON_AddArrayToObject(json, "cases");
    for (size_t i = 0; i < g->n_cases; i++) cJSON_AddItemToArray(cases, case_to_json(g, &g->cases[i]));
    cJSON_AddItemToObject(json, "fingerprint", cJSON_Duplicate(view->fingerprint, true));
    nb_json_add_sum(json);
    nb_json_print_pretty(json, 0, page->out);
    nb_strbuf_add(page->out, "\n");
    cJSON_Delete(json);
}

/* ---- metrics --------------------------------------------------------------------------------------------------------- */

/* The gate as metrics: ratios travel between machines, where times do not. */

/* A case that passed without being timed has an entry too: a reader of a series takes a gap for a benchmark that is gone. Null: no entry. */
static const struct nb_interval *ratio_of(const struct nb_gate_case *c) {
    static const struct nb_interval unchanged = {1, 1, 1};
    if (c->verdict == NB_VERDICT_IDENTICAL) return &unchanged;
    return is_judged(c) ? &c->judgement.ratio : NULL;
}

static void add_bencher(const struct view *view, const struct nb_page *page) {
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < view->g->n_cases; i++) {
        const struct nb_gate_case *c = &view->g->cases[i];
        cJSON *benchmark = cJSON_CreateObject();
        if (ratio_of(c)) nb_bencher_add(benchmark, "ratio", ratio_of(c));
        if (is_judged(c)) nb_bencher_add(benchmark, "control", &c->judgement.control);
        nb_bencher_keep(json, c->key, benchmark);
    }
    nb_json_print_pretty(json, 0, page->out);
    nb_strbuf_add(page->out, "\n");
    cJSON_Delete(json);
}

static void add_benchmark_action(const struct view *view, const struct nb_page *page) {
    cJSON *json = cJSON_CreateArray();
    for (size_t i = 0; i < view->g->n_cases; i++) {
        const struct nb_gate_case *c = &view->g->cases[i];
        if (ratio_of(c))
            nb_smaller_is_better_add(json, c->key, "candidate / baseline", ratio_of(c), nb_verdict_name(c->verdict));
    }
    nb_json_print_pretty(json, 0, page->out);
    nb_strbuf_add(page->out, "\n");
    cJSON_Delete(json);
}

/* ---- formats --------------------------------------------------------------------------------------------------------- */

static const struct format {
    const char *name, *file; /* null: no file */
    void (*add)(const struct view *view, const struct nb_page *page);
} formats[] = {{"table", NULL, add_table},
               {"json", "gate.json", add_json},
               {"markdown", "gate.md", add_markdown},
               {"junit", "gate.xml", add_junit},
               {"bencher", "gate.bencher.json", add_bencher},
               {"benchmark_action", "gate.benchmark_action.json", add_benchmark_action}};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

static const struct format *find_format(const char *name) {
    for (size_t i = 0; i < N_FORMATS; i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

const char *const nb_gate_formats[] = {"table", "json", "markdown", "junit", "bencher", "benchmark_action", NULL};

static void view_init(struct view *view, const struct nb_gate *g) {
    *view = (struct view){.g = g, .fingerprint = nb_fingerprint()};
    gate_summary_init(&view->summary, g);
}

static void view_release(struct view *view) {
    gate_summary_release(&view->summary);
    cJSON_Delete(view->fingerprint);
}

int nb_gate_print(const struct nb_gate *g, const char *format, FILE *out) {
    const struct format *f = find_format(format);
    struct view view;
    struct nb_strbuf text = {0};
    assert(f);
    view_init(&view, g);
    const struct nb_page page = nb_page_for(out, strcmp(format, "markdown") == 0, &text);
    f->add(&view, &page);
    view_release(&view);
    return nb_output(&text, out);
}

int nb_gate_write(const struct nb_gate *g, const char *dir) {
    struct view view;
    int result = nb_dir_make(dir);
    if (result != 0) return -1;
    view_init(&view, g);
    for (size_t i = 0; i < N_FORMATS && result == 0; i++) {
        struct nb_strbuf text = {0};
        if (!formats[i].file) continue;
        char *path = nb_path_join(dir, formats[i].file);
        formats[i].add(&view, &(struct nb_page){.markdown = true, .out = &text});
        result = nb_file_write(path, text.text, text.len);
        nb_strbuf_release(&text);
        free(path);
    }
    view_release(&view);
    return result;
}

void nb_gate_clear(const char *dir) {
    assert(dir);
    for (size_t i = 0; i <= N_FORMATS; i++) {
        const char *file = i < N_FORMATS ? formats[i].file : "samples.jsonl";
        if (!file) continue;
        char *path = nb_path_join(dir, file);
        unlink(path);
        free(path);
    }
}
