// SPDX-License-Identifier: Apache-2.0
/* How the fast BatchNorm kernels cut a tensor: as planes of one channel after another (NCHW), or as a matrix whose columns
 * belong to channels. NHWC is such a matrix, and so is NCHW with small planes, where a channel has hw columns. What is summed in
 * which order depends on the shape alone; what is done first depends on the cache too.
 *
 * Slabs: one phase, a unit is a channel (or some columns) with statistics and output, so that memory is read once.
 * Else three phases: partial sums of at most BLOCKS_MAX blocks, their combination by channels, the output. */
#pragma once

#include "kernels/batchnorm/batchnorm.h"

#define MATRIX_PLANE_BYTES 256 /* below, a plane is too short a run for a prefetcher, and its end costs too much */
#define STRIP_ROWS 512       /* a matrix of so few rows is worked on in strips of columns, each staying in the cache */
#define STRIP_COLUMNS 64     /* of a unit, at least: whole lines whatever the dtype */
#define SLAB_CHANNELS 16     /* fewer channels are too few units for threads */
#define BLOCK_ELEMENTS 65536 /* of a channel's planes, at least */
#define MATRIX_BLOCK_ELEMENTS 8192 /* the same of a matrix that is longer than a strip */

/* The tensors that a call goes through: out comes from x (forward), or from x and g (backward). */
struct pages {
    const elem *x, *g;
    elem *out;
    int64_t x_stride, g_stride, out_stride;
    int64_t prefetch; /* are planes prefetched? of a matrix, how many rows ahead */
    bool stream;      /* out is stored by non-temporal stores */
};

/* NHWC: n * hw rows of c columns; NCHW: n rows of c * hw columns. Column i belongs to channel i / group. */
struct matrix {
    int64_t rows, cols, group;
};

static inline bool is_matrix(const struct nb_call *call) {
    return !is_nchw(call) || call->hw * (int64_t)sizeof(elem) < MATRIX_PLANE_BYTES;
}
static inline struct matrix matrix_of(const struct nb_call *call) {
    if (!is_nchw(call)) return (struct matrix){call->n * call->hw, call->c, 1};
    return (struct matrix){call->n, call->c * call->hw, call->hw};
}
static inline struct pages page_at(struct pages p, int64_t row, int64_t col) {
    p.x += row * p.x_stride + col;
    if (p.g) p.g += row * p.g_stride + col;
    if (p.out) p.out += row * p.out_stride + col;
    return p;
}
/* From row `row` of the matrix and the first column of a channel on, with the strides of the matrix. */
NB_ONCE struct pages matrix_page(const struct nb_call *call, struct pages p, int64_t row, int64_t channel) {
    if (!is_nchw(call)) return page_at(p, row, channel);
    p = page_at(p, row * call->c + channel, 0);
    p.x_stride *= call->c;
    p.g_stride *= call->c;
    p.out_stride *= call->c;
    return p;
}
/* Up to which channel, at most `last`, the columns lie next to each other from `channel` on: planes may be padded. */
NB_ONCE int64_t run_of_channels(const struct nb_call *call, const struct pages *p, int64_t channel, int64_t last) {
    const bool packed = p->x_stride == call->hw && p->out_stride == call->hw && (!p->g || p->g_stride == call->hw);
    return !is_nchw(call) || packed ? last : channel + 1;
}

/* What may be read again from the second cache, half of the smallest one that is about. */
static inline int64_t slab_bytes(const struct nb_call *call) {
    const int64_t given = call->tuning ? call->tuning->slab_bytes : 0;
    return given > 0 ? given : 512 * 1024;
}
/* Planes of a channel lie too far apart for a prefetcher: where the second cache is far too small for the call they are prefetched. */
static inline bool prefetches_planes(const struct nb_call *call, int64_t n_tensors) {
    return call->rows * call->cols * (int64_t)sizeof(elem) * n_tensors > 8 * slab_bytes(call);
}
static inline bool in_strips(const struct matrix *m) { return m->rows <= STRIP_ROWS; }
static inline int64_t matrix_blocks(const struct matrix *m) {
    const int64_t wanted = in_strips(m) ? 1 : m->rows * m->cols / MATRIX_BLOCK_ELEMENTS;
    return wanted > BLOCKS_MAX ? BLOCKS_MAX : wanted > 1 ? wanted : 1;
}
static inline int64_t matrix_block_begin(const struct matrix *m, int64_t block) {
    return m->rows * block / matrix_blocks(m);
}
static inline int64_t unit_channels(const struct matrix *m) { return (STRIP_COLUMNS + m->group - 1) / m->group; }
/* Channels of a strip, in whole units: what of them is read and written stays in half of the second cache. */
NB_ONCE int64_t strip_channels(const struct nb_call *call, const struct matrix *m) {
    const int64_t room = slab_bytes(call) / (2 * m->rows * (int64_t)sizeof(elem)) / m->group, unit = unit_channels(m);
    return room < 2 * unit ? unit : room / unit * unit;
}
/* Rows [begin, end) of the columns of channels [first, last), by runs of columns that lie next to each other. */
typedef void (*run_fn)(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end, int64_t first,
                       int64_t last);
