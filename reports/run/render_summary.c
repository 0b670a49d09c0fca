// SPDX-License-Identifier: Apache-2.0
/* What a run says in at most 20 lines of 80 cells: the machine, the fastest LayerNorm and RMSNorm and how near they come to their copy,
 * what RMSNorm, cheaper roots and bf16 save, the case nearest its error bound, what is not to be trusted, and what to do next.
 *
 * Times are compared only in one place of the matrix: one shape, dtype, data and formula, with the rows in a cache or in memory. Of the
 * places of a run the one with the most cases answers for either. Ratios of two cases come from the journal's samples, paired as they
 * were measured (src/measure/paired.h); results without a journal have them from both cases' ratios to the reference. f32 and bf16 are
 * never measured in one group: there the bounds of both times are taken at their worst. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/sweep.h"
#include "reports/run/report.h"
#include "reports/run/summary.h"
#include "reports/run/view.h"
#include "reports/text/escape.h"
#include "reports/text/output.h"
#include "src/core/case_key.h"
#include "src/core/files.h"
#include "src/core/format.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/text.h"
#include "src/measure/paired.h"

enum { MOST_LINES = 20, WIDTH = 80, LABEL = 19, CELL = 30, MOST_CELLS = 3, MOST_OPS = 3 };

/* Parameters are each op's own: LayerNorm usually has a beta. */
static const char *const own_axes[] = {"affine", "weight_offset", "param_dtype", NULL};
static const char *const root_axes[] = {"affine", "weight_offset", "param_dtype", "root", NULL};

struct place {
    const char *name;
    const struct nb_record *first; /* a case of it; null: the run has no such place */
    size_t cell;
    const struct nb_record *fastest[MOST_OPS];
};

/* Cases of one shape, dtype, data and formula. */
struct cell {
    const struct nb_record *first;
    size_t n;
    uint32_t ops; /* a bit for each op that it has */
};

struct summary {
    const struct nb_results *results;
    int machine; /* whose times answer */
    struct cell *cells;
    size_t n_cells;
    size_t *cell_of;        /* by record; NB_NOWHERE: the case is none of those that answer */
    const cJSON *cpu, *gpu; /* gpu: in runs that have kernels for one */
    uint32_t backend;       /* of the cases that answer: times of a GPU and of a CPU are not compared */
    struct nb_sample_table samples;
    bool has_samples, utf8, html;
    uint32_t pass, dtype, ops[MOST_OPS];
    size_t n_ops;
    struct place places[2]; /* IN_CACHE, IN_MEMORY */
    struct nb_strbuf out;
    int n_lines, most_lines;
};

/* ---- lines -------------------------------------------------------------------------------------------------------- */

static void end_line(struct summary *s, const char *text) {
    struct nb_strbuf safe = {0};
    nb_strbuf_add(&safe, "");
    nb_escape_terminal(&safe, text, s->utf8);
    nb_utf8_cut(&safe, WIDTH, s->utf8 ? "…" : "~");
    while (safe.len && safe.text[safe.len - 1] == ' ') safe.text[--safe.len] = '\0';
    nb_strbuf_addf(&s->out, "%s\n", safe.text);
    s->n_lines++;
    nb_strbuf_release(&safe);
}

/* A label and up to MOST_CELLS cells, each `width` wide but for the last; without a cell the label is a line of its own. */
static void add_columns(struct summary *s, const char *label, const struct nb_strbuf *cells, int n, size_t width) {
    struct nb_strbuf line = {0};
    if (s->n_lines >= s->most_lines) return;
    if (s->html) {
        nb_strbuf_add(&s->out, n ? "<tr><th>" : "<tr><td colspan=4>");
        nb_html_text(&s->out, "", label, "");
        for (int c = 0; c < n; c++) {
            nb_strbuf_addf(&s->out, c + 1 < n ? "<td>" : "<td colspan=%d>", MOST_CELLS - c);
            nb_html_text(&s->out, "", cells[c].text, "");
        }
        nb_strbuf_add(&s->out, "\n");
        return;
    }
    nb_strbuf_addf(&line, *label ? "%-*s" : "%*s", n ? LABEL : 0, label);
    for (int c = 0; c < n; c++) {
        nb_strbuf_add(&line, cells[c].text ? cells[c].text : "");
        for (size_t k = nb_utf8_cells(cells[c].text); c + 1 < n && k < width; k++) nb_strbuf_add(&line, " ");
    }
    end_line(s, line.text);
    nb_strbuf_release(&line);
}

