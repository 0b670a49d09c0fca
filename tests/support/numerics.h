// SPDX-License-Identifier: Apache-2.0
/* Small problems made by hand for the tests of the numerics: a case, its inputs, and random numbers. */
#pragma once

#include <stdint.h>

#include "src/accuracy/gradient.h"
#include "src/core/case.h"
#include "src/plan/inputs.h"

struct problem {
    struct nb_case c;
    struct nb_inputs in;
};

/* Zeroed tensors for rows x cols; eps 1e-5, root mul_recip, gamma 1 and beta 0 in f32. Release with problem_free. */
void problem_init(struct problem *p, uint32_t op, enum nb_dtype dtype, int64_t rows, int64_t cols);
/* The same for BatchNorm, NB_NCHW or NB_NHWC, training. */
void problem_init_batchnorm(struct problem *p, uint32_t layout, enum nb_dtype dtype, int64_t n, int64_t channels,
                            int64_t hw);
void problem_free(struct problem *p);
/* Rounds v to the dtype and stores it as element i of x. */
void problem_set(struct problem *p, int64_t i, double v);
/* Normal x (mean, sd), residual N(0,1), gamma N(1, 0.3), beta N(0, 0.5), all from the seed. */
void problem_fill_normal(struct problem *p, double mean, double sd, uint64_t seed);

struct random_state {
    uint64_t state;
};
uint64_t random_bits(struct random_state *r);
double random_uniform(struct random_state *r); /* [0, 1) */
double random_normal(struct random_state *r);

/* The ops that go over rows, DyT, which has no statistics, at the end. */
enum { N_NORM_OPS = 6, N_ROW_OPS };
extern const uint32_t row_ops[N_ROW_OPS];

/* Rows made to hurt: sums that stagnate, means that cancel, squares at the ends of the range, rows about which fast kernels decide by
 * themselves. Element i of n; of some kinds at random. */
enum { N_HARD_KINDS = 26 };
double hard_value(int kind, int64_t i, int64_t n, struct random_state *r);

/* Small backward problems made by hand: a problem with dy, the gradient past the norm, and the statistics that kernels are given. */

struct backward {
    struct problem p;
    float *mean, *rstd;
    int64_t n_stats;
};

/* As problem_init, backward. */
void backward_init(struct backward *b, uint32_t op, enum nb_dtype dtype, int64_t rows, int64_t cols);
void backward_init_batchnorm(struct backward *b, uint32_t layout, enum nb_dtype dtype, int64_t n, int64_t channels,
                             int64_t hw);
/* Normal x (mean, sd), dy and dresidual_out N(0,1), parameters as problem_fill_normal draws them; then the statistics. */
void backward_fill_normal(struct backward *b, double mean, double sd, uint64_t seed);
/* mean and rstd from x, as the oracle has them. */
void backward_statistics(struct backward *b);
void backward_set_dy(struct backward *b, int64_t i, double v);
void backward_gradient(struct nb_gradient *g, const struct backward *b); /* asserts */
void backward_free(struct backward *b);
