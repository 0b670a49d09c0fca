// SPDX-License-Identifier: Apache-2.0
/* Whole steps: the headline that sets what was published beside this machine and PyTorch, what a reader takes home of it, and the tables behind:
 * steps as the sums of their operations, dispatch costs that would reach published cuts, and recorded readings in PyTorch. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "reports/text/grid.h"
#include "src/claims/training.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/log.h"

static const cJSON *models_of(const cJSON *document) { return nb_json_get(nb_json_get(document, "steps"), "models"); }

/* ---- what was found of a model ---- */

/* The same step with fused norms, or null. */
static const cJSON *fused_entry(const cJSON *document, const cJSON *of) {
    const cJSON *entry;
    cJSON_ArrayForEach(entry, models_of(document)) {
        if (nb_json_same_text(entry, of, "model") && nb_json_same_text(entry, of, "norm") &&
            nb_json_is(entry, "style", "fused") &&
            nb_json_get_number(entry, "tokens") == nb_json_get_number(of, "tokens"))
            return entry;
    }
    return NULL;
}

static struct nb_interval part_value(const cJSON *entry, const char *part, const char *name) {
    return nb_json_get_interval(nb_json_find(nb_json_get(entry, "parts"), "part", part), name);
}

/* The newest file of readings on such a device by its date, or null. */
static const cJSON *recording_on(const cJSON *document, const char *device, const char *workload) {
    const cJSON *file, *found = NULL;
    cJSON_ArrayForEach(file, nb_json_get(document, "recorded")) {
        const bool has = nb_json_find(nb_json_get(file, "readings"), "workload", workload);
        const bool newer = !found || strcmp(nb_json_get_string(file, "date"), nb_json_get_string(found, "date")) >= 0;
        if (has && newer && nb_json_is(file, "device", device)) found = file;
    }
    return found;
}

static struct nb_interval saving_of(const cJSON *reading) {
    return (struct nb_interval){nb_json_get_number(reading, "saves"), nb_json_get_number(reading, "low"),
                                nb_json_get_number(reading, "high")};
}

/* What PyTorch took in this run, in the form of a recorded file; owned, null where it was not timed. */
static cJSON *readings_of_run(const cJSON *document) {
    const cJSON *cpu = nb_json_get(nb_json_get(document, "fingerprint"), "cpu");
    char date[16];
    snprintf(date, sizeof date, "%.10s", nb_json_get_string(document, "started"));
    return nb_training_readings(nb_json_get(document, "training"), nb_json_get_string(cpu, "model"), date);
}

static struct nb_interval recorded_saving(const cJSON *file, const char *workload, const char *style) {
    const cJSON *reading;
    cJSON_ArrayForEach(reading, nb_json_get(file, "readings")) {
        if (nb_json_is(reading, "workload", workload) && nb_json_is(reading, "style", style)) return saving_of(reading);
    }
    return NB_NO_INTERVAL;
}

/* ---- the rows of the headline: those of the paper, then other published figures of steps that were summed here ---- */

enum { MOST_ROWS = 32 };
static const double farthest_us = 1000; /* the model looks no further */

enum figure { PUBLISHED, SHARE, STEP, NORM, FUSED, FUSED_STEP, HERE_US, THERE_US, N_FIGURES };

struct row {
    char name[80], model[64];
    const char *part; /* of the step whose cut stands beside the published one */
    bool whole;       /* a step, or all there is of inference: what PyTorch is timed with */
    struct nb_interval figures[N_FIGURES];
};

static void fill(struct row *row, const cJSON *document, const cJSON *entry, const cJSON *dispatch) {
    const char *model = nb_json_get_string(entry, "model");
    const cJSON *fused = fused_entry(document, entry);
    snprintf(row->model, sizeof row->model, "%s", model);
    row->whole =
        !nb_json_get_bool(entry, "training") || strcmp(row->part, "passes") == 0 || strcmp(row->part, "step") == 0;
    row->figures[SHARE] = part_value(entry, row->part, "norm_share");
    row->figures[STEP] = part_value(entry, row->part, "cut");
    row->figures[NORM] = part_value(entry, row->part, "norm_cut");
    row->figures[FUSED] = part_value(fused, row->part, "norm_cut");
    row->figures[FUSED_STEP] = part_value(fused, row->part, "cut");
    row->figures[HERE_US] = nb_json_get_interval(dispatch, "needed_here_us");
    row->figures[THERE_US] = nb_json_get_interval(dispatch, "needed_there_us");
}

