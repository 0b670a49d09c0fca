// SPDX-License-Identifier: Apache-2.0
/* Grouping and the order inside a group, which decides who stays together when a large group is split. */
#include "src/plan/groups.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/plan/match.h"

static void add_group_key(const struct nb_case *c, struct nb_strbuf *out) {
    nb_strbuf_addf(out, "%u %u %s %llu %lld %d %u %s %s", c->pass, c->dtype, c->shape.text, (unsigned long long)c->seed,
                   (long long)c->pad, c->threads, c->cache, c->params, c->data);
}

static void append(struct nb_whole *whole, size_t cell) {
    if ((whole->n & (whole->n - 1)) == 0)
        whole->cells = nb_realloc(whole->cells, whole->n ? 2 * whole->n : 1, sizeof *whole->cells);
    whole->cells[whole->n++] = cell;
}

/* Numbers equal keys alike, in the order of their first cells; the keys must live as long as the map. Returns the number. */
static size_t number_of(struct nb_text_map *known, const char *key, size_t *n) {
    const size_t at = nb_text_map_add(known, key, *n);
    return at == NB_NOWHERE ? (*n)++ : at;
}

/* Of each cell the family, and of each family whether its widths are to be kept apart. */
static void find_families(const struct nb_cells *cells, char **keys, size_t *family, bool *apart) {
    struct nb_text_map known = {0};
    size_t n = 0;
    for (size_t i = 0; i < cells->n; i++) {
        family[i] = number_of(&known, keys[i], &n);
        apart[family[i]] |= cells->items[i].isolate_width;
    }
    nb_text_map_release(&known);
}

static int by_family(const void *a, const void *b) {
    const struct nb_whole *p = a, *q = b;
    if (p->family != q->family) return p->family < q->family ? -1 : 1;
    return (p->index > q->index) - (p->index < q->index);
}

static void put_families_together(struct nb_wholes *wholes) {
    if (wholes->n > 1) qsort(wholes->items, wholes->n, sizeof *wholes->items, by_family);
    for (size_t i = 0; i < wholes->n; i++) wholes->items[i].index = i;
}

static char *group_key(const struct nb_case *c, bool by_op) {
    struct nb_strbuf key = {0};
    add_group_key(c, &key);
    if (by_op) nb_strbuf_addf(&key, " %u %u", c->op, c->mode);
    return key.text;
}

static char *with_width(char *key, const struct nb_case *c) {
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "%s %s", key, nb_width_name(c->width));
    free(key);
    return text.text;
}

void nb_wholes_make(struct nb_wholes *wholes, const struct nb_cells *cells) {
    struct nb_text_map known = {0};
    char **keys = nb_alloc(cells->n, sizeof *keys);
    size_t *family = nb_alloc(cells->n, sizeof *family);
    bool *apart = nb_alloc(cells->n, sizeof *apart);
    wholes->items = nb_alloc(cells->n, sizeof *wholes->items);
    for (size_t i = 0; i < cells->n; i++) keys[i] = group_key(&cells->items[i].c, wholes->by_op);
    find_families(cells, keys, family, apart);
    for (size_t i = 0; i < cells->n; i++) {
        const bool single_width = apart[family[i]];
        if (single_width) keys[i] = with_width(keys[i], &cells->items[i].c);
        struct nb_whole *whole = &wholes->items[number_of(&known, keys[i], &wholes->n)];
        if (whole->n == 0)
            *whole = (struct nb_whole){.index = wholes->n - 1, .family = family[i], .single_width = single_width};
        append(whole, i);
    }
    put_families_together(wholes);
    for (size_t i = 0; i < cells->n; i++) free(keys[i]);
    free(keys);
    free(family);
    free(apart);
    nb_text_map_release(&known);
}

/* ---- order ---- */

#define N_RANKS 14

/* What a cell is sorted by, most significant first. */
struct ranked {
    double ranks[N_RANKS];
    size_t cell;
};

static struct ranked rank_cell(const struct nb_cells *cells, size_t cell) {
    const struct nb_case *c = &cells->items[cell].c;
    const struct nb_formula *f = &c->formula;
    return (struct ranked){{c->style, c->stats_dtype, c->stats, c->width, c->eps, f->eps_place, f->root, f->cast,
                            f->weight_offset, f->param, f->round_sum, c->mode, c->op, c->variance},
                           cell};
}

