// SPDX-License-Identifier: Apache-2.0
/* Order statistics by sorting copies: they are samples and launches, tens to thousands of them. */
#include "src/core/stats.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool any_nan(const double *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (isnan(v[i])) return true;
    return false;
}

void nb_sort(double *v, size_t n) { qsort(v, n, sizeof *v, compare_doubles); }

/* Linear between order statistics, as NumPy's default (type 7 of Hyndman & Fan 1996). */
static double sorted_quantile(const double *v, size_t n, double q) {
    double at = q * (double)(n - 1);
    size_t below = (size_t)at;
    if (below + 1 >= n) return v[n - 1];
    double share = at - (double)below;
    return share == 0 ? v[below] : v[below] + share * (v[below + 1] - v[below]);
}

double nb_quantile(const double *v, size_t n, double q) {
    assert(q >= 0 && q <= 1);
    if (n == 0 || any_nan(v, n) || !(q >= 0 && q <= 1)) return NAN;
    double *sorted freed = nb_alloc(n, sizeof *sorted);
    memcpy(sorted, v, n * sizeof *sorted);
    nb_sort(sorted, n);
    return sorted_quantile(sorted, n, q);
}

double nb_median(const double *v, size_t n) { return nb_quantile(v, n, 0.5); }

double nb_rms(const double *v, int64_t n) {
    double squares = 0, finite = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) continue;
        squares += v[i] * v[i];
        finite++;
    }
    return finite > 0 ? sqrt(squares / finite) : 0;
}

/* Rank k joins the sum or not, each with probability 1/2: p_k(w) = (p_(k-1)(w) + p_(k-1)(w - k)) / 2. Only sums up to `last`
 * are kept. */
static double *signed_rank_distribution(size_t n, size_t last) {
    double *p = nb_alloc(last + 1, sizeof *p);
    p[0] = 1;
    for (size_t k = 1; k <= n; k++)
        for (size_t w = last + 1; w-- > 0;) p[w] = 0.5 * (p[w] + (w >= k ? p[w - k] : 0));
    return p;
}

/* The largest c with P(W <= c) <= alpha / 2, or -1: the interval leaves out c + 1 Walsh averages on either side, less one. */
static long critical_value(size_t n, double alpha) {
    const size_t half = n * (n + 1) / 4; /* P(W <= half) is about 1/2 */
    double *p freed = signed_rank_distribution(n, half), sum = 0;
    long c = -1;
    for (size_t w = 0; w <= half; w++) {
        sum += p[w];
        if (sum > alpha / 2) break;
        c = (long)w;
    }
    return c;
}

struct nb_interval nb_hodges_lehmann(const double *v, size_t n, double confidence) {
    assert(confidence > 0 && confidence < 1);
    struct nb_interval result = {NAN, NAN, NAN};
    if (n == 0 || any_nan(v, n)) return result;
    const size_t n_pairs = n * (n + 1) / 2;
    double *walsh freed = nb_alloc(n_pairs, sizeof *walsh);
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) walsh[at++] = v[i] + (v[j] - v[i]) / 2;
    nb_sort(walsh, n_pairs);
    result.value = sorted_quantile(walsh, n_pairs, 0.5);
    const long c = critical_value(n, 1 - confidence);
    if (c >= 0) {
        result.low = walsh[c];
        result.high = walsh[n_pairs - 1 - (size_t)c];
    }
    return result;
}

/* ---- proportions ---- */

/* The bounds are where the binomial tail equals 1 - confidence, found by bisection. */

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