static bool of_rmsnorm(const cJSON *entry) {
    return nb_json_is(entry, "norm", "rmsnorm") && nb_json_is(entry, "style", "composed");
}

/* A row without figures but the published one. */
static struct row row_of(const char *part, struct nb_interval published) {
    struct row row = {.part = part, .figures[PUBLISHED] = published};
    for (int f = PUBLISHED + 1; f < N_FIGURES; f++) row.figures[f] = NB_NO_INTERVAL;
    return row;
}

static void fill_paper(struct row *row, const struct nb_paper_row *r, const cJSON *document) {
    const char *framework = strchr(r->name, ',');
    const cJSON *entry;
    char name[80];
    *row = row_of("passes", r->step);
    snprintf(row->name, sizeof row->name, "%s", r->name);
    snprintf(name, sizeof name, "Table %s%s", r->table, framework ? framework : "");
    cJSON_ArrayForEach(entry, models_of(document)) {
        const cJSON *dispatch = nb_json_find(nb_json_get(entry, "dispatch"), "row", name);
        if (dispatch && of_rmsnorm(entry)) fill(row, document, entry, dispatch);
    }
}

/* "MiniMind, forward" of "MiniMind-small, a training step" and "forward pass, 2.3 to 2.1 ms"; "MiniMind, 1000 steps". */
static void name_other(struct row *row, const char *title, const char *published) {
    const bool counted = published[0] >= '0' && published[0] <= '9';
    snprintf(row->name, sizeof row->name, "%.*s, %.*s", (int)strcspn(title, ",-"), title,
             (int)strcspn(published, counted ? "," : ", "), published);
}

static size_t add_others(struct row *rows, size_t n, const cJSON *document) {
    const cJSON *entry, *dispatch;
    cJSON_ArrayForEach(entry, models_of(document)) {
        cJSON_ArrayForEach(dispatch, nb_json_get(entry, "dispatch")) {
            const char *name = nb_json_get_string(dispatch, "row");
            if (!of_rmsnorm(entry) || strncmp(name, "Table ", 6) == 0 || n == MOST_ROWS) continue;
            struct row *row = &rows[n++];
            *row = row_of(nb_json_get_string(dispatch, "part"), nb_json_get_interval(dispatch, "published"));
            name_other(row, nb_json_get_string(entry, "title"), name);
            fill(row, document, entry, dispatch);
        }
    }
    return n;
}

/* Steps that nobody published a figure of: "llama-3-8b, 4096 tokens". */
static size_t add_unpublished(struct row *rows, size_t n, const cJSON *document) {
    const cJSON *entry;
    cJSON_ArrayForEach(entry, models_of(document)) {
        const double tokens = nb_json_get_number(entry, "tokens");
        if (!of_rmsnorm(entry) || cJSON_GetArraySize(nb_json_get(entry, "dispatch")) > 0 || n == MOST_ROWS) continue;
        rows[n] = row_of(nb_json_get_bool(entry, "training") ? "passes" : "step", NB_NO_INTERVAL);
        snprintf(rows[n].name, sizeof rows[n].name, "%s, %.0f token%s", nb_json_get_string(entry, "model"), tokens,
                 tokens == 1 ? "" : "s");
        fill(&rows[n++], document, entry, NULL);
    }
    return n;
}

/* Rows whose step was summed here. */
static size_t find_rows(const cJSON *document, struct row rows[MOST_ROWS]) {
    struct nb_paper paper;
    size_t n = 0;
    if (!models_of(document) || nb_paper_read(&paper) != 0) return 0;
    for (size_t i = 0; i < paper.n; i++) {
        fill_paper(&rows[n], &paper.rows[i], document);
        n += *rows[n].model != '\0';
    }
    return add_unpublished(rows, add_others(rows, n, document), document);
}