static void add_line(struct summary *s, const char *label, const char *text) {
    struct nb_strbuf cell = {0};
    nb_strbuf_add(&cell, text);
    add_columns(s, label, &cell, *text ? 1 : 0, 0);
    nb_strbuf_release(&cell);
}

/* A line with a cell for each place that the run has; left out where all cells are empty. */
static void add_cells(struct summary *s, const char *label, struct nb_strbuf cells[2]) {
    const int first = !s->places[0].first, n = !!s->places[0].first + !!s->places[1].first;
    bool any = false;
    for (int p = first; p < first + n; p++) {
        nb_strbuf_add(&cells[p], "");
        any |= cells[p].len > 0;
        if (n == 2 && !s->html) nb_utf8_cut(&cells[p], CELL, s->utf8 ? "…" : "~");
    }
    if (any) add_columns(s, label, cells + first, n, CELL + 1);
    for (int p = 0; p < 2; p++) nb_strbuf_release(&cells[p]);
}

/* What a ratio of times saves; of single launches there is no interval. */
static void add_saved(const struct nb_interval *ratio, struct nb_strbuf *out) {
    nb_format_saved(out, ratio);
    if (isfinite(ratio->value) && !nb_interval_known(ratio)) nb_strbuf_add(out, ", no interval");
}

/* ---- which cases answer ------------------------------------------------------------------------------------------- */

/* Text that two cases share when nothing differs between them but kernel, width and the axes in free_axes. */
static char *terms_of(const struct nb_record *r, const char *const *free_axes) {
    struct nb_strbuf terms = {0};
    nb_strbuf_addf(&terms, "%d|%s|", r->machine, r->c.shape.text);
    nb_sweep_constants(r, free_axes, &terms);
    return terms.text;
}

static bool same_terms(const struct nb_record *a, const struct nb_record *b, const char *const *free_axes) {
    char *left = terms_of(a, free_axes), *right = terms_of(b, free_axes);
    const bool same = strcmp(left, right) == 0;
    free(left);
    free(right);
    return same;
}

/* Of merged results the machine that timed most: what is said here of times is of one. */
static int choose_machine(const struct nb_results *results) {
    const int n = cJSON_GetArraySize(nb_meta(results, "machines"));
    size_t *timed = nb_alloc((unsigned)n + 1, sizeof *timed);
    int most = 0;
    for (size_t i = 0; i < results->n; i++)
        if (nb_record_timed(&results->records[i]) && results->records[i].machine < n)
            timed[results->records[i].machine]++;
    for (int m = 1; m < n; m++)
        if (timed[m] > timed[most]) most = m;
    free(timed);
    return most;
}

/* Whose cases answer: the CPU's, where one of them was timed. */
static uint32_t backend_of(const struct nb_results *results) {
    bool gpu = false;
    for (size_t i = 0; i < results->n; i++) {
        if (!nb_record_timed(&results->records[i])) continue;
        if (results->records[i].c.backend == NB_BACKEND_CPU) return NB_BACKEND_CPU;
        gpu = true;
    }
    return gpu ? NB_BACKEND_CUDA : NB_BACKEND_CPU;
}

static bool is_of(const struct summary *s, const struct nb_record *r) {
    return nb_record_timed(r) && r->c.backend == s->backend && r->machine == s->machine;
}

/* Sizes near that of the last cache lie in both. */
enum where { IN_CACHE, IN_MEMORY, IN_BETWEEN };
static enum where where_is(const struct summary *s, const struct nb_record *r) {
    static const char *const last_caches[] = {"l3_bytes", "l2_bytes"};
    if (r->c.cache == NB_COLD) return IN_MEMORY;
    for (int i = 0; i < 2; i++) {
        const double bytes = nb_json_get_number(s->backend == NB_BACKEND_CPU ? s->cpu : s->gpu, last_caches[i]);
        if (bytes > 0) return r->bytes <= bytes / 2 ? IN_CACHE : r->bytes >= 2 * bytes ? IN_MEMORY : IN_BETWEEN;
    }
    return strcmp(r->timing.roofline.bottleneck, "DRAM") == 0 ? IN_MEMORY : IN_CACHE;
}

static size_t count_op(const struct summary *s, uint32_t op) {
    size_t n = 0;
    for (size_t i = 0; i < s->results->n; i++)
        n += is_of(s, &s->results->records[i]) && s->results->records[i].c.op == op;
    return n;
}

