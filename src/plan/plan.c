// SPDX-License-Identifier: Apache-2.0
/* From a config to what the launcher works through. The order of the steps matters: cells are expanded, grouped, hashed and
 * dealt out to shards before this machine has its say, so that all machines agree on which shard has which cell. */
#include "src/plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/text.h"

/* ---- groups ---- */

/* All cells of one backend, pass, dtype, shape, data, seed, parameters, stride, thread count and cache state. Where one of them is to be
 * timed beside no other SIMD width (wide vectors lower the clock of some CPUs for longer than a sample), cells of each width are a whole of
 * their own; those that width alone parts are a family, whose launches stand next to each other in time. */
struct whole {
    size_t *cells; /* indices; after arrange_whole() the reference first */
    size_t n;
    size_t index; /* its number in the whole plan */
    size_t family;
    bool single_width;
};

struct wholes {
    struct whole *items;
    size_t n;
    bool by_op; /* cells of several ops share no group */
};

/* Numbers equal keys alike, in the order of their first cells; the keys must live as long as the map. Returns the number. */
static size_t number_of(struct nb_text_map *known, const char *key, size_t *n) {
    const size_t at = nb_text_map_add(known, key, *n);
    return at == NB_NOWHERE ? (*n)++ : at;
}

/* Of each cell the family, and of each family whether its widths are to be kept apart. */
static void find_families(const struct nb_cells *cells, char **keys, size_t *family, bool *apart) {
    struct nb_text_map known released_by(nb_text_map_release) = {0};
    size_t n = 0;
    for (size_t i = 0; i < cells->n; i++) {
        family[i] = number_of(&known, keys[i], &n);
        apart[family[i]] |= cells->items[i].isolate_width;
    }
}

static int by_family(const void *a, const void *b) {
    const struct whole *p = a, *q = b;
    if (p->family != q->family) return p->family < q->family ? -1 : 1;
    return (p->index > q->index) - (p->index < q->index);
}

static void put_families_together(struct wholes *wholes) {
    if (wholes->n > 1) qsort(wholes->items, wholes->n, sizeof *wholes->items, by_family);
    for (size_t i = 0; i < wholes->n; i++) wholes->items[i].index = i;
}

static char *group_key(const struct nb_case *c, bool by_op) {
    struct nb_strbuf key = {0};
    nb_strbuf_addf(&key, "%u %u %u %s %llu %lld %d %u %s %s %s", c->backend, c->pass, c->dtype, c->shape.text,
                   (unsigned long long)c->seed, (long long)c->pad, c->threads, c->cache, c->params,
                   nb_case_chooses_dy(c) ? c->dy : "", c->data);
    if (by_op) nb_strbuf_addf(&key, " %u %u", c->op, c->mode);
    return key.text;
}

static char *with_width(char *key, const struct nb_case *c) {
    char *text = nb_textf("%s %s", key, nb_width_names[c->width]);
    free(key);
    return text;
}

/* Wholes that are zero but for by_op, in the order of their first cells, families together. */
static void make_wholes(struct wholes *wholes, const struct nb_cells *cells) {
    struct nb_text_map known released_by(nb_text_map_release) = {0};
    char **keys freed = nb_alloc(cells->n, sizeof *keys);
    size_t *family freed = nb_alloc(cells->n, sizeof *family);
    bool *apart freed = nb_alloc(cells->n, sizeof *apart);
    wholes->items = nb_alloc(cells->n, sizeof *wholes->items);
    for (size_t i = 0; i < cells->n; i++) keys[i] = group_key(&cells->items[i].c, wholes->by_op);
    find_families(cells, keys, family, apart);
    for (size_t i = 0; i < cells->n; i++) {
        const bool single_width = apart[family[i]];
        if (single_width) keys[i] = with_width(keys[i], &cells->items[i].c);
        struct whole *whole = &wholes->items[number_of(&known, keys[i], &wholes->n)];
        if (whole->n == 0)
            *whole = (struct whole){.index = wholes->n - 1, .family = family[i], .single_width = single_width};
        *NB_PUSH(whole->cells, whole->n) = i;
    }
    put_families_together(wholes);
    for (size_t i = 0; i < cells->n; i++) free(keys[i]);
}

