// SPDX-License-Identifier: Apache-2.0
/* Ours against others: what the summary makes of comparisons, and what its lines name. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "src/peers/peer_comparison.h"

Test(comparison_page, one_cell_far_off_moves_the_mean_and_not_the_median) {
    static const double ratios[] = {4137, 1.5, 2, 1.8, 2.5};
    enum { N = sizeof ratios / sizeof ratios[0] };
    const struct nb_record theirs = {.c = {.op = NB_OP_RMSNORM}};
    struct nb_peer_comparison items[N];
    struct nb_peer_mean *means;
    for (int i = 0; i < N; i++)
        items[i] = (struct nb_peer_comparison){.theirs = &theirs,
                                               .library = "theirs",
                                               .ratio = {ratios[i], 0.9 * ratios[i], 1.1 * ratios[i]},
                                               .verdict = NB_PEER_COMPARISON_AHEAD};
    const struct nb_peer_comparisons comparisons = {.items = items, .n = N};
    cr_assert_eq(nb_peer_means(&comparisons, &means), 1);
    cr_expect_float_eq(means[0].median, 2, 1e-12);
    cr_expect_gt(means[0].ratio.value, 8);
    cr_expect_eq(means[0].most, 4137);
    free(means);
    items[0].verdict = NB_PEER_COMPARISON_UNKNOWN;
    cr_assert_eq(nb_peer_means(&comparisons, &means), 1);
    cr_expect_float_eq(means[0].median, 1.9, 1e-12, "of those with a figure");
    free(means);
}
