// SPDX-License-Identifier: Apache-2.0
/* Two sums at one look: forward those of d = x - about and of d^2, backward those of g and of g * d.
 *
 * Planes: four vectors of accumulators, which every PLANE_STEPS turns are added to a sum of twice the precision. So a channel's
 * chain of roundings is bounded whatever its length. Columns: slab_columns.h. */
#ifndef NB_SLAB_SUMS_H
#define NB_SLAB_SUMS_H

#include <string.h>

#include "kernels/batchnorm/slab.h"
#include "kernels/shared/pack.h"

#define PLANE_TURN (2 * PAIR)
#define PLANE_STEPS 64
#define PLANE_AHEAD_BYTES 2048 /* in planes: what is summed while memory answers */

/* Of one vector of elements. */
struct sums {
    vec sum, product;
};
struct totals {
    double sum, product;
};

NB_INLINE void sums_step(struct sums *a, vec d, vec factor) {
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
    struct sums high, low;
};

/* high + v exactly = the new high + what is added to low (Knuth 1969, two-sum). */
NB_INLINE void long_add(vec *high, vec *low, vec v) {
    const vec sum = *high + v, back = sum - *high;
    *low = *low + ((*high - (sum - back)) + (v - back));
    *high = sum;
}
NB_INLINE void flush(struct long_sums *total, struct sums *acc) {
    long_add(&total->high.sum, &total->low.sum, (acc[0].sum + acc[1].sum) + (acc[2].sum + acc[3].sum));
    long_add(&total->high.product, &total->low.product,
             (acc[0].product + acc[1].product) + (acc[2].product + acc[3].product));
    NB_UNROLL
    for (int a = 0; a < 4; a++) acc[a] = (struct sums){vec_set1(0.0f), vec_set1(0.0f)};
}
static inline double lanes_total(vec high, vec low) {
    float h[NB_LANES], l[NB_LANES];
    double total = 0;
    vec_store_f32(h, high);
    vec_store_f32(l, low);
    for (int i = 0; i < NB_LANES; i++) total += (double)h[i] + (double)l[i];
    return total;
}

NB_INLINE void pair_step(struct sums *acc, struct pair x, struct pair g, vec about, const bool backward) {
    const struct pair d = {x.a - about, x.b - about}, factor = backward ? pair_once(g) : d;
    sums_step(&acc[0], d.a, factor.a);
    sums_step(&acc[1], d.b, factor.b);
}
NB_INLINE void prefetch_elements(const elem *p, int64_t n) {
    NB_UNROLL
    for (int64_t line = 0; line < n * (int64_t)sizeof(elem); line += 64)
        __builtin_prefetch((const char *)p + line, 0, 2);
}
/* What a turn reads of the next plane: planes of a channel lie too far apart for a hardware prefetcher to find the next. */
NB_INLINE void prefetch_turn(const elem *next) { prefetch_elements(next, PLANE_TURN); }
NB_INLINE void plane_turn(struct sums *acc, const elem *x, const elem *g, vec about, const bool backward) {
    const struct pair none = {about, about};
    pair_step(acc, pair_load(x), backward ? pair_load(g) : none, about, backward);
    pair_step(acc + 2, pair_load(x + PAIR), backward ? pair_load(g + PAIR) : none, about, backward);
}
/* Elements [i, end) of a plane; next: elements from x and g to the plane to ask for, 0 where none is. */
NB_INLINE void plane_piece(struct sums *acc, const elem *x, const elem *g, int64_t i, int64_t end, int64_t next_x,
                           int64_t next_g, vec about, const bool backward) {
    const struct pair none = {about, about};
    if (next_x != 0)
        for (; i + PLANE_TURN <= end; i += PLANE_TURN) {
            prefetch_turn(x + i + next_x);
            if (backward) prefetch_turn(g + i + next_g);
            plane_turn(acc, x + i, g + i, about, backward);
        }
    for (; i + PLANE_TURN <= end; i += PLANE_TURN) plane_turn(acc, x + i, g + i, about, backward);
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
NB_INLINE struct totals span_totals(const struct pages *p, int64_t plane_step, struct span s, float about,
                                    const bool backward) {
    const vec zero = vec_set1(0.0f), shift = vec_set1(about);
    struct sums acc[4] = {{zero, zero}, {zero, zero}, {zero, zero}, {zero, zero}};
    struct long_sums total = {{zero, zero}, {zero, zero}};
    const int64_t ahead = PLANE_AHEAD_BYTES / ((s.end - s.begin) * (int64_t)sizeof(elem)) + 1;
    int64_t steps = 0;
    for (int64_t plane = s.plane; plane < s.plane + s.n_planes; plane++) {
        const elem *x = p->x + plane * plane_step * p->x_stride;
        const elem *g = backward ? p->g + plane * plane_step * p->g_stride : x;
        const int64_t next = p->prefetch && plane + ahead < s.plane + s.n_planes ? ahead * plane_step : 0;
        for (int64_t i = s.begin, end; i < s.end; i = end) {
            end = s.end - i < PLANE_STEPS * PLANE_TURN ? s.end : i + PLANE_STEPS * PLANE_TURN;
            plane_piece(acc, x, g, i, end, next * p->x_stride, next * p->g_stride, shift, backward);
            steps += (end - i + PLANE_TURN - 1) / PLANE_TURN;
            if (steps < PLANE_STEPS) continue;
            flush(&total, acc);
            steps = 0;
        }
    }
    flush(&total, acc);
    return (struct totals){lanes_total(total.high.sum, total.low.sum),
                           lanes_total(total.high.product, total.low.product)};
}

/* Turns between two flushes, the tree over accumulators, the sum of twice the precision and the doubles: one rounding each. */
static inline int64_t slab_planes_chain(const struct nb_call *call) {
    const int64_t plane = (call->hw + PLANE_TURN - 1) / PLANE_TURN;
    const int64_t piece = plane < PLANE_STEPS ? plane : PLANE_STEPS, all = call->n * (plane + BLOCKS_MAX);
    const int64_t turns = PLANE_STEPS - 1 + piece < all ? PLANE_STEPS - 1 + piece : all;
    return turns + 2 + 2;
}

#endif
