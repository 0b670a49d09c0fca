// SPDX-License-Identifier: Apache-2.0
/* What sublayers keep and pass back inside is rounded too, where mixed precision stores it. */
#include <criterion/criterion.h>

#include "src/core/dtype.h"
#include "src/core/random.h"
#include "src/train/tensor.h"
#include "src/train/transformer.c"
#include "tests/support/train.h"

enum { ROWS = 12, HIDDEN = 16, N = ROWS * HIDDEN };

struct inside {
    struct nb_model model;
    float x[N], dy[N], y[N], dx[N];
};

static void begin(struct inside *t, enum nb_dtype dtype) {
    *t = (struct inside){0};
    t->model.options = nb_test_train_options(NB_NORM_RMSNORM, NB_FUSED, NB_PRE_NORM);
    t->model.options.dtype = dtype;
    t->model.options.norm.eps = 1e-5;
    nb_test_load_kernels();
    cr_assert_eq(nb_matrix_open(1), 0);
    for (int i = 0; i < N; i++) {
        t->x[i] = (float)nb_round_to(nb_random_normal(nb_random_stream(1, 1), (uint64_t)i), dtype);
        t->dy[i] = (float)nb_round_to(nb_random_normal(nb_random_stream(1, 2), (uint64_t)i), dtype);
    }
}

/* Rounded, and not by chance: something that f32 would hold more finely was there. */
static void expect_rounded(const char *what, const float *values, int64_t n, enum nb_dtype dtype) {
    int64_t rounded = 0;
    const enum nb_dtype coarse = dtype == NB_F32 ? NB_BF16 : dtype;
    for (int64_t i = 0; i < n; i++) rounded += nb_round_to(values[i], coarse) == (double)values[i];
    if (dtype == NB_F32)
        cr_assert_lt(rounded, n, "%s in f32 is not rounded", what);
    else
        cr_assert_eq(rounded, n, "%s in %s: %lld of %lld", what, nb_formats[dtype].name, (long long)rounded,
                     (long long)n);
}

Test(train_rounding, inside_the_feed_forward_sublayer) {
    for (enum nb_dtype dtype = NB_F32; dtype < NB_N_DTYPES; dtype++)
        for (int gated = 0; gated < 2; gated++) {
            struct inside t;
            struct feed_forward f;
            struct feed_forward_buffers buffers = {0};
            struct nb_transformer_shape shape = nb_test_transformer_shape;
            const int64_t n = (int64_t)ROWS * shape.ffn;
            shape.swiglu = gated;
            begin(&t, dtype);
            feed_forward_init(&f, "f", &t.model, &shape, &buffers);
            nb_parameters_round(&t.model.parameters, dtype);
            feed_forward_forward(&f, t.y, t.x);
            feed_forward_backward(&f, t.dx, t.dy, t.x);
            expect_rounded("up", f.at_up, n, dtype);
            expect_rounded("inner", f.inner, n, dtype);
            expect_rounded("y", t.y, N, dtype);
            expect_rounded("dinner", buffers.dinner, n, dtype);
            expect_rounded("dup", buffers.dup, n, dtype);
            expect_rounded("dx", t.dx, N, dtype);
            if (gated) expect_rounded("gate", f.at_gate, n, dtype);
            if (gated) expect_rounded("dgate", buffers.dgate, n, dtype);
            nb_model_release(&t.model);
        }
}

Test(train_rounding, inside_attention) {
    for (enum nb_dtype dtype = NB_F32; dtype < NB_N_DTYPES; dtype++) {
        struct inside t;
        struct attention a;
        struct attention_buffers buffers = {0};
        struct nb_rope rope;
        struct nb_transformer_shape shape = nb_test_transformer_shape;
        const int64_t n_weights = (int64_t)shape.batch * shape.heads * shape.sequence * shape.sequence;
        shape.qk_norm = true;
        begin(&t, dtype);
        nb_rope_init(&rope, &t.model.passing, shape.sequence, shape.hidden / shape.heads, shape.rope_theta);
        attention_init(&a, "a", &t.model, &shape, &buffers, &rope);
        cr_assert(!t.model.failed);
        nb_parameters_round(&t.model.parameters, dtype);
        attention_forward(&a, t.y, t.x, true);
        attention_backward(&a, t.dx, t.dy, t.x);
        expect_rounded("q before its norm", a.q_before, N, dtype);
        expect_rounded("q", a.q, N, dtype);
        expect_rounded("k", a.k, N / 2, dtype);
        expect_rounded("v", a.v, N / 2, dtype);
        expect_rounded("weights", a.weights, n_weights, dtype);
        expect_rounded("mixed", a.mixed, N, dtype);
        expect_rounded("y", t.y, N, dtype);
        expect_rounded("dmixed", buffers.dmixed, N, dtype);
        expect_rounded("dscores", buffers.dscores, (int64_t)shape.sequence * shape.sequence, dtype);
        expect_rounded("dv", buffers.dv, N / 2, dtype);
        expect_rounded("dq", buffers.dq, N, dtype);
        expect_rounded("through the norm of q", buffers.normed, N, dtype);
        expect_rounded("dx", t.dx, N, dtype);
        nb_model_release(&t.model);
    }
}
