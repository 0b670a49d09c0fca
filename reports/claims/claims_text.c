// SPDX-License-Identifier: Apache-2.0
/* The document's figures in words, and the lines of the table of verdicts. */
#include "reports/claims/claims_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/text/grid.h"
#include "src/claims/claims.h"
#include "src/core/json.h"
#include "src/core/log.h"

bool nb_claims_is_bug(const cJSON *claim) { return nb_claim_is_bug(nb_json_get_string(claim, "id")); }

/* The reading that the verdict is explained by, or null. */
static const cJSON *main_reading(const cJSON *claim) {
    const char *id = nb_json_get_string(claim, "decided_by");
    return nb_json_find(nb_json_get(claim, "readings"), "id", id);
}

const cJSON *nb_claims_claim(const cJSON *document, const char *id) {
    return nb_json_find(nb_json_get(document, "claims"), "id", id);
}

const cJSON *nb_claims_figures(const cJSON *document, const char *claim, const char *reading) {
    const cJSON *found = nb_claims_claim(document, claim);
    found = nb_json_find(nb_json_get(found, "readings"), "id", reading);
    return nb_json_get(found, "figures");
}

/* ---- figures ---- */

static struct nb_interval interval_of(const cJSON *figure) {
    return (struct nb_interval){nb_json_get_number(figure, "value"), nb_json_get_number(figure, "low"),
                                nb_json_get_number(figure, "high")};
}

static const char *figure_name(const cJSON *reading, const cJSON *figure) {
    const cJSON *rules = nb_json_get(reading, "expect");
    const double at = nb_json_get_number(figure, "rule");
    return nb_json_get_string(cJSON_GetArrayItem(rules, at >= 0 && at < 1000 ? (int)at : 0), "figure");
}

/* A tag that follows from another one adds nothing. */
static bool follows(const char *axis, const cJSON *tags) {
    const bool of_kernel = nb_text_lists("op,style,stats,stats_dtype,variance,against", axis);
    return (of_kernel && *nb_json_get_string(tags, "kernel")) ||
           (nb_text_lists("rows,cols", axis) && *nb_json_get_string(tags, "shape"));
}

struct range {
    const cJSON *first;
    double low, high;
    int n;
    bool open, mixed; /* open: some have no interval; mixed: figures of several names */
    const char *axis; /* on which alone they differ; "": on several; null: on none */
};

/* The tag in which two figures differ; "": several; null: none. */
static const char *axis_between(const cJSON *a, const cJSON *b, const char *known) {
    const cJSON *tag;
    cJSON_ArrayForEach(tag, nb_json_get(a, "tags")) {
        const char *other = nb_json_get_text(nb_json_get(b, "tags"), tag->string);
        if (!cJSON_IsString(tag) || follows(tag->string, nb_json_get(a, "tags")) || !other ||
            strcmp(other, tag->valuestring) == 0)
            continue;
        known = !known || strcmp(known, tag->string) == 0 ? tag->string : "";
    }
    return known;
}

/* name: of those figures alone; null: of all. */
static struct range range_of(const cJSON *reading, const char *name) {
    struct range r = {.low = INFINITY, .high = -INFINITY};
    const cJSON *figure;
    cJSON_ArrayForEach(figure, nb_json_get(reading, "figures")) {
        const double v = nb_json_get_number(figure, "value");
        if (!isfinite(v) || (name && strcmp(figure_name(reading, figure), name) != 0)) continue;
        if (!r.first) r.first = figure;
        r.mixed |= strcmp(figure_name(reading, r.first), figure_name(reading, figure)) != 0;
        r.axis = axis_between(r.first, figure, r.axis);
        r.open |= isnan(nb_json_get_number(figure, "low"));
        r.low = fmin(r.low, v);
        r.high = fmax(r.high, v);
        r.n++;
    }
    return r;
}

/* "0.31 to 0.42 ulp", "16% to 82%"; ends that read alike are said once. */
static void add_ends(struct nb_strbuf *out, double from, double to, const char *unit) {
    struct nb_strbuf low released_by(nb_strbuf_release) = {0}, high released_by(nb_strbuf_release) = {0};
    nb_figure_print(&low, nb_exactly(from), unit);
    nb_figure_print(&high, nb_exactly(to), unit);
    if (strcmp(low.text, high.text) != 0) nb_strbuf_addf(out, "%.*s to ", (int)strcspn(low.text, " "), low.text);
    nb_strbuf_add(out, high.text);
}

