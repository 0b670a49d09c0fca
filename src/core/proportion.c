// SPDX-License-Identifier: Apache-2.0
/* The bounds are where the binomial tail equals 1 - confidence, found by bisection. */
#include "src/core/proportion.h"

#include <math.h>

/* P(X <= k), X binomial(n, p), 0 < p < 1, summed from its largest term downwards. */
static double at_most(int64_t k, int64_t n, double p) {
    double sum = 0;
    const double log_p = log(p), log_q = log1p(-p), total = lgamma((double)n + 1);
    for (int64_t i = k; i >= 0; i--) {
        const double term = exp(total - lgamma((double)i + 1) - lgamma((double)(n - i) + 1) + (double)i * log_p +
                                (double)(n - i) * log_q);
        sum += term;
        if (term < 1e-17 * sum && (double)i < p * (double)n) break;
    }
    return sum;
}

double nb_proportion_upper(int64_t k, int64_t n, double confidence) {
    if (n <= 0 || k >= n) return 1;
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) {
        const double p = (low + high) / 2;
        if (at_most(k, n, p) > 1 - confidence)
            low = p;
        else
            high = p;
    }
    return high;
}

double nb_proportion_lower(int64_t k, int64_t n, double confidence) {
    return n <= 0 ? 0 : 1 - nb_proportion_upper(n - k, n, confidence);
}
