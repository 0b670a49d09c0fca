// SPDX-License-Identifier: Apache-2.0
/* The two sums of the fast BatchNorm kernels, by planes and by columns. */
#pragma once

#include <string.h>

#include "kernels/batchnorm/slab.h"
#include "kernels/shared/pack.h"

/* Two sums in one pass: forward those of d = x - about and of d^2, backward those of g and of g * d.
 *
 * Planes: four vectors of accumulators, which every PLANE_STEPS iterations are added to a sum of twice the precision. So a channel's
 * chain of roundings is bounded whatever its length. Columns: further down. */
#define PLANE_ITERATION (2 * PAIR)
#define PLANE_STEPS 64
#define PLANE_AHEAD_BYTES 2048 /* in planes: what is summed while memory answers */

/* Of one vector of elements. */
struct slab_sums {
    vec sum, product;
};
struct slab_totals {
    double sum, product;
};

NB_INLINE void sums_step(struct slab_sums *a, vec d, vec factor) {
    a->sum = a->sum + factor;
    a->product = vec_fma(factor, d, a->product);
}

/* An element of g serves both sums: one load, not an operand of two instructions. bf16 is split into registers anyway. */
NB_INLINE struct pair pair_once(struct pair v) {
    if (!PAIR_IN_ORDER) return v;
    return (struct pair){vec_once(v.a), vec_once(v.b)};
}
NB_INLINE struct pair lanes_load(const elem *p, int64_t n) { return n == PAIR ? pair_load(p) : pair_load_tail(p, n); }
NB_INLINE struct pair floats_lanes_load(const float *p, int64_t n) {
    return n == PAIR ? pair_load_f32(p) : pair_load_f32_tail(p, n);
}

/* ---- planes -------------------------------------------------------------------------------------------------------------- */

/* A sum of vectors, high + low; low collects what the additions to high round off. */
struct long_sums {
    struct slab_sums high, low;
};

/* high + v exactly = the new high + what is added to low (Knuth 1969, two-sum). */
NB_INLINE void long_add(vec *high, vec *low, vec v) {
    const vec sum = *high + v, back = sum - *high;
    *low = *low + ((*high - (sum - back)) + (v - back));
    *high = sum;
}
NB_INLINE void flush(struct long_sums *total, struct slab_sums *acc) {
    long_add(&total->high.sum, &total->low.sum, (acc[0].sum + acc[1].sum) + (acc[2].sum + acc[3].sum));
    long_add(&total->high.product, &total->low.product,
             (acc[0].product + acc[1].product) + (acc[2].product + acc[3].product));
    NB_UNROLL
    for (int a = 0; a < 4; a++) acc[a] = (struct slab_sums){vec_set1(0.0f), vec_set1(0.0f)};
}
static inline double lanes_total(vec high, vec low) {
    float h[NB_LANES], l[NB_LANES];
    double total = 0;
    vec_store_f32(h, high);
    vec_store_f32(l, low);
    NB_UNROLL
    for (int i = 0; i < NB_LANES; i++) total += (double)h[i] + (double)l[i];
    return total;
}

NB_INLINE void pair_step(struct slab_sums *acc, struct pair x, struct pair g, vec about, const bool backward) {
    const struct pair d = {x.a - about, x.b - about}, factor = backward ? pair_once(g) : d;
    sums_step(&acc[0], d.a, factor.a);
    sums_step(&acc[1], d.b, factor.b);
}
NB_INLINE void prefetch_elements(const elem *p, int64_t n) {
    NB_UNROLL
    for (int64_t line = 0; line < n * (int64_t)sizeof(elem); line += 64)
        __builtin_prefetch((const char *)p + line, 0, 2);
}
/* What an iteration reads of the next plane: planes of a channel lie too far apart for a hardware prefetcher to find the next. */
NB_INLINE void prefetch_iteration(const elem *next) { prefetch_elements(next, PLANE_ITERATION); }
NB_INLINE void plane_iteration(struct slab_sums *acc, const elem *x, const elem *g, vec about, const bool backward) {
    const struct pair none = {about, about};
    pair_step(acc, pair_load(x), backward ? pair_load(g) : none, about, backward);
    pair_step(acc + 2, pair_load(x + PAIR), backward ? pair_load(g + PAIR) : none, about, backward);
}
/* Elements [i, end) of a plane; next: elements from x and g to the plane to prefetch, 0 where none is. */
NB_INLINE void plane_piece(struct slab_sums *acc, const elem *x, const elem *g, int64_t i, int64_t end, int64_t next_x,
                           int64_t next_g, vec about, const bool backward) {
    const struct pair none = {about, about};
    if (next_x != 0)
        for (; i + PLANE_ITERATION <= end; i += PLANE_ITERATION) {
            prefetch_iteration(x + i + next_x);
            if (backward) prefetch_iteration(g + i + next_g);
            plane_iteration(acc, x + i, g + i, about, backward);
        }
    for (; i + PLANE_ITERATION <= end; i += PLANE_ITERATION) plane_iteration(acc, x + i, g + i, about, backward);
    if (i + PAIR <= end) {
        pair_step(acc, pair_load(x + i), backward ? pair_load(g + i) : none, about, backward);
        i += PAIR;
    }
    if (i < end) { /* absent lanes of d are 0 */
        const int64_t n = end - i;
        const struct pair v = pair_load_tail(x + i, n), d = pair_keep((struct pair){v.a - about, v.b - about}, n);
        const struct pair factor = backward ? pair_load_tail(g + i, n) : d;
        sums_step(&acc[2], d.a, factor.a);
        sums_step(&acc[3], d.b, factor.b);
    }
}

