// SPDX-License-Identifier: Apache-2.0
/* A gate in words and tables, for people, and in JUnit's XML; and the choice of a format. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "reports/gate/gate_report.h"
#include "reports/text/escape.h"
#include "reports/text/exports.h"
#include "reports/text/output.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/gate/gate.h"

/* Verdicts from this one on call for something to be done. */
#define FIRST_OPEN NB_VERDICT_SUSPECT

/* ---- in words -------------------------------------------------------------------------------------------------------- */

static int digits_of(const struct nb_interval *ratio) { return fabs(ratio->value - 1) < 0.095 ? 2 : 1; }

static void add_change(struct nb_strbuf *out, const struct nb_interval *ratio) {
    if (isfinite(ratio->value)) nb_strbuf_addf(out, "%+.*f%%", digits_of(ratio), 100 * (ratio->value - 1));
}

static void add_interval(struct nb_strbuf *out, const char *before, const struct nb_interval *ratio) {
    const int digits = digits_of(ratio);
    if (nb_interval_known(ratio))
        nb_strbuf_addf(out, "%s[%.*f, %.*f]", before, digits, 100 * (ratio->low - 1), digits, 100 * (ratio->high - 1));
}

static const char *word_of(const struct nb_gate_summary *s) {
    const char *overall = nb_gate_overall(s);
    return overall ? overall : "nothing was compared";
}

static void say_counts(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    int n = 0;
    nb_strbuf_addf(out, "%zu case%s", s->g->n_cases, s->g->n_cases == 1 ? "" : "s");
    for (int v = NB_N_VERDICTS - 1; v >= 0; v--)
        if (s->counts[v])
            nb_strbuf_addf(out, "%s%zu %s", n++ ? ", " : ": ", s->counts[v], nb_verdict_name((enum nb_verdict)v));
    nb_strbuf_addf(out, "; %.0f s", s->g->elapsed_s);
    if (s->g->ended_by) nb_strbuf_addf(out, ", ended by signal %d", s->g->ended_by);
}

/* Of one case its row says the same. */
static void say_mean(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    if (s->n_timed < 2) return;
    nb_strbuf_addf(out, "%zu cases timed: time ", s->n_timed);
    add_change(out, &s->mean);
    add_interval(out, " ", &s->mean);
    nb_strbuf_add(out, " (geometric mean).");
    if (!isfinite(s->smallest_effect)) return;
    nb_strbuf_addf(out,
                   " Detectable 95%% of the time: a slowdown of %.1f%% in the median case, of %.1f%% in the worst.",
                   100 * s->smallest_effect, 100 * s->largest_smallest);
}

static void say_layouts(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    if (s->n_timed == 0) return;
    if (s->g->builds.n_layouts > 1)
        nb_strbuf_addf(out, "%d memory layouts compared.", s->g->builds.n_layouts);
    else
        nb_strbuf_add(out, "One memory layout compared: a difference below 1% may be the layout's. --baseline and "
                           "--candidate, given several times with builds linked in other orders, tell.");
}

/* The sign test as a sentence; empty where nothing leans. */
static void gate_say_leaning(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    if (!nb_gate_leans(s->n_slower, s->n_null)) return;
    const bool slower = 2 * s->n_slower > s->n_null;
    nb_strbuf_addf(
        out, "%zu of %zu cases inside the margin lean to the %s side, which chance does in less than 1%% of runs: ",
        slower ? s->n_slower : s->n_null - s->n_slower, s->n_null, slower ? "slow" : "fast");
    const bool control =
        nb_gate_leans(s->n_control_slower, s->n_control) && (2 * s->n_control_slower > s->n_control) == slower;
    nb_strbuf_add(
        out, control ? "so do the copies of the baseline, so that the measurement leans and not the change."
                     : "something small changed everywhere (flags, compiler, layout), while copies of the baseline "
                       "do not lean.");
}

static void say_machine(const cJSON *fingerprint, struct nb_strbuf *out) {
    static const char *const places[][2] = {
        {"cpu", "model"}, {"cpu", "hypervisor"}, {"system", "kernel"}, {"system", "os"}};
    nb_strbuf_add(out, "");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *text = nb_json_get_string(nb_json_get(fingerprint, places[i][0]), places[i][1]);
        if (*text) nb_strbuf_addf(out, "%s%s", out->len ? ", " : "", text);
    }
}