static int compare_ranked(const void *a, const void *b) {
    const struct ranked *p = a, *q = b;
    for (int i = 0; i < N_RANKS; i++)
        if (p->ranks[i] != q->ranks[i]) return p->ranks[i] < q->ranks[i] ? -1 : 1;
    return (p->cell > q->cell) - (p->cell < q->cell);
}

/* How well a cell serves as what others are compared with when nobody said which: above 0 for a fused LayerNorm with f32
 * statistics, more for a wider one. A native width says nothing of how wide. */
static int reference_score(const struct nb_case *c) {
    if (c->op != NB_OP_LAYERNORM || c->style != NB_FUSED || c->stats_dtype != NB_STATS_F32) return 0;
    return c->width == NB_NATIVE ? 1 : (int)c->width + 2;
}

static size_t choose_reference(const struct nb_whole *whole, const struct nb_cells *cells, const char *glob) {
    const struct nb_filters filter = {.texts = &glob, .n = 1};
    size_t best = 0;
    for (size_t i = 0; glob && i < whole->n; i++)
        if (nb_filters_match(&filter, cells->items[whole->cells[i]].key)) return i;
    for (size_t i = 1; i < whole->n; i++)
        if (reference_score(&cells->items[whole->cells[i]].c) > reference_score(&cells->items[whole->cells[best]].c))
            best = i;
    return best;
}

void nb_whole_arrange(struct nb_whole *whole, const struct nb_cells *cells, const char *reference) {
    if (whole->n == 0) return;
    struct ranked *ranked = nb_alloc(whole->n, sizeof *ranked);
    for (size_t i = 0; i < whole->n; i++) ranked[i] = rank_cell(cells, whole->cells[i]);
    if (whole->n > 1) qsort(ranked, whole->n, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < whole->n; i++) whole->cells[i] = ranked[i].cell;
    free(ranked);
    size_t at = choose_reference(whole, cells, reference), cell = whole->cells[at];
    memmove(whole->cells + 1, whole->cells, at * sizeof *whole->cells);
    whole->cells[0] = cell;
}

/* ---- batches ---- */

/* So many cases are worth starting a process for; more, or larger ones, would be lost together when a run is cut off. */
static const size_t batch_cases = 256;
static const double batch_elements = 16e6;

/* What the exact result depends on first: neighbours share an oracle. */
static struct ranked rank_mathematics(const struct nb_cells *cells, size_t cell) {
    const struct nb_case *c = &cells->items[cell].c;
    const struct nb_formula *f = &c->formula;
    return (struct ranked){{c->op, c->mode, (double)c->k, c->alpha, c->eps, f->eps_place, f->affine, f->weight_offset,
                            f->param, f->round_sum, c->momentum, f->root, c->variance, c->width},
                           cell};
}

static void arrange_by_mathematics(struct nb_whole *whole, const struct nb_cells *cells) {
    struct ranked *ranked = nb_alloc(whole->n, sizeof *ranked);
    for (size_t i = 0; i < whole->n; i++) ranked[i] = rank_mathematics(cells, whole->cells[i]);
    if (whole->n > 1) qsort(ranked, whole->n, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < whole->n; i++) whole->cells[i] = ranked[i].cell;
    free(ranked);
}

void nb_wholes_batch(struct nb_wholes *wholes, const struct nb_cells *cells) {
    struct nb_wholes batches = {.items = nb_alloc(cells->n, sizeof *batches.items)};
    struct nb_whole *open = NULL;
    double elements = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        struct nb_whole *whole = &wholes->items[i];
        arrange_by_mathematics(whole, cells);
        for (size_t j = 0; j < whole->n; j++) {
            const struct nb_shape *shape = &cells->items[whole->cells[j]].c.shape;
            const double own = (double)shape->rows * (double)shape->cols;
            if (!open || open->n == batch_cases || elements + own > batch_elements) {
                open = &batches.items[batches.n];
                open->index = open->family = batches.n++;
                elements = 0;
            }
            append(open, whole->cells[j]);
            elements += own;
        }
    }
    nb_wholes_release(wholes);
    *wholes = batches;
}

void nb_wholes_release(struct nb_wholes *wholes) {
    for (size_t i = 0; i < wholes->n; i++) free(wholes->items[i].cells);
    free(wholes->items);
    *wholes = (struct nb_wholes){0};
}