/* p: the pages from the channel's first plane on. */
NB_INLINE struct slab_totals span_totals(const struct pages *p, int64_t plane_step, const struct span *s, float about,
                                         const bool backward) {
    const vec zero = vec_set1(0.0f), shift = vec_set1(about);
    struct slab_sums acc[4] = {{zero, zero}, {zero, zero}, {zero, zero}, {zero, zero}};
    struct long_sums total = {{zero, zero}, {zero, zero}};
    const int64_t ahead = p->prefetch ? PLANE_AHEAD_BYTES / ((s->end - s->begin) * (int64_t)sizeof(elem)) + 1 : 0;
    int64_t steps = 0;
    for (int64_t plane = s->plane; plane < s->plane + s->n_planes; plane++) {
        const elem *x = p->x + plane * plane_step * p->x_stride;
        const elem *g = backward ? p->g + plane * plane_step * p->g_stride : x;
        const int64_t next = p->prefetch && plane + ahead < s->plane + s->n_planes ? ahead * plane_step : 0;
        for (int64_t i = s->begin, end; i < s->end; i = end) {
            end = s->end - i < PLANE_STEPS * PLANE_ITERATION ? s->end : i + PLANE_STEPS * PLANE_ITERATION;
            plane_piece(acc, x, g, i, end, next * p->x_stride, next * p->g_stride, shift, backward);
            steps += (end - i + PLANE_ITERATION - 1) / PLANE_ITERATION;
            if (steps < PLANE_STEPS) continue;
            flush(&total, acc);
            steps = 0;
        }
    }
    flush(&total, acc);
    return (struct slab_totals){lanes_total(total.high.sum, total.low.sum),
                                lanes_total(total.high.product, total.low.product)};
}

/* Turns between two flushes, the tree over accumulators, the sum of twice the precision and the doubles: one rounding each. */
static inline int64_t slab_planes_chain(const struct nb_call *call) {
    const int64_t plane = (call->hw + PLANE_ITERATION - 1) / PLANE_ITERATION;
    const int64_t piece = plane < PLANE_STEPS ? plane : PLANE_STEPS, all = call->n * (plane + BLOCKS_MAX);
    const int64_t steps = PLANE_STEPS - 1 + piece < all ? PLANE_STEPS - 1 + piece : all;
    return steps + 2 + 2;
}

/* The two sums of slab_sums.h column by column: SUM_GROUP rows in registers, groups in a tile that stays in the first cache,
 * SUM_ROWS rows to the sums of the block. A group is gone through a band of columns at a time, and a band is as wide as the registers
 * allow: rows no longer than one are read in the order in which they lie in memory, which is as fast as memory is read at all. */
#define SUM_ROWS 256
#define SUM_TILE 1024 /* columns, whole pairs: two sums and the numbers they are about take 12 KiB */
#define SUM_GROUP 16
#define STORE_BYTES 4096 /* of each of three tensors, a group at least; longer runs of stores let reads wait */
#define BAND_PAIRS 2
#define BAND_COLUMNS (BAND_PAIRS * PAIR)
#define BAND_CHAINS (NB_LANES == 16 ? 2 : 1) /* rows that are summed apart, where there are registers for it */

/* A band of columns: n_pairs whole pairs, or one of which there are `lanes`. The first two are constants. */
struct band {
    int n_pairs;
    bool backward;
    int64_t lanes;
};
/* Sums of rows 0, BAND_CHAINS, ... and of those between, by pairs and their vectors. */
struct band_sums {
    struct slab_sums of[BAND_CHAINS][BAND_PAIRS][2];
};
/* Where short rows are read a band at a time: the elements to prefetch, in the order of memory; null: none. */
struct ahead {
    const elem *x, *g;
};