/* Of a single figure its interval, else the range of the values: "16% to 82% over 3 cases"; sign: -1 turns it about. */
static void add_range(struct nb_strbuf *out, const struct range *r, double sign) {
    const char *unit = nb_json_get_string(r->first, "unit");
    const struct nb_interval i = interval_of(r->first), turned = {-i.value, -i.high, -i.low};
    if (r->n == 1) {
        nb_figure_print(out, sign < 0 ? turned : i, unit);
        return;
    }
    const size_t before = out->len;
    const bool one = r->axis && nb_text_lists("width,dtype,shape,norm,kernel,form", r->axis);
    add_ends(out, sign < 0 ? -r->high : r->low, sign < 0 ? -r->low : r->high, unit);
    if (strstr(out->text + before, " to ")) nb_strbuf_addf(out, " over %d %ss", r->n, one ? r->axis : "case");
}

/* All figures of a reading in one. Of a cut the ratio stands behind it, so that both conventions are there. */
static void add_measured(struct nb_strbuf *out, const cJSON *reading) {
    const struct range r = range_of(reading, NULL);
    if (r.n == 0) return;
    const char *name = figure_name(reading, r.first);
    if (r.mixed) {
        nb_strbuf_addf(out, "%d figures", r.n);
        return;
    }
    nb_rule_figure_print(name, out);
    nb_strbuf_add(out, r.open ? " ~" : " ");
    add_range(out, &r, 1);
    if (strcmp(name, "cut") == 0)
        nb_strbuf_addf(out, r.low == r.high ? "; ratio %.3g" : "; ratio %.3g to %.3g", 1 / (1 - r.low),
                       1 / (1 - r.high));
}

void nb_claims_published(const cJSON *rule, const char *lead, struct nb_strbuf *out) {
    const double published = nb_json_get_number(rule, "published");
    const char *name = nb_json_get_string(rule, "figure");
    const bool share = strstr(name, "cut") != NULL || strcmp(name, "relative_error") == 0;
    if (!isfinite(published)) return;
    nb_strbuf_add(out, lead);
    nb_figure_print(out, nb_exactly(published), share ? "share" : "");
}

/* What the source says, in a cell: figures of the rules, else "". */
static void add_published(struct nb_strbuf *out, const cJSON *reading) {
    const cJSON *rule;
    cJSON_ArrayForEach(rule, nb_json_get(reading, "expect")) nb_claims_published(rule, out->len ? ", " : "", out);
}

/* ---- tags ---- */

static bool differs(const char *axis, const char *value, const cJSON *figures) {
    const cJSON *figure;
    cJSON_ArrayForEach(figure, figures) {
        const cJSON *tags = nb_json_get(figure, "tags");
        if (tags && !nb_json_is(tags, axis, value)) return true;
    }
    return false;
}

/* "style unfused, cols 512", of the tags in which the figures of a reading differ. */
static void add_tags(struct nb_strbuf *out, const cJSON *figure, const cJSON *figures) {
    const cJSON *tags = nb_json_get(figure, "tags"), *tag;
    const size_t before = out->len;
    cJSON_ArrayForEach(tag, tags) {
        if (!cJSON_IsString(tag) || follows(tag->string, tags) || !differs(tag->string, tag->valuestring, figures))
            continue;
        nb_strbuf_addf(out, "%s%s %s", out->len > before ? ", " : "", tag->string, nb_tag_word(tag->valuestring));
    }
}

void nb_claims_figure(const cJSON *figure, const cJSON *figures, struct nb_strbuf *where, struct nb_strbuf *value) {
    nb_strbuf_add(where, nb_json_get_string(figure, "label"));
    add_tags(where, figure, figures);
    nb_figure_print(value, interval_of(figure), nb_json_get_string(figure, "unit"));
}

/* ---- sensitivity ---- */

static bool same_question(const cJSON *a, const cJSON *b) {
    return nb_json_same_text(a, b, "axis") && nb_json_same_text(a, b, "reading");
}

static bool is_first(const cJSON *list, const cJSON *sensed) {
    const cJSON *p = list->child;
    while (p != sensed && !same_question(p, sensed)) p = p->next;
    return p == sensed;
}