/* ---- the headline ---- */

/* As readings call it, of Llama-3-8B layers alone; "": PyTorch does not time it. */
static const char *workload_of(const struct row *row) {
    if (!row->whole) return "";
    if (strcmp(row->model, "llama-3-8b") != 0) return row->model;
    return strcmp(row->part, "passes") == 0 ? "llama-layer" : "llama-layer-inference";
}

/* What PyTorch took on a GPU, as recorded where this run had none, and here; or null. */
static const cJSON *readings_for(const struct row *row, const cJSON *document, const cJSON *run, const char *device) {
    const bool is_of_it = nb_json_is(run, "device", device);
    const char *workload = workload_of(row);
    if (strcmp(device, "cpu") == 0) return is_of_it ? run : NULL;
    const bool has = is_of_it && nb_json_find(nb_json_get(run, "readings"), "workload", workload);
    return has ? run : recording_on(document, device, workload);
}

/* For a terminal: "31% [28, 33]", "0.9% [0.4, 1.8]", "0.006% [0.004, 0.008]". */
static void add_short(struct nb_grid *grid, const struct nb_interval *i) {
    const bool known = nb_interval_known(i) && i->low < i->high;
    const double size = fabs(i->value);
    const int decimals = size < 0.001 ? 3 : size < 0.01 || (known && i->high - i->low < 0.02);
    if (isfinite(i->value)) nb_strbuf_addf(&grid->cell, "%.*f%%", decimals, 100 * i->value);
    if (known) nb_strbuf_addf(&grid->cell, " [%.*f, %.*f]", decimals, 100 * i->low, decimals, 100 * i->high);
    nb_grid_end_cell(grid);
}

static void add_cell(struct nb_grid *grid, const struct nb_interval *i, bool brief) {
    brief ? add_short(grid, i) : nb_grid_put(grid, nb_format_share, *i);
}

static void add_us(struct nb_strbuf *out, const struct nb_interval *d, const char *unit) {
    if (isnan(d->value)) return;
    if (d->value < farthest_us)
        nb_strbuf_addf(out, "%.3g%s", d->value, unit);
    else
        nb_strbuf_add(out, "never");
}

static void add_dispatch(struct nb_grid *grid, const struct row *row, bool brief) {
    add_us(&grid->cell, &row->figures[THERE_US], brief ? "" : " us");
    if (!brief && isfinite(row->figures[THERE_US].value)) {
        nb_strbuf_add(&grid->cell, " there; ");
        add_us(&grid->cell, &row->figures[HERE_US], " us");
        nb_strbuf_add(&grid->cell, " here");
    }
    nb_grid_end_cell(grid);
}

/* "Transformer" of "Transformer, TensorFlow", where no other row is of it. */
static void add_name(struct nb_grid *grid, const struct row *rows, size_t n, size_t at, bool brief) {
    const char *framework = brief ? strstr(rows[at].name, ", TensorFlow") : NULL;
    const size_t length = strcspn(rows[at].name, ",");
    size_t alike = 0;
    for (size_t i = 0; i < n; i++) alike += strncmp(rows[i].name, rows[at].name, length) == 0;
    if (brief && alike == 1)
        nb_grid_addf(grid, "%.*s", (int)length, rows[at].name);
    else if (framework)
        nb_grid_addf(grid, "%.*s, TF", (int)length, rows[at].name);
    else
        nb_grid_add(grid, rows[at].name);
}