static void release_wholes(struct wholes *wholes) {
    for (size_t i = 0; i < wholes->n; i++) free(wholes->items[i].cells);
    free(wholes->items);
    *wholes = (struct wholes){0};
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

static void sort_whole(struct whole *whole, const struct nb_cells *cells,
                       struct ranked (*rank)(const struct nb_cells *cells, size_t cell)) {
    struct ranked *ranked freed = nb_alloc(whole->n, sizeof *ranked);
    for (size_t i = 0; i < whole->n; i++) ranked[i] = rank(cells, whole->cells[i]);
    if (whole->n > 1) qsort(ranked, whole->n, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < whole->n; i++) whole->cells[i] = ranked[i].cell;
}

/* May others be compared with it where nobody said with which? */
static bool is_plain_layernorm(const struct nb_case *c) {
    return c->op == NB_OP_LAYERNORM && c->style == NB_FUSED && c->stats_dtype == NB_STATS_F32;
}

/* By how many cells have this width, and among as many by the width. Native is whatever a kernel takes it for. */
static size_t rank_of_width(const struct whole *whole, const struct nb_cells *cells, enum nb_width width) {
    size_t n = 0;
    for (size_t i = 0; i < whole->n && width != NB_NATIVE; i++) n += cells->items[whole->cells[i]].c.width == width;
    return n * NB_N_WIDTHS + width;
}

static size_t choose_reference(const struct whole *whole, const struct nb_cells *cells, const char *glob) {
    const struct nb_filters filter = {.texts = &glob, .n = 1};
    size_t best = 0, best_rank = 0;
    for (size_t i = 0; i < whole->n; i++) {
        const struct nb_cell *cell = &cells->items[whole->cells[i]];
        if (glob && nb_filters_match(&filter, cell->key)) return i;
        const size_t rank = is_plain_layernorm(&cell->c) ? 1 + rank_of_width(whole, cells, cell->c.width) : 0;
        if (rank > best_rank) best = i, best_rank = rank;
    }
    return best;
}

/* Comparable cells side by side (style, statistics, width, formula, then op), the reference first: the first that the glob
 * matches, else a fused LayerNorm, else the first. Its width is the one that most cases have: some CPUs run 512 bits at a lower clock, so that
 * a ratio across widths changes with the clock that the host leaves us, by 7% on an Emerald Rapids. */
static void arrange_whole(struct whole *whole, const struct nb_cells *cells, const char *reference) {
    if (whole->n == 0) return;
    sort_whole(whole, cells, rank_cell);
    size_t at = choose_reference(whole, cells, reference), cell = whole->cells[at];
    memmove(whole->cells + 1, whole->cells, at * sizeof *whole->cells);
    whole->cells[0] = cell;
}

/* ---- batches ---- */

/* So many cases are worth starting a process for; more, or larger ones, would be lost together when a run is cut off. */
static const size_t batch_cases = 256;
static const double batch_elements = 16e6;
/* Of so few a shard would have none, or a third more than another. */
static const size_t batches_a_shard = 4;

/* What the exact result depends on first: neighbours share an oracle. */
static struct ranked rank_mathematics(const struct nb_cells *cells, size_t cell) {
    const struct nb_case *c = &cells->items[cell].c;
    const struct nb_formula *f = &c->formula;
    return (struct ranked){{c->op, c->mode, (double)c->k, c->alpha, c->eps, f->eps_place, f->affine, f->weight_offset,
                            f->param, f->round_sum, c->momentum, f->root, c->variance, c->width},
                           cell};
}

/* Ranks of what place_cells() sorts. */
enum { KERNEL, PLACE };

/* All cells, those with equal inputs and the same mathematics side by side; by_kernel: of one kernel and dtype after the other. Owned. */
static struct ranked *place_cells(struct wholes *wholes, const struct nb_cells *cells, bool by_kernel) {
    struct ranked *order = nb_alloc(cells->n, sizeof *order);
    struct nb_text_map known released_by(nb_text_map_release) = {0};
    size_t n = 0, n_kernels = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        sort_whole(&wholes->items[i], cells, rank_mathematics);
        for (size_t j = 0; j < wholes->items[i].n; j++, n++) {
            order[n] = (struct ranked){{[PLACE] = (double)n}, wholes->items[i].cells[j]};
            const struct nb_entry *entry = cells->items[order[n].cell].entry;
            if (by_kernel)
                order[n].ranks[KERNEL] =
                    (double)(number_of(&known, entry->kernel_id, &n_kernels) * NB_N_DTYPES + entry->kernel->dtype);
        }
    }
    if (by_kernel && n > 1) qsort(order, n, sizeof *order, compare_ranked);
    return order;
}