/* "style (norm): unfused REPRODUCED, fused NOT REPRODUCED"; the reading is named where it is not the one that decides. */
static void add_axis(struct nb_strbuf *out, const cJSON *first, const char *decides) {
    const char *reading = nb_json_get_string(first, "reading");
    int n = 0;
    nb_strbuf_addf(out, "%s%s", out->len ? "; " : "", nb_json_get_string(first, "axis"));
    if (strcmp(reading, decides) != 0) nb_strbuf_addf(out, " (%s)", reading);
    nb_strbuf_add(out, ": ");
    for (const cJSON *s = first; s; s = s->next) {
        if (!same_question(s, first)) continue;
        nb_strbuf_addf(out, "%s%s %s", n++ ? ", " : "", nb_tag_word(nb_json_get_string(s, "value")),
                       nb_json_get_string(s, "verdict"));
    }
}

void nb_claims_sensitivity(struct nb_strbuf *out, const cJSON *claim) {
    const cJSON *list = nb_json_get(claim, "sensitivity"), *sensed;
    cJSON_ArrayForEach(sensed, list) {
        if (nb_json_get_bool(sensed, "decides") && is_first(list, sensed))
            add_axis(out, sensed, nb_json_get_string(claim, "decided_by"));
    }
}

/* Of a bug report the kernels that its input breaks, in a cell; "" for none. */
static void add_broken(struct nb_strbuf *out, const cJSON *claim) {
    const cJSON *sensed;
    cJSON_ArrayForEach(sensed, nb_json_get(claim, "sensitivity")) {
        if (nb_json_is(sensed, "axis", "kernel") &&
            (nb_json_is(sensed, "verdict", nb_claim_verdict_names[NB_REPRODUCED]) ||
             nb_json_is(sensed, "verdict", nb_claim_verdict_names[NB_PARTLY])))
            nb_strbuf_addf(out, "%s%s", out->len ? ", " : "", nb_json_get_string(sensed, "value"));
    }
}

/* How a verdict is said; the statement stands between quotes and is followed by `behind`, so that the line is true when read alone. */
static const struct {
    const char *answer, *behind;
} answers[NB_N_CLAIM_VERDICTS] = {[NB_REPRODUCED] = {"yes", NULL},
                                  [NB_PARTLY] = {"in part", " is true only in part"},
                                  [NB_NOT_REPRODUCED] = {"no", ""}, /* by the theme */
                                  [NB_FALSE_IN_PART] = {"false in part", " is false in part"},
                                  [NB_NEEDS_A_GPU] = {"needs a GPU", " is said of GPUs"},
                                  [NB_NOT_MEASURED] = {"not measured", " was not measured"},
                                  [NB_UNDECIDED_HERE] = {"undecided", " is not decided"},
                                  [NB_NO_MEASUREMENT] = {"no measurement decides", ""}};

/* NB_N_CLAIM_VERDICTS: of an older file. */
static int verdict_of(const cJSON *claim) {
    int v = 0;
    while (v < NB_N_CLAIM_VERDICTS && !nb_json_is(claim, "verdict", nb_claim_verdict_names[v])) v++;
    return v;
}

void nb_claims_counts(struct nb_strbuf *out, const cJSON *document) {
    const cJSON *counts = nb_json_get(document, "counts"), *bugs = nb_json_get(counts, "bug inputs");
    const double n_bugs = nb_json_get_number(counts, "bug inputs");
    int n = 0;
    for (int v = 0; v < NB_N_CLAIM_VERDICTS; v++) {
        const double count = nb_json_get_number(counts, nb_claim_verdict_names[v]);
        if (count > 0) nb_strbuf_addf(out, "%s%.0f %s", n++ ? ", " : "", count, answers[v].answer);
    }
    if (bugs)
        nb_strbuf_addf(out, "%s%.0f public bug input%s: %.0f break a kernel", n++ ? "; " : "", n_bugs,
                       n_bugs == 1 ? "" : "s", nb_json_get_number(counts, "bug inputs that break a kernel"));
    if (n == 0) nb_strbuf_add(out, "no claims");
}

static void add_ids(struct nb_strbuf *out, const cJSON *document, int verdict) {
    const cJSON *claim;
    int n = 0;
    cJSON_ArrayForEach(claim, nb_json_get(document, "claims")) {
        if (verdict_of(claim) == verdict && !nb_claims_is_bug(claim))
            nb_strbuf_addf(out, "%s%s", n++ ? ", " : "", nb_json_get_string(claim, "id"));
    }
}