/* Printed classes; on a page PyTorch's own beside them, and the printed ones compiled. */
static void add_torch(struct nb_grid *grid, const struct row *row, const cJSON *file, bool brief) {
    static const char *const styles[] = {"printed", "nn", "compiled"};
    for (size_t i = 0; i < (brief ? 1 : sizeof styles / sizeof styles[0]); i++) {
        const struct nb_interval cut = recorded_saving(file, workload_of(row), styles[i]);
        const char *about = isfinite(cut.value) && !nb_interval_known(&cut) ? "~" : "";
        if (brief) nb_strbuf_add(&grid->cell, about);
        if (brief) return add_short(grid, &cut);
        if (!isfinite(cut.value)) continue;
        nb_strbuf_addf(&grid->cell, "%s%s%s%s", grid->cell.len ? "; " : "", i ? styles[i] : "", i ? " " : "", about);
        nb_format_share(&grid->cell, cut);
    }
    nb_grid_end_cell(grid);
}

static void add_row(struct nb_grid *grid, const struct row *row, const cJSON *document, const cJSON *run, bool brief) {
    add_cell(grid, &row->figures[PUBLISHED], brief);
    add_cell(grid, &row->figures[STEP], brief);
    add_torch(grid, row, readings_for(row, document, run, "cuda"), brief);
    add_cell(grid, &row->figures[NORM], brief);
    add_cell(grid, &row->figures[FUSED], brief);
    add_dispatch(grid, row, brief);
    add_torch(grid, row, readings_for(row, document, run, "cpu"), brief);
}

bool nb_claims_headline(const cJSON *document, bool brief, struct nb_grid *grid) {
    enum { N = 8 };
    static const char *const titles[N] = {
        "RMSNorm saves",        "published, of a step",     "step here, sum of its operations",
        "step in PyTorch, GPU", "norm alone here, unfused", "norm alone here, fused",
        "d that reaches it",    "step in PyTorch, here"};
    static const char *const short_titles[N] = {"RMSNorm saves", "published", "step here", "GPU",
                                                "norm, unfused", "fused",     "d, us",     "PyTorch here"};
    static const int ranks[N] = {NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, 3, 2, 4, 1};
    struct row rows[MOST_ROWS];
    nb_grid_init(grid, brief ? short_titles : titles, N);
    if (brief) grid->ranks = ranks;
    const size_t n = find_rows(document, rows);
    cJSON *run released_by(nb_json_release) = readings_of_run(document);
    for (size_t i = 0; i < n; i++) {
        add_name(grid, rows, n, i, brief);
        add_row(grid, &rows[i], document, run, brief);
    }
    return n > 0;
}

void nb_claims_headline_note(const cJSON *document, struct nb_strbuf *out) {
    const cJSON *file = NULL, *entry;
    nb_strbuf_add(
        out,
        "Brackets are 95% intervals; ~: from too few launches for one. d (a model): what launching an operation must cost for the published figure, with the "
        "source's GPU (there) and with this CPU (here). PyTorch: the norms as the sources print them; nn: its own; compiled: the printed ones by torch.compile");
    cJSON_ArrayForEach(entry, models_of(document)) {
        if (!file) file = recording_on(document, "cuda", nb_json_get_string(entry, "model"));
    }
    if (file)
        nb_strbuf_addf(out, "; GPU: %s, %s (brackets: %s)", nb_json_get_string(file, "machine"),
                       nb_json_get_string(file, "date"), nb_json_get_string(file, "interval"));
    nb_strbuf_add(out, ".");
}

/* ---- the picture: a row for each figure of the headline ---- */

static const char caption[] =
    "Time that RMSNorm saves against LayerNorm, in % of a step or, for the norm alone, of the norm. Bars are the intervals of the table; a "
    "point of too few launches has none.";

static void add_point(struct nb_figure *f, const char *series, size_t y, double offset, const struct nb_interval *cut) {
    if (!isfinite(cut->value)) return;
    nb_figure_add(f, 0, series,
                  (struct nb_point){100 * cut->value, (double)y + offset, 100 * cut->low, 100 * cut->high, false});
}

