// SPDX-License-Identifier: Apache-2.0
/* The accumulators are followed as the kernel is thought to have them. Sums are formed in double, where an f32 or narrower
 * accumulator plus a product of two such numbers is off by 2^-53 of itself at most: far below what is looked for. */
#include "src/lab/stress/greedy.h"

#include <assert.h>
#include <math.h>

#include "src/core/random.h"

enum { MAX_LEVELS = 64 };

/* Lanes, or for pairwise sums the finished blocks of each size that wait for their other half, and the leaf that is being filled. */
struct sums {
    const struct nb_sum_order *order;
    double lanes[NB_MAX_LANES];
    double levels[MAX_LEVELS], leaf;
    int64_t n_leaves; /* finished */
    int64_t n;        /* elements */
};

static double rounded(const struct sums *s, double v) {
    return s->order->sum == NB_F32 ? (double)(float)v : nb_round_to(v, s->order->sum);
}

static double addend(const struct sums *s, double x) {
    if (!s->order->squares) return x;
    double d = x - s->order->about;
    if (s->order->about != 0) d = rounded(s, d);
    return s->order->fused ? d * d : rounded(s, d * d);
}

/* acc + q as rounded; adds its error to *error. */
static double added(const struct sums *s, double acc, double q, double *error) {
    const double exact = acc + q, result = rounded(s, exact);
    *error += result - exact;
    return result;
}

/* The leaf that is full joins the waiting halves, as a binary counter carries. */
static double carried(const struct sums *s, double leaf, int *level, double *error) {
    double sum = leaf;
    *level = 0;
    for (int64_t leaves = s->n_leaves; leaves & 1; leaves >>= 1) sum = added(s, s->levels[(*level)++], sum, error);
    return sum;
}

static double error_of(const struct sums *s, double x) {
    double error = 0;
    int level;
    const double q = addend(s, x);
    if (s->order->lanes > 0) {
        added(s, s->lanes[s->n % s->order->lanes], q, &error);
        return error;
    }
    const double leaf = added(s, s->leaf, q, &error);
    if ((s->n + 1) % s->order->leaf == 0) carried(s, leaf, &level, &error);
    return error;
}

static void take(struct sums *s, double x) {
    double error = 0;
    const double q = addend(s, x);
    if (s->order->lanes > 0) {
        double *lane = &s->lanes[s->n % s->order->lanes];
        *lane = added(s, *lane, q, &error);
    } else {
        s->leaf = added(s, s->leaf, q, &error);
        if ((s->n + 1) % s->order->leaf == 0) {
            int level;
            const double sum = carried(s, s->leaf, &level, &error);
            s->levels[level] = sum;
            s->n_leaves++;
            s->leaf = 0;
        }
    }
    s->n++;
}

void nb_greedy_row(const struct nb_greedy *g, int64_t n, double *x) {
    assert(g->best_of >= 1 && g->order.lanes <= NB_MAX_LANES && (g->order.lanes > 0 || g->order.leaf > 0));
    const struct nb_random random = nb_random_stream(g->seed, 0);
    struct sums s = {.order = &g->order};
    for (int64_t i = 0; i < n; i++) {
        double best = -INFINITY;
        for (int k = 0; k < g->best_of; k++) {
            const uint64_t at = (uint64_t)i * (uint64_t)g->best_of + (uint64_t)k;
            const double v = nb_round_to(g->offset + g->scale * nb_random_normal(random, at), g->dtype);
            const double error = g->sign * error_of(&s, v);
            if (!(error > best)) continue;
            best = error;
            x[i] = v;
        }
        take(&s, x[i]);
    }
}
