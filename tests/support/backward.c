// SPDX-License-Identifier: Apache-2.0
/* See tests/support/backward.h. */
#include "tests/support/backward.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"

static void add_tensors(struct backward *b) {
    struct nb_inputs *in = &b->p.in;
    const size_t item = nb_formats[in->dtype].bytes;
    const unsigned long long n = (unsigned long long)(in->rows * in->cols);
    b->p.c.pass = NB_BACKWARD;
    b->p.c.formula.struct_size = sizeof b->p.c.formula;
    in->dy = nb_alloc(n, item);
    in->dresidual_out = nb_alloc(n, item);
    b->n_stats = b->p.c.op == NB_OP_BATCHNORM ? b->p.c.shape.c : in->rows;
    b->mean = nb_alloc((unsigned long long)b->n_stats, sizeof *b->mean);
    b->rstd = nb_alloc((unsigned long long)b->n_stats, sizeof *b->rstd);
}

void backward_init(struct backward *b, uint32_t op, enum nb_dtype dtype, int64_t rows, int64_t cols) {
    problem_init(&b->p, op, dtype, rows, cols);
    add_tensors(b);
}

void backward_init_batchnorm(struct backward *b, uint32_t layout, enum nb_dtype dtype, int64_t n, int64_t channels,
                             int64_t hw) {
    problem_init_batchnorm(&b->p, layout, dtype, n, channels, hw);
    add_tensors(b);
}

void backward_set_dy(struct backward *b, int64_t i, double v) { nb_set(b->p.in.dy, i, b->p.in.dtype, v); }

void backward_fill_normal(struct backward *b, double mean, double sd, uint64_t seed) {
    struct random_state r = {seed ^ 0xdddd};
    problem_fill_normal(&b->p, mean, sd, seed);
    for (int64_t i = 0; i < b->p.in.rows * b->p.in.cols; i++) {
        backward_set_dy(b, i, random_normal(&r));
        nb_set(b->p.in.dresidual_out, i, b->p.in.dtype, random_normal(&r));
    }
    backward_statistics(b);
}

void backward_statistics(struct backward *b) {
    struct nb_oracle o released_by(nb_oracle_release);
    cr_assert_eq(nb_oracle_init(&o, &b->p.c, &b->p.in), 0);
    cr_assert_eq(o.n_truth, b->n_stats);
    nb_gradient_statistics(&o, b->mean, b->rstd);
}

void backward_gradient(struct nb_gradient *g, const struct backward *b) {
    cr_assert_eq(nb_gradient_init(g, &b->p.c, &b->p.in, b->mean, b->rstd), 0);
}

void backward_free(struct backward *b) {
    free(b->p.in.dy);
    free(b->p.in.dresidual_out);
    free(b->mean);
    free(b->rstd);
    problem_free(&b->p);
}