/* LayerNorm and RMSNorm; in a run without them the ops that it has most cases of. */
static void choose_ops(struct summary *s) {
    static const uint32_t usual[] = {NB_OP_LAYERNORM, NB_OP_RMSNORM};
    for (size_t i = 0; i < 2; i++)
        if (count_op(s, usual[i])) s->ops[s->n_ops++] = usual[i];
    while (s->n_ops == 0 || (count_op(s, NB_OP_LAYERNORM) + count_op(s, NB_OP_RMSNORM) == 0 && s->n_ops < MOST_OPS)) {
        size_t most = 0;
        for (uint32_t op = 0; op < NB_N_OPS; op++) {
            bool taken = op == NB_OP_COPY;
            for (size_t i = 0; i < s->n_ops; i++) taken |= s->ops[i] == op;
            if (taken || count_op(s, op) <= most) continue;
            most = count_op(s, op);
            s->ops[s->n_ops] = op;
        }
        if (most == 0) return;
        s->n_ops++;
    }
}

static bool answers(const struct summary *s, const struct nb_record *r) {
    bool asked = false;
    for (size_t i = 0; i < s->n_ops; i++) asked |= r->c.op == s->ops[i];
    return asked && is_of(s, r) && r->c.pass == s->pass && r->c.dtype == s->dtype;
}

/* Forward before backward, f32 before the others: the first that has a case. */
static void choose_pass_and_dtype(struct summary *s) {
    for (s->pass = 0; s->pass < NB_N_PASSES; s->pass++)
        for (s->dtype = 0; s->dtype < NB_N_DTYPES; s->dtype++)
            for (size_t i = 0; i < s->results->n; i++)
                if (answers(s, &s->results->records[i])) return;
}

/* Numbers the cells of the cases that answer. */
static void find_cells(struct summary *s) {
    struct nb_text_map index = {0};
    char **terms = nb_alloc(s->results->n + 1, sizeof *terms);
    s->cells = nb_alloc(s->results->n + 1, sizeof *s->cells);
    s->cell_of = nb_alloc(s->results->n + 1, sizeof *s->cell_of);
    for (size_t i = 0; i < s->results->n; i++) {
        const struct nb_record *r = &s->results->records[i];
        s->cell_of[i] = NB_NOWHERE;
        if (!answers(s, r)) continue;
        terms[i] = terms_of(r, own_axes);
        size_t at = nb_text_map_find(&index, terms[i]);
        if (at == NB_NOWHERE) {
            nb_text_map_add(&index, terms[i], at = s->n_cells++);
            s->cells[at] = (struct cell){.first = r};
        }
        s->cell_of[i] = at;
        s->cells[at].n++;
        s->cells[at].ops |= 1u << r->c.op;
    }
    for (size_t i = 0; i < s->results->n; i++) free(terms[i]);
    free(terms);
    nb_text_map_release(&index);
}

/* The cell with the most cases; before all others one that has several of the ops, and so can compare them. */
static void choose_place(struct summary *s, int p) {
    size_t most = 0;
    for (size_t i = 0; i < s->n_cells; i++) {
        const struct cell *cell = &s->cells[i];
        const size_t n = cell->n + (cell->ops & (cell->ops - 1) ? s->results->n : 0);
        if (n <= most || where_is(s, cell->first) != (enum where)p) continue;
        most = n;
        s->places[p].first = cell->first;
        s->places[p].cell = i;
    }
}

static bool is_at(const struct summary *s, const struct place *place, const struct nb_record *r) {
    return s->cell_of[r - s->results->records] == place->cell;
}

static double time_of(const struct nb_record *r) { return r ? r->timing.time_ns.value : (double)INFINITY; }

static void choose_fastest(struct summary *s, struct place *place) {
    for (size_t i = 0; place->first && i < s->results->n; i++) {
        const struct nb_record *r = &s->results->records[i];
        if (r->timing.suspect || !is_at(s, place, r)) continue;
        for (size_t op = 0; op < s->n_ops; op++)
            if (r->c.op == s->ops[op] && time_of(r) < time_of(place->fastest[op])) place->fastest[op] = r;
    }
}

/* ---- ratios ------------------------------------------------------------------------------------------------------- */