/* For cells that are only checked, so that nothing has to stay together: groups of many cells. Where there are shards, so many that each
 * has some; by_kernel: the groups of a kernel go to one of them. */
static void batch_wholes(struct wholes *wholes, const struct nb_cells *cells, const struct nb_plan_options *options) {
    struct wholes batches = {.items = nb_alloc(cells->n, sizeof *batches.items)};
    struct ranked *order freed = place_cells(wholes, cells, options->by_kernel);
    struct whole *open = NULL;
    double elements = 0;
    size_t most = batch_cases;
    if (options->n_shards > 1 && cells->n / batches_a_shard / (size_t)options->n_shards < most)
        most = 1 + cells->n / batches_a_shard / (size_t)options->n_shards;
    for (size_t i = 0; i < cells->n; i++) {
        const struct nb_shape *shape = &cells->items[order[i].cell].c.shape;
        const double own = (double)shape->rows * (double)shape->cols;
        const size_t kernel = (size_t)order[i].ranks[KERNEL];
        if (!open || kernel != (size_t)order[i - 1].ranks[KERNEL] || open->n == most ||
            elements + own > batch_elements) {
            open = &batches.items[batches.n];
            open->family = options->by_kernel ? kernel : batches.n;
            open->index = batches.n++;
            elements = 0;
        }
        *NB_PUSH(open->cells, open->n) = order[i].cell;
        elements += own;
    }
    release_wholes(wholes);
    *wholes = batches;
}

/* ---- shards: which groups, and how many cells of each, by the plan alone and never by chance ---- */

static double estimate_s(const struct nb_cells *cells, const size_t *which, size_t n, const struct nb_effort *effort) {
    double step_s[NB_N_STAGES];
    nb_estimate(step_s, cells, which, n, effort);
    return nb_estimate_total_s(step_s, effort);
}

/* ---- budget ---- */

/* What stays when keep of n do, evenly spaced, the first among them: writes keep indices. */
static void thin(size_t n, size_t keep, size_t *which) {
    for (size_t i = 0; i < keep; i++) which[i] = (size_t)((unsigned __int128)i * n / keep);
}

/* Does the user have it measured by name, as a kernel of a plugin or of a peer? */
static bool is_named(const struct nb_cells *cells, size_t cell) { return cells->items[cell].entry->plugin != NULL; }

static size_t count_named(const struct whole *whole, const struct nb_cells *cells) {
    size_t n = 0;
    for (size_t j = 0; j < whole->n; j++) n += is_named(cells, whole->cells[j]);
    return n;
}