/* What a person does about a case that is open. */
static const char *const advice[NB_N_VERDICTS] = {
    [NB_VERDICT_WRONG] = "The candidate's results are wrong, or it crashed. Fix this first: its speed means nothing.",
    [NB_VERDICT_LESS_ACCURATE] =
        "The results are less accurate than the baseline's. `normbench stress --plugin CANDIDATE.so` shows for which "
        "inputs; if you accept the loss, say so in the change.",
    [NB_VERDICT_REGRESSION] =
        "Compare the machine code (objdump -d). To repeat one case, add --filter KEY, or name one --function.",
    [NB_VERDICT_NOT_COMPARABLE] = "Nothing to compare with. Expected where a kernel was added, renamed or removed; "
                                  "otherwise fix what the reason names.",
    [NB_VERDICT_SUSPECT] = "Faster than the work allows, or it slows what runs beside it. Either it skips work while "
                           "it is timed, or the improvement is real: check what the reason names.",
    [NB_VERDICT_INCONCLUSIVE] = "Neither slower nor within the margin for sure, which is no fault of the change. Use "
                                "an idle machine, a larger --budget or more layouts."};

typedef void sentence(const struct nb_gate_summary *s, struct nb_strbuf *text);
static sentence *const sentences[] = {say_counts, say_mean, gate_say_leaning, say_layouts};
static const char *const sentence_names[] = {"counts", "ratio", "leaning", "layouts"};
enum { COUNTS, N_SENTENCES = sizeof sentences / sizeof *sentences };

static void say(const struct nb_gate_summary *s, int which, const struct nb_page *page) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    sentences[which](s, &text);
    nb_page_say(page, text.text);
}

/* ---- cells of all three -------------------------------------------------------------------------------------- */

/* The columns of the table, of the terminal and of Markdown: short texts without escapes. */
enum gate_column {
    VERDICT,
    CASE,
    CHANGE,
    INTERVAL,
    DETECTABLE,
    CONTROL,
    INSTRUCTIONS, /* exact counts of one row, or one call of a function: candidate against baseline */
    LAUNCHES,
    SECONDS,
    REASON,
    N_COLUMNS
};

static const char *const column_titles[N_COLUMNS] = {"verdict", "case",   "vs baseline", "[95% CI]", "detectable",
                                                     "control", "instr.", "launches",    "s",        "reason"};
static const bool is_right[N_COLUMNS] = {false, false, true, false, true, true, true, true, true, false};
static const int ranks[N_COLUMNS] = {NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, 6, 5, 4, 3, 1, 2, NB_GRID_STAYS};

static const char *title_of(const struct nb_gate_summary *s, enum gate_column column) {
    return column == INSTRUCTIONS ? s->g->subject->instructions : column_titles[column];
}

static void add_percent(struct nb_strbuf *out, const char *format, double ratio) {
    if (isfinite(ratio)) nb_strbuf_addf(out, format, 100 * (ratio - 1));
}

static void add_cell(const struct nb_gate_summary *s, const struct nb_gate_case *c, enum gate_column column,
                     struct nb_strbuf *out) {
    const struct nb_gate_judgement *j = &c->judgement;
    if (column == VERDICT) nb_strbuf_add(out, nb_verdict_name(c->verdict));
    if (column == CASE) nb_key_parts_short(&s->parts, c->key, out);
    if (column == REASON) nb_strbuf_add(out, c->reason);
    if (column == SECONDS && c->seconds > 0) nb_strbuf_addf(out, "%.1f", c->seconds);
    if (column == INSTRUCTIONS)
        add_percent(out, "%+.2f%%", c->instructions[NB_BUILD_CANDIDATE] / c->instructions[NB_BUILD_BASELINE]);
    if (!nb_gate_is_judged(c)) return;
    if (column == CHANGE) add_change(out, &j->ratio);
    if (column == INTERVAL) add_interval(out, "", &j->ratio);
    if (column == DETECTABLE) add_percent(out, "%.1f%%", 1 + j->smallest_effect);
    if (column == CONTROL) add_percent(out, "%+.2f%%", j->control.value);
    if (column == LAUNCHES) nb_strbuf_addf(out, "%zu", c->launches.n_screen + c->launches.n_confirm);
}

