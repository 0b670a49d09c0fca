// SPDX-License-Identifier: Apache-2.0
/* One test as somebody would write it: some rows, what the exact outputs are, and how far a correct kernel may be off each. */
#ifndef NB_TOLERANCE_TEST_H
#define NB_TOLERANCE_TEST_H

#include "src/accuracy/truth.h"
#include "src/core/case.h"
#include "src/lab/tolerance/tolerance.h"

struct nb_tolerance_test {
    struct nb_design_rows rows;
    struct nb_case c;
    int64_t n;                      /* elements */
    double *exact, *want, *allowed; /* want: what the output is compared with; allowed: |got - want| */
    double *gamma, *beta;           /* borrowed from rows; null for 1 and 0 */
    bool *usable;                   /* false: a loss is predicted, and any value is right */
    struct nb_row_truth *truth;     /* by row */
    int64_t n_lost;
};

/* How many tests the data has: of a distribution as many as one likes (INT64_MAX), of a file what its rows suffice for. -1 after
 * nb_error. */
int64_t nb_tolerance_tests(const struct nb_tolerance_request *request);
/* Test number `index`, with the bound for a chain of so many roundings. -1 after nb_error. */
int nb_tolerance_test_init(struct nb_tolerance_test *t, const struct nb_tolerance_request *request, int64_t chain,
                           int64_t index);
void nb_tolerance_test_release(struct nb_tolerance_test *t);

#endif
