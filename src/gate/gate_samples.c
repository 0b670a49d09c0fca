// SPDX-License-Identifier: Apache-2.0
/* Pairs within a block share the machine's mood, so that a preemption or a drift that hits both cancels; the median forgets
 * what hits only one. */
#include "src/gate/gate_samples.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/core/stats.h"

void nb_gate_samples_release(struct nb_gate_samples *s) {
    free(s->ns);
    free(s->position);
    free(s->contaminated);
    *s = (struct nb_gate_samples){0};
}

int nb_gate_samples_read(struct nb_gate_samples *s, const cJSON *arm) {
    const cJSON *samples = cJSON_GetObjectItemCaseSensitive(arm, "sample_ns"), *item;
    const cJSON *positions = cJSON_GetObjectItemCaseSensitive(arm, "position");
    const cJSON *contaminated = cJSON_GetObjectItemCaseSensitive(arm, "contaminated");
    const int n = cJSON_GetArraySize(samples);
    if (n < 1 || cJSON_GetArraySize(positions) != n) return -1;
    *s = (struct nb_gate_samples){nb_alloc((unsigned)n, sizeof(double)), nb_alloc((unsigned)n, sizeof(int)),
                                  nb_alloc((unsigned)n, sizeof(bool)), 0};
    cJSON_ArrayForEach(item, samples) s->ns[s->n++] = cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
    int at = 0;
    cJSON_ArrayForEach(item, positions) s->position[at++] = item->valueint;
    cJSON_ArrayForEach(item, contaminated) if (item->valueint >= 0 && item->valueint < n)
        s->contaminated[item->valueint] = true;
    return 0;
}

static bool is_among(enum nb_pairs which, int block, bool first) {
    const bool half_a = block / 2 % 2 == 0;
    switch (which) {
    case NB_PAIRS_FIRST:
        return first;
    case NB_PAIRS_SECOND:
        return !first;
    case NB_PAIRS_HALF_A:
        return half_a;
    case NB_PAIRS_HALF_B:
        return !half_a;
    default:
        return true;
    }
}

double nb_gate_paired(const struct nb_gate_samples *b, const struct nb_gate_samples *a, enum nb_pairs which) {
    const int n = a->n < b->n ? a->n : b->n;
    double *ratios = nb_alloc((unsigned)n + 1, sizeof *ratios);
    size_t kept = 0;
    for (int i = 0; i < n; i++) {
        const double ratio = log(b->ns[i] / a->ns[i]);
        if (isfinite(ratio) && is_among(which, i, b->position[i] < a->position[i])) ratios[kept++] = ratio;
    }
    const double median = kept ? nb_median(ratios, kept) : (double)NAN;
    free(ratios);
    return median;
}

double nb_gate_fastest(const struct nb_gate_samples *s) {
    double least = INFINITY;
    for (int i = 0; i < s->n; i++) least = fmin(least, s->ns[i]);
    return least;
}

double nb_gate_median_ns(const struct nb_gate_samples *s) {
    double *finite = nb_alloc((unsigned)s->n + 1, sizeof *finite);
    size_t n = 0;
    for (int i = 0; i < s->n; i++)
        if (isfinite(s->ns[i])) finite[n++] = s->ns[i];
    const double median = n ? nb_median(finite, n) : (double)NAN;
    free(finite);
    return median;
}

double nb_gate_contaminated(const struct nb_gate_samples *b, const struct nb_gate_samples *a) {
    int hit = 0, n = 0;
    for (int i = 0; i < a->n && i < b->n; i++) {
        if (!isfinite(a->ns[i]) || !isfinite(b->ns[i])) continue;
        n++;
        hit += a->contaminated[i] || b->contaminated[i];
    }
    return n ? (double)hit / n : (double)NAN;
}