/* ---- how long a group takes ---- */

/* Rough figures, none of them fitted to a machine: they only have to have the right order of magnitude. */

/* A process that loads the kernels and makes its buffers. */
static const double start_s = 12e-3;
/* Generated numbers and a copy of them in fresh pages, per element of each tensor that is read. */
static const double input_s = 15e-9;
/* A kernel that has to fetch what it needs, one thread, in bytes per second. */
static const double bytes_per_s = 5e9;
/* The oracle, the bound and a comparison in four placements, per element. */
static const double check_s = 130e-9;
/* Behind a launch: memory spoilt, one more call, digests of its rows, per element. */
static const double again_s = 8e-9;
/* Samples in which an arm finds out how much fits into one. */
static const double tuning_samples = 4;
/* Counters: a few calls under each event set, and single steps. */
static const double counters_s = 50e-3;

/* All that a case which is only checked takes beside: a few dozen calls in fresh buffers, its line in the journal. */
static const double case_s = 400e-6;

size_t nb_n_parts(size_t n, const struct nb_effort *effort) {
    return effort->launches == 0 ? n > 0 : (n + NB_GROUP_ARMS - 1) / NB_GROUP_ARMS;
}

static double elements(const struct nb_case *c) { return (double)c->shape.rows * (double)c->shape.cols; }

/* All samples of one arm in one launch. A call that is longer than a sample and cannot be cut takes part in some blocks only, as
 * measure.c has it. */
static double arm_s(const struct nb_cell *cell, const struct nb_effort *effort) {
    const double sample = effort->sample_ms * 1e-3;
    struct nb_call call;
    nb_case_call(&cell->c, &call);
    int loads, stores;
    nb_op_tensors(cell->c.op, cell->c.pass, &loads, &stores);
    double declared = (double)cell->entry->kernel->loads + (double)cell->entry->kernel->stores;
    double times = declared > loads + stores ? declared / (loads + stores) : 1;
    double call_s = nb_case_bytes(&cell->c) * times / bytes_per_s / cell->c.threads;
    if (call_s <= sample || nb_ask_row_local(cell->entry, &call)) return (effort->blocks + tuning_samples) * sample;
    double every = call_s / (10 * sample), most = effort->blocks > 4 ? effort->blocks / 4 : 1;
    if (every < 1) every = 1;
    if (every > most) every = most;
    return (effort->blocks / every + 1) * call_s;
}

static double check_only_s(const struct nb_cells *cells, const size_t *which, size_t n) {
    double s = start_s;
    for (size_t i = 0; i < n; i++) s += case_s + 4 * elements(&cells->items[which[i]].c) * check_s;
    return s;
}

struct nb_estimate nb_estimate(const struct nb_cells *cells, const size_t *which, size_t n,
                               const struct nb_effort *effort) {
    struct nb_estimate e = {0};
    if (n == 0) return e;
    if (effort->launches == 0) return (struct nb_estimate){.check = check_only_s(cells, which, n)};
    const struct nb_cell *first = &cells->items[which[0]];
    const double parts = (double)nb_n_parts(n, effort),
                 copy = (effort->blocks + tuning_samples) * effort->sample_ms * 1e-3;
    int loads, stores;
    nb_op_tensors(first->c.op, first->c.pass, &loads, &stores);
    const double start = parts * (start_s + elements(&first->c) * loads * input_s);
    e.check = start;
    e.counters = start;
    e.launch = start + parts * copy + (parts - 1) * arm_s(first, effort);
    for (size_t i = 0; i < n; i++) {
        const struct nb_cell *cell = &cells->items[which[i]];
        e.launch += arm_s(cell, effort) + elements(&cell->c) * again_s;
        e.check += elements(&cell->c) * check_s;
        e.counters += counters_s;
    }
    return e;
}

double nb_estimate_total_s(const struct nb_estimate *e, const struct nb_effort *effort) {
    return e->check + effort->launches * e->launch + e->counters;
}

double nb_estimate_s(const struct nb_cells *cells, const size_t *which, size_t n, const struct nb_effort *effort) {
    const struct nb_estimate e = nb_estimate(cells, which, n, effort);
    return nb_estimate_total_s(&e, effort);
}

/* ---- shards and budgets ---- */

