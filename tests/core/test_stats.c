// SPDX-License-Identifier: Apache-2.0
/* Medians and intervals against values worked out by hand, by enumeration and by simulation. */
#include <criterion/criterion.h>
#include <math.h>

#include "src/core/stats.c"
#include "tests/support/numerics.h"

Test(stats, medians_and_quantiles_interpolate_and_leave_the_input_alone) {
    double v[] = {4, 1, 3, 2};
    cr_expect_eq(nb_median(v, 4), 2.5);
    cr_expect_eq(nb_median(v, 3), 3);
    cr_expect_eq(nb_quantile(v, 4, 0), 1);
    cr_expect_eq(nb_quantile(v, 4, 1), 4);
    cr_expect_float_eq(nb_quantile(v, 4, 0.25), 1.75, 1e-15);
    cr_expect(v[0] == 4 && v[3] == 2);
    cr_expect(isnan(nb_median(v, 0)));
    cr_expect(isnan(nb_median((double[]){1, NAN}, 2)));
    cr_expect_eq(nb_median((double[]){7}, 1), 7);
}

/* All 2^n sign patterns. */
static double cdf_by_enumeration(int n, long w) {
    long below = 0;
    for (unsigned signs = 0; signs < 1u << n; signs++) {
        long sum = 0;
        for (int k = 0; k < n; k++) sum += signs >> k & 1 ? k + 1 : 0;
        below += sum <= w;
    }
    return (double)below / (double)(1u << n);
}

/* P(W <= w) of the signed-rank statistic of n values under the null, exactly. */
static double signed_rank_cdf(size_t n, long w) {
    const size_t most = n * (n + 1) / 2;
    if (w < 0) return 0;
    if ((size_t)w >= most) return 1;
    double *p freed = signed_rank_distribution(n, (size_t)w), sum = 0;
    for (long i = 0; i <= w; i++) sum += p[i];
    return sum;
}

Test(stats, the_signed_rank_distribution_is_exact) {
    for (int n = 1; n <= 12; n++)
        for (long w = -1; w <= n * (n + 1) / 2 + 1; w++)
            cr_assert_float_eq(signed_rank_cdf((size_t)n, w), cdf_by_enumeration(n, w), 1e-12, "n %d w %ld", n, w);
    cr_expect_float_eq(signed_rank_cdf(50, 50 * 51 / 4), 0.5, 0.01);
}

Test(stats, six_values_give_the_range_of_their_walsh_averages_and_five_give_no_interval) {
    const double v[] = {3, 1, 4, 1.5, 9, 2.6};
    struct nb_interval i = nb_hodges_lehmann(v, 6, 0.95);
    cr_expect(i.low == 1 && i.high == 9);
    cr_expect_float_eq(i.value, 2.8, 1e-12); /* the 11th of the 21 */
    i = nb_hodges_lehmann(v, 5, 0.95);
    cr_expect(isnan(i.low) && isnan(i.high) && isfinite(i.value));
    i = nb_hodges_lehmann(v, 1, 0.95);
    cr_expect(i.value == 3 && isnan(i.low));
    i = nb_hodges_lehmann((double[]){1, NAN, 2, 3, 4, 5, 6}, 7, 0.95);
    cr_expect(isnan(i.value) && isnan(i.low));
}

Test(stats, higher_confidence_needs_more_values) {
    double v[12];
    for (int i = 0; i < 12; i++) v[i] = i * i;
    for (size_t n = 1; n <= 12; n++) {
        cr_expect_eq(isnan(nb_hodges_lehmann(v, n, 0.95).low), n < 6);
        cr_expect_eq(isnan(nb_hodges_lehmann(v, n, 0.99).low), n < 8);
    }
    /* n = 10: P(W <= 8) = 0.0244, so that the ninth average from either end bounds the interval (Hollander & Wolfe, table A.4) */
    double averages[10];
    for (int i = 0; i < 10; i++) averages[i] = pow(2, i);
    struct nb_interval i = nb_hodges_lehmann(averages, 10, 0.95);
    cr_expect(signed_rank_cdf(10, 8) <= 0.025 && signed_rank_cdf(10, 9) > 0.025);
    int below = 0;
    for (int a = 0; a < 10; a++)
        for (int b = a; b < 10; b++) below += (averages[a] + averages[b]) / 2 < i.low;
    cr_expect_eq(below, 8);
}

Test(stats, intervals_hold_the_true_centre_as_often_as_they_say) {
    uint64_t r = 9;
    int held[3] = {0};
    static const size_t sizes[] = {6, 10, 25};
    const int trials = 4000;
    for (int t = 0; t < trials; t++)
        for (int s = 0; s < 3; s++) {
            double v[25];
            for (size_t i = 0; i < sizes[s]; i++) v[i] = 3 + random_normal(&r) * (nb_random_next(&r) % 4 ? 1 : 8);
            struct nb_interval i = nb_hodges_lehmann(v, sizes[s], 0.95);
            held[s] += i.low <= 3 && 3 <= i.high;
        }
    for (int s = 0; s < 3; s++) {
        double share = (double)held[s] / trials; /* at least 95 %; one standard deviation is 0.35 % */
        cr_expect(share > 0.935 && share < 0.985, "n %zu: %.3f", sizes[s], share);
    }
}
