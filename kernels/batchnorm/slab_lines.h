// SPDX-License-Identifier: Apache-2.0
/* The last sweep of the fast BatchNorm kernels: of every element
 *   forward    y = slope * (x - about) + constant
 *   backward   dx = weight * g + (slope * (x - about) + constant), in inference weight * g alone
 * with coefficients of a channel (planes) or of every column (matrix), which are swept a few rows at a time, so that the
 * coefficients are loaded once for all of them. */
#pragma once

#include "kernels/batchnorm/slab_sums.h"
#include "kernels/shared/stream.h"

/* A few rows at a time save loads of coefficients, and what splits them for bf16. Non-temporal stores want lines that lie close
 * together: two rows of a KiB, Zen 5, take four times as long. */
#define LINE_ROWS 16
#define LINE_SET_BYTES 4096 /* lines so far apart share a set of the first cache */
/* Rows whose pieces may do so, of each of two or three tensors: fewer where pieces are less than a line or coefficients cost little. */
#if NB_LANES < 16
#define LINE_SET_ROWS 4
#elif defined(NB_DTYPE_IS_F32)
#define LINE_SET_ROWS 2
#else
#define LINE_SET_ROWS 8
#endif
#define LINE_STREAM_BYTES 1024
#define LINE_PAIRS 2
#define LINE_RUN_BYTES (INT64_C(256) << 10) /* long enough for a prefetcher */
#define LINE_AHEAD_ROWS 4                   /* stored to next but three */
#define FETCHES (NB_LANES >= 16)            /* lines before they are stored to: registers of a line leave time for it */
#define LINE_AHEAD_BYTES 8192 /* one tensor read while another is stored non-temporally leaves a prefetcher behind */

/* Constants wherever it is used, but for stream in inference of columns, where the store is most of what is done. */
struct line_form {
    bool slope, weight; /* the terms that are there: forward the first, backward both, in inference the second */
    bool stream;
    bool ahead; /* the same place of the next channel's plane is prefetched, and the last plane comes first */
};

/* Pairs of columns whose coefficients stay in registers, beside what splits and joins bf16. Where a call streams in 16 bits always two, which at
 * 256 bits are a line of the cache: stores that leave half of one take three times as long (bf16, 36848x64, an Emerald Rapids: 2.17 ms for
 * 0.64). At 128 bits they are still half of one. */
NB_INLINE int band_pairs(struct line_form f) {
    const bool few = NB_LANES < 16 && (!PAIR_IN_ORDER || (f.slope && f.weight));
    return few && !(f.stream && PAIR * sizeof(elem) < 64) ? 1 : LINE_PAIRS;
}

/* Of one channel, or (as pointers below) of columns. */
struct line {
    float about, slope, constant, weight;
};
/* Of one plane after another: of channel `first` of n, of the next, ...; n = 1: all planes are one channel's. */
struct plane_lines {
    const struct line *of;
    int64_t n, first;
};
struct lines {
    const float *about, *slope, *constant, *weight;
};
struct line_pairs {
    struct pair about, slope, constant, weight;
};

NB_INLINE vec line_value(vec x, vec g, vec about, vec slope, vec constant, vec weight, struct line_form f) {
    if (!f.slope) return g * weight;
    const vec v = vec_fma(x - about, slope, constant);
    return f.weight ? vec_fma(g, weight, v) : v;
}
/* A pair of elements, or the first n of one. */
NB_INLINE void line_pair(const elem *x, const elem *g, elem *out, int64_t n, const struct line_pairs *c,
                         struct line_form f) {
    const struct pair none = {vec_set1(0.0f), vec_set1(0.0f)};
    const struct pair vx = f.slope ? lanes_load(x, n) : none, vg = f.weight ? lanes_load(g, n) : none;
    const struct pair v = {
        line_value(vx.a, vg.a, c->about.a, c->slope.a, c->constant.a, c->weight.a, f),
        line_value(vx.b, vg.b, c->about.b, c->slope.b, c->constant.b, c->weight.b, f),
    };
    if (n < PAIR)
        pair_store_tail(out, v, n);
    else if (f.stream)
        pair_stream(out, v);
    else
        pair_store(out, v);
}

/* ---- planes -------------------------------------------------------------------------------------------------------------- */

/* next_x, next_g: elements from x and g to what is prefetched. */
NB_INLINE void line_plane(const elem *x, const elem *g, elem *out, int64_t n, int64_t next_x, int64_t next_g,
                          const struct line_pairs *c, struct line_form f) {
    int64_t i = 0;
    if (f.stream || NB_LANES >= 16) { /* whole lines, which most planes do not begin with */
        i = unaligned_elements(out) % PAIR;
        if (i > n) i = n;
        if (i > 0) line_pair(x, g, out, i, c, f);
    }
    for (; i + PAIR <= n; i += PAIR) {
        if (FETCHES && !f.stream) fetch_for_stores(out + i + STORE_AHEAD_BYTES / (int64_t)sizeof(elem), PAIR);
        if (f.ahead) prefetch_elements(x + i + next_x, PAIR);
        if (f.ahead && f.weight) prefetch_elements(g + i + next_g, PAIR);
        line_pair(x + i, g + i, out + i, PAIR, c, f);
    }
    if (i < n) line_pair(x + i, g + i, out + i, n - i, c, f);
}
NB_INLINE struct pair same(float f) { return (struct pair){vec_set1(f), vec_set1(f)}; }
/* ahead: of a channel that is larger than a cache, its last planes are left there, and swept first; the next channel's first planes, which
 * its sums begin with, are prefetched last. */