void nb_claims_savings_figure(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta) {
    struct row rows[MOST_ROWS];
    const size_t n = find_rows(document, rows);
    if (n == 0) return;
    struct nb_figure *f = nb_figures_new(figures, meta, nb_strdup("savings"));
    cJSON *run released_by(nb_json_release) = readings_of_run(document);
    f->title = nb_strdup("Time that RMSNorm saves against LayerNorm");
    f->subtitle = nb_strdup("whole steps, and the norm alone");
    f->caption = nb_strdup(caption);
    f->scattered = true;
    f->panels[0] = (struct nb_panel){NULL, "time saved", NULL, NB_SCALE_PERCENT, NB_SCALE_NAMES};
    for (size_t i = 0; i < n; i++) {
        const cJSON *gpu = readings_for(&rows[i], document, run, "cuda"),
                    *cpu = readings_for(&rows[i], document, run, "cpu");
        const struct nb_interval there = recorded_saving(gpu, workload_of(&rows[i]), "printed"),
                                 here = recorded_saving(cpu, workload_of(&rows[i]), "printed");
        const size_t y = nb_figure_name(f, rows[i].name);
        add_point(f, "published step", y, -0.3, &rows[i].figures[PUBLISHED]);
        add_point(f, "step here", y, -0.18, &rows[i].figures[STEP]);
        add_point(f, "GPU step in PyTorch", y, -0.06, &there);
        add_point(f, "PyTorch step here", y, 0.06, &here);
        add_point(f, "unfused norm here", y, 0.18, &rows[i].figures[NORM]);
        add_point(f, "fused norm here", y, 0.3, &rows[i].figures[FUSED]);
    }
}

/* ---- what a reader takes home: sentences that are made of the figures, each only where these are there ---- */

struct range {
    double low, high;
    int n, open; /* open: without an interval */
};

static void take(struct range *r, struct nb_interval i) {
    if (!isfinite(i.value)) return;
    r->low = r->n ? fmin(r->low, i.value) : i.value;
    r->high = r->n ? fmax(r->high, i.value) : i.value;
    r->open += !nb_interval_known(&i);
    r->n++;
}

/* Between two texts "0.4% to 13%", of few digits; nothing of no figure. */
static const char *ends(char text[80], const char *lead, const struct range *r, const char *behind) {
    int n = snprintf(text, 80, "%s", r->n ? lead : "");
    const int n_ends = !r->n ? 0 : r->high > r->low ? 2 : 1;
    for (int i = 0; i < n_ends; i++) {
        const double percent = 100 * (i ? r->high : r->low), size = fabs(percent);
        const int decimals = size < 9.95 ? 1 : 0;
        n += snprintf(text + n, 80 - (size_t)n, size < 0.095 ? "%s%.*g%%" : "%s%.*f%%", i ? " to " : "", decimals,
                      percent);
    }
    snprintf(text + n, 80 - (size_t)n, "%s", r->n ? behind : "");
    return text;
}

struct ranges {
    struct range of[HERE_US];
    int reached, reached_here,
        asked; /* published figures at a dispatch of at most so many us, on the source's GPU, and here */
};
static const double LARGEST_USUAL_DISPATCH_US = 20;

static struct ranges ranges_of(const struct row *rows, size_t n) {
    struct ranges r = {0};
    for (size_t i = 0; i < n; i++) {
        const struct nb_interval *figures = rows[i].figures;
        for (int f = 0; f < HERE_US; f++) take(&r.of[f], figures[f]);
        r.asked += isfinite(figures[THERE_US].value);
        r.reached += figures[THERE_US].value <= LARGEST_USUAL_DISPATCH_US;
        r.reached_here += figures[HERE_US].value <= LARGEST_USUAL_DISPATCH_US;
    }
    return r;
}

static void say_norms(struct nb_strbuf *out, const struct ranges *r) {
    char norm[80], fused[80];
    if (!r->of[NORM].n) return;
    nb_strbuf_addf(
        out,
        "The norm alone, here: unfused, as the sources ran it, RMSNorm takes %s less time than LayerNorm%s, over %d "
        "rows of the table.",
        ends(norm, "", &r->of[NORM], ""), ends(fused, ", fused ", &r->of[FUSED], " less"), r->of[NORM].n);
}