/* Has any case a text in this column? */
static bool has_column(const struct nb_gate_summary *s, enum gate_column column) {
    struct nb_strbuf cell released_by(nb_strbuf_release) = {0};
    for (size_t i = 0; i < s->g->n_cases && !cell.len; i++) add_cell(s, &s->g->cases[i], column, &cell);
    return cell.len > 0;
}

static enum nb_grid_style style_of(enum nb_verdict v) {
    if (v >= NB_VERDICT_REGRESSION) return NB_GRID_BAD;
    if (v >= FIRST_OPEN) return NB_GRID_DOUBTFUL;
    return v == NB_VERDICT_IMPROVED ? NB_GRID_GOOD : NB_GRID_PLAIN;
}

enum chosen { ALL_CASES, OPEN_CASES, PASSED_CASES };

/* The table of the chosen cases, of which there are as many as it returns: on a terminal the columns that say something, in Markdown all; the reason
 * beside cases that are open, which a terminal has below. */
static size_t add_cases(const struct nb_gate_summary *s, enum chosen chosen, size_t most, const struct nb_page *page) {
    const char *titles[N_COLUMNS];
    bool right[N_COLUMNS];
    int kept_ranks[N_COLUMNS];
    enum gate_column columns[N_COLUMNS];
    struct nb_grid grid released_by(nb_grid_release);
    size_t n = 0, n_columns = 0;
    for (enum gate_column c = 0; c < N_COLUMNS; c++) {
        if (c == REASON ? chosen != OPEN_CASES : !page->markdown && !has_column(s, c)) continue;
        columns[n_columns] = c;
        titles[n_columns] = title_of(s, c);
        right[n_columns] = is_right[c];
        kept_ranks[n_columns++] = ranks[c];
    }
    nb_grid_init(&grid, titles, n_columns);
    grid.right = right;
    grid.ranks = kept_ranks;
    for (size_t i = 0; i < s->g->n_cases; i++) {
        const struct nb_gate_case *c = &s->g->cases[s->order[i]];
        const bool is_open = c->verdict >= FIRST_OPEN;
        if ((chosen != ALL_CASES && is_open != (chosen == OPEN_CASES)) || ++n > most) continue;
        nb_grid_style(&grid, style_of(c->verdict));
        for (size_t k = 0; k < n_columns; k++) {
            add_cell(s, c, columns[k], &grid.cell);
            nb_grid_end_cell(&grid);
        }
    }
    if (n) nb_page_grid(page, &grid);
    if (n > most) nb_strbuf_addf(page->out, "\n... and %zu more: gate.json has them all.\n", n - most);
    return n;
}

/* ---- on a terminal ------------------------------------------------------------------------------------------------------ */

static void add_open(const struct nb_gate_summary *s, enum nb_verdict v, const struct nb_page *page) {
    enum { MOST = 20 };
    struct nb_strbuf line released_by(nb_strbuf_release) = {0};
    size_t n = 0;
    for (size_t i = 0; i < s->g->n_cases; i++) {
        const struct nb_gate_case *c = &s->g->cases[s->order[i]];
        if (c->verdict != v || ++n > MOST) continue;
        nb_strbuf_clear(&line);
        nb_strbuf_addf(&line, "%s ", nb_verdict_name(v));
        nb_key_parts_short(&s->parts, c->key, &line);
        nb_strbuf_addf(&line, ": %s", c->reason);
        nb_page_say(page, line.text);
        char *replay freed = nb_gate_replay(s->g, c);
        if (replay) { /* never wrapped: it is there to be copied */
            nb_strbuf_add(page->out, "  ");
            nb_escape_terminal(page->out, replay, nb_utf8_wanted());
            nb_strbuf_add(page->out, "\n");
        }
    }
    if (n > MOST) nb_strbuf_addf(page->out, "... and %zu more\n", n - MOST);
    if (n == 0) return;
    struct nb_page indented = *page;
    if (page->screen) indented.screen -= 2;
    nb_strbuf_add(page->out, "  ");
    nb_page_say(&indented, advice[v]);
    nb_strbuf_add(page->out, "\n");
}