void nb_claims_quick_note(const cJSON *document, struct nb_strbuf *out) {
    static const int open[] = {NB_NOT_MEASURED, NB_UNDECIDED_HERE};
    static const char *const why[] = {
        " Not measured, since most need training in PyTorch (--train-budget SECONDS includes it): ",
        " Undecided for lack of launches: "};
    const char *lead = "--quick cannot decide some statements; a run without it takes an hour or more.";
    for (int i = 0; i < 2 && nb_json_get_bool(document, "quick"); i++) {
        struct nb_strbuf ids released_by(nb_strbuf_release) = {0};
        add_ids(&ids, document, open[i]);
        if (!ids.len) continue;
        nb_strbuf_addf(out, "%s%s%s.", lead, why[i], ids.text);
        lead = "";
    }
}

/* ---- sentences ---- */

/* Of all figures, or, where these have several names, of those of the last rule. */
static struct range range_to_say(const cJSON *reading) {
    const cJSON *rules = nb_json_get(reading, "expect");
    const struct range all = range_of(reading, NULL);
    if (!all.mixed) return all;
    return range_of(reading, nb_json_get_string(cJSON_GetArrayItem(rules, cJSON_GetArraySize(rules) - 1), "figure"));
}

static const char count_gap[] = "{holds}";

/* "5 of 9": how many figures of a reading hold. */
static void add_count(struct nb_strbuf *out, const cJSON *reading) {
    const cJSON *figures = nb_json_get(reading, "figures"), *figure;
    int held = 0;
    cJSON_ArrayForEach(figure, figures) held += nb_json_is(figure, "outcome", "holds");
    nb_strbuf_addf(out, "%d of %d", held, cJSON_GetArraySize(figures));
}

/* What stands for a gap: "{}", "{holds}", or one of two words for the sign, "{above|below}". */
static void add_gap(struct nb_strbuf *out, const cJSON *reading, const struct range *r, const char *gap, bool signs) {
    const size_t first = strcspn(gap, "|}"), length = strcspn(gap, "}");
    const bool negative = signs && r->high < 0;
    if (length == 0)
        add_range(out, r, negative ? -1 : 1);
    else if (first == length)
        add_count(out, reading);
    else if (negative)
        nb_strbuf_addn(out, gap + first + 1, length - first - 1);
    else
        nb_strbuf_addn(out, gap, first);
}

static const char so_far[] = "so far, without an interval: "; /* in front of the first of a claim's */

/* "the output moves by 16% to 82% over 3 cases"; false: nothing was measured, or there are no words for it. */
static bool add_seen_reading(struct nb_strbuf *out, const cJSON *reading, const char *lead) {
    const struct range r = range_to_say(reading);
    const char *at = nb_json_get_string(reading, "seen"), *open;
    const bool signs = strchr(at, '|');
    if (!strchr(at, '{') || r.n == 0) return false;
    nb_strbuf_add(out, lead);
    if (r.open && !strstr(out->text, so_far)) nb_strbuf_add(out, so_far);
    for (; (open = strchr(at, '{')); at = open + strcspn(open, "}") + 1) {
        nb_strbuf_addn(out, at, (size_t)(open - at));
        add_gap(out, reading, &r, open + 1, signs);
        if (!strchr(open, '}')) return true;
    }
    nb_strbuf_add(out, at);
    return true;
}

/* What was seen in the readings that decide, or, of a claim about a GPU, on this CPU; returns how many say so. */
static int add_seen(struct nb_strbuf *out, const cJSON *claim) {
    const bool on_cpu = verdict_of(claim) == NB_NEEDS_A_GPU;
    const cJSON *reading;
    int n = 0;
    cJSON_ArrayForEach(reading, nb_json_get(claim, "readings")) {
        if (on_cpu || !nb_json_get_bool(reading, "alternative")) n += add_seen_reading(out, reading, n ? "; " : "");
    }
    return n;
}

/* Do the words of its one deciding reading say how many figures hold? */
static bool is_counted(const cJSON *claim) {
    const cJSON *reading;
    int n = 0, counted = 0;
    cJSON_ArrayForEach(reading, nb_json_get(claim, "readings")) {
        if (nb_json_get_bool(reading, "alternative")) continue;
        n++;
        counted += strstr(nb_json_get_string(reading, "seen"), count_gap) != NULL;
    }
    return n == 1 && counted == 1;
}

