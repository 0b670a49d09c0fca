// SPDX-License-Identifier: Apache-2.0
/* The two sums of slab_sums.h column by column: SUM_GROUP rows in registers, groups in a tile that stays in the first cache,
 * SUM_ROWS rows to the sums of the block. A group is gone through a band of columns at a time, and a band is as wide as the registers
 * allow: rows no longer than one are read in the order in which they lie in memory, which is as fast as memory is read at all. */
#ifndef NB_SLAB_COLUMNS_H
#define NB_SLAB_COLUMNS_H

#include "kernels/batchnorm/slab_sums.h"

#define SUM_ROWS 256
#define SUM_TILE 1024 /* columns, whole pairs: two sums and the numbers they are about take 12 KiB */
#define SUM_GROUP 16
#define PUT_OUT_BYTES 4096 /* of each of three tensors, a group at least; longer runs of stores let reads wait */
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
    struct sums of[BAND_CHAINS][BAND_PAIRS][2];
};
/* Where short rows are read a band at a time: the elements to ask for, in the order of memory; null: none. */
struct ahead {
    const elem *x, *g;
};

NB_INLINE void ask_for_band(struct ahead *next, struct band b) {
    if (!next->x) return;
    prefetch_elements(next->x, b.n_pairs * PAIR);
    next->x += b.n_pairs * PAIR;
    if (!b.backward) return;
    prefetch_elements(next->g, b.n_pairs * PAIR);
    next->g += b.n_pairs * PAIR;
}
NB_INLINE void add_row(struct sums (*acc)[2], const elem *x, const elem *g, const struct pair *about, struct band b) {
    NB_UNROLL
    for (int i = 0; i < b.n_pairs; i++) {
        const struct pair v = lanes_load(x + i * PAIR, b.lanes), d = {v.a - about[i].a, v.b - about[i].b};
        const struct pair factor = b.backward ? pair_once(lanes_load(g + i * PAIR, b.lanes)) : d;
        sums_step(&acc[i][0], d.a, factor.a);
        sums_step(&acc[i][1], d.b, factor.b);
    }
}
/* n rows from those at x and g on. */
NB_INLINE void add_rows(struct band_sums *acc, const struct pages *p, const elem *x, const elem *g, int64_t n,
                        const struct pair *about, struct ahead *next, struct band b) {
    for (; n >= BAND_CHAINS; n -= BAND_CHAINS) NB_UNROLL
    for (int chain = 0; chain < BAND_CHAINS; chain++) {
        ask_for_band(next, b);
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
    const struct sums none = {vec_set1(0.0f), vec_set1(0.0f)};
    const elem *x = p->x + row * p->x_stride + i, *g = b.backward ? p->g + row * p->g_stride + i : x;
    struct pair shift[BAND_PAIRS];
    struct band_sums acc;
    NB_UNROLL
    for (int j = 0; j < b.n_pairs; j++) {
        shift[j] = floats_lanes_load(about + i + j * PAIR, b.lanes);
        NB_UNROLL
        for (int chain = 0; chain < BAND_CHAINS; chain++) acc.of[chain][j][0] = acc.of[chain][j][1] = none;
    }
    add_rows(&acc, p, x, g, n, shift, next, b);
    NB_UNROLL
    for (int j = 0; j < 2 * b.n_pairs; j++) {
        const struct sums *const first = &acc.of[0][j / 2][j % 2], *const second =
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
static inline void add_array(float *to, const float *from, int64_t n) {
    int64_t i = 0;
    for (; i + NB_LANES <= n; i += NB_LANES) vec_store_f32(to + i, vec_load_f32(to + i) + vec_load_f32(from + i));
    if (i < n) vec_store_f32_tail(to + i, vec_load_f32_tail(to + i, n - i) + vec_load_f32_tail(from + i, n - i), n - i);
}
/* The same, from in the order of struct pair, whole pairs, which is put right. */
static inline void add_pairs(float *to, float *from, int64_t n) {
    for (int64_t i = 0; PACK > 1 && i < n; i += PACK_COLUMNS) pack_scatter(from + i, pack_load_f32(from + i));
    add_array(to, from, n);
}

/* Arrays over columns. */
struct column_arrays {
    const float *about;
    const float *weight; /* null, or what rows are put out with while the first cache holds them */
    float *sum, *product;
};
static inline struct column_arrays arrays_at(struct column_arrays a, int64_t col) {
    return (struct column_arrays){a.about + col, a.weight ? a.weight + col : NULL, a.sum + col, a.product + col};
}
typedef void (*put_out_fn)(const struct pages *p, int64_t rows, int64_t cols, const float *weight);
typedef void (*tile_fn)(const struct pages *p, int64_t rows, int64_t cols, const struct column_arrays *a);

/* At most SUM_ROWS rows of at most SUM_TILE columns; added to the arrays. put_out: null where there never is a weight. */
NB_INLINE void sum_tile(const struct pages *p, int64_t rows, int64_t cols, const struct column_arrays *a,
                        const bool backward, put_out_fn put_out) {
    _Alignas(64) float sums[SUM_TILE], products[SUM_TILE];
    const size_t bytes = (size_t)((cols + PAIR - 1) / PAIR * PAIR) * sizeof(float);
    memset(sums, 0, bytes);
    memset(products, 0, bytes);
    for (int64_t row = 0, first = 0, end; row < rows; row = end) {
        end = rows - row < SUM_GROUP ? rows : row + SUM_GROUP;
        add_row_group(p, row, end - row, cols, a->about, sums, products, backward);
        if (!put_out || !a->weight) continue;
        if (end < rows && (end - first) * cols * (int64_t)sizeof(elem) < PUT_OUT_BYTES) continue;
        const struct pages part = page_at(*p, first, 0);
        put_out(&part, end - first, cols, a->weight);
        first = end;
    }
    add_pairs(a->sum, sums, cols);
    add_pairs(a->product, products, cols);
}

/* `rows` rows of `cols` columns; the sums are set. */
static inline void sum_page(const struct pages *p, int64_t rows, int64_t cols, struct column_arrays a,
                            tile_fn sum_tile_of) {
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
static inline float array_sum(const float *p, int64_t n) {
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

#endif
