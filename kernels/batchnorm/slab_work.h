// SPDX-License-Identifier: Apache-2.0
/* Scratch of the fast BatchNorm kernels. Matrix: for every block four arrays over columns, then coefficients by columns (where
 * they are not those of the channels), then arrays over channels. Planes: a line for every channel, and the totals of blocks. */
#pragma once

#include "kernels/batchnorm/slab_lines.h"

#define PREFETCH_ROW_BYTES 2048
#define PREFETCH_LINE_BYTES 64
#define PREFETCH_BAND_BYTES 256 /* pieces of so many bytes a prefetcher follows by itself */

enum block_array { B_ABOUT, B_WEIGHT, B_SUM, B_PRODUCT, N_BLOCK_ARRAYS };
enum { N_COEFFICIENTS = 4 };
enum { N_CHANNEL_WORK = 8 }; /* arrays over channels, of which the first N_COEFFICIENTS are spread over columns */

struct work {
    float *blocks, *columns, *channels;
    int64_t n_cols, n_channels; /* lengths of the arrays, whole lines */
};

static inline int64_t whole_lines(int64_t n) { return (n + 15) / 16 * 16; }
static inline struct work matrix_work(const struct nb_call *call, const struct matrix *m) {
    struct work w = {.blocks = call->scratch, .n_cols = whole_lines(m->cols), .n_channels = whole_lines(call->c)};
    w.columns = w.blocks + N_BLOCK_ARRAYS * matrix_blocks(m) * w.n_cols;
    w.channels = w.columns + (m->group > 1 ? N_COEFFICIENTS * w.n_cols : 0);
    return w;
}
static inline float *block_work(const struct work *w, int64_t block, enum block_array which) {
    return w->blocks + (block * N_BLOCK_ARRAYS + which) * w->n_cols;
}
static inline float *channel_work(const struct work *w, int which) { return w->channels + which * w->n_channels; }
/* Coefficient `which` by columns. */
static inline float *column_work(const struct work *w, const struct matrix *m, int which) {
    return m->group > 1 ? w->columns + which * w->n_cols : channel_work(w, which);
}

static inline size_t plane_lines_bytes(const struct nb_call *call) {
    return ((size_t)call->c * sizeof(struct line) + 63) / 64 * 64;
}
/* Behind the lines of channels. */
static inline struct slab_totals *block_totals(const struct nb_call *call) {
    return (struct slab_totals *)((char *)call->scratch + plane_lines_bytes(call));
}
NB_ONCE size_t slab_scratch(const struct nb_call *call, bool with_sums) {
    const struct matrix m = matrix_of(call);
    if (is_matrix(call)) {
        const int64_t spread = m.group > 1 ? N_COEFFICIENTS : 0;
        const int64_t columns = (N_BLOCK_ARRAYS * matrix_blocks(&m) + spread) * whole_lines(m.cols);
        return (size_t)(columns + N_CHANNEL_WORK * whole_lines(call->c)) * sizeof(float);
    }
    if (with_sums && in_slabs(call)) return 0;
    const int64_t totals = with_sums ? call->c * plane_blocks(call) : 0;
    return plane_lines_bytes(call) + (size_t)totals * sizeof(struct slab_totals);
}

/* A value of channels [begin, end) to their columns; value[0] is channel begin's, column[0] its first column's. */
NB_ONCE void spread(const float *value, float *column, int64_t n_channels, int64_t group) {
    if (group == 1) {
        memcpy(column, value, (size_t)n_channels * sizeof(float));
        return;
    }
    for (int64_t channel = 0; channel < n_channels; channel++) {
        const vec v = vec_set1(value[channel]);
        float *to = column + channel * group;
        int64_t i = 0;
        for (; i + NB_LANES <= group; i += NB_LANES) vec_store_f32(to + i, v);
        if (i < group) vec_store_f32_tail(to + i, v, group - i);
    }
}
NB_ONCE void spread_coefficients(const struct work *w, const struct matrix *m, int n, int64_t begin, int64_t end) {
    if (m->group == 1) return;
    for (int k = 0; k < n; k++)
        spread(channel_work(w, k) + begin, column_work(w, m, k) + begin * m->group, end - begin, m->group);
}

/* Short rows that are read a narrow band at a time no hardware prefetcher follows: those to prefetch, where the caches do not hold the call.
 * Inside the caches it costs up to a fifth. */
static inline int64_t rows_to_prefetch(const struct nb_call *call, const struct pages *p, int64_t cols) {
    const int64_t item = (int64_t)sizeof(elem);
    if (cols <= BAND_COLUMNS || BAND_COLUMNS * item >= PREFETCH_BAND_BYTES || cols * item >= PREFETCH_ROW_BYTES)
        return 0;
    if (BAND_COLUMNS * item <= PREFETCH_LINE_BYTES && prefetches_planes(call, p->g ? 3 : 2)) return SUM_GROUP;
    return call_streams(call, p->g ? 3 : 2) ? SUM_GROUP : 0;
}
/* Sums of a block over the columns of channels [begin, end), about numbers by columns that start at the pointer given, and with the
 * weights that start at the other one (null: none) its output. */
NB_ONCE void sum_block_of(const struct nb_call *call, const struct matrix *m, struct pages p, int64_t block,
                          int64_t begin, int64_t end, const float *about, const float *weight, tile_fn sum_tile_of) {
    const struct work w = matrix_work(call, m);
    const int64_t row = matrix_block_begin(m, block), rows = matrix_block_begin(m, block + 1) - row;
    for (int64_t channel = begin, next; channel < end; channel = next) {
        next = run_of_channels(call, &p, channel, end);
        struct pages run = matrix_page(call, p, row, channel);
        run.prefetch = rows_to_prefetch(call, &p, (next - channel) * m->group);
        const int64_t col = channel * m->group, from = (channel - begin) * m->group;
        const struct column_arrays a = {about + from, weight ? weight + from : NULL, block_work(&w, block, B_SUM) + col,
                                        block_work(&w, block, B_PRODUCT) + col};
        sum_page(&run, rows, (next - channel) * m->group, a, sum_tile_of);
    }
}

/* Sums of the blocks added up, then those of a channel's columns: to arrays over channels, from channel begin on. */
NB_ONCE void gather_channels(const struct work *w, const struct matrix *m, enum block_array which, int64_t begin,
                             int64_t end, float *out) {
    const int64_t first = begin * m->group, n = (end - begin) * m->group;
    float *all = block_work(w, 0, which) + first;
    for (int64_t block = 1; block < matrix_blocks(m); block++) add_array(all, block_work(w, block, which) + first, n);
    if (m->group == 1)
        memcpy(out, all, (size_t)n * sizeof(float));
    else
        for (int64_t channel = 0; channel < end - begin; channel++)
            out[channel] = array_sum(all + channel * m->group, m->group);
}
