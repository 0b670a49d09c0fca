// SPDX-License-Identifier: Apache-2.0
/* Correct kernels to be run through a test: designs that differ in order alone, and the built-in kernels of the same formula. */
#ifndef NB_TOLERANCE_BUGS_H
#define NB_TOLERANCE_BUGS_H

#include "src/lab/tolerance/tolerance_test.h"

struct nb_correct {
    char name[96];
    struct nb_design design;       /* emulated, unless */
    const struct nb_entry *kernel; /* not null */
};
/* Those whose chain of roundings is no longer than `chain`; the request's own design first. Returns how many. */
int nb_correct_list(const struct nb_tolerance_request *q, int64_t chain, struct nb_correct *list, int most);
/* got: the outputs of the test's rows. -1 with the reason written. */
int nb_correct_run(const struct nb_correct *s, const struct nb_tolerance_test *t, double *got, char *reason,
                   size_t size);
/* The case of a kernel for the rows of a test; shape and formula as the design has them. */
void nb_tolerance_kernel_case(struct nb_case *c, const struct nb_design *d, const struct nb_entry *entry, int64_t rows,
                              int64_t cols, enum nb_affine affine);

/* ---- Mistakes that norm kernels are known for, to be planted ---- */

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