NB_INLINE void prefetch_band(struct ahead *next, struct band b) {
    if (!next->x) return;
    prefetch_elements(next->x, b.n_pairs * PAIR);
    next->x += b.n_pairs * PAIR;
    if (!b.backward) return;
    prefetch_elements(next->g, b.n_pairs * PAIR);
    next->g += b.n_pairs * PAIR;
}
NB_INLINE void add_row(struct slab_sums (*acc)[2], const elem *x, const elem *g, const struct pair *about,
                       struct band b) {
    NB_UNROLL
    for (int i = 0; i < b.n_pairs; i++) {
        const struct pair v = lanes_load(x + i * PAIR, b.lanes), d = {v.a - about[i].a, v.b - about[i].b};
        const struct pair factor = b.backward ? pair_once(lanes_load(g + i * PAIR, b.lanes)) : d;
        sums_step(&acc[i][0], d.a, factor.a);
        sums_step(&acc[i][1], d.b, factor.b);
    }
}
/* n rows from those at x and g on. */
NB_INLINE void add_band_rows(struct band_sums *acc, const struct pages *p, const elem *x, const elem *g, int64_t n,
                             const struct pair *about, struct ahead *next, struct band b) {
    for (; n >= BAND_CHAINS; n -= BAND_CHAINS) NB_UNROLL
    for (int chain = 0; chain < BAND_CHAINS; chain++) {
        prefetch_band(next, b);
        add_row(acc->of[chain], x, g, about, b);
        x += p->x_stride;
        g += p->g_stride;
    }
    if (BAND_CHAINS > 1 && n > 0) add_row(acc->of[0], x, g, about, b);
}
NB_INLINE void add_to_vector(float *to, vec first, vec second) {
    if (BAND_CHAINS > 1) first = first + second;
    vec_store_f32(to, vec_load_f32(to) + first);
}
/* A band from column i on, n rows from `row` on. The sums are whole pairs, in the order of struct pair. */
NB_INLINE void add_band(const struct pages *p, int64_t row, int64_t n, int64_t i, const float *about, float *sums,
                        float *products, struct ahead *next, struct band b) {
    const struct slab_sums none = {vec_set1(0.0f), vec_set1(0.0f)};
    const elem *x = p->x + row * p->x_stride + i, *g = b.backward ? p->g + row * p->g_stride + i : x;
    struct pair shift[BAND_PAIRS];
    struct band_sums acc;
    NB_UNROLL
    for (int j = 0; j < b.n_pairs; j++) {
        shift[j] = floats_lanes_load(about + i + j * PAIR, b.lanes);
        NB_UNROLL
        for (int chain = 0; chain < BAND_CHAINS; chain++) acc.of[chain][j][0] = acc.of[chain][j][1] = none;
    }
    add_band_rows(&acc, p, x, g, n, shift, next, b);
    NB_UNROLL
    for (int j = 0; j < 2 * b.n_pairs; j++) {
        const struct slab_sums *const first = &acc.of[0][j / 2][j % 2], *const second =
                                                                            &acc.of[BAND_CHAINS - 1][j / 2][j % 2];
        add_to_vector(sums + i + j * NB_LANES, first->sum, second->sum);
        add_to_vector(products + i + j * NB_LANES, first->product, second->product);
    }
}
NB_INLINE void add_row_group(const struct pages *p, int64_t row, int64_t n, int64_t cols, const float *about,
                             float *sums, float *products, const bool backward) {
    struct ahead next = {NULL, NULL};
    int64_t i = 0;
    if (p->prefetch) next.x = p->x + (row + p->prefetch) * p->x_stride;
    if (p->prefetch && backward) next.g = p->g + (row + p->prefetch) * p->g_stride;
    for (; i + BAND_COLUMNS <= cols; i += BAND_COLUMNS)
        add_band(p, row, n, i, about, sums, products, &next, (struct band){BAND_PAIRS, backward, PAIR});
    for (; i + PAIR <= cols; i += PAIR)
        add_band(p, row, n, i, about, sums, products, &next, (struct band){1, backward, PAIR});
    if (i < cols) add_band(p, row, n, i, about, sums, products, &next, (struct band){1, backward, cols - i});
}

