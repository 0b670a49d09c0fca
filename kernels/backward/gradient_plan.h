// SPDX-License-Identifier: Apache-2.0
/* How a fast row backward cuts its work, and where its arrays lie. */
#pragma once

#include "kernels/backward/gradient_rows.h"
#include "kernels/shared/pack.h"

/* Sums over rows, column by column: dgamma and dbeta of the row kernels. Rows are cut into blocks, as many as the shape alone says; a
 * block has an array of f32 sums of its own, to which its rows are added one after the other; blocks are added in their order. So
 * that long blocks lose no digits, every COLUMN_RUN rows of a block are summed apart. Error of a sum of terms t: at most
 * h u sum |t|, h = column_chain_of(rows, cols), u = 2^-24. */
#define COLUMN_BLOCKS_MAX 16
#define COLUMN_RUN 256
#define BLOCK_ROWS 2    /* a block but the last has a multiple of these, so that pairs leave no row over */
#define COLUMN_UNIT 256 /* columns that a thread adds up at least; a multiple of a pack */

struct row_blocks {
    int64_t n, rows; /* how many, and of how many rows each but the last */
};

/* A block costs two more trips through its arrays and a place for them in the cache: none is made of less than 16 rows, or of less than
 * 16384 elements in all. */
static inline struct row_blocks row_blocks_of(int64_t rows, int64_t cols) {
    int64_t wanted = rows < 64 ? rows / 16 : rows / 32;
    if (wanted > COLUMN_BLOCKS_MAX) wanted = COLUMN_BLOCKS_MAX;
    if (rows < 32 || rows * cols < 16384) return (struct row_blocks){.n = 1, .rows = rows};
    const int64_t each = ((rows + wanted - 1) / wanted + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS;
    return (struct row_blocks){.n = (rows + each - 1) / each, .rows = each};
}
static inline int64_t column_chain_of(int64_t rows, int64_t cols) {
    const struct row_blocks b = row_blocks_of(rows, cols);
    const int64_t runs = (b.rows + COLUMN_RUN - 1) / COLUMN_RUN;
    return (b.rows < COLUMN_RUN ? b.rows : COLUMN_RUN) + (runs - 1) + (b.n - 1);
}

/* Floats from one array over columns to the next: whole packs and lines of the cache. */
static inline int64_t column_array(int64_t cols) { return (cols + 31) / 32 * 32; }

/* total += run, or total = run; both have room for whole packs. */
static inline void add_run(float *total, const float *run, int64_t cols, bool first) {
    const int64_t n = (cols + PACK_COLUMNS - 1) / PACK_COLUMNS * PACK_COLUMNS;
    for (int64_t i = 0; i < n; i += NB_LANES) {
        vec v = vec_load_f32(run + i);
        if (!first) v = v + vec_load_f32(total + i);
        vec_store_f32(total + i, v);
    }
}

/* out = sum of n arrays that lie `stride` floats apart, columns [from, to), from packs' order to the columns' own; from is a multiple of a
 * pack, and to is too, or the end of the row. */
static inline void add_block_arrays(float *out, const float *partial, int64_t n, int64_t stride, int64_t from,
                                    int64_t to) {
    for (int64_t i = from; i < to; i += PACK_COLUMNS) {
        const int64_t left = to - i;
        struct pack sum = pack_load_f32(partial + i);
        for (int64_t b = 1; b < n; b++) {
            const struct pack more = pack_load_f32(partial + b * stride + i);
            NB_UNROLL
            for (int p = 0; p < PACK; p++) sum.v[p] = sum.v[p] + more.v[p];
        }
        if (left >= PACK_COLUMNS)
            pack_scatter(out + i, sum);
        else
            pack_scatter_tail(out + i, sum, left);
    }
}

/* The frame of the fused row backwards: what is wanted of a call, how its work is cut, where its arrays lie.
 *
 *   by rows      no parameter gradients: a row is a unit
 *   by blocks    units are blocks of rows (gradient_plan.h); then, if there is more than one, their sums are added by columns
 *   by columns   few long rows on more than one thread: units are pieces of all rows, first their sums, then the rest
 *
 * A row's sums are taken piece by piece either way, so that all of them give the same bits, whatever the threads. Within a unit a group
 * of rows is reduced, then finished a tile of columns at a time; groups and tiles change the order of no addition. */

#define PIECES_MAX 64
#define GROUP_MAX 16
#define GROUP_LONG 8  /* of rows that the second cache does not hold between their sums and their end either way */
#define FAR_CACHES 16 /* second caches, about which the third is so small or so shared that memory answers */
#define ORDERED_ROWS (NB_LANES < 16 ? 1 : 4)
#define PIECE_LANES 16 /* room for one sum of a piece */

enum cut { BY_ROWS, BY_BLOCKS, BY_COLUMNS };

struct gradient_plan {
    enum cut cut;
    struct row_blocks blocks;
    int64_t piece, n_pieces; /* columns whose sums are taken apart */
    bool ordered;            /* arrays in the order of columns where PACK is 2 */
    bool own_weight;         /* 1 + gamma, of f32 from 16 bits, in the order of packs */
    bool own_sums;           /* not straight into dgamma and dbeta */
    bool runs;               /* blocks of more than COLUMN_RUN rows */
    int n_arrays;            /* over columns, of a block */
    int64_t group, tile;     /* rows reduced before they are finished; columns finished at a time */
    int64_t rows_at_hand; /* whole ones that the first cache holds with what is summed; 0: not to be taken in pairs */
    bool far, stream;     /* the rows come from memory; dx goes there by non-temporal stores */
};

/* ---- what is wanted -------------------------------------------------------------------------------------------------- */

static inline bool wants_beta(const struct nb_call *call) {
    return call->formula.affine == NB_AFFINE_GAMMA_BETA && call->dbeta;
}
static inline bool wants_gamma(const struct nb_call *call) {
    return (call->formula.affine != NB_AFFINE_NONE && call->dgamma) || wants_beta(call);
}
/* Is this what the op usually has: gamma and its gradient, where it centres beta and its gradient too? */
static inline bool gradient_is_usual(const struct nb_call *call) {
    return call->formula.affine != NB_AFFINE_NONE && call->dgamma && wants_beta(call) == GRADIENT_CENTRE;
}
static inline int n_sums(const struct nb_call *call) { return wants_gamma(call) + wants_beta(call); }

/* ---- how it is cut --------------------------------------------------------------------------------------------------- */

/* A power of two, and the same for every dtype and width. */
static inline int64_t piece_of(int64_t cols) {
    int64_t piece = 4 * COLUMN_UNIT;
    while (PIECES_MAX * piece < cols) piece *= 2;
    return piece;
}

static inline struct gradient_plan cut_of(const struct nb_call *call) {
    struct gradient_plan p = {.cut = BY_ROWS, .piece = piece_of(call->cols)};
    const bool weight = call->formula.affine != NB_AFFINE_NONE, sums = n_sums(call) > 0;
    p.n_pieces = call->cols <= p.piece ? 1 : (call->cols + p.piece - 1) / p.piece;
    p.blocks = row_blocks_of(call->rows, call->cols);
#ifdef NB_DTYPE_IS_F32
    const bool narrow = false;
#else
    const bool narrow = call->formula.param == NB_PARAM_X;
#endif
    /* Few rows do not pay for arrays in another order; with narrow vectors, which take more shuffles, two do. */
    p.ordered =
        PACK > 1 && gradient_is_usual(call) && !narrow && !call->formula.weight_offset && call->rows <= ORDERED_ROWS;
    p.own_weight = weight && !p.ordered && (PACK > 1 || narrow || call->formula.weight_offset);
    if (sums || p.own_weight) p.cut = BY_BLOCKS;
    const bool few = p.cut == BY_ROWS ? call->rows < call->n_threads : p.blocks.n == 1;
    if (few && call->n_threads > 1 && p.n_pieces > 1) p.cut = BY_COLUMNS;
    if (p.cut != BY_BLOCKS) p.blocks = (struct row_blocks){.n = 1, .rows = call->rows};
    p.runs = p.cut == BY_BLOCKS && sums && p.blocks.rows > COLUMN_RUN;
    p.own_sums = sums && ((PACK > 1 && !p.ordered) || p.blocks.n > 1 || p.runs || !call->dgamma);
    p.n_arrays = p.own_weight + (p.own_sums + p.runs) * n_sums(call) + !call->dx;
    return p;
}

/* Stores of whole packs must be aligned in every row. */
static inline bool streams(const struct nb_call *call) {
    const uintptr_t dx = (uintptr_t)call->dx, stride = (uintptr_t)call->dx_stride * sizeof(elem);
    return call->dx && (dx | stride) % (uintptr_t)STREAM_ALIGN == 0 && call_streams(call, call->dresidual_out ? 4 : 3);
}

/* What depends on the machine alone: it changes the order of no addition. */
static inline int64_t tuned(int64_t value, int64_t fallback) { return value > 0 ? value : fallback; }
/* Of rows that are finished by tiles: the more, the less often the arrays over columns come from the second cache. From memory no more
 * than what surely stays there. row: bytes of x and dy. */
static inline int64_t rows_in_group(const struct gradient_plan *p, int64_t row, int64_t l2) {
    int64_t group = 2;
    if (8 * row > l2) return p->far ? 1 : GROUP_LONG;
    while (!p->far && group < GROUP_MAX && 4 * group * row <= l2) group *= 2;
    return group;
}
static inline struct gradient_plan gradient_plan_of(const struct nb_call *call) {
    static const struct nb_tuning untuned;
    const struct nb_tuning *const t = call->tuning ? call->tuning : &untuned;
    struct gradient_plan p = cut_of(call);
    const int64_t cols = call->cols, row = 2 * (int64_t)sizeof(elem) * cols; /* x and dy */
    const int64_t arrays = 4 * cols * (n_sums(call) + (call->formula.affine != NB_AFFINE_NONE));
    const int64_t l1 = tuned(t->l1_bytes, 32 << 10), l2 = tuned(t->l2_bytes, 512 << 10);
    p.stream = streams(call);
    p.far = p.stream || 3 * call->rows * cols * (int64_t)sizeof(elem) > FAR_CACHES * l2;
    p.tile = cols;
    p.group = 4 * row + arrays <= l1 / 2 ? 2 : 1;
    if (2 * row + arrays > l1) {
        p.tile = p.piece;
        while (p.tile < t->column_tile) p.tile *= 2;
        p.group = rows_in_group(&p, row, l2);
    }
    if (p.tile >= cols && !p.far && cols % ITERATION_COLUMNS == 0)
        p.rows_at_hand = (l1 - arrays) / (row + (call->dresidual_out ? 2 : 1) * (int64_t)sizeof(elem) * cols);
    return p;
}

/* ---- scratch --------------------------------------------------------------------------------------------------------- */

/* Sums of pieces (by columns), then the arrays of each block. */
static inline int64_t piece_floats(const struct nb_call *call, const struct gradient_plan *p) {
    return p->cut == BY_COLUMNS ? call->rows * p->n_pieces * 2 * PIECE_LANES : 0;
}
static inline float *piece_sums(const struct nb_call *call, const struct gradient_plan *p, int64_t row, int64_t piece) {
    return (float *)call->scratch + (row * p->n_pieces + piece) * 2 * NB_LANES;
}
static inline int64_t floats_of_block(const struct nb_call *call, const struct gradient_plan *p) {
    return p->n_arrays * column_array(call->cols);
}
/* Called before the tensors are known: enough for any of them. */
static inline size_t gradient_scratch(const struct nb_call *call) {
    float any;
    struct nb_call all = *call;
    all.dgamma = all.dbeta = &any;
    const struct gradient_plan p = cut_of(&all);
    const int64_t weight = call->formula.affine != NB_AFFINE_NONE, arrays = weight + (1 + p.runs) * n_sums(&all) + 1;
    int64_t pieces = 0;
    if (call->n_threads > 1 && (call->rows < 32 || call->rows < call->n_threads || p.blocks.n == 1))
        pieces = call->rows * p.n_pieces * 2 * PIECE_LANES;
    return (size_t)(pieces + p.blocks.n * arrays * column_array(call->cols)) * sizeof(float);
}

/* A block's arrays; null where there is none. */
struct block_arrays {
    float *weight, *gamma, *beta, *run_gamma, *run_beta;
    elem *dx;
};
static inline float *take_array(float **next, const struct nb_call *call, bool wanted) {
    float *array = *next;
    if (!wanted) return NULL;
    *next += column_array(call->cols);
    return array;
}
static inline struct block_arrays block_arrays_of(const struct nb_call *call, const struct gradient_plan *p,
                                                  int64_t block) {
    float *next = (float *)call->scratch + piece_floats(call, p) + block * floats_of_block(call, p);
    struct block_arrays a;
    a.weight = take_array(&next, call, p->own_weight);
    a.gamma = take_array(&next, call, p->own_sums && wants_gamma(call));
    a.beta = take_array(&next, call, p->own_sums && wants_beta(call));
    a.run_gamma = take_array(&next, call, p->runs && wants_gamma(call));
    a.run_beta = take_array(&next, call, p->runs && wants_beta(call));
    a.dx = (elem *)take_array(&next, call, !call->dx);
    return a;
}

/* ---- for the harness ------------------------------------------------------------------------------------------- */

static inline int gradient_phases(const struct nb_call *call) {
    const struct gradient_plan p = cut_of(call);
    return p.cut == BY_COLUMNS || (p.cut == BY_BLOCKS && p.blocks.n > 1 && n_sums(call) > 0) ? 2 : 1;
}
static inline int64_t gradient_units(const struct nb_call *call, int phase) {
    const struct gradient_plan p = cut_of(call);
    if (p.cut == BY_ROWS) return call->rows;
    if (p.cut == BY_COLUMNS) return p.n_pieces;
    return phase == 0 ? p.blocks.n : (call->cols + COLUMN_UNIT - 1) / COLUMN_UNIT;
}
static inline int64_t gradient_chain(const struct nb_call *call) {
    const int64_t piece = piece_of(call->cols), n = call->cols < piece ? call->cols : piece;
    return reduction_chain(n, GRADIENT_ACCUMULATORS) + (call->cols + piece - 1) / piece - 1;
}
static inline int64_t gradient_column_chain(const struct nb_call *call) {
    return column_chain_of(call->rows, call->cols);
}
/* rstd^2, (x - mean) rstd^2 and (x - mean) * dy stay normal numbers. */
static inline void gradient_range(const struct nb_call *call, struct nb_range *range) {
    if (call->eps < 0x1p-100) range->min_rms = 0x1p-48;
    range->max_abs = 0x1p60;
}