static void say_cases(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    struct nb_strbuf parts released_by(nb_strbuf_release) = {0};
    say_machine(s->fingerprint, out);
    nb_key_parts_common(&s->parts, &parts);
    if (parts.len) nb_strbuf_addf(out, ". All cases: %s", parts.text);
}

static void add_table(const struct nb_gate_summary *s, const struct nb_page *page) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(&text, "%s. ", word_of(s));
    say_counts(s, &text);
    nb_page_say(page, text.text);
    nb_strbuf_add(page->out, "\n");
    for (int v = NB_N_VERDICTS - 1; v >= FIRST_OPEN; v--) add_open(s, (enum nb_verdict)v, page);
    for (int i = COUNTS + 1; i < N_SENTENCES; i++) say(s, i, page);
    if (s->n_timed) nb_strbuf_add(page->out, "\n");
    add_cases(s, ALL_CASES, SIZE_MAX, page);
    nb_strbuf_add(page->out, "\n");
    nb_strbuf_clear(&text);
    say_cases(s, &text);
    nb_page_say(page, text.text);
}

/* ---- Markdown -------------------------------------------------------------------------------------------------------- */

/* The gate as a CI's job summary ($GITHUB_STEP_SUMMARY): the verdict first, then what to do about it, then the figures; cases that
 * passed are folded away. GitHub takes at most 1 MiB of a step. */

enum { MOST_OPEN = 500, MOST_PASSED = 1000 };

static void add_advice(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    bool any = false;
    for (int v = NB_N_VERDICTS - 1; v >= FIRST_OPEN; v--) {
        if (!s->counts[v]) continue;
        if (!any) nb_strbuf_add(out, "### What to do\n\n");
        any = true;
        nb_strbuf_addf(out, "- **%s** (%zu): %s\n", nb_verdict_name((enum nb_verdict)v), s->counts[v], advice[v]);
    }
    if (any) nb_strbuf_add(out, "\n");
}

static void add_markdown(const struct nb_gate_summary *s, const struct nb_page *page) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0}, passed released_by(nb_strbuf_release) = {0};
    const struct nb_page folded = {.markdown = true, .out = &passed};
    nb_strbuf_addf(page->out, "## normbench gate: %s\n\n", word_of(s));
    say(s, COUNTS, page);
    add_advice(s, page->out);
    if (add_cases(s, OPEN_CASES, MOST_OPEN, page)) nb_strbuf_add(page->out, "\n");
    const size_t n_passed = add_cases(s, PASSED_CASES, MOST_PASSED, &folded);
    if (n_passed)
        nb_strbuf_addf(page->out, "<details><summary>%zu case%s passed</summary>\n\n%s\n</details>\n\n", n_passed,
                       n_passed == 1 ? "" : "s", passed.text);
    for (int i = COUNTS + 1; i < N_SENTENCES; i++) say(s, i, page);
    say_cases(s, &text);
    nb_escape_markdown(page->out, text.text);
    nb_strbuf_add(page->out, ".\n");
}

/* ---- JUnit ----------------------------------------------------------------------------------------------------------- */

/* The gate as a JUnit test suite: a case is a test; what is neither passed nor failed is skipped, with the reason. */

/* "change +2.10 %, interval [..], .." */
static void add_figures(const struct nb_gate_summary *s, const struct nb_gate_case *c, struct nb_strbuf *out) {
    struct nb_strbuf cell released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(out, nb_verdict_name(c->verdict));
    if (c->reason[0]) nb_strbuf_addf(out, ": %s", c->reason);
    for (int column = CHANGE; column < SECONDS; column++) {
        nb_strbuf_clear(&cell);
        add_cell(s, c, (enum gate_column)column, &cell);
        if (cell.len) nb_strbuf_addf(out, "; %s %s", title_of(s, (enum gate_column)column), cell.text);
    }
}