/* Both bounds at their worst. */
static struct nb_interval unpaired_ratio(const struct nb_interval *a, const struct nb_interval *b) {
    const struct nb_interval cut = nb_cut_of(a, b);
    return (struct nb_interval){1 - cut.value, 1 - cut.high, 1 - cut.low};
}

/* time of a / time of b, paired; NaN where that is not known. */
static struct nb_interval ratio_of(const struct summary *s, const struct nb_record *a, const struct nb_record *b) {
    const struct nb_interval unknown = {NAN, NAN, NAN}, one = {1, 1, 1};
    if (s->has_samples) return nb_paired_ratio(&s->samples, a->key, b->key, NULL).ratio;
    if (!a->timing.reference || !b->timing.reference || strcmp(a->timing.reference, b->timing.reference) != 0)
        return unknown;
    return unpaired_ratio(nb_is_reference(a) ? &one : &a->timing.vs_reference,
                          nb_is_reference(b) ? &one : &b->timing.vs_reference);
}

static bool are_alike(const struct nb_record *a, const struct nb_record *b) {
    char *left = nb_kernel_suffix(a), *right = nb_kernel_suffix(b);
    const bool alike = strcmp(left, right) == 0 && a->c.width == b->c.width && a->c.style == b->c.style &&
                       a->c.stats == b->c.stats && a->c.stats_dtype == b->c.stats_dtype;
    free(left);
    free(right);
    return alike;
}

/* Of the pairs of one algorithm in both ops, that with the fastest LayerNorm. */
static bool find_pair(const struct summary *s, const struct place *place, uint32_t style, const struct nb_record **ln,
                      const struct nb_record **rms) {
    *ln = NULL;
    for (size_t i = 0; i < s->results->n; i++) {
        const struct nb_record *l = &s->results->records[i];
        if (l->c.op != NB_OP_LAYERNORM || l->c.style != style || time_of(l) >= time_of(*ln) || !is_at(s, place, l))
            continue;
        if (style == NB_FUSED && l->c.stats != NB_STATS_REGISTER) continue;
        for (size_t j = 0; j < s->results->n; j++) {
            const struct nb_record *r = &s->results->records[j];
            if (r->c.op != NB_OP_RMSNORM || !is_at(s, place, r) || !are_alike(l, r)) continue;
            if (l == place->fastest[0] && r == place->fastest[1]) continue; /* has a line of its own */
            *ln = l;
            *rms = r;
        }
    }
    return *ln != NULL;
}

/* ---- what is printed ---------------------------------------------------------------------------------------------- */

static void add_machine(struct summary *s) {
    static const char *const caches[][2] = {{"L2", "l2_bytes"}, {"L3", "l3_bytes"}};
    const char *hypervisor = nb_json_get_text(s->cpu, "hypervisor"), *started = nb_meta_text(s->results, "started");
    const double n_cpus = nb_json_get_number(s->cpu, "n_online");
    const int n_machines = cJSON_GetArraySize(nb_meta(s->results, "machines"));
    struct nb_strbuf text = {0};
    if (s->backend == NB_BACKEND_CUDA) {
        const char *name = nb_json_get_text(s->gpu, "name"), *driver = nb_json_get_text(s->gpu, "driver");
        nb_strbuf_addf(&text, "%s, driver %s; on ", name ? name : "an unknown GPU", driver ? driver : "unknown");
    }
    nb_cpu_name(s->cpu, &text);
    const bool is_host = s->backend != NB_BACKEND_CPU; /* of which caches and CPUs do not matter */
    if (n_cpus > 0 && !is_host) nb_strbuf_addf(&text, ", %.0f CPU%s", n_cpus, n_cpus == 1 ? "" : "s");
    for (size_t i = 0; i < 2; i++) {
        const double bytes = nb_json_get_number(s->cpu, caches[i][1]);
        if (!(bytes > 0) || is_host) continue;
        nb_strbuf_addf(&text, ", %s ", caches[i][0]);
        nb_format_bytes(&text, bytes);
    }
    if (hypervisor && *hypervisor) nb_strbuf_addf(&text, ", %s", hypervisor);
    if (*started) nb_strbuf_addf(&text, "; %.10s", started);
    add_line(s, text.text, "");
    nb_strbuf_release(&text);
    if (n_machines <= 1) return;
    nb_strbuf_addf(&text, "machine %d, one of %d, whose times are below", s->machine, n_machines);
    add_line(s, text.text, "");
    nb_strbuf_release(&text);
}