static void say_steps(struct nb_strbuf *out, const struct ranges *r) {
    char share[80], step[80], fused[80], published[80];
    if (!r->of[STEP].n) return;
    nb_strbuf_addf(
        out,
        "A whole step, here: unfused LayerNorm is %s of it, so RMSNorm saves %s%s, over %d rows of the table; "
        "published are %s over %d figures.",
        ends(share, "", &r->of[SHARE], ""), ends(step, "", &r->of[STEP], ""),
        ends(fused, " (fused ", &r->of[FUSED_STEP], ")"), r->of[STEP].n, ends(published, "", &r->of[PUBLISHED], ""),
        r->of[PUBLISHED].n);
}

static void say_dispatch(struct nb_strbuf *out, const struct ranges *r) {
    if (!r->asked) return;
    nb_strbuf_addf(
        out,
        "Why the sources saw more: they launched each operation alone on a GPU. At %.0f us a launch or less, %d of the %d published "
        "savings are reached on the source's GPU, and %d with this CPU's products and memory (a model).",
        LARGEST_USUAL_DISPATCH_US, r->reached, r->asked, r->reached_here);
}

/* Savings of steps (norms false), or of the norm alone, as recorded, in a style. */
static struct range recorded_range(const cJSON *file, const char *style, bool norms) {
    struct range r = {0};
    const cJSON *reading;
    cJSON_ArrayForEach(reading, nb_json_get(file, "readings")) {
        if (nb_json_is(reading, "style", style) && nb_json_is(reading, "workload", "norm") == norms)
            take(&r, saving_of(reading));
    }
    return r;
}

static void say_recorded(struct nb_strbuf *out, const cJSON *file) {
    const struct range printed = recorded_range(file, "printed", false), own = recorded_range(file, "nn", false),
                       alone = recorded_range(file, "nn", true);
    char text[3][80];
    if (!printed.n || !own.n) return;
    nb_strbuf_addf(
        out,
        "PyTorch on %s (%s): with the norms as the sources print them RMSNorm saves %s of a step, with PyTorch's own "
        "norms %s",
        nb_json_get_string(file, "machine"), nb_json_get_string(file, "date"), ends(text[0], "", &printed, ""),
        ends(text[1], "", &own, ""));
    if (printed.n > 1) nb_strbuf_addf(out, ", over %d steps", printed.n);
    if (own.n != printed.n) nb_strbuf_addf(out, " (%d with its own)", own.n);
    if (alone.n && alone.high < 0)
        nb_strbuf_addf(out, "; alone, its RMSNorm takes %.2g to %.2g times as long as its LayerNorm", 1 - alone.high,
                       1 - alone.low);
    else if (alone.n)
        nb_strbuf_addf(out, ", and of these norms alone %s", ends(text[2], "", &alone, ""));
    if (alone.n > 1) nb_strbuf_addf(out, " over %d shapes", alone.n);
    if (printed.open + own.open)
        nb_strbuf_addf(out, "; %d of these %d savings have too few launches for an interval", printed.open + own.open,
                       printed.n + own.n);
    nb_strbuf_add(out, ".");
}

/* The newest of that device with a step: of this run, else recorded; null: none. */
static const cJSON *newest_steps(const cJSON *document, const cJSON *run, const char *device) {
    const cJSON *entry, *found = NULL;
    if (nb_json_is(run, "device", device)) return run;
    cJSON_ArrayForEach(entry, models_of(document)) {
        const cJSON *file = recording_on(document, device, nb_json_get_string(entry, "model"));
        if (file && (!found || strcmp(nb_json_get_string(file, "date"), nb_json_get_string(found, "date")) > 0))
            found = file;
    }
    return found;
}

static void keep(struct nb_strings *all, struct nb_strbuf *text) {
    if (text->len > 0) nb_strings_add(all, text->text);
    nb_strbuf_clear(text);
}

