// SPDX-License-Identifier: Apache-2.0
/* Progress where stderr is no terminal: a line every half minute, with the time left, and none with --quiet. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <math.h>

#include "src/core/log.h"

Test(progress_lines, a_log_gets_one_every_half_minute) {
    cr_redirect_stderr();
    for (int s = 1; s <= 100; s++) nb_progress(s, 400, s, "timing 8x512");
    cr_assert_stderr_eq_str("normbench: 8% after 30 s: timing 8x512\n"
                            "normbench: 15% after 60 s, 340 s left: timing 8x512\n"
                            "normbench: 22% after 90 s, 310 s left: timing 8x512\n");
}

Test(progress_lines, another_stage_begins_anew) {
    cr_redirect_stderr();
    nb_progress(1, 400, 100, "checking");
    nb_progress(1, 10, 5, "timing");
    nb_progress(2, 10, 29, "timing");
    nb_progress(9, 10, 45, "timing");
    cr_assert_stderr_eq_str("normbench: 0% after 100 s: checking\nnormbench: 90% after 45 s, 5 s left: timing\n");
}

/* Of a total that is not known: what is known of it. */
Test(progress_lines, an_open_total_gives_a_range) {
    cr_redirect_stderr();
    nb_progress_between(30, 63, 117, 30, "timing");
    nb_progress_between(60, 66, 66, 60, "timing");
    nb_progress_between(90, 100, INFINITY, 90, "timing");
    cr_assert_stderr_eq_str("normbench: 26% after 30 s, 33 to 87 s left: timing\n"
                            "normbench: 91% after 60 s, 6 s left: timing\n"
                            "normbench: 90% after 90 s, at least 10 s left: timing\n");
}