static void add_junit_case(const struct nb_gate_summary *s, const struct nb_gate_case *c, struct nb_junit *junit) {
    struct nb_strbuf figures released_by(nb_strbuf_release) = {0};
    add_figures(s, c, &figures);
    const bool undecided =
        c->verdict == NB_VERDICT_INCONCLUSIVE || c->verdict == NB_VERDICT_SUSPECT || c->verdict == NB_VERDICT_NONE;
    const bool open = undecided || c->verdict == NB_VERDICT_NOT_COMPARABLE;
    const bool failed = c->verdict >= NB_VERDICT_REGRESSION || (undecided && s->g->plan.inconclusive_fails) ||
                        (c->verdict == NB_VERDICT_NOT_COMPARABLE && s->g->plan.not_comparable_fails);
    char *why freed = nb_textf("%s: %s", nb_verdict_name(c->verdict), c->reason);
    nb_junit_add(junit, &(struct nb_junit_case){.class_name = "normbench.gate",
                                                .name = c->key,
                                                .time_s = c->seconds,
                                                .failure = failed ? nb_verdict_name(c->verdict) : NULL,
                                                .skipped = open && !failed ? why : NULL,
                                                .message = c->reason,
                                                .output = figures.text});
}

static void add_junit(const struct nb_gate_summary *s, const struct nb_page *page) {
    struct nb_junit junit = {0};
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    say_machine(s->fingerprint, &text);
    nb_junit_property(&junit, "machine", text.text);
    for (int i = 0; i < N_SENTENCES; i++) {
        nb_strbuf_clear(&text);
        sentences[i](s, &text);
        nb_junit_property(&junit, sentence_names[i], text.text);
    }
    for (size_t i = 0; i < s->g->n_cases; i++) add_junit_case(s, &s->g->cases[s->order[i]], &junit);
    nb_junit_finish(&junit, "normbench gate", "", s->g->elapsed_s, page->out);
}

/* ---- formats --------------------------------------------------------------------------------------------------------- */

static const struct format {
    const char *file; /* null: none */
    void (*add)(const struct nb_gate_summary *s, const struct nb_page *page);
    cJSON *(*document)(const struct nb_gate_summary *s);
} formats[] = {{NULL, .add = add_table},
               {"gate.json", .document = nb_gate_document},
               {"gate.md", .add = add_markdown},
               {"gate.xml", .add = add_junit},
               {"gate.bencher.json", .document = nb_gate_bencher},
               {"gate.benchmark_action.json", .document = nb_gate_benchmark_action}};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };
const char *const nb_gate_formats[] = {"table", "json", "markdown", "junit", "bencher", "benchmark_action", NULL};

static void add_format(const struct format *f, const struct nb_gate_summary *s, const struct nb_page *page) {
    if (f->add) return f->add(s, page);
    cJSON *json released_by(nb_json_release) = f->document(s);
    nb_json_print_pretty(json, 0, page->out);
    nb_strbuf_add(page->out, "\n");
}

int nb_gate_print(const struct nb_gate *g, const char *format, FILE *out) {
    struct nb_gate_summary s released_by(nb_gate_summary_release);
    struct nb_strbuf text = {0};
    nb_gate_summary_init(&s, g);
    const struct nb_page page = nb_page_for(out, strcmp(format, "markdown") == 0, &text);
    add_format(&formats[nb_name_find(nb_gate_formats, format)], &s, &page);
    return nb_output(&text, out);
}

int nb_gate_write(const struct nb_gate *g, const char *dir) {
    struct nb_gate_summary s released_by(nb_gate_summary_release) = {0};
    int result = nb_dir_make(dir);
    if (result != 0) return -1;
    nb_gate_summary_init(&s, g);
    for (size_t i = 0; i < N_FORMATS && result == 0; i++) {
        struct nb_strbuf text released_by(nb_strbuf_release) = {0};
        if (!formats[i].file) continue;
        char *path freed = nb_path_join(dir, formats[i].file);
        add_format(&formats[i], &s, &(struct nb_page){.markdown = true, .out = &text});
        result = nb_file_write(path, text.text, text.len);
    }
    return result;
}

void nb_gate_clear(const char *dir) {
    for (size_t i = 0; i <= N_FORMATS; i++) {
        const char *file = i < N_FORMATS ? formats[i].file : "samples.jsonl";
        if (!file) continue;
        char *path freed = nb_path_join(dir, file);
        unlink(path);
    }
}
