// SPDX-License-Identifier: Apache-2.0
/* Correct kernels to be run through a test: designs that differ in order alone, and the built-in kernels of the same formula. */
#ifndef NB_TOLERANCE_SUBJECTS_H
#define NB_TOLERANCE_SUBJECTS_H

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

#endif