NB_ONCE void each_run(const struct nb_call *call, const struct matrix *m, const struct pages *p, int64_t begin,
                      int64_t end, int64_t first, int64_t last, run_fn act) {
    for (int64_t channel = first, next; channel < last; channel = next) {
        next = run_of_channels(call, p, channel, last);
        act(call, m, begin, end, channel, next);
    }
}
/* Units [begin, end) of the slabs as strips of channels. */
typedef void (*strip_fn)(const struct nb_call *call, const struct matrix *m, int64_t first, int64_t last);
NB_ONCE void each_strip(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end, strip_fn act) {
    const int64_t unit = unit_channels(m), stop = end * unit < call->c ? end * unit : call->c;
    for (int64_t first = begin * unit, step = strip_channels(call, m); first < stop; first += step)
        act(call, m, first, stop - first < step ? stop : first + step);
}

/* A channel's values in blocks: some planes, or a part of one. */
static inline int64_t plane_blocks(const struct nb_call *call) {
    const int64_t wanted = call->n * call->hw / BLOCK_ELEMENTS, most = wanted < BLOCKS_MAX ? wanted : BLOCKS_MAX;
    if (most <= 1) return 1;
    return call->n >= most ? most : most / call->n * call->n;
}
struct span {
    int64_t plane, n_planes, begin, end; /* columns [begin, end) of each */
};
static inline struct span plane_block(const struct nb_call *call, int64_t block) {
    const int64_t n_blocks_ = plane_blocks(call), n = call->n;
    if (n_blocks_ == 1) return (struct span){0, n, 0, call->hw}; /* divisions take as long as a short plane */
    if (n_blocks_ <= n) {
        const int64_t first = n * block / n_blocks_;
        return (struct span){first, n * (block + 1) / n_blocks_ - first, 0, call->hw};
    }
    const int64_t parts = n_blocks_ / n, part = block % parts;
    return (struct span){block / parts, 1, call->hw * part / parts, call->hw * (part + 1) / parts};
}
/* By channels, unless they are few and long. */
static inline bool in_slabs(const struct nb_call *call) { return call->c >= SLAB_CHANNELS || plane_blocks(call) == 1; }
/* The parts of a plane that are units of the output where channels are few. */
NB_ONCE int64_t plane_parts(const struct nb_call *call) {
    return (call->hw + BLOCK_ELEMENTS / 4 - 1) / (BLOCK_ELEMENTS / 4);
}

/* ---- phases -------------------------------------------------------------------------------------------------------------- */

enum slab_step { STEP_SLABS, STEP_SUMS, STEP_CHANNELS, STEP_OUTPUT };

static inline bool one_phase(const struct nb_call *call) {
    const struct matrix m = matrix_of(call);
    return is_matrix(call) ? in_strips(&m) : in_slabs(call);
}
/* with_sums: the batch is summed over, not only its elements transformed. */
static inline int slab_phases(const struct nb_call *call, bool with_sums) {
    if (!with_sums) return 2;
    return one_phase(call) ? 1 : 3;
}
static inline enum slab_step slab_step(const struct nb_call *call, bool with_sums, int phase) {
    if (!with_sums) return phase == 0 ? STEP_CHANNELS : STEP_OUTPUT;
    if (one_phase(call)) return STEP_SLABS;
    return phase == 0 ? STEP_SUMS : phase == 1 ? STEP_CHANNELS : STEP_OUTPUT;
}
NB_ONCE int64_t slab_units(const struct nb_call *call, enum slab_step step) {
    const struct matrix m = matrix_of(call);
    const bool matrix = is_matrix(call);
    if (step == STEP_CHANNELS) return call->c;
    if (step == STEP_SLABS) return matrix ? (call->c + unit_channels(&m) - 1) / unit_channels(&m) : call->c;
    if (step == STEP_SUMS) return matrix ? matrix_blocks(&m) : call->c * plane_blocks(call);
    return matrix ? m.rows : call->rows * plane_parts(call);
}
/* Of units [begin, end) of the output: all planes, where a unit is one; else the part of a plane that the first unit is. */
NB_ONCE struct span output_span(const struct nb_call *call, int64_t begin, int64_t end) {
    const int64_t parts = plane_parts(call), part = begin % parts;
    if (parts == 1) return (struct span){begin, end - begin, 0, call->hw};
    return (struct span){begin / parts, 1, call->hw * part / parts, call->hw * (part + 1) / parts};
}
