// SPDX-License-Identifier: Apache-2.0
/* Which baseline copy is the fastest: by pairs of neighbouring samples, also where a neighbour slows some blocks, or an arm sits some out. */
#include <criterion/criterion.h>

#include "src/measure/copies_job.c"

/* The second copy is a tenth faster than the first in every block; later blocks are slowed, and the second took part in more of these. */
Test(copies, the_faster_one_is_so_in_the_same_blocks) {
    double first_ns[TRIAL_BLOCKS], second_ns[TRIAL_BLOCKS];
    for (int b = 0; b < TRIAL_BLOCKS; b++) {
        const double slowed = b < TRIAL_BLOCKS / 2 ? 1 : 2;
        first_ns[b] = b % 3 == 0 && slowed > 1 ? NAN : 100 * slowed;
        second_ns[b] = b % 2 == 0 && slowed == 1 ? NAN : 90 * slowed;
    }
    const struct nb_arm first = {.sample_ns = first_ns}, second = {.sample_ns = second_ns};
    const double base_ns = paired_ns(&first, &first), other_ns = paired_ns(&second, &first);
    cr_expect(isfinite(base_ns) && isfinite(other_ns), "a block without a sample loses a candidate");
    cr_expect_float_eq(other_ns / base_ns, 0.9, 1e-12);
}
