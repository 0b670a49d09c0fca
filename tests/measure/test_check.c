// SPDX-License-Identifier: Apache-2.0
/* A kernel that is called on and on: a fault is seen in whichever of the calls it comes. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "src/core/case.h"
#include "src/core/log.h"
#include "src/measure/check.h"
#include "tests/plugins/rows.h"
#include "tests/support/cases.h"
#include "tests/support/numerics.h"

static int64_t n_calls, wrong_call;

static int run(ROWS) {
    correct_rows(call, begin, end);
    if (++n_calls == wrong_call) row_y(call, 0)[0] += 1;
    return 0;
}

static const struct nb_kernel kernel = {OF_ROWS, .name = "sometimes", .variant = "sometimes_f32", .run = run};

static struct nb_checked check(const struct nb_case *c) {
    const struct nb_entry entry = {.kernel = &kernel, .file = "sometimes"};
    struct solved s released_by(solved_release) = {.c = *c, .entry = &entry};
    solve(&s, false);
    n_calls = 0;
    struct nb_checked checked = checked_by(&s);
    nb_check_on(c, &entry, &s.in, &checked);
    free(checked.digests);
    return checked;
}

/* Of kernels that are wrong in any call with a chance of 1 / N, n calls find 1 - (1 - 1 / N)^n. */
Test(check, a_fault_is_seen_in_whichever_call_it_comes) {
    enum { KERNELS = 200, ONE_OF = 2000 };
    struct nb_case c;
    int n_found = 0;
    int64_t most = 0;
    uint64_t random = 7;
    cr_assert_eq(nb_case_parse(&c, "sometimes_f32/shape:2x16/data:normal/affine:none"), 0);
    for (int i = 0; i < KERNELS; i++) {
        wrong_call = 1 + (int64_t)(log1p(-random_uniform(&random)) / log1p(-1.0 / ONE_OF));
        const struct nb_checked checked = check(&c);
        cr_expect_eq(checked.status != NB_OK, n_calls >= wrong_call, "call %lld of %lld: %s", (long long)wrong_call,
                     (long long)n_calls, checked.reason);
        n_found += checked.status != NB_OK;
        most = n_calls > most ? n_calls : most;
    }
    const double share = 1 - pow(1 - 1.0 / ONE_OF, (double)most), sigma = sqrt(KERNELS * share * (1 - share));
    cr_expect(fabs(n_found - KERNELS * share) < 4 * sigma, "%d of %d in %lld calls", n_found, KERNELS, (long long)most);
}