/* to[i] += from[i]. */
NB_ONCE void add_array(float *to, const float *from, int64_t n) {
    int64_t i = 0;
    for (; i + NB_LANES <= n; i += NB_LANES) vec_store_f32(to + i, vec_load_f32(to + i) + vec_load_f32(from + i));
    if (i < n) vec_store_f32_tail(to + i, vec_load_f32_tail(to + i, n - i) + vec_load_f32_tail(from + i, n - i), n - i);
}
/* The same, from in the order of struct pair, whole pairs, which is put in the order of columns. */
NB_ONCE void add_pairs(float *to, float *from, int64_t n) {
    for (int64_t i = 0; PACK > 1 && i < n; i += PACK_COLUMNS) pack_scatter(from + i, pack_load_f32(from + i));
    add_array(to, from, n);
}

/* Arrays over columns. */
struct column_arrays {
    const float *about;
    const float *weight; /* null, or what rows are multiplied by and stored while the first cache holds them */
    float *sum, *product;
};
static inline struct column_arrays arrays_at(struct column_arrays a, int64_t col) {
    return (struct column_arrays){a.about + col, a.weight ? a.weight + col : NULL, a.sum + col, a.product + col};
}
typedef void (*store_fn)(const struct pages *p, int64_t rows, int64_t cols, const float *weight);
typedef void (*tile_fn)(const struct pages *p, int64_t rows, int64_t cols, const struct column_arrays *a);

/* At most SUM_ROWS rows of at most SUM_TILE columns; added to the arrays. store: null where there never is a weight. */
NB_INLINE void sum_tile(const struct pages *p, int64_t rows, int64_t cols, const struct column_arrays *a,
                        const bool backward, store_fn store) {
    _Alignas(64) float sums[SUM_TILE], products[SUM_TILE];
    const size_t bytes = (size_t)((cols + PAIR - 1) / PAIR * PAIR) * sizeof(float);
    memset(sums, 0, bytes);
    memset(products, 0, bytes);
    for (int64_t row = 0, first = 0, end; row < rows; row = end) {
        end = rows - row < SUM_GROUP ? rows : row + SUM_GROUP;
        add_row_group(p, row, end - row, cols, a->about, sums, products, backward);
        if (!store || !a->weight) continue;
        if (end < rows && (end - first) * cols * (int64_t)sizeof(elem) < STORE_BYTES) continue;
        const struct pages part = page_at(*p, first, 0);
        store(&part, end - first, cols, a->weight);
        first = end;
    }
    add_pairs(a->sum, sums, cols);
    add_pairs(a->product, products, cols);
}

/* `rows` rows of `cols` columns; the sums are set. */
NB_ONCE void sum_page(const struct pages *p, int64_t rows, int64_t cols, struct column_arrays a, tile_fn sum_tile_of) {
    memset(a.sum, 0, (size_t)cols * sizeof(float));
    memset(a.product, 0, (size_t)cols * sizeof(float));
    for (int64_t row = 0; row < rows; row += SUM_ROWS)
        for (int64_t col = 0; col < cols; col += SUM_TILE) {
            const struct pages tile = page_at(*p, row, col);
            const struct column_arrays at = arrays_at(a, col);
            sum_tile_of(&tile, rows - row < SUM_ROWS ? rows - row : SUM_ROWS,
                        cols - col < SUM_TILE ? cols - col : SUM_TILE, &at);
        }
}

/* Sum of the first n of an array: a channel's columns. */
NB_ONCE float array_sum(const float *p, int64_t n) {
    vec sum = vec_set1(0.0f);
    int64_t i = 0;
    for (; i + NB_LANES <= n; i += NB_LANES) sum = sum + vec_load_f32(p + i);
    if (i < n) sum = sum + vec_load_f32_tail(p + i, n - i);
    return vec_sum(sum);
}

/* The rows of a group that are summed together, the others' sum, groups of a tile, tiles of a block, blocks, and the columns of a
 * channel. */
static inline int64_t slab_columns_chain(const struct matrix *m) {
    const int64_t block = (m->rows + matrix_blocks(m) - 1) / matrix_blocks(m);
    const int64_t tile = block < SUM_ROWS ? block : SUM_ROWS;
    const int64_t columns = m->group > 1 ? reduction_chain(m->group, 1) : 0;
    return SUM_GROUP / BAND_CHAINS + 1 + (tile + SUM_GROUP - 1) / SUM_GROUP + (block + SUM_ROWS - 1) / SUM_ROWS +
           matrix_blocks(m) + columns;
}
static inline int64_t slab_chain(const struct nb_call *call) {
    const struct matrix m = matrix_of(call);
    return is_matrix(call) ? slab_columns_chain(&m) : slab_planes_chain(call);
}