static void add_heading(struct summary *s) {
    struct nb_strbuf label = {0}, cells[2] = {{0}};
    nb_case_axis(&s->places[!s->places[0].first].first->c, "dtype", &label);
    if (s->pass == NB_BACKWARD) nb_strbuf_add(&label, ", backward");
    for (int p = 0; p < 2; p++) {
        const struct nb_record *r = s->places[p].first;
        if (!r) continue;
        nb_strbuf_addf(&cells[p], "%s%s: %s", s->places[p].name, r->c.cache == NB_COLD ? ", cold" : "",
                       r->c.shape.text);
        if (r->c.cache == NB_COLD) continue; /* whatever its size */
        nb_strbuf_add(&cells[p], ", ");
        nb_format_bytes(&cells[p], r->bytes);
    }
    add_cells(s, label.text, cells);
    nb_strbuf_release(&label);
}

static bool is_of_shared_core(const struct nb_record *r) {
    return isfinite(r->timing.uncontended) && strcmp(r->timing.state, nb_state_names[NB_UNCONTENDED]) != 0;
}

static void add_fastest(struct summary *s, size_t op) {
    static const char *const names[NB_N_OPS] = {[NB_OP_LAYERNORM] = "LayerNorm", [NB_OP_RMSNORM] = "RMSNorm"};
    struct nb_strbuf label = {0}, kernels[2] = {{0}}, times[2] = {{0}};
    nb_strbuf_addf(&label, "fastest %s", names[s->ops[op]] ? names[s->ops[op]] : nb_op_names[s->ops[op]]);
    for (int p = 0; p < 2; p++) {
        const struct nb_record *r = s->places[p].first ? s->places[p].fastest[op] : NULL;
        if (!r) continue;
        const struct nb_roofline *a = &r->timing.roofline;
        const bool core = strcmp(a->bottleneck, "core") == 0, launch = strcmp(a->bottleneck, "launch") == 0;
        if (r->timing.noisy) nb_strbuf_add(&kernels[p], "~");
        nb_kernel_name(&r->c, &kernels[p]);
        nb_strbuf_addf(&kernels[p], " %s", nb_width_names[r->c.width]);
        nb_format_time_interval(&times[p], &r->timing.time_ns);
        const double share = isfinite(a->share.value) ? a->share.value : r->timing.vs_copy.value;
        const char *of = core ? "core" : launch ? "an empty call" : "copy";
        if (isfinite(share)) nb_strbuf_addf(&times[p], ", %.0f%% of %s", 100 * share, of);
        if (is_of_shared_core(r)) nb_strbuf_add(&times[p], ", shared core");
    }
    add_cells(s, label.text, kernels);
    add_cells(s, "", times);
    nb_strbuf_release(&label);
}

static void add_savings(struct summary *s) {
    struct nb_strbuf fastest[2] = {{0}}, styles[2][2] = {{{0}}}, alike = {0};
    if (s->n_ops != 2 || s->ops[0] != NB_OP_LAYERNORM) return;
    nb_strbuf_add(&alike, "  fused");
    for (int p = 0; p < 2; p++) {
        const struct place *place = &s->places[p];
        const struct nb_record *ln, *rms;
        if (!place->first) continue;
        if (place->fastest[0] && place->fastest[1]) {
            const struct nb_interval ratio = ratio_of(s, place->fastest[1], place->fastest[0]);
            add_saved(&ratio, &fastest[p]);
        }
        for (uint32_t style = 0; style < 2; style++) {
            if (!find_pair(s, place, style == 0 ? NB_FUSED : NB_COMPOSED, &ln, &rms)) continue;
            const struct nb_interval ratio = ratio_of(s, rms, ln);
            char *suffix = nb_kernel_suffix(ln);
            add_saved(&ratio, &styles[style][p]);
            if (style == 0 && !strchr(alike.text, ',')) nb_strbuf_addf(&alike, ", %s", suffix + (*suffix == '_'));
            free(suffix);
        }
    }
    add_line(s, "RMSNorm saves, of LayerNorm's time, with 95 % intervals:", "");
    add_cells(s, "  fastest of each", fastest);
    add_cells(s, alike.text, styles[0]);
    add_cells(s, "  op by op", styles[1]);
    nb_strbuf_release(&alike);
}

/* The case that differs from r in its root alone. */
static const struct nb_record *with_root(const struct summary *s, const struct nb_record *r, uint32_t root) {
    for (size_t i = 0; i < s->results->n; i++) {
        const struct nb_record *other = &s->results->records[i];
        if (nb_record_timed(other) && other->c.formula.root == root && strcmp(other->c.variant, r->c.variant) == 0 &&
            same_terms(r, other, root_axes))
            return other;
    }
    return NULL;
}

