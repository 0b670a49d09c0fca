// SPDX-License-Identifier: Apache-2.0
/* What a run says on one screen: the machine and what is not to be trusted, the user's own kernels, the fastest LayerNorm and RMSNorm and
 * how near they come to their copy, what RMSNorm, bf16 and cheaper roots save, the case nearest its error bound, and what to do next.
 *
 * Times are compared only in one place of the matrix: one shape, dtype, data and formula, with the rows in a cache or in memory. Of the
 * places of a run the one with the most cases answers for either. Ratios of two cases come from the journal's samples, paired as they
 * were measured (src/measure/paired.h); results without a journal have them from both cases' ratios to the reference. f32 and bf16 are
 * never measured in one group: there the bounds of both times are taken at their worst. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/sweep.h"
#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "reports/text/output.h"
#include "src/core/case.h"
#include "src/core/files.h"
#include "src/core/format.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/text.h"
#include "src/measure/paired.h"

enum { MOST_LINES = 24, WIDTH = 80, MOST_OPS = 3, MOST_NAMED = 4 };

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
    bool has_samples, utf8, html, mixed; /* mixed: of the contended core and of the uncontended */
    uint32_t pass, dtype, ops[MOST_OPS];
    size_t n_ops;
    struct place places[2]; /* IN_CACHE, IN_MEMORY */
    struct nb_strbuf out;
    int n_lines, most_lines;
};

/* ---- lines -------------------------------------------------------------------------------------------------------- */

/* Whole, or not at all where it would not fit. */
static void add_block(struct summary *s, struct nb_strbuf *block) {
    const int n = nb_text_line(block->text, block->text + block->len) - 1;
    if (s->html || s->n_lines + n <= s->most_lines) {
        nb_strbuf_add(&s->out, block->text);
        s->n_lines += n;
    }
    nb_strbuf_release(block);
}

/* A sentence; takes text, which may be null or empty. */
static void say(struct summary *s, char *text) {
    struct nb_strbuf block = nb_strbuf_empty();
    if (text && *text && s->html)
        nb_html_text(&block, "<p>", text, "</p>\n");
    else if (text && *text)
        nb_screen_wrap(&block, text, WIDTH, s->utf8);
    add_block(s, &block);
    free(text);
}

static void add_html(const struct nb_grid *grid, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<div class=wrap><table class=answer>");
    for (size_t i = 0; i < grid->n_columns + grid->n_cells; i++) {
        const bool begins = i % grid->n_columns == 0;
        nb_strbuf_add(out, begins ? "\n<tr><th>" : "<td>"); /* of an empty cell too */
        nb_html_text(out, "", i < grid->n_columns ? grid->titles[i] : grid->cells[i - grid->n_columns], "");
    }
    nb_strbuf_add(out, "\n</table></div>\n");
}

static void add_grid(struct summary *s, struct nb_grid *grid) {
    struct nb_strbuf block = nb_strbuf_empty();
    grid->screen = WIDTH;
    if (s->html)
        add_html(grid, &block);
    else
        nb_grid_add_table(grid, false, &block);
    nb_grid_release(grid);
    add_block(s, &block);
}

/* A row with a cell for each place that the run has; none where all cells are empty. Releases the cells. */
static void add_cells(const struct summary *s, struct nb_grid *grid, const char *label, struct nb_strbuf cells[2]) {
    if (cells[0].len + cells[1].len > 0) {
        nb_grid_add(grid, label);
        for (int p = 0; p < 2; p++)
            if (s->places[p].first) nb_grid_add(grid, cells[p].len ? cells[p].text : "");
    }
    for (int p = 0; p < 2; p++) nb_strbuf_release(&cells[p]);
}

/* What a ratio of times saves, `~` where its own interval is too wide to rank; of single launches there is none. */
static void add_saved(struct nb_interval ratio, struct nb_strbuf *out) {
    if (isfinite(ratio.value) && nb_is_too_wide(&ratio)) nb_strbuf_add(out, "~");
    nb_format_saved(out, ratio);
    if (isfinite(ratio.value) && !nb_interval_known(&ratio)) nb_strbuf_add(out, ", no interval");
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
    char *left freed = terms_of(a, free_axes), *right freed = terms_of(b, free_axes);
    return strcmp(left, right) == 0;
}

