// SPDX-License-Identifier: Apache-2.0
/* Grouping and the order inside a group, which decides who stays together when a large group is split. */
#include "src/plan/groups.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
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