/* ---- shards ---- */

struct load {
    double s;
    size_t whole;
};

static int longest_first(const void *a, const void *b) {
    const struct load *p = a, *q = b;
    if (p->s != q->s) return p->s < q->s ? 1 : -1;
    return (p->whole > q->whole) - (p->whole < q->whole);
}

void nb_shard_choose(const struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                     int shard, int n_shards, bool *mine) {
    struct load *loads = nb_alloc(wholes->n, sizeof *loads);
    double *taken = nb_alloc((size_t)n_shards, sizeof *taken);
    for (size_t i = 0; i < wholes->n; i++)
        loads[i] = (struct load){nb_estimate_s(cells, wholes->items[i].cells, wholes->items[i].n, effort), i};
    if (wholes->n > 1) qsort(loads, wholes->n, sizeof *loads, longest_first);
    for (size_t i = 0; i < wholes->n; i++) {
        int least = 0;
        for (int s = 1; s < n_shards; s++)
            if (taken[s] < taken[least]) least = s;
        taken[least] += loads[i].s;
        mine[loads[i].whole] = least == shard - 1;
    }
    free(loads);
    free(taken);
}

/* ---- budget ---- */

void nb_thin(size_t n, size_t keep, size_t *which) {
    for (size_t i = 0; i < keep; i++) which[i] = (size_t)((unsigned __int128)i * n / keep);
}

/* Deals `total` of all cells out to the wholes in proportion to their sizes, the roundings carried on from one to the next. */
static void deal(const struct nb_wholes *wholes, size_t n_cells, size_t total, size_t *keep) {
    size_t before = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        size_t upto = before + wholes->items[i].n;
        keep[i] = (size_t)((unsigned __int128)upto * total / n_cells - (unsigned __int128)before * total / n_cells);
        before = upto;
    }
}

static double thinned_s(const struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                        const size_t *keep) {
    double s = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        size_t *which = nb_alloc(keep[i], sizeof *which);
        nb_thin(wholes->items[i].n, keep[i], which);
        for (size_t j = 0; j < keep[i]; j++) which[j] = wholes->items[i].cells[which[j]];
        s += nb_estimate_s(cells, which, keep[i], effort);
        free(which);
    }
    return s;
}

/* Seconds of `stay` of the wholes, evenly spaced; keep says which. */
static double keep_wholes(const struct nb_wholes *wholes, const double *seconds, size_t stay, size_t *keep) {
    size_t *which = nb_alloc(stay, sizeof *which);
    double s = 0;
    nb_thin(wholes->n, stay, which);
    for (size_t i = 0; i < wholes->n; i++) keep[i] = 0;
    for (size_t i = 0; i < stay; i++) {
        keep[which[i]] = wholes->items[which[i]].n;
        s += seconds[which[i]];
    }
    free(which);
    return s;
}

void nb_budget_thin_wholes(const struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                           double budget_s, size_t *keep, double *least_s) {
    double *seconds = nb_alloc(wholes->n, sizeof *seconds);
    size_t stay = wholes->n;
    *least_s = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        seconds[i] = nb_estimate_s(cells, wholes->items[i].cells, wholes->items[i].n, effort);
        if (seconds[i] > 0 && (*least_s <= 0 || seconds[i] < *least_s)) *least_s = seconds[i];
    }
    /* What even spacing takes does not grow with every one more: the most that fit are looked for from above. */
    while (stay > 0 && keep_wholes(wholes, seconds, stay, keep) > budget_s) stay--;
    keep_wholes(wholes, seconds, stay, keep);
    free(seconds);
}

void nb_budget_thin(const struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                    double budget_s, size_t *keep, double *least_s) {
    size_t n_cells = 0;
    for (size_t i = 0; i < wholes->n; i++) n_cells += wholes->items[i].n;
    *least_s = 0;
    if (n_cells == 0) return;
    size_t fits = 0, too_many = n_cells + 1;
    while (too_many - fits > 1) {
        size_t middle = fits + (too_many - fits) / 2;
        deal(wholes, n_cells, middle, keep);
        double s = thinned_s(wholes, cells, effort, keep);
        if (middle == 1) *least_s = s;
        if (s <= budget_s)
            fits = middle;
        else
            too_many = middle;
    }
    deal(wholes, n_cells, fits, keep);
}
