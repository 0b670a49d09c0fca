// SPDX-License-Identifier: Apache-2.0
/* Small problems made by hand for the tests of the numerics: a case, its inputs, and random numbers. */
#pragma once

#include <stdint.h>

#include "src/accuracy/gradient.h"
#include "src/core/case.h"
#include "src/core/random.h"
#include "src/lab/emulate/design.h"
#include "src/plan/inputs.h"

struct problem {
    struct nb_case c;
    struct nb_inputs in;
    float *mean, *rstd; /* backward: the statistics that kernels are given */
    int64_t n_stats;
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
/* What is exact of it, which it must outlive. */
struct nb_oracle oracle_of(const struct problem *p);
/* A formula and a set of properties, of those that are defined; after the rows, whose length bounds k. */
void draw_formula(struct problem *p, uint64_t *r);

/* splitmix64, in core/random.h; in [0, 1); standard normal. */
double random_uniform(uint64_t *r);
double random_normal(uint64_t *r);

/* The ops that go over rows, DyT, which has no statistics, at the end. */
enum { N_NORM_OPS = 6, N_ROW_OPS };
extern const uint32_t row_ops[N_ROW_OPS];

/* A design by its text. */
struct nb_design parsed(const char *text);

/* Rows made to hurt: sums that stagnate, means that cancel, squares at the ends of the range, rows about which fast kernels decide by
 * themselves. Element i of n; of some kinds at random. */
enum { N_HARD_KINDS = 26 };
double hard_value(int kind, int64_t i, int64_t n, uint64_t *r);

/* As problem_init, with dy and the gradient past the norm. */
void backward_init(struct problem *b, uint32_t op, enum nb_dtype dtype, int64_t rows, int64_t cols);
void backward_init_batchnorm(struct problem *b, uint32_t layout, enum nb_dtype dtype, int64_t n, int64_t channels,
                             int64_t hw);
/* Normal x (mean, sd), dy and dresidual_out N(0,1), parameters as problem_fill_normal draws them; then the statistics. */
void backward_fill_normal(struct problem *b, double mean, double sd, uint64_t seed);
/* mean and rstd from x, as the oracle has them. */
void backward_statistics(struct problem *b);
void backward_set_dy(struct problem *b, int64_t i, double v);
struct nb_gradient backward_gradient(const struct problem *b);