/* Of merged results the machine that timed most: what is said here of times is of one. */
static int choose_machine(const struct nb_results *results) {
    const int n = cJSON_GetArraySize(nb_meta(results, "machines"));
    size_t *timed freed = nb_alloc((unsigned)n + 1, sizeof *timed);
    int most = 0;
    for (size_t i = 0; i < results->n; i++)
        if (nb_record_timed(&results->records[i]) && results->records[i].machine < n)
            timed[results->records[i].machine]++;
    for (int m = 1; m < n; m++)
        if (timed[m] > timed[most]) most = m;
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
    struct nb_text_map index released_by(nb_text_map_release) = {0};
    char **terms freed = nb_alloc(s->results->n + 1, sizeof *terms);
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
    return nb_interval_saved(nb_cut_of(a, b));
}

/* time of a / time of b, paired; NaN where that is not known. */
static struct nb_interval ratio_of(const struct summary *s, const struct nb_record *a, const struct nb_record *b) {
    const struct nb_interval one = nb_exactly(1);
    if (s->has_samples) return nb_paired_ratio(&s->samples, a->key, b->key, NULL).ratio;
    if (!a->timing.reference || !b->timing.reference || strcmp(a->timing.reference, b->timing.reference) != 0)
        return NB_NO_INTERVAL;
    return unpaired_ratio(nb_is_reference(a) ? &one : &a->timing.vs_reference,
                          nb_is_reference(b) ? &one : &b->timing.vs_reference);
}

static bool are_alike(const struct nb_record *a, const struct nb_record *b) {
    char *left freed = nb_kernel_suffix(a), *right freed = nb_kernel_suffix(b);
    const bool alike = strcmp(left, right) == 0 && a->c.width == b->c.width && a->c.style == b->c.style &&
                       a->c.stats == b->c.stats && a->c.stats_dtype == b->c.stats_dtype;
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
    const char *hypervisor = nb_json_get_text(s->cpu, "hypervisor");
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
    say(s, text.text);
    if (n_machines > 1)
        say(s, nb_textf("That is machine %d, one of %d, whose times are below.", s->machine, n_machines));
}

/* "in memory, cold: 1024x1024" */
static char *heading_of(const struct place *place) {
    const struct nb_record *r = place->first;
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "%s%s: %s", place->name, r->c.cache == NB_COLD ? ", cold" : "", r->c.shape.text);
    if (r->c.cache == NB_COLD) return text.text; /* whatever its size */
    nb_strbuf_add(&text, ", ");
    nb_format_bytes(&text, r->bytes);
    return text.text;
}

static bool is_of_shared_core(const struct nb_record *r) {
    return isfinite(r->timing.uncontended) && strcmp(r->timing.state, nb_state_names[NB_UNCONTENDED]) != 0;
}

/* "76% of copy" */
static void add_share(const struct summary *s, const struct nb_record *r, struct nb_strbuf *out) {
    const struct nb_roofline *a = &r->timing.roofline;
    const bool core = strcmp(a->bottleneck, "core") == 0, launch = strcmp(a->bottleneck, "launch") == 0;
    const double share = isfinite(a->share.value) ? a->share.value : r->timing.vs_copy.value;
    if (isfinite(share))
        nb_strbuf_addf(out, "%.0f%% of %s", 100 * share, core ? "core" : launch ? "an empty call" : "copy");
    if (s->mixed && is_of_shared_core(r)) nb_strbuf_add(out, ", core shared");
}

static void add_kernel(const struct nb_record *r, struct nb_strbuf *out) {
    if (r->timing.noisy) nb_strbuf_add(out, "~");
    nb_kernel_name(&r->c, out);
    if (!strchr(r->c.variant, ':')) nb_strbuf_addf(out, " %s", nb_width_names[r->c.width]);
}

