// SPDX-License-Identifier: Apache-2.0
/* Means of logarithms, and what an independent error of each makes of their interval. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/stats.h"
#include "src/peers/peer_comparison.h"

static bool together(const struct nb_peer_comparison *a, const struct nb_peer_comparison *b) {
    const struct nb_case *p = &a->theirs->c, *q = &b->theirs->c;
    return strcmp(a->library, b->library) == 0 && p->op == q->op && p->pass == q->pass &&
           p->shape.layout == q->shape.layout;
}

static double median_attained(const struct nb_peer_comparisons *d, const struct nb_peer_comparison *first) {
    double *shares = nb_alloc(d->n + 1, sizeof *shares), median = NAN;
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct nb_record *ours = d->items[i].ours;
        if (together(first, &d->items[i]) && ours && ours->has_timing && isfinite(ours->timing.attainable.share.value))
            shares[n++] = ours->timing.attainable.share.value;
    }
    if (n > 0) median = nb_median(shares, n);
    free(shares);
    return median;
}

static struct nb_peer_mean mean_of(const struct nb_peer_comparisons *d, const struct nb_peer_comparison *first) {
    struct nb_peer_mean m = {
        .first = first, .ratio = {NAN, NAN, NAN}, .median = NAN, .least = INFINITY, .most = -INFINITY};
    double sum = 0, squares = 0, *ratios = nb_alloc(d->n, sizeof *ratios);
    for (size_t i = 0; i < d->n; i++) {
        const struct nb_peer_comparison *comparison = &d->items[i];
        if (!together(first, comparison)) continue;
        m.n_of[comparison->verdict]++;
        if (comparison->verdict == NB_PEER_COMPARISON_UNKNOWN) continue;
        const double half = log(comparison->ratio.high / comparison->ratio.low) / 2;
        sum += log(comparison->ratio.value);
        squares += half * half;
        m.least = fmin(m.least, comparison->ratio.value);
        m.most = fmax(m.most, comparison->ratio.value);
        ratios[m.n++] = comparison->ratio.value;
    }
    if (m.n > 0) {
        const double n = (double)m.n, mean = sum / n, half = sqrt(squares) / n;
        m.ratio = (struct nb_interval){exp(mean), exp(mean - half), exp(mean + half)};
        m.median = nb_median(ratios, m.n);
    }
    free(ratios);
    m.attained = median_attained(d, first);
    return m;
}

size_t nb_peer_means(const struct nb_peer_comparisons *d, struct nb_peer_mean **out) {
    struct nb_peer_mean *means = nb_alloc(d->n + 1, sizeof *means);
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        bool is_new = true;
        for (size_t j = 0; j < i && is_new; j++) is_new = !together(&d->items[j], &d->items[i]);
        if (is_new) means[n++] = mean_of(d, &d->items[i]);
    }
    *out = means;
    return n;
}