/* Of the cases that were timed with a cheaper root, the first of an RMSNorm, else of any op. */
static const struct nb_record *find_cheap_root(const struct summary *s) {
    const struct nb_record *found = NULL;
    for (size_t i = 0; i < s->results->n; i++) {
        const struct nb_record *r = &s->results->records[i];
        const bool cheap = r->c.formula.root == NB_ROOT_RSQRT_NR || r->c.formula.root == NB_ROOT_RSQRT_RAW;
        if (!cheap || !is_of(s, r) || r->c.pass != NB_FORWARD || (found && r->c.op != NB_OP_RMSNORM)) continue;
        if (!with_root(s, r, NB_ROOT_MUL_RECIP) && !with_root(s, r, NB_ROOT_DIV_SQRT)) continue;
        if (!found || found->c.op != NB_OP_RMSNORM) found = r;
    }
    return found;
}

static void add_roots(struct summary *s) {
    enum { COLUMN = 23, N_USUAL = 2 };
    static const uint32_t cheap[] = {NB_ROOT_RSQRT_NR, NB_ROOT_RSQRT_RAW},
                          usual[N_USUAL] = {NB_ROOT_MUL_RECIP, NB_ROOT_DIV_SQRT};
    const struct nb_record *r = find_cheap_root(s);
    struct nb_strbuf cells[N_USUAL + 1] = {{0}}, label = {0};
    int n = 0;
    if (!r) return;
    for (int u = 0; u < N_USUAL; u++)
        if (with_root(s, r, usual[u])) nb_strbuf_addf(&cells[n++], "of %s's time", nb_root_names[usual[u]]);
    nb_kernel_name(&r->c, &cells[n]);
    add_columns(s, "cheaper roots save", cells, n + 1, COLUMN);
    for (int c = 0; c < 2; c++) {
        const struct nb_record *of = with_root(s, r, cheap[c]);
        if (!of) continue;
        n = 0;
        for (int u = 0; u < N_USUAL; u++) {
            const struct nb_record *against = with_root(s, r, usual[u]);
            if (!against) continue;
            const struct nb_interval ratio = ratio_of(s, of, against);
            nb_strbuf_clear(&cells[n]);
            nb_strbuf_add(&cells[n], "");
            add_saved(&ratio, &cells[n++]);
        }
        nb_strbuf_clear(&label);
        nb_strbuf_addf(&label, "  %s", nb_root_names[cheap[c]]);
        add_columns(s, label.text, cells, n, COLUMN);
    }
    nb_strbuf_release(&label);
    for (int u = 0; u <= N_USUAL; u++) nb_strbuf_release(&cells[u]);
}

/* The fastest case of the op that differs from the place in its dtype alone. */
static const struct nb_record *fastest_in(const struct summary *s, const struct nb_record *f32, uint32_t dtype) {
    static const char *const free_axes[] = {"affine", "weight_offset", "param_dtype", "dtype",
                                            "cast",   "round_sum",     NULL};
    const struct nb_record *best = NULL;
    for (size_t i = 0; i < s->results->n; i++) {
        const struct nb_record *r = &s->results->records[i];
        if (r->c.dtype == dtype && r->c.op == f32->c.op && nb_record_timed(r) && !r->timing.suspect &&
            time_of(r) < time_of(best) && same_terms(f32, r, free_axes))
            best = r;
    }
    return best;
}

static void add_bf16(struct summary *s) {
    struct nb_strbuf cells[2] = {{0}};
    for (int p = 0; p < 2 && s->dtype == NB_F32; p++) {
        const struct nb_record *f32 = s->places[p].first ? s->places[p].fastest[s->n_ops - 1] : NULL;
        const struct nb_record *bf16 = f32 ? fastest_in(s, f32, NB_BF16) : NULL;
        if (!bf16) continue;
        const struct nb_interval ratio = unpaired_ratio(&bf16->timing.time_ns, &f32->timing.time_ns);
        add_saved(&ratio, &cells[p]);
        nb_strbuf_add(&cells[p], ", unpaired");
    }
    add_cells(s, s->ops[s->n_ops - 1] == NB_OP_RMSNORM ? "bf16 RMSNorm saves" : "bf16 saves", cells);
}

