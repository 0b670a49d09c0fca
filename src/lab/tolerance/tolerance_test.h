// SPDX-License-Identifier: Apache-2.0
/* What tolerances are tried with: tests, and mistakes planted in the outputs of correct kernels. */
#pragma once

#include <stdint.h>

#include "src/accuracy/oracle.h"
#include "src/core/case.h"
#include "src/lab/tolerance/tolerance.h"

/* ---- One test as somebody would write it: some rows, what the outputs should be, and how far a correct kernel may be off each ---- */

struct nb_tolerance_test {
    struct nb_design_rows rows;
    struct nb_design_judge judge;
    int64_t n;       /* elements */
    double *want;    /* what the output is compared with */
    double *allowed; /* |got - want|; infinite: a loss is predicted, and any value is right */
};

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
/* The outputs without a mistake: as the design computes them; and from the exact statistics, rounded once. */
void nb_test_emulate(const struct nb_design *d, const struct nb_tolerance_test *t, double *y);
void nb_test_round(const struct nb_design *d, const struct nb_tolerance_test *t, double *y);
