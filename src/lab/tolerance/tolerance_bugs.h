// SPDX-License-Identifier: Apache-2.0
/* Mistakes that norm kernels are known for, to be planted. */
#ifndef NB_TOLERANCE_BUGS_H
#define NB_TOLERANCE_BUGS_H

#include "src/lab/tolerance/tolerance_test.h"

struct nb_bug {
    const char *name, *help;
    /* A mistake of the arithmetic: changes the design. False: it does not apply. Null: corrupt instead. */
    bool (*change)(struct nb_design *d, const struct nb_tolerance_test *t);
    /* A mistake of the formula or the indices: y of one row from the exact statistics, rounded once; false: it does not apply. */
    bool (*corrupt)(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y);
};
extern const struct nb_bug nb_bugs[];
extern const size_t nb_n_bugs;

/* got: the outputs with the mistake. False: it does not apply. */
bool nb_bug_run(const struct nb_bug *bug, const struct nb_design *d, const struct nb_tolerance_test *t, double *got);
/* The outputs without a mistake: as the design computes them, and from the exact statistics, rounded once. */
void nb_bug_free(const struct nb_design *d, const struct nb_tolerance_test *t, double *emulated, double *exact);

#endif