/* Rounding to 16 bits takes nearly all of the bound of every such result, so that f32 says more where there is any. */
static const struct nb_record *nearest_its_bound(const struct nb_results *results) {
    const struct nb_record *nearest = NULL;
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (r->status != NB_OK || !r->has_accuracy || !isfinite(r->accuracy.worst_ratio)) continue;
        const bool wide = r->c.dtype == NB_F32, widens = nearest && wide && nearest->c.dtype != NB_F32,
                   narrows = nearest && !wide && nearest->c.dtype == NB_F32;
        if (!nearest || widens || (!narrows && r->accuracy.worst_ratio > nearest->accuracy.worst_ratio)) nearest = r;
    }
    return nearest;
}

static void add_nearest(struct summary *s, const struct nb_record *r) {
    if (!r) return;
    char *text =
        nb_textf("%.0f%% of the error allowed: %s %s", 100 * r->accuracy.worst_ratio, r->c.variant, r->c.shape.text);
    add_line(s, "nearest its bound", text);
    free(text);
}

/* ---- what is not to be trusted ------------------------------------------------------------------------------------- */

struct disturbance {
    double wall_per_cpu; /* median over the timed cases */
    double steal_ms;     /* of the case with the most */
};

static struct disturbance find_disturbance(const struct nb_results *results) {
    double *values = nb_alloc(results->n + 1, sizeof *values);
    struct disturbance d = {.wall_per_cpu = NAN};
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_timing *t = &results->records[i].timing;
        if (!results->records[i].has_timing) continue;
        if (isfinite(t->wall_per_cpu)) values[n++] = t->wall_per_cpu;
        if (t->steal_ms > d.steal_ms) d.steal_ms = t->steal_ms;
    }
    if (n) d.wall_per_cpu = nb_median(values, n);
    free(values);
    return d;
}