void nb_claims_takeaways(const cJSON *document, struct nb_strings *sentences) {
    struct row rows[MOST_ROWS];
    const size_t n = find_rows(document, rows);
    if (n == 0) return;
    const struct ranges r = ranges_of(rows, n);
    static void (*const say[])(struct nb_strbuf *, const struct ranges *) = {say_norms, say_steps, say_dispatch};
    static const char *const devices[] = {"cuda", "cpu"};
    cJSON *run released_by(nb_json_release) = readings_of_run(document);
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    for (size_t i = 0; i < sizeof say / sizeof say[0]; i++) {
        say[i](&text, &r);
        keep(sentences, &text);
    }
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        const cJSON *file = newest_steps(document, run, devices[i]);
        if (file) say_recorded(&text, file);
        keep(sentences, &text);
    }
}

/* ---- the tables behind ---- */

static void add_model(struct nb_grid *grid, const cJSON *entry) {
    const char *part = nb_json_get_bool(entry, "training") ? "passes" : "step";
    const double seconds = part_value(entry, part, "seconds").value,
                 product_share = part_value(entry, part, "products").value / seconds;
    nb_grid_row(grid, nb_json_get_string(entry, "model"), nb_json_get_string(entry, "norm"),
                nb_tag_word(nb_json_get_string(entry, "style")));
    nb_grid_addf(grid, "%.0f", nb_json_get_number(entry, "tokens"));
    nb_grid_put(grid, nb_format_time, 1e9 * seconds);
    nb_grid_add_known(grid, isfinite(product_share), "%.0f%%", 100 * product_share);
    nb_grid_put(grid, nb_format_share, part_value(entry, part, "norm_share"));
    nb_grid_put(grid, nb_format_share, part_value(entry, part, "norm_cut"));
    nb_grid_put(grid, nb_format_share, part_value(entry, part, "cut"));
    nb_grid_add(grid, nb_json_get_string(entry, "reason"));
}

static void add_models(const struct nb_claims_page *p, const cJSON *document) {
    struct nb_grid grid released_by(nb_grid_release) =
        nb_grid_of("model", "norm", "style", "tokens", "time of the passes", "products", "LayerNorm's share",
                   "saves of the norm", "saves of the step", "why not");
    const cJSON *entry;
    cJSON_ArrayForEach(entry, models_of(document)) add_model(&grid, entry);
    nb_claims_grid(p, &grid);
}

static const char steps_lead[] =
    "A step is the list of its operations (configs/models), at the size of its source: products and norms timed here by their shapes, one thread, "
    "f32; all else at the speed of a copy of its bytes. Times are of the step with LayerNorm; what a norm saves is the saving of its own time, "
    "at most LayerNorm's share.";

/* Which product, at how many rows, took how much of what was scaled. */
static void say_check(const struct nb_claims_page *p, const cJSON *rates) {
    const cJSON *check = nb_json_get(rates, "check");
    const cJSON *product = cJSON_GetArrayItem(nb_json_get(rates, "products"), nb_json_get_index(check, "product"));
    const struct nb_interval ratio = nb_json_get_interval(check, "ratio");
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(&text, "Products are timed at up to 256 rows and scaled");
    if (isfinite(ratio.value) && product) {
        nb_strbuf_addf(&text, ": %.0f rows of %.0fx%.0f took ", nb_json_get_number(check, "rows"),
                       nb_json_get_number(product, "inner"), nb_json_get_number(product, "cols"));
        nb_format_ratio(&text, ratio);
        nb_strbuf_add(&text, " times what they should have by that");
    }
    nb_strbuf_add(&text, ".");
    nb_claims_say(p, "", text.text);
}