NB_INLINE void line_span(const struct pages *p, int64_t plane_step, const struct span *s, const struct plane_lines *l,
                         struct line_form f) {
    const elem *x = p->x + s->begin, *g = f.weight ? p->g + s->begin : x;
    elem *out = p->out + s->begin;
    const int64_t n = s->end - s->begin, n_planes = s->n_planes, step = f.ahead ? -plane_step : plane_step;
    const int64_t x_stride = p->x_stride, g_stride = f.weight ? p->g_stride : x_stride, out_stride = p->out_stride;
    const struct line *all = l->of, *line = all + l->first, *last = all + l->n - 1;
    int64_t row = (f.ahead ? s->plane + n_planes - 1 : s->plane) * plane_step;
    for (int64_t k = 0; k < n_planes; k++, row += step) {
        const struct line_pairs c = {same(line->about), same(line->slope), same(line->constant), same(line->weight)};
        line_plane(x + row * x_stride, g + row * g_stride, out + row * out_stride, n, x_stride, g_stride, &c, f);
        line = line == last ? all : line + 1;
    }
}

/* ---- columns ------------------------------------------------------------------------------------------------------------- */

/* A band of columns: n_pairs (a constant) whole pairs, or one of which there are `lanes`; n rows of it. */
NB_INLINE void line_band(const struct pages *p, int64_t row, int64_t n, int64_t i, const int n_pairs, int64_t lanes,
                         const struct lines *l, struct line_form f) {
    struct line_pairs c[LINE_PAIRS];
    const elem *x = p->x + row * p->x_stride + i, *g = f.weight ? p->g + row * p->g_stride + i : x;
    elem *out = p->out + row * p->out_stride + i;
    NB_UNROLL
    for (int j = 0; j < n_pairs; j++, i += PAIR) {
        c[j].about = c[j].slope = c[j].constant = c[j].weight = same(0.0f);
        if (f.slope) {
            c[j].about = floats_lanes_load(l->about + i, lanes);
            c[j].slope = floats_lanes_load(l->slope + i, lanes);
            c[j].constant = floats_lanes_load(l->constant + i, lanes);
        }
        if (f.weight) c[j].weight = floats_lanes_load(l->weight + i, lanes);
    }
    for (; n > 0; n--) {
        if (f.stream && !f.weight) prefetch_elements(x + LINE_AHEAD_BYTES / (int64_t)sizeof(elem), n_pairs * PAIR);
        if (FETCHES && !f.stream) fetch_for_stores(out + LINE_AHEAD_ROWS * p->out_stride, n_pairs * PAIR);
        NB_UNROLL
        for (int j = 0; j < n_pairs; j++) line_pair(x + j * PAIR, g + j * PAIR, out + j * PAIR, lanes, &c[j], f);
        x += p->x_stride;
        g += f.weight ? p->g_stride : p->x_stride;
        out += p->out_stride;
    }
}
/* n > 1: rows of out lie equally on the lines of the cache where a call streams. */
NB_INLINE void line_rows(const struct pages *p, int64_t row, int64_t n, int64_t cols, const struct lines *l,
                         struct line_form f) {
    const int n_pairs = band_pairs(f);
    int64_t i = 0;
    if (f.stream) {
        i = unaligned_elements(p->out + row * p->out_stride) % PAIR;
        if (i > cols) i = cols;
        if (i > 0) line_band(p, row, n, 0, 1, i, l, f);
    }
    for (; n_pairs > 1 && i + n_pairs * PAIR <= cols; i += n_pairs * PAIR) line_band(p, row, n, i, n_pairs, PAIR, l, f);
    for (; i + PAIR <= cols; i += PAIR) line_band(p, row, n, i, 1, PAIR, l, f);
    if (i < cols) line_band(p, row, n, i, 1, cols - i, l, f);
}
/* Rows that are swept together: as many as there are where coefficients of all columns stay in registers. */
NB_INLINE int64_t line_rows_together(const struct pages *p, int64_t cols, struct line_form f) {
    const int64_t stride_bytes = p->out_stride * (int64_t)sizeof(elem);
    if (f.stream && stride_bytes % STREAM_ALIGN != 0) return 1;
    if (cols <= band_pairs(f) * PAIR) return INT64_MAX;
    const int64_t apart = stride_bytes & -stride_bytes;
    const int64_t most = f.stream                 ? LINE_STREAM_BYTES / stride_bytes
                         : apart < LINE_SET_BYTES ? LINE_SET_BYTES / apart * LINE_SET_ROWS
                                                  : LINE_SET_ROWS;
    return most > LINE_ROWS ? LINE_ROWS : most > 1 ? most : 1;
}
/* Rows [begin, end) in the order of memory. */
NB_INLINE void line_run(const struct pages *p, int64_t begin, int64_t end, int64_t cols, const struct lines *l,
                        struct line_form f) {
    const int64_t together = line_rows_together(p, cols, f);
    for (int64_t row = begin, n; row < end; row += n) {
        n = end - row < together ? end - row : together;
        line_rows(p, row, n, cols, l, f);
    }
}
/* rows x cols from the pages' start on; the coefficients start there too. Runs of rows from the last to the first, since the last are
 * those that the caches still hold; past the caches in the order of memory. */
NB_INLINE void line_matrix(const struct pages *p, int64_t rows, int64_t cols, const struct lines *l,
                           struct line_form f) {
    const int64_t run = LINE_RUN_BYTES / (cols * (int64_t)sizeof(elem)) / LINE_ROWS * LINE_ROWS + LINE_ROWS;
    const int64_t n_runs = (rows + run - 1) / run;
    for (int64_t i = 0; i < n_runs; i++) {
        const int64_t begin = (f.stream ? i : n_runs - 1 - i) * run;
        line_run(p, begin, rows - begin < run ? rows : begin + run, cols, l, f);
    }
}
