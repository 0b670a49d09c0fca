// SPDX-License-Identifier: Apache-2.0
/* What a tolerance is derived from and tried with: a cloud of allowed errors, tests, criteria, correct kernels, planted mistakes. */
#ifndef NB_TOLERANCE_TEST_H
#define NB_TOLERANCE_TEST_H

#include <stdint.h>

#include "src/accuracy/oracle.h"
#include "src/core/case.h"
#include "src/lab/tolerance/tolerance.h"

/* ---- The line atol + rtol |y| above a cloud of points (|y|, allowed error) that is lowest at a given |y| ---- */

/* Points in bins of |y|, 256 to the octave; each bin keeps its largest error and counts it at its smallest |y|. All 0 at first. */
struct nb_cloud {
    double *largest; /* owned; null: no point yet */
    double sum_squares;
    int64_t n;
};
void nb_cloud_add(struct nb_cloud *c, double y, double error);
double nb_cloud_rms(const struct nb_cloud *c);
/* Not negative; both rounded up to three digits. */
void nb_cloud_line(const struct nb_cloud *c, double *rtol, double *atol);

/* v rounded up to three significant decimal digits. */
double nb_round_up(double v);

/* ---- One test as somebody would write it: some rows, what the exact outputs are, and how far a correct kernel may be off each ---- */

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

/* ---- Does an output pass a criterion? ---- */

/* Appends the criteria in common use for outputs of the format. */
void nb_criteria_in_use(struct nb_tolerance *t, enum nb_number store);
/* A test of rows x cols outputs; usable: null, or false for elements that no criterion looks at. True: it fails. */
bool nb_criterion_alarms(const struct nb_criterion *c, enum nb_number store, int64_t rows, int64_t cols,
                         const double *got, const double *want, const bool *usable);
/* Mean over |want| > rms(want) / 4 of each row of (|got| - |want|) / |want|; NaN without such elements. */
double nb_mean_error(int64_t rows, int64_t cols, const double *got, const double *want, const bool *usable);

/* ---- The smallest error of the scale, or shift of all outputs, that a criterion sees ---- */

enum nb_fault_kind { NB_FAULT_GAIN, NB_FAULT_OFFSET };

/* Of one test: the exact outputs times 1 + g, or plus g rms(y), rounded to the store; g is found by bisection to 5 %.
 * Infinity: 1 is not seen; 0: the exact outputs, rounded, fail already. */
double nb_least_seen(const struct nb_criterion *c, enum nb_number store, const struct nb_tolerance_test *t,
                     enum nb_fault_kind kind);

/* ---- Mistakes that norm kernels are known for, to be planted ---- */

struct nb_bug_row;
struct nb_bug {
    const char *name, *help;
    bool needs_gamma;
    bool (*change)(struct nb_design *d);         /* a mistake of the arithmetic, which is emulated; or null */
    bool (*corrupt)(const struct nb_bug_row *r); /* a mistake of the formula or the indices */
};
extern const struct nb_bug nb_bugs[];
extern const size_t nb_n_bugs;

/* got: the outputs with the mistake. False: it does not apply. */
bool nb_bug_run(const struct nb_bug *bug, const struct nb_design *d, const struct nb_tolerance_test *t, double *got);
/* The outputs without a mistake: as the design computes them, and from the exact statistics, rounded once. */
void nb_bug_free(const struct nb_design *d, const struct nb_tolerance_test *t, double *emulated, double *exact);

#endif