/* The same of a whole's cells, in their order: those named stay longest, then the first, with which they are compared. */
static void thin_cells(const struct whole *whole, const struct nb_cells *cells, size_t keep, size_t *which) {
    size_t *members freed = nb_alloc(whole->n, sizeof *members), *stay freed = nb_alloc(keep, sizeof *stay), next = 0;
    bool *stays freed = nb_alloc(whole->n, sizeof *stays);
    const size_t n_named = count_named(whole, cells),
                 first = keep > 1 && n_named > 0 && !is_named(cells, whole->cells[0]),
                 named = n_named < keep - first ? n_named : keep - first, of[3] = {named, first, keep - named - first};
    for (size_t kind = 0; kind < 3; kind++) {
        size_t n = 0;
        for (size_t j = 0; j < whole->n; j++)
            if ((is_named(cells, whole->cells[j]) ? 0 : first && j == 0 ? 1 : 2) == kind) members[n++] = j;
        thin(n, of[kind], stay);
        for (size_t i = 0; i < of[kind]; i++) stays[members[stay[i]]] = true;
    }
    for (size_t j = 0; j < whole->n; j++)
        if (stays[j]) which[next++] = j;
}

/* Deals `total` of all cells out to the wholes in proportion to their sizes, the roundings carried on from one to the next. */
static void deal(const struct wholes *wholes, size_t n_cells, size_t total, size_t *keep) {
    size_t before = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        size_t upto = before + wholes->items[i].n;
        keep[i] = (size_t)((unsigned __int128)upto * total / n_cells - (unsigned __int128)before * total / n_cells);
        before = upto;
    }
}

static double thinned_s(const struct wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                        const size_t *keep) {
    double s = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        size_t *which freed = nb_alloc(keep[i], sizeof *which);
        thin_cells(&wholes->items[i], cells, keep[i], which);
        for (size_t j = 0; j < keep[i]; j++) which[j] = wholes->items[i].cells[which[j]];
        s += estimate_s(cells, which, keep[i], effort);
    }
    return s;
}

/* Some of the wholes of a plan. */
struct choice {
    size_t *which, n;
};

/* Seconds of `stay` of them, evenly spaced; keep says which. */
static double keep_wholes(const struct wholes *wholes, const struct choice *of, const double *seconds, size_t stay,
                          size_t *keep) {
    size_t *which freed = nb_alloc(stay, sizeof *which);
    double s = 0;
    thin(of->n, stay, which);
    for (size_t i = 0; i < of->n; i++) keep[of->which[i]] = 0;
    for (size_t i = 0; i < stay; i++) {
        const size_t whole = of->which[which[i]];
        keep[whole] = wholes->items[whole].n;
        s += seconds[whole];
    }
    return s;
}
/* The most of them that fit; returns their seconds. What even spacing takes does not grow with every one more: looked for from above. */
static double keep_most(const struct wholes *wholes, const struct choice *of, const double *seconds, double budget_s,
                        size_t *keep) {
    size_t stay = of->n;
    double s;
    while ((s = keep_wholes(wholes, of, seconds, stay, keep)) > budget_s && stay > 0) stay--;
    return s;
}

/* Of whole groups: evenly over the plan, first of those that take more than the mean, since a few of them take as long as many others. */
static void choose_wholes(const struct wholes *wholes, const double *seconds, double budget_s, size_t *keep) {
    struct choice dear = {nb_alloc(wholes->n, sizeof *dear.which), 0},
                  cheap = {nb_alloc(wholes->n, sizeof *cheap.which), 0};
    double all_s = 0;
    for (size_t i = 0; i < wholes->n; i++) all_s += seconds[i];
    for (size_t i = 0; i < wholes->n; i++) {
        struct choice *const kind = seconds[i] > all_s / (double)wholes->n ? &dear : &cheap;
        kind->which[kind->n++] = i;
    }
    const double cheap_s = keep_most(wholes, &cheap, seconds, budget_s, keep);
    keep_most(wholes, &dear, seconds, budget_s - cheap_s, keep);
    nb_free_all(dear.which, cheap.which);
}