/* In words what was seen; how many figures hold where they differ, and what is open where something is. */
static char *why_of(const cJSON *claim) {
    const char *reason = nb_json_get_string(claim, "reason");
    const bool agree = verdict_of(claim) == NB_REPRODUCED || verdict_of(claim) == NB_NOT_REPRODUCED;
    struct nb_strbuf text = nb_strbuf_empty();
    if (add_seen(&text, claim) == 0)
        nb_strbuf_add(&text, reason);
    else if (!agree && !is_counted(claim))
        nb_strbuf_addf(&text, " (%s)", reason);
    return text.text;
}

static const struct theme {
    const char *title, *denied, *prefixes[3]; /* what was measured elsewhere may be true there */
} themes[] = {{"Speed and memory", " is not reproduced here", {"speed-", "memory-"}},
              {"Training", " is not reproduced here", {"train-"}},
              {"BatchNorm against LayerNorm", " is not reproduced here", {"bn-"}},
              {"Precision", " is not true", {"prec-"}},
              {"Invariance and geometry", " is not true", {"inv-", "norm-"}},
              {"Formula and interface", " is not true", {"form-"}},
              {"Statements of fact", " is not true", {"fact-"}},
              {"Others", " is not true", {""}}};
enum { N_THEMES = sizeof themes / sizeof themes[0] };

static size_t theme_of(const char *id) {
    for (size_t t = 0; t < N_THEMES; t++)
        for (int i = 0; i < 3 && themes[t].prefixes[i]; i++)
            if (strncmp(id, themes[t].prefixes[i], strlen(themes[t].prefixes[i])) == 0) return t;
    return N_THEMES - 1;
}

static char *statement_of(const cJSON *claim, int verdict, const struct theme *theme) {
    const char *title = nb_json_get_string(claim, "title");
    const char *behind = verdict < NB_N_CLAIM_VERDICTS ? answers[verdict].behind : "";
    if (verdict == NB_NOT_REPRODUCED) behind = theme->denied;
    return behind ? nb_textf("\"%s\"%s", title, behind) : nb_strdup(title);
}

static void add_sentence(struct nb_claims_sentence *s, const cJSON *claim) {
    const char *id = nb_json_get_string(claim, "id");
    const int verdict = verdict_of(claim);
    const struct theme *theme = &themes[theme_of(id)];
    *s = (struct nb_claims_sentence){.theme = theme->title,
                                     .id = id,
                                     .answer = verdict < NB_N_CLAIM_VERDICTS ? answers[verdict].answer
                                                                             : nb_json_get_string(claim, "verdict"),
                                     .said = statement_of(claim, verdict, theme),
                                     .is_measured = verdict != NB_NOT_MEASURED,
                                     .seen = why_of(claim)};
    const size_t n = strlen(s->answer);
    if (strncmp(s->seen, s->answer, n) == 0 && s->seen[n] == ':') /* said already */
        memmove(s->seen, s->seen + n + 2, strlen(s->seen + n + 2) + 1);
}

/* By theme, in it by answer: what holds first, what is open last, older verdicts behind. */
size_t nb_claims_sentences(const cJSON *document, struct nb_claims_sentence **sentences) {
    const cJSON *claims = nb_json_get(document, "claims"), *claim;
    size_t n = 0;
    *sentences = nb_alloc((unsigned)cJSON_GetArraySize(claims) + 1, sizeof **sentences);
    for (size_t t = 0; t < N_THEMES; t++)
        for (int v = 0; v <= NB_N_CLAIM_VERDICTS; v++) cJSON_ArrayForEach(claim, claims) {
                if (!nb_claims_is_bug(claim) && verdict_of(claim) == v &&
                    theme_of(nb_json_get_string(claim, "id")) == t)
                    add_sentence(&(*sentences)[n++], claim);
            }
    return n;
}

void nb_claims_sentences_release(struct nb_claims_sentence *sentences, size_t n) {
    for (size_t i = 0; i < n; i++) {
        free(sentences[i].said);
        free(sentences[i].seen);
    }
    free(sentences);
}

/* ---- lines ---- */