static const char *op_name(uint32_t op) {
    return op == NB_OP_LAYERNORM ? "LayerNorm" : op == NB_OP_RMSNORM ? "RMSNorm" : nb_op_names[op];
}

static void add_fastest(const struct summary *s, size_t op, struct nb_grid *grid) {
    struct nb_strbuf kernels[2] = {{0}}, times[2] = {{0}}, shares[2] = {{0}};
    char *label freed = nb_textf("fastest %s", op_name(s->ops[op]));
    for (int p = 0; p < 2; p++) {
        const struct nb_record *r = s->places[p].first ? s->places[p].fastest[op] : NULL;
        if (!r) continue;
        add_kernel(r, &kernels[p]);
        nb_format_time_interval(&times[p], r->timing.time_ns);
        add_share(s, r, &shares[p]);
    }
    add_cells(s, grid, label, kernels);
    add_cells(s, grid, "", times);
    add_cells(s, grid, "", shares);
}

static void add_savings(const struct summary *s, struct nb_grid *grid) {
    struct nb_strbuf fastest[2] = {{0}}, styles[2][2] = {{{0}}};
    if (s->n_ops != 2 || s->ops[0] != NB_OP_LAYERNORM) return;
    for (int p = 0; p < 2; p++) {
        const struct place *place = &s->places[p];
        const struct nb_record *ln, *rms;
        if (!place->first) continue;
        if (place->fastest[0] && place->fastest[1])
            add_saved(ratio_of(s, place->fastest[1], place->fastest[0]), &fastest[p]);
        for (uint32_t style = 0; style < 2; style++)
            if (find_pair(s, place, style == 0 ? NB_FUSED : NB_COMPOSED, &ln, &rms))
                add_saved(ratio_of(s, rms, ln), &styles[style][p]);
    }
    add_cells(s, grid, "RMSNorm saves", fastest);
    add_cells(s, grid, "  same code, fused", styles[0]);
    add_cells(s, grid, "  same code, unfused", styles[1]);
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
    enum { N_USUAL = 2, N_CHEAP = 2 };
    static const uint32_t cheap[N_CHEAP] = {NB_ROOT_RSQRT_NR, NB_ROOT_RSQRT_RAW},
                          usual[N_USUAL] = {NB_ROOT_MUL_RECIP, NB_ROOT_DIV_SQRT};
    static const char *const labels[N_CHEAP] = {"  rsqrt and a Newton step saves", "  rsqrt alone saves"},
                             *const titles[N_USUAL] = {"of x * (1 / sqrt)", "of x / sqrt"};
    const struct nb_record *r = find_cheap_root(s);
    if (!r) return;
    char *kernel freed = nb_kernel_text(&r->c), *head freed = nb_textf("%s, %s", kernel, r->c.shape.text);
    const char *heads[1 + N_USUAL] = {head};
    struct nb_grid grid;
    size_t n = 1;
    for (int u = 0; u < N_USUAL; u++)
        if (with_root(s, r, usual[u])) heads[n++] = titles[u];
    nb_grid_init(&grid, heads, n);
    for (int c = 0; c < N_CHEAP; c++) {
        const struct nb_record *of = with_root(s, r, cheap[c]);
        if (!of) continue;
        nb_grid_add(&grid, labels[c]);
        for (int u = 0; u < N_USUAL; u++) {
            const struct nb_record *against = with_root(s, r, usual[u]);
            if (!against) continue;
            add_saved(ratio_of(s, of, against), &grid.cell);
            nb_grid_end_cell(&grid);
        }
    }
    add_grid(s, &grid);
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

static void add_bf16(const struct summary *s, struct nb_grid *grid) {
    struct nb_strbuf cells[2] = {{0}};
    for (int p = 0; p < 2 && s->dtype == NB_F32; p++) {
        const struct nb_record *f32 = s->places[p].first ? s->places[p].fastest[s->n_ops - 1] : NULL;
        const struct nb_record *bf16 = f32 ? fastest_in(s, f32, NB_BF16) : NULL;
        if (!bf16) continue;
        add_saved(unpaired_ratio(&bf16->timing.time_ns, &f32->timing.time_ns), &cells[p]);
    }
    add_cells(s, grid, "bf16 of f32, unpaired", cells);
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
    if (r)
        say(s, nb_textf("Least accurate: %.0f%% of its error bound (passes): %s %s", 100 * r->accuracy.worst_ratio,
                        r->c.variant, r->c.shape.text));
}

/* ---- what is not to be trusted ------------------------------------------------------------------------------------- */

/* Why cases are noisy, and what helps. */
static void add_mend(const struct nb_summary *counts, struct nb_strbuf *out) {
    if (counts->load.wall_per_cpu > 1.1)
        nb_strbuf_addf(out, " Other programs had the CPU (wall time %.1f x CPU time): stop them and rerun.",
                       counts->load.wall_per_cpu);
    else if (nb_summary_contended(counts) > 0.1)
        nb_strbuf_add(out, " Rerun when the core is idle.");
    else if (counts->load.steal_ms > 10)
        nb_strbuf_add(out, " The hypervisor took CPU time from this VM (steal): rerun later, or longer, as below.");
    else
        nb_strbuf_add(out, " A longer run, as below, narrows the intervals.");
}

static void add_trust(struct summary *s, const struct nb_summary *counts) {
    struct nb_strbuf text released_by(nb_strbuf_release) = nb_strbuf_empty();
    const size_t n = counts->load.n_timed;
    if (counts->n_failures)
        nb_strbuf_addf(&text, " %zu FAILED: the replay below says where and by how much.", counts->n_failures);
    if (cJSON_IsFalse(nb_meta(s->results, "complete")))
        nb_strbuf_add(&text, " The run was cut off: resume it, as below.");
    if (counts->load.n_noisy)
        nb_strbuf_addf(&text, " Too noisy to rank (~): %zu of %zu cases.", counts->load.n_noisy, n);
    if (counts->n_suspect)
        nb_strbuf_addf(&text, " Faster than a copy of their bytes, so suspect: %zu of %zu cases.", counts->n_suspect,
                       n);
    if (counts->n_throttled)
        nb_strbuf_addf(&text, " The GPU was throttled during launches of %zu of %zu cases.", counts->n_throttled, n);
    if (n && counts->n_without_interval == n)
        nb_strbuf_addf(&text, " No case has an interval: that needs %d launches.", NB_MIN_LAUNCHES);
    else if (counts->load.preempted >= 0.01)
        nb_strbuf_addf(&text, " %.0f%% of the samples were preempted.", 100 * counts->load.preempted);
    const bool steady = !text.len && n;
    if (steady) nb_strbuf_addf(&text, " All %zu timed cases can be ranked.", n);
    struct nb_strbuf core released_by(nb_strbuf_release) = nb_strbuf_empty();
    nb_summary_core(counts, &core);
    if (core.len) nb_strbuf_addf(&text, " %s", core.text);
    if (counts->load.n_noisy + counts->n_suspect > 0) add_mend(counts, &text);
    say(s, nb_strdup(text.len ? text.text + 1 : ""));
}

/* "quick, 2026-11-27, 63 s: 162 cases: 160 ok, 2 inaccurate" */
static void add_run(struct summary *s, const struct nb_summary *counts) {
    const char *config = nb_meta_text(s->results, "config"), *started = nb_meta_text(s->results, "started");
    const cJSON *elapsed_s = nb_meta(s->results, "elapsed_s");
    struct nb_strbuf text = {0};
    nb_strbuf_add(&text, config);
    if (*started) nb_strbuf_addf(&text, "%s%.10s", text.len ? ", " : "", started);
    if (cJSON_IsNumber(elapsed_s)) nb_strbuf_addf(&text, "%s%.0f s", text.len ? ", " : "", elapsed_s->valuedouble);
    nb_strbuf_addf(&text, "%s%s", text.len ? "; " : "", counts->counts_text);
    say(s, text.text);
}

/* ---- what is the user's, and what is missing ------------------------------------------------------------------------ */

static bool is_own(const struct nb_record *r) { return strchr(r->c.variant, ':') && !r->c.is_peer; }

/* Of ours in the case's group, the fastest of its op. */
static const struct nb_record *fastest_beside(const struct summary *s, const struct nb_record *own) {
    const struct nb_record *best = NULL;
    for (size_t i = 0; i < s->results->n; i++) {
        const struct nb_record *r = &s->results->records[i];
        if (nb_record_timed(r) && r->group == own->group && r->c.op == own->c.op && !strchr(r->c.variant, ':') &&
            !r->timing.suspect && time_of(r) < time_of(best))
            best = r;
    }
    return best;
}

/* "~mine:fast_f32, 64x384: 12.3 us [12.0, 12.5], 80% of copy; 1.31 [1.28, 1.33] times rmsnorm_fast 512" */
static void say_own(struct summary *s, const struct nb_record *r, size_t n_failed, size_t n) {
    struct nb_strbuf text = {0};
    const struct nb_record *best = nb_record_timed(r) ? fastest_beside(s, r) : NULL;
    const struct nb_interval ratio = best ? ratio_of(s, r, best) : NB_NO_INTERVAL;
    nb_strbuf_addf(&text, "%s%s", r->has_timing && r->timing.noisy ? "~" : "", r->c.variant);
    if (n_failed) nb_strbuf_addf(&text, ": %zu of %zu cases FAILED", n_failed, n);
    if (nb_record_timed(r)) {
        nb_strbuf_addf(&text, "%s %s: ", n_failed ? ";" : ",", r->c.shape.text);
        nb_format_time_interval(&text, r->timing.time_ns);
        nb_strbuf_add(&text, ", ");
        add_share(s, r, &text);
    } else if (!n_failed)
        nb_strbuf_addf(&text, ": %zu case%s, none timed", n, n == 1 ? "" : "s");
    if (isfinite(ratio.value)) {
        nb_strbuf_add(&text, "; ");
        nb_format_ratio(&text, ratio);
        nb_strbuf_add(&text, " times ");
        add_kernel(best, &text);
    }
    say(s, text.text);
}

/* Kernels of plugins, by name: the user came for them. */
static void add_own(struct summary *s) {
    size_t n_said = 0, n_more = 0;
    for (size_t i = 0; i < s->results->n; i++) {
        const struct nb_record *first = &s->results->records[i], *shown = first;
        size_t n = 0, n_failed = 0;
        bool said = !is_own(first);
        for (size_t k = 0; k < i && !said; k++) said = strcmp(s->results->records[k].c.variant, first->c.variant) == 0;
        for (size_t k = i; k < s->results->n && !said; k++) {
            const struct nb_record *r = &s->results->records[k];
            if (strcmp(r->c.variant, first->c.variant) != 0) continue;
            n++;
            n_failed += nb_status_failed(r->status);
            if (!nb_record_timed(shown) && nb_record_timed(r)) shown = r;
        }
        if (said) continue;
        if (n_said++ < MOST_NAMED)
            say_own(s, shown, n_failed, n);
        else
            n_more++;
    }
    if (n_more) say(s, nb_textf("... and %zu more kernels of plugins, in the report", n_more));
}

/* Groups that time did not suffice for, by name. */
static void add_missing(struct summary *s) {
    struct nb_strbuf text = {0};
    size_t n = 0;
    for (size_t i = 0; i < s->results->n; i++) {
        const struct nb_record *r = &s->results->records[i];
        bool said = r->has_timing || !nb_record_is_over_budget(r);
        for (size_t k = 0; k < i && !said; k++) {
            const struct nb_record *earlier = &s->results->records[k];
            said = earlier->group == r->group && !earlier->has_timing && nb_record_is_over_budget(earlier);
        }
        if (said || n++ >= MOST_NAMED) continue;
        nb_strbuf_addf(&text, "%s%s %s %s%s", n > 1 ? "; " : "Not measured, out of time: ", nb_dtype_names[r->c.dtype],
                       nb_pass_names[r->c.pass], r->c.shape.text, r->c.cache == NB_COLD ? " cold" : "");
    }
    if (n > MOST_NAMED) nb_strbuf_addf(&text, "; and %zu more groups", n - MOST_NAMED);
    say(s, text.text);
}

/* ---- all of it ----------------------------------------------------------------------------------------------------- */

static bool is_emulated(const struct summary *s) {
    bool all = s->results->n > 0;
    for (size_t i = 0; i < s->results->n; i++) all &= !nb_case_is_timed(&s->results->records[i].c);
    return all;
}

static void add_times(struct summary *s) {
    const char *titles[3] = {0};
    struct nb_strbuf label = {0};
    struct nb_grid grid;
    size_t n = 1;
    choose_ops(s);
    if (s->n_ops == 0)
        return say(s,
                   nb_strdup(is_emulated(s) ? "Emulated on the CPU: checked, and never timed." : "Nothing was timed."));
    choose_pass_and_dtype(s);
    find_cells(s);
    for (int p = 0; p < 2; p++) {
        choose_place(s, p);
        choose_fastest(s, &s->places[p]);
        if (s->places[p].first) titles[n++] = heading_of(&s->places[p]);
    }
    nb_case_axis(&s->places[!s->places[0].first].first->c, "dtype", &label);
    nb_strbuf_addf(&label, "%s [95%% CI]", s->pass == NB_BACKWARD ? ", backward" : "");
    titles[0] = label.text;
    nb_grid_init(&grid, titles, n);
    for (size_t op = 0; op < s->n_ops; op++) add_fastest(s, op, &grid);
    add_savings(s, &grid);
    add_bf16(s, &grid);
    add_grid(s, &grid);
    add_roots(s);
    for (size_t i = 0; i < n; i++) free((char *)titles[i]);
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
                          .places = {{.name = "in cache"}, {.name = "in memory"}},
                          .out = nb_strbuf_empty()};
    s->has_samples =
        nb_dir_holds(results->dir, NB_JOURNAL_FILE) && nb_sample_table_read(&s->samples, results->dir) == 0;
}