static void add_part(struct nb_strbuf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_part(struct nb_strbuf *out, const char *format, ...) {
    char part[100];
    va_list args;
    va_start(args, format);
    vsnprintf(part, sizeof part, format, args);
    va_end(args);
    nb_strbuf_addf(out, "%s%s", out->len ? ", " : "", part);
}

static void add_trust(struct summary *s, const struct nb_summary *counts) {
    struct nb_strbuf text = {0}, todo = {0};
    const struct disturbance d = find_disturbance(s->results);
    const double preempted = counts->n_samples ? (double)counts->n_preempted / (double)counts->n_samples : 0;
    const bool whole = !cJSON_IsFalse(nb_meta(s->results, "complete"));
    if (counts->n_failures) add_part(&text, "%zu failed", counts->n_failures);
    if (!whole) add_part(&text, "not complete");
    if (counts->n_noisy) add_part(&text, "%zu of %zu too noisy to rank (~)", counts->n_noisy, counts->n_timed);
    if (counts->n_suspect) add_part(&text, "%zu faster than copy", counts->n_suspect);
    if (counts->n_throttled) add_part(&text, "%zu on a throttled GPU", counts->n_throttled);
    if (counts->n_timed && counts->n_without_interval == counts->n_timed)
        add_part(&text, "no intervals");
    else if (preempted >= 0.01)
        add_part(&text, "%.0f%% preempted", 100 * preempted);
    if (counts->n_failures)
        nb_strbuf_add(&todo, "replay what failed, as below: it says where and by how much");
    else if (!whole)
        nb_strbuf_add(&todo, "let it go on, as below");
    else if (counts->n_timed && counts->n_without_interval == counts->n_timed)
        nb_strbuf_addf(&todo, "%d launches are the fewest that give an interval", NB_MIN_LAUNCHES);
    else if (counts->n_noisy + counts->n_suspect > 0 && d.wall_per_cpu > 1.1)
        nb_strbuf_addf(&todo, "other programs had the CPU (time x %.1f): stop them, rerun", d.wall_per_cpu);
    else if (counts->n_noisy + counts->n_suspect > 0 && nb_summary_contended(counts) > 0.1)
        nb_strbuf_addf(&todo, "the core was shared during %.0f%% of the samples: rerun later",
                       100 * nb_summary_contended(counts));
    else if (counts->n_noisy + counts->n_suspect > 0 && d.steal_ms > 10)
        nb_strbuf_add(&todo, "neighbours had the CPU: run again later, or longer");
    else if (counts->n_noisy + counts->n_suspect > 0)
        nb_strbuf_add(&todo, "a longer run narrows the intervals, as below");
    if (text.len)
        add_line(s, "not to be trusted", text.text);
    else if (counts->n_timed) {
        nb_strbuf_addf(&text, "nothing: all %zu timed cases are ok, and none is too noisy to rank", counts->n_timed);
        add_line(s, "not to be trusted", text.text);
    }
    if (todo.len) add_line(s, "what to do", todo.text);
    nb_strbuf_release(&text);
    nb_strbuf_release(&todo);
}

/* ---- all of it ----------------------------------------------------------------------------------------------------- */

static void read_samples(struct summary *s) {
    if (!s->results->dir) return;
    char *journal = nb_path_join(s->results->dir, NB_JOURNAL_FILE);
    s->has_samples = nb_path_exists(journal) && nb_sample_table_read(&s->samples, s->results->dir) == 0;
    free(journal);
}

static bool is_emulated(const struct summary *s) {
    bool all = s->results->n > 0;
    for (size_t i = 0; i < s->results->n; i++) all &= !nb_case_is_timed(&s->results->records[i].c);
    return all;
}

static void add_times(struct summary *s) {
    choose_ops(s);
    if (s->n_ops == 0) {
        add_line(s, is_emulated(s) ? "Emulated on the CPU: checked, and never timed." : "Nothing was timed.", "");
        return;
    }
    choose_pass_and_dtype(s);
    find_cells(s);
    for (int p = 0; p < 2; p++) {
        choose_place(s, p);
        choose_fastest(s, &s->places[p]);
    }
    add_heading(s);
    for (size_t op = 0; op < s->n_ops; op++) add_fastest(s, op);
    add_savings(s);
    add_roots(s);
    add_bf16(s);
}

static void init(struct summary *s, const struct nb_results *results) {
    const int machine = choose_machine(results);
    *s = (struct summary){.results = results,
                          .machine = machine,
                          .cpu = nb_meta_of_machine(results, machine, "cpu"),
                          .gpu = nb_meta_of_machine(results, machine, "gpu"),
                          .backend = backend_of(results),
                          .utf8 = nb_utf8_wanted(),
                          .most_lines = MOST_LINES,
                          .places = {{.name = "in cache"}, {.name = "in memory"}}};
    nb_strbuf_add(&s->out, "");
    read_samples(s);
}

static void add_answer(struct summary *s, const struct nb_summary *counts, const struct nb_record *nearest) {
    struct nb_strbuf contention = {0};
    nb_strbuf_add(&contention, "");
    nb_summary_contention(counts, &contention);
    add_machine(s);
    if (contention.len) add_line(s, contention.text, "");
    nb_strbuf_release(&contention);
    add_times(s);
    add_nearest(s, nearest);
    add_trust(s, counts);
}

static void release(struct summary *s) {
    nb_sample_table_release(&s->samples);
    free(s->cells);
    free(s->cell_of);
}

static int render_summary(const struct nb_results *results, FILE *out) {
    struct summary s;
    const struct nb_record *nearest = nearest_its_bound(results);
    struct nb_summary counts;
    struct nb_next next = {.results = results, .nearest = nearest, .width = WIDTH};
    struct nb_strbuf commands = {0};
    init(&s, results);
    nb_summary_init(&counts, results);
    next.failed = counts.n_failures ? &results->records[counts.failures[0]] : NULL;
    next.noisy = counts.n_noisy + counts.n_suspect > 0;
    nb_strbuf_add(&commands, "");
    s.most_lines -= nb_next_commands(&next, &commands);
    add_answer(&s, &counts, nearest);
    nb_strbuf_add(&s.out, commands.text);
    nb_strbuf_release(&commands);
    nb_summary_release(&counts);
    release(&s);
    return nb_output(&s.out, out);
}

void nb_html_answer(const struct nb_results *results, struct nb_strbuf *out) {
    struct summary s;
    struct nb_summary counts;
    init(&s, results);
    s.utf8 = s.html = true;
    nb_summary_init(&counts, results);
    add_answer(&s, &counts, nearest_its_bound(results));
    nb_strbuf_addf(out, "<div class=wrap><table class=answer>\n%s</table></div>\n", s.out.text);
    nb_strbuf_release(&s.out);
    nb_summary_release(&counts);
    release(&s);
}

const struct nb_renderer nb_renderer_summary[] = {{"summary", "what a run says, in 20 lines", render_summary}, {0}};
