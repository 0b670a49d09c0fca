// SPDX-License-Identifier: Apache-2.0
/* The last sweep of the fast BatchNorm kernels: of every element
 *   forward    y = slope * (x - about) + constant
 *   backward   dx = weight * g + (slope * (x - about) + constant), in inference weight * g alone
 * with coefficients of a channel (planes) or of every column (matrix). Columns are swept a few rows at a time, so that the
 * coefficients are loaded once for all of them. */
#ifndef NB_SLAB_LINES_H
#define NB_SLAB_LINES_H

#include "slab_sums.h"
#include "stream.h"

/* A few rows at a time save loads of coefficients, and what splits them for bf16, but lead a prefetcher astray. */
#ifdef NB_DTYPE_IS_F32
#define LINE_ROWS 2
#else
#define LINE_ROWS 4
#endif
#define LINE_RUN_BYTES 16384 /* long enough for a prefetcher */

/* A constant wherever it is used. */
struct line_form {
    bool slope, weight; /* the terms that are there: forward the first, backward both, in inference the second */
    bool stream;
};

/* Of one channel, or (as pointers below) of columns. */
struct line {
    float about, slope, constant, weight;
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

NB_INLINE void line_plane(const elem *x, const elem *g, elem *out, int64_t n, const struct line_pairs *c,
                          struct line_form f) {
    int64_t i = 0;
    if (f.stream) {
        i = unaligned_elements(out) % PAIR;
        if (i > n) i = n;
        if (i > 0) line_pair(x, g, out, i, c, f);
    }
    for (; i + PAIR <= n; i += PAIR) line_pair(x + i, g + i, out + i, PAIR, c, f);
    if (i < n) line_pair(x + i, g + i, out + i, n - i, c, f);
}
NB_INLINE struct pair same(float f) { return (struct pair){vec_set1(f), vec_set1(f)}; }
/* The planes of a span, the last first: it is the one that the caches still hold. */
NB_INLINE void line_span(const struct pages *p, int64_t plane_step, struct span s, struct line l, struct line_form f) {
    const struct line_pairs c = {same(l.about), same(l.slope), same(l.constant), same(l.weight)};
    for (int64_t plane = s.plane; plane < s.plane + s.n_planes; plane++) {
        const int64_t row = plane * plane_step;
        const elem *x = p->x + row * p->x_stride + s.begin;
        const elem *g = f.weight ? p->g + row * p->g_stride + s.begin : x;
        line_plane(x, g, p->out + row * p->out_stride + s.begin, s.end - s.begin, &c, f);
    }
}

/* ---- columns ------------------------------------------------------------------------------------------------------------- */

NB_INLINE void line_group(const struct pages *p, int64_t row, const int n, int64_t i, int64_t lanes,
                          const struct lines *l, struct line_form f) {
    struct line_pairs c = {same(0.0f), same(0.0f), same(0.0f), same(0.0f)};
    if (f.slope) {
        c.about = floats_lanes_load(l->about + i, lanes);
        c.slope = floats_lanes_load(l->slope + i, lanes);
        c.constant = floats_lanes_load(l->constant + i, lanes);
    }
    if (f.weight) c.weight = floats_lanes_load(l->weight + i, lanes);
    NB_UNROLL
    for (int j = 0; j < n; j++) {
        const elem *x = p->x + (row + j) * p->x_stride + i;
        const elem *g = f.weight ? p->g + (row + j) * p->g_stride + i : x;
        line_pair(x, g, p->out + (row + j) * p->out_stride + i, lanes, &c, f);
    }
}
/* n > 1: rows of out lie equally on the lines of the cache where a call streams. */
NB_INLINE void line_row_group(const struct pages *p, int64_t row, const int n, int64_t cols, const struct lines *l,
                              struct line_form f) {
    int64_t i = 0;
    if (f.stream) {
        i = unaligned_elements(p->out + row * p->out_stride) % PAIR;
        if (i > cols) i = cols;
        if (i > 0) line_group(p, row, n, 0, i, l, f);
    }
    for (; i + PAIR <= cols; i += PAIR) line_group(p, row, n, i, PAIR, l, f);
    if (i < cols) line_group(p, row, n, i, cols - i, l, f);
}
/* rows x cols from the pages' start on; the coefficients start there too. Runs of rows from the last to the first, as above. */
NB_INLINE void line_matrix(const struct pages *p, int64_t rows, int64_t cols, const struct lines *l,
                           struct line_form f) {
    const int64_t groups = LINE_RUN_BYTES / (LINE_ROWS * cols * (int64_t)sizeof(elem)) + 1, run = groups * LINE_ROWS;
    const bool together = !f.stream || p->out_stride * (int64_t)sizeof(elem) % STREAM_ALIGN == 0;
    for (int64_t begin = 0; begin < rows; begin += run) {
        const int64_t end = rows - begin < run ? rows : begin + run;
        int64_t row = begin;
        for (; together && row + LINE_ROWS <= end; row += LINE_ROWS) line_row_group(p, row, LINE_ROWS, cols, l, f);
        for (; row < end; row++) line_row_group(p, row, 1, cols, l, f);
    }
}

#endif