/* The same by whole groups: keep[i] is all of whole i or nothing. *least_s: the cheapest group. */
static void thin_wholes_for_budget(const struct wholes *wholes, const struct nb_cells *cells,
                                   const struct nb_effort *effort, double budget_s, size_t *keep, double *least_s) {
    double *seconds freed = nb_alloc(wholes->n, sizeof *seconds);
    *least_s = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        seconds[i] = estimate_s(cells, wholes->items[i].cells, wholes->items[i].n, effort);
        if (seconds[i] > 0 && (*least_s <= 0 || seconds[i] < *least_s)) *least_s = seconds[i];
    }
    choose_wholes(wholes, seconds, budget_s, keep);
}

/* How many cells of each whole to keep, so that all of it takes no more than budget_s: thinned evenly over the plan. All 0 when
 * not even one cell fits; *least_s is what that one would take. */
static void thin_for_budget(const struct wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
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

/* The same, of wholes with named cells first: those are thinned only where they alone take too long, and then nothing else is left. */
static void thin_others_for_budget(const struct wholes *wholes, const struct nb_cells *cells,
                                   const struct nb_effort *effort, double budget_s, size_t *keep, double *least_s) {
    size_t *places freed = nb_alloc(wholes->n, sizeof *places), *own freed = nb_alloc(wholes->n, sizeof *own);
    struct wholes some = {.items = nb_alloc(wholes->n, sizeof *some.items)};
    double left_s = budget_s, one_s;
    for (int others = 0; others < 2; others++) {
        bool is_whole = true;
        some.n = 0;
        for (size_t i = 0; i < wholes->n; i++) {
            if ((count_named(&wholes->items[i], cells) == 0) != others) continue;
            places[some.n] = i;
            some.items[some.n++] = wholes->items[i];
        }
        memset(own, 0, wholes->n * sizeof *own);
        thin_for_budget(&some, cells, effort, left_s, own, &one_s);
        if (some.n > 0 && !(others && *least_s > 0)) *least_s = one_s;
        left_s -= thinned_s(&some, cells, effort, own);
        for (size_t i = 0; i < some.n; i++) {
            keep[places[i]] = own[i];
            is_whole &= own[i] == some.items[i].n;
        }
        if (!is_whole) left_s = 0;
    }
    free(some.items);
}

/* ---- hash ---- */

static uint64_t hash_line(uint64_t h, const char *text) { return nb_hash(nb_hash(h, text, strlen(text)), "\n", 1); }

static void hash_plan(struct nb_plan *plan, const struct nb_cells *cells, const struct wholes *wholes,
                      const struct nb_config *config) {
    struct nb_strbuf head released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(&head, "%d %d %.17g %llu %s", plan->launches, plan->blocks, plan->sample_ms,
                   (unsigned long long)plan->order_seed, config->reference ? config->reference : "");
    if (nb_plan_is_adaptive(plan)) nb_strbuf_addf(&head, " %d %.17g", plan->most_launches, plan->aim);
    uint64_t h = hash_line(NB_HASH_EMPTY, head.text);
    for (size_t i = 0; i < wholes->n; i++) {
        for (size_t j = 0; j < wholes->items[i].n; j++) h = hash_line(h, cells->items[wholes->items[i].cells[j]].key);
        h = hash_line(h, "");
    }
    snprintf(plan->hash, sizeof plan->hash, "%016llx", (unsigned long long)h);
}

/* ---- what is left of the groups ---- */

/* Keeps the groups that are this shard's (1-based), the same on every machine. Families, which stand together, stay so. */
static void keep_shard(struct wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                       const struct nb_plan_options *options, struct nb_skips *skips) {
    double *seconds freed = nb_alloc(wholes->n, sizeof *seconds); /* of a family */
    int *shard_of freed = nb_alloc(wholes->n, sizeof *shard_of);
    size_t *family freed = nb_alloc(wholes->n, sizeof *family);
    struct nb_effort anywhere = *effort;
    size_t n_families = 0, n = 0;
    anywhere.anywhere = true;
    for (size_t i = 0; i < wholes->n; i++) {
        n_families += i == 0 || wholes->items[i].family != wholes->items[i - 1].family;
        family[i] = n_families - 1;
        seconds[family[i]] += estimate_s(cells, wholes->items[i].cells, wholes->items[i].n, &anywhere);
    }
    nb_shards_deal(seconds, n_families, options->n_shards, shard_of);
    for (size_t i = 0; i < wholes->n; i++) {
        if (shard_of[family[i]] == options->shard) {
            wholes->items[n++] = wholes->items[i];
            continue;
        }
        nb_skips_count(skips, wholes->items[i].n, "in another shard than %d/%d", options->shard, options->n_shards);
        free(wholes->items[i].cells);
    }
    wholes->n = n;
}

/* Takes away the cells that this machine refuses; each has a record that says why. */
static void drop_refused(struct nb_plan *plan, struct wholes *wholes, const struct nb_cells *cells) {
    for (size_t i = 0; i < wholes->n; i++) {
        struct whole *whole = &wholes->items[i];
        size_t n = 0;
        for (size_t j = 0; j < whole->n; j++) {
            const struct nb_cell *cell = &cells->items[whole->cells[j]];
            if (cell->refused) {
                nb_skips_case(&plan->skips, cell->key, cell->refused);
                plan->n_runnable_elsewhere++;
            } else {
                whole->cells[n++] = whole->cells[j];
            }
        }
        whole->n = n;
    }
}

static void thin_whole(struct whole *whole, size_t keep, const struct nb_cells *cells, const char *reason,
                       struct nb_skips *skips) {
    size_t *which freed = nb_alloc(keep, sizeof *which), next = 0;
    thin_cells(whole, cells, keep, which);
    for (size_t j = 0; j < whole->n; j++) {
        if (next < keep && which[next] == j)
            whole->cells[next++] = whole->cells[j];
        else
            nb_skips_case(skips, cells->items[whole->cells[j]].key, reason);
    }
    whole->n = keep;
}

/* Counts in plan what it drops. -1 after nb_error: none is left, or none of those named. */
static int keep_budget(struct nb_plan *plan, struct wholes *wholes, const struct nb_cells *cells,
                       const struct nb_effort *effort) {
    const bool by_whole = wholes->by_op;
    char budget[80], reason[128];
    double least_s = 0;
    size_t *keep freed = nb_alloc(wholes->n, sizeof *keep);
    size_t before = 0, after = 0, named_before = 0, named_after = 0;
    (by_whole ? thin_wholes_for_budget : thin_others_for_budget)(wholes, cells, effort, plan->budget_s - plan->kept_s,
                                                                 keep, &least_s);
    const int n = snprintf(budget, sizeof budget, "%g s", plan->budget_s);
    if (plan->kept_s > 0)
        snprintf(budget + n, sizeof budget - (size_t)n, " (%g s of it kept for what follows)", plan->kept_s);
    snprintf(reason, sizeof reason, "over the budget of %s", budget);
    for (size_t i = 0; i < wholes->n; i++) {
        before += wholes->items[i].n;
        named_before += count_named(&wholes->items[i], cells);
        thin_whole(&wholes->items[i], keep[i], cells, reason, &plan->skips);
        after += keep[i];
        named_after += count_named(&wholes->items[i], cells);
    }
    plan->n_over_budget = before - after;
    if ((before == 0 || after > 0) && (named_before == 0 || named_after > 0)) return 0;
    return nb_error(
        "a budget of %s: a single %s%s takes about %.2g s with %d launches of %d blocks; launches are never dropped",
        budget, by_whole ? "comparison" : "case", named_before > 0 && !by_whole ? " of a plugin's kernel" : "", least_s,
        effort->launches, effort->blocks);
}

/* ---- the plan's own form ---- */

/* The cell's labels go with it. */
static size_t add_case(struct nb_plan *plan, struct nb_cell *cell) {
    plan->cases[plan->n_cases] = cell->c;
    plan->keys[plan->n_cases] = nb_strdup(cell->key);
    plan->case_labels[plan->n_cases] = cell->labels;
    cell->labels = (struct nb_label_set){0};
    return plan->n_cases++;
}

/* Parts of equal size, within one: each its own cases, behind the reference where that is not among them. */
static void add_whole(struct nb_plan *plan, const struct whole *whole, struct nb_cells *cells,
                      const struct nb_effort *effort) {
    const size_t n_parts = nb_count_parts(whole->n, effort);
    size_t *cases freed = nb_alloc(whole->n, sizeof *cases);
    for (size_t i = 0; i < whole->n; i++) cases[i] = add_case(plan, &cells->items[whole->cells[i]]);
    for (size_t part = 0; part < n_parts; part++) {
        size_t from = part * whole->n / n_parts, to = (part + 1) * whole->n / n_parts;
        struct nb_group *group = &plan->groups[plan->n_groups++];
        *group = (struct nb_group){.cases = nb_alloc(to - from + 1, sizeof *group->cases),
                                   .index = whole->index,
                                   .family = whole->family,
                                   .single_width = whole->single_width,
                                   .untimed = !nb_case_is_timed(&plan->cases[cases[0]]),
                                   .part = (int)part};
        if (from > 0) group->cases[group->n++] = cases[0];
        for (size_t i = from; i < to; i++) group->cases[group->n++] = cases[i];
        group->blocks = nb_estimate(group->step_s, cells, whole->cells + from, to - from, effort);
        group->estimate_s = nb_estimate_total_s(group->step_s, effort);
        plan->estimate_s += group->estimate_s;
    }
}

/* ---- what answers first ---- */

/* Cases of LayerNorm and of RMSNorm in groups [from, to), forward; 0: of one of them alone. */
static size_t count_compared(const struct nb_plan *plan, size_t from, size_t to) {
    size_t n_layernorm = 0, n_rmsnorm = 0;
    for (size_t g = from; g < to; g++)
        for (size_t i = 0; i < plan->groups[g].n; i++) {
            const struct nb_case *c = &plan->cases[plan->groups[g].cases[i]];
            n_layernorm += c->pass == NB_FORWARD && c->op == NB_OP_LAYERNORM;
            n_rmsnorm += c->pass == NB_FORWARD && c->op == NB_OP_RMSNORM;
        }
    return n_layernorm && n_rmsnorm ? n_layernorm + n_rmsnorm : 0;
}

/* The family with most of them in f32 answers, of those in a cache and of those from memory. */
static void set_worth(struct nb_plan *plan) {
    size_t most[2] = {0}, answers[2] = {SIZE_MAX, SIZE_MAX};
    for (size_t from = 0, to; from < plan->n_groups; from = to) {
        const struct nb_case *c = &plan->cases[plan->groups[from].cases[0]];
        const int cold = c->cache == NB_COLD;
        for (to = from; to < plan->n_groups && plan->groups[to].family == plan->groups[from].family;) to++;
        const size_t n = count_compared(plan, from, to);
        for (size_t g = from; g < to; g++) plan->groups[g].worth = n > 0 ? NB_WORTH_COMPARES : NB_WORTH_LITTLE;
        if (c->dtype != NB_F32 || n <= most[cold]) continue;
        most[cold] = n;
        answers[cold] = plan->groups[from].family;
    }
    for (size_t g = 0; g < plan->n_groups; g++)
        if (plan->groups[g].family == answers[0] || plan->groups[g].family == answers[1])
            plan->groups[g].worth = NB_WORTH_ANSWERS;
}

static void fill(struct nb_plan *plan, const struct wholes *wholes, struct nb_cells *cells,
                 const struct nb_effort *effort) {
    size_t n_cases = 0, n_groups = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        n_cases += wholes->items[i].n;
        n_groups += nb_count_parts(wholes->items[i].n, effort);
    }
    plan->cases = nb_alloc(n_cases, sizeof *plan->cases);
    plan->keys = nb_alloc(n_cases, sizeof *plan->keys);
    plan->case_labels = nb_alloc(n_cases, sizeof *plan->case_labels);
    plan->groups = nb_alloc(n_groups, sizeof *plan->groups);
    for (size_t i = 0; i < wholes->n; i++) add_whole(plan, &wholes->items[i], cells, effort);
}