/* How far a sum is from a step that runs. */
static void add_checks(const struct nb_claims_page *p, const cJSON *checks) {
    struct nb_grid grid released_by(nb_grid_release) = nb_grid_of("model", "PyTorch's arm", "of the full size", "sum",
                                                                  "PyTorch", "threads", "PyTorch x threads / sum");
    const cJSON *check;
    if (!checks || !checks->child) return;
    nb_claims_add(p, "\n", ""); /* ends the table before */
    nb_claims_say(p, "", "The same passes in PyTorch here, the sum in proportion to the smaller batch:");
    cJSON_ArrayForEach(check, checks) {
        nb_grid_row(&grid, nb_json_get_string(check, "model"), nb_json_get_string(check, "arm"));
        nb_grid_addf(&grid, "%.3g%%", 100 * nb_json_get_number(check, "share"));
        nb_grid_put(&grid, nb_format_time, 1e9 * nb_json_get_number(check, "sum_s"));
        nb_grid_put(&grid, nb_format_time, 1e9 * nb_json_get_number(check, "torch_s"));
        nb_grid_addf(&grid, "%.0f", nb_json_get_number(check, "threads"));
        nb_grid_addf(&grid, "%.2f", nb_json_get_number(check, "ratio"));
    }
    nb_claims_grid(p, &grid);
}

static const char dispatch_lead[] =
    "The publications ran frameworks that launch one operation at a time on a GPU, where each costs its dispatch, some microseconds, whatever "
    "its size. A model of that: every operation of a step costs d besides its work; products and all else take the time measured here, or that "
    "of the publication's GPU by its peak rates.";

static void add_dispatches(const struct nb_claims_page *p, const cJSON *document) {
    const cJSON *entry, *row;
    nb_claims_heading(p, 3, "dispatch", "What a published saving needs (a model)");
    nb_claims_say(p, "", dispatch_lead);
    nb_claims_add(p, "", "<ul>\n");
    nb_claims_item(p, nb_json_get_string(nb_json_get(nb_json_get(document, "steps"), "eager"), "sentence"));
    cJSON_ArrayForEach(entry, models_of(document)) {
        cJSON_ArrayForEach(row, nb_json_get(entry, "dispatch")) nb_claims_item(p, nb_json_get_string(row, "sentence"));
    }
    nb_claims_add(p, "", "</ul>\n");
}

static void add_recording(const struct nb_claims_page *p, const cJSON *file) {
    static const char *const times[] = {"none_ms", "layernorm_ms", "rmsnorm_ms"};
    struct nb_grid grid released_by(nb_grid_release) =
        nb_grid_of("model", "what", "classes", "no norm, ms", "LayerNorm, ms", "RMSNorm, ms", "saves", "note");
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    const cJSON *reading;
    nb_strbuf_addf(&text, "%s, PyTorch %s, %s, by %s. %s. In brackets %s.", nb_json_get_string(file, "machine"),
                   nb_json_get_string(file, "torch"), nb_json_get_string(file, "date"),
                   nb_json_get_string(file, "made_by"), nb_json_get_string(file, "how"),
                   nb_json_get_string(file, "interval"));
    nb_claims_say(p, "", text.text);
    cJSON_ArrayForEach(reading, nb_json_get(file, "readings")) {
        nb_grid_row(&grid, nb_json_get_string(reading, "workload"), nb_json_get_string(reading, "what"),
                    nb_json_get_string(reading, "style"));
        for (int i = 0; i < 3; i++) nb_grid_put(&grid, nb_format_digits, nb_json_get_number(reading, times[i]), 4);
        nb_grid_put(&grid, nb_format_share, saving_of(reading));
        nb_grid_add(&grid, nb_json_get_string(reading, "note"));
    }
    nb_claims_grid(p, &grid);
}

void nb_claims_steps(const struct nb_claims_page *p, const cJSON *document) {
    const cJSON *steps = nb_json_get(document, "steps"), *file;
    if (!models_of(document) || !models_of(document)->child) return;
    nb_claims_heading(p, 2, "steps", "Whole steps");
    nb_claims_say(p, "", steps_lead);
    say_check(p, nb_json_get(steps, "rates"));
    add_models(p, document);
    add_checks(p, nb_json_get(steps, "checks"));
    add_dispatches(p, document);
    if (!nb_json_get(document, "recorded") || !nb_json_get(document, "recorded")->child) return;
    nb_claims_heading(p, 3, "recorded", "The same models in PyTorch, as recorded");
    cJSON_ArrayForEach(file, nb_json_get(document, "recorded")) add_recording(p, file);
}