static void add_answer(struct summary *s, const struct nb_summary *counts, const struct nb_record *nearest) {
    s->mixed = counts->n_uncontended > 0 && counts->n_uncontended < counts->load.n_timed;
    add_run(s, counts);
    add_machine(s);
    add_trust(s, counts);
    add_missing(s);
    add_own(s);
    add_times(s);
    add_nearest(s, nearest);
}

static void release(struct summary *s) {
    nb_sample_table_release(&s->samples);
    free(s->cells);
    free(s->cell_of);
}

static int render_summary(const struct nb_results *results, FILE *out) {
    struct summary s;
    const struct nb_record *nearest = nearest_its_bound(results);
    struct nb_summary counts released_by(nb_summary_release);
    struct nb_next next = {.results = results, .nearest = nearest, .width = WIDTH};
    struct nb_strbuf commands released_by(nb_strbuf_release) = nb_strbuf_empty();
    init(&s, results);
    nb_summary_init(&counts, results);
    next.failed = counts.n_failures ? &results->records[counts.failures[0]] : NULL;
    next.noisy = counts.load.n_noisy + counts.n_suspect > 0;
    s.most_lines -= nb_next_commands(&next, &commands);
    add_answer(&s, &counts, nearest);
    nb_strbuf_add(&s.out, commands.text);
    release(&s);
    return nb_output(&s.out, out);
}

void nb_html_answer(const struct nb_results *results, struct nb_strbuf *out) {
    struct summary s;
    struct nb_summary counts released_by(nb_summary_release);
    init(&s, results);
    s.utf8 = s.html = true;
    nb_summary_init(&counts, results);
    add_answer(&s, &counts, nearest_its_bound(results));
    nb_strbuf_add(out, s.out.text);
    nb_strbuf_release(&s.out);
    release(&s);
}

const struct nb_renderer nb_renderer_summary[] = {{"summary", "what a run says, on one screen", render_summary}, {0}};