static void copy_compare_settings(struct nb_compare_settings *to, const struct nb_compare_settings *from) {
    *to = (struct nb_compare_settings){.confirm_launches = from->confirm_launches, .behind = from->behind};
    for (size_t i = 0; i < from->ours.n; i++) nb_strings_add(&to->ours, from->ours.items[i]);
}

/* A share of the budget: that is some ten comparisons of `peers`. */
static double kept_for_confirmations(const struct nb_config *config) {
    return config->compare.ours.n > 0 && config->compare.confirm_launches > 0 ? 0.1 : 0;
}

int nb_plan_make(struct nb_plan *plan, const struct nb_config *config, const struct nb_plan_options *options) {
    const struct nb_filters filters = {options->filters, options->n_filters};
    const struct nb_effort effort = {
        .launches = config->launches, .blocks = config->blocks_per_launch, .sample_ms = config->sample_ms};
    struct nb_cells cells released_by(nb_cells_release) = {0};
    struct wholes wholes released_by(release_wholes) = {.by_op = config->compare.ours.n > 0};
    const double budget_s = options->budget_s > 0 ? options->budget_s : config->budget_s;
    *plan = (struct nb_plan){.launches = config->launches,
                             .most_launches =
                                 config->most_launches > config->launches ? config->most_launches : config->launches,
                             .aim = config->aim_percent / 100,
                             .budget_s = budget_s > 0 ? budget_s : (double)INFINITY,
                             .kept_s = (kept_for_confirmations(config) + options->kept_share) * budget_s,
                             .blocks = config->blocks_per_launch,
                             .sample_ms = config->sample_ms,
                             .order_seed = config->order_seed,
                             .is_shard = options->n_shards > 0};
    copy_compare_settings(&plan->compare, &config->compare);
    if (nb_cells_expand(&cells, config, &filters, &plan->skips) != 0) return -1;
    make_wholes(&wholes, &cells);
    hash_plan(plan, &cells, &wholes, config); /* before batches, whose size depends on the number of shards */
    if (config->launches == 0) batch_wholes(&wholes, &cells, options);
    if (options->n_shards > 0) keep_shard(&wholes, &cells, &effort, options, &plan->skips);
    drop_refused(plan, &wholes, &cells);
    for (size_t i = 0; i < wholes.n && config->launches > 0; i++)
        arrange_whole(&wholes.items[i], &cells, config->reference);
    if (budget_s > 0 && keep_budget(plan, &wholes, &cells, &effort) != 0) return -1;
    fill(plan, &wholes, &cells, &effort);
    set_worth(plan);
    nb_skips_sort(&plan->skips);
    plan->labels = cells.labels;
    cells.labels = (struct nb_labels){0};
    return 0;
}

void nb_plan_release(struct nb_plan *plan) {
    for (size_t i = 0; i < plan->n_cases; i++) free(plan->keys[i]);
    for (size_t i = 0; plan->case_labels && i < plan->n_cases; i++) free(plan->case_labels[i].at);
    nb_labels_release(&plan->labels);
    nb_compare_settings_release(&plan->compare);
    for (size_t i = 0; i < plan->n_groups; i++) free(plan->groups[i].cases);
    nb_skips_release(&plan->skips);
    nb_free_all(plan->cases, plan->keys, plan->case_labels, plan->groups);
    *plan = (struct nb_plan){0};
}