const char *nb_claims_verdict(const cJSON *claim) {
    static const char *const words[] = {"breaks all", "breaks some", "breaks none"};
    const int verdict = verdict_of(claim);
    const bool tried = nb_claims_is_bug(claim) && verdict <= NB_NOT_REPRODUCED;
    return tried ? words[verdict] : nb_json_get_string(claim, "verdict");
}

/* A bug that is met is no good news. */
static enum nb_grid_style style_of(const cJSON *judged) {
    const int verdict = verdict_of(judged), good = nb_claims_is_bug(judged) ? NB_NOT_REPRODUCED : NB_REPRODUCED;
    if (verdict == good) return NB_GRID_GOOD;
    if (verdict == NB_REPRODUCED || verdict == NB_NOT_REPRODUCED) return NB_GRID_BAD;
    return nb_claim_is_decided(nb_json_get_string(judged, "verdict")) ? NB_GRID_DOUBTFUL : NB_GRID_PLAIN;
}

static void begin_line(struct nb_grid *grid, const char *lead, const cJSON *judged, const char *title) {
    nb_grid_style(grid, style_of(judged));
    nb_grid_addf(grid, "%s%s", lead, nb_json_get_string(judged, "id"));
    nb_grid_row(grid, title, nb_claims_verdict(judged));
}

static void add_figures(struct nb_grid *grid, const cJSON *reading) {
    nb_grid_put(grid, add_measured, reading);
    nb_grid_put(grid, add_published, reading);
}

/* What matters of a bug report is which kernels have the bug. */
static void add_bug(struct nb_grid *grid, const cJSON *claim) {
    const bool decided = nb_claim_is_decided(nb_json_get_string(claim, "verdict"));
    begin_line(grid, "", claim, nb_json_get_string(claim, "title"));
    if (decided) add_count(&grid->cell, main_reading(claim));
    nb_strbuf_add(&grid->cell, decided ? " cases" : nb_json_get_string(claim, "reason"));
    nb_grid_end_cell(grid);
    nb_grid_put(grid, add_broken, claim);
}

static void add_claim(struct nb_grid *grid, const cJSON *claim) {
    const cJSON *reading;
    char *why freed = why_of(claim);
    begin_line(grid, "", claim, nb_json_get_string(claim, "title"));
    add_figures(grid, main_reading(claim));
    nb_grid_add(grid, why);
    if (nb_claim_is_decided(nb_json_get_string(claim, "verdict"))) return;
    cJSON_ArrayForEach(reading, nb_json_get(claim, "readings")) {
        if (!nb_claim_is_decided(nb_json_get_string(reading, "verdict"))) continue;
        begin_line(grid, "... ", reading, nb_json_get_string(reading, "text"));
        add_figures(grid, reading);
        nb_grid_add(grid, nb_json_get_string(reading, "reason"));
    }
}

size_t nb_claims_lines_grid(const cJSON *document, bool bugs, struct nb_grid *grid) {
    static const char *const titles[] = {"claim", "statement", "verdict", "measured", "published", "why"};
    const cJSON *claim;
    static const char *const bug_titles[] = {"claim", "statement", "verdict", "breaks in", "kernels that it breaks"};
    nb_grid_init(grid, bugs ? bug_titles : titles, bugs ? 5 : 6);
    cJSON_ArrayForEach(claim, nb_json_get(document, "claims")) {
        if (nb_claims_is_bug(claim) == bugs) (bugs ? add_bug : add_claim)(grid, claim);
    }
    return grid->n_cells / grid->n_columns;
}

size_t nb_claims_bugs_grid(const cJSON *document, struct nb_grid *grid) {
    static const char *const titles[] = {"report", "kernels that its input breaks"};
    const cJSON *claim;
    size_t n = 0;
    nb_grid_init(grid, titles, 2);
    cJSON_ArrayForEach(claim, nb_json_get(document, "claims")) {
        if (!nb_claims_is_bug(claim)) continue;
        n++;
        if (nb_json_is(claim, "verdict", nb_claim_verdict_names[NB_NOT_REPRODUCED])) continue;
        nb_grid_add(grid, nb_json_get_string(claim, "id"));
        add_broken(&grid->cell, claim);
        if (!grid->cell.len) nb_strbuf_add(&grid->cell, nb_json_get_string(claim, "reason"));
        nb_grid_end_cell(grid);
    }
    return n;
}
