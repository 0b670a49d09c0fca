// SPDX-License-Identifier: Apache-2.0
/* Small backward problems made by hand: a problem with dy, the gradient past the norm, and the statistics that kernels are given. */
#pragma once

#include "src/accuracy/gradient.h"
#include "tests/support/numerics.h"

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
