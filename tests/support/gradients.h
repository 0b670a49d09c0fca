// SPDX-License-Identifier: Apache-2.0
/* Backward calls over rows, with tensors of their own, and what the formulas of kernels/kernel.h make of them in plain double. */
#ifndef NB_TEST_SUPPORT_GRADIENTS_H
#define NB_TEST_SUPPORT_GRADIENTS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

/* A tensor amid bytes that no kernel may touch. */
struct guarded {
    unsigned char *area;
    size_t bytes, offset;
};

/* Exact results are packed, rows x cols; *_size is the sum of the magnitudes of what was added up. */
struct gradient_problem {
    struct nb_call call;
    enum nb_op op;
    enum nb_dtype dtype;
    struct guarded x, dy, past, dx, dgamma, dbeta;
    void *gamma;
    double *dx_exact, *dx_size, *dgamma_exact, *dgamma_size, *dbeta_exact, *dbeta_size;
};

/* turn: which formula, padding, misalignment and k. */
void gradient_problem_init(struct gradient_problem *p, enum nb_op op, enum nb_dtype dtype, int64_t rows, int64_t cols,
                           int64_t turn);
/* dy of ones. */
void gradient_problem_ones(struct gradient_problem *p);
/* dy of 2^row, whose exact sums say which rows they have. */
void gradient_problem_powers(struct gradient_problem *p);
/* Outputs as no kernel leaves them. */
void gradient_problem_poison(struct gradient_problem *p);
/* The largest error of an output, in units of what h roundings of the sums and the last one to the dtype may make of it: right up
 * to 1. NaN is infinite. */
double gradient_problem_error(const struct gradient_problem *p, double chain, double column_chain);
/* Bytes of the outputs that lie outside their rows and are not as they were. */
size_t gradient_problem_damage(const struct gradient_problem *p);
/* All outputs, margins and all: a number that other bits would change. */
uint64_t gradient_problem_hash(const struct gradient_problem *p);
void gradient_problem_release(struct gradient_problem *p);

#endif
