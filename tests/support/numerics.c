// SPDX-License-Identifier: Apache-2.0
/* See tests/support/numerics.h. */
#include <math.h>

#include <criterion/criterion.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "tests/support/numerics.h"

double random_uniform(uint64_t *r) { return (double)(nb_random_next(r) >> 11) * 0x1p-53; }

double random_normal(uint64_t *r) {
    double radius = sqrt(-2 * log(1 - random_uniform(r)));
    return radius * cos(6.283185307179586 * random_uniform(r));
}

static void allocate(struct problem *p) {
    struct nb_inputs *in = &p->in;
    const size_t item = nb_formats[in->dtype].bytes;
    const unsigned long long n = (unsigned long long)(in->rows * in->cols), params = (unsigned long long)in->n_params;
    in->x = nb_alloc(n, item);
    in->residual = nb_alloc(n, item);
    in->gamma_f32 = nb_alloc(params, 4);
    in->beta_f32 = nb_alloc(params, 4);
    in->gamma_x = nb_alloc(params, item);
    in->beta_x = nb_alloc(params, item);
    in->running_mean = nb_alloc(params, 4);
    in->running_var = nb_alloc(params, 4);
    for (int64_t i = 0; i < in->n_params; i++) {
        in->gamma_f32[i] = in->running_var[i] = 1;
        nb_set(in->gamma_x, i, in->dtype, 1);
    }
}

static void init_shape(struct problem *p, uint32_t op, enum nb_dtype dtype, struct nb_shape shape, int64_t n_params) {
    *p = (struct problem){.c = {.op = op,
                                .dtype = dtype,
                                .eps = 1e-5,
                                .alpha = 0.5,
                                .momentum = 0.1,
                                .k = shape.cols,
                                .variance = NB_VAR_TWOPASS,
                                .shape = shape,
                                .formula = {.root = NB_ROOT_MUL_RECIP}},
                          .in = {.dtype = dtype, .rows = shape.rows, .cols = shape.cols, .n_params = n_params}};
    allocate(p);
}

void problem_init(struct problem *p, uint32_t op, enum nb_dtype dtype, int64_t rows, int64_t cols) {
    init_shape(p, op, dtype, (struct nb_shape){.layout = NB_ROWS, .rows = rows, .cols = cols}, cols);
}

void problem_init_batchnorm(struct problem *p, uint32_t layout, enum nb_dtype dtype, int64_t n, int64_t channels,
                            int64_t hw) {
    struct nb_shape shape = {.layout = layout, .n = n, .c = channels, .hw = hw};
    shape.rows = n * (layout == NB_NCHW ? channels : hw);
    shape.cols = layout == NB_NCHW ? hw : channels;
    init_shape(p, NB_OP_BATCHNORM, dtype, shape, channels);
}

void problem_free(struct problem *p) {
    nb_inputs_release(&p->in);
    nb_free_all(p->mean, p->rstd);
}

void problem_set(struct problem *p, int64_t i, double v) { nb_set(p->in.x, i, p->in.dtype, v); }

void problem_fill_normal(struct problem *p, double mean, double sd, uint64_t seed) {
    uint64_t r = seed;
    for (int64_t i = 0; i < p->in.rows * p->in.cols; i++) {
        problem_set(p, i, mean + sd * random_normal(&r));
        nb_set(p->in.residual, i, p->in.dtype, random_normal(&r));
    }
    for (int64_t i = 0; i < p->in.n_params; i++) {
        p->in.gamma_f32[i] = (float)(1 + 0.3 * random_normal(&r));
        p->in.beta_f32[i] = (float)(0.5 * random_normal(&r));
        nb_set(p->in.gamma_x, i, p->in.dtype, p->in.gamma_f32[i]);
        nb_set(p->in.beta_x, i, p->in.dtype, p->in.beta_f32[i]);
        p->in.running_mean[i] = (float)random_normal(&r);
        p->in.running_var[i] = (float)(0.5 + random_uniform(&r));
    }
}

struct nb_oracle oracle_of(const struct problem *p) {
    struct nb_oracle o;
    cr_assert_eq(nb_oracle_init(&o, &p->c, &p->in), 0);
    return o;
}

void draw_formula(struct problem *p, uint64_t *r) {
    struct nb_formula *f = &p->c.formula;
    static const double eps[] = {1e-5, 1e-6, 1e-12, 1e-3, 0};
    p->c.eps = eps[nb_random_next(r) % 5];
    f->root = (uint32_t)(nb_random_next(r) % NB_N_ROOTS);
    f->eps_place = (uint32_t)(nb_random_next(r) % NB_N_EPS_PLACES);
    if (f->root >= NB_ROOT_RSQRT_NR && f->eps_place == NB_EPS_OUTSIDE) f->eps_place = NB_EPS_INSIDE;
    f->cast = (uint32_t)(nb_random_next(r) % NB_N_CASTS);
    f->weight_offset = nb_random_next(r) % 2;
    f->affine = (uint32_t)(nb_random_next(r) % NB_N_AFFINES);
    f->param = f->cast == NB_CAST_BEFORE ? NB_PARAM_X : (uint32_t)(nb_random_next(r) % NB_N_PARAMS); /* as designs */
    f->round_sum = 1;
    p->c.variance = NB_VAR_TWOPASS + (uint32_t)(nb_random_next(r) % 5);
    p->c.stats_dtype = nb_random_next(r) % 4 == 0 ? NB_STATS_X : NB_STATS_F32;
    p->c.style = (uint32_t)(nb_random_next(r) % NB_N_STYLES);
    p->c.k = 1 + (int64_t)(nb_random_next(r) % (uint64_t)p->c.shape.cols);
}

const uint32_t row_ops[N_ROW_OPS] = {NB_OP_RMSNORM,     NB_OP_PRMSNORM,      NB_OP_LAYERNORM, NB_OP_L2NORM,
                                     NB_OP_ADD_RMSNORM, NB_OP_ADD_LAYERNORM, NB_OP_DYT};

struct nb_design parsed(const char *text) {
    struct nb_design d;
    cr_assert_eq(nb_design_parse(&d, text), 0, "%s", text);
    return d;
}

/* What is added to a multiple of a normal number. */
static const struct {
    double offset, scale;
} normal_kinds[] = {{0, 1},     {0.3, 0.6}, {1.2, 0.5}, {-1.5, 0.5}, {0, 1e-4}, {0, 1e-5},
                    {0, 1e-22}, {0, 1e-30}, {0, 1e-41}, {0, 1e18},   {1e4, 1},  {1e7, 1}};
enum { N_NORMAL_KINDS = sizeof normal_kinds / sizeof normal_kinds[0] };

double hard_value(int kind, int64_t i, int64_t n, uint64_t *r) {
    const double normal = random_normal(r);
    if (kind < N_NORMAL_KINDS) return normal_kinds[kind].offset + normal_kinds[kind].scale * normal;
    switch (kind - N_NORMAL_KINDS) {
    case 0:
        return i % 3 ? -0.0 : 0.0;
    case 1:
        return 1234.567;
    case 2:
        return i % 2 ? -300.1 : 300.1;
    case 3:
        return 40000 + (double)i;
    case 4:
        return i == n / 2 ? 1e6 : 0;
    case 5:
        return 3.4e38 * (2 * random_uniform(r) - 1);
    case 6:
        return i == 1 ? 2622 : i == 3 ? -1547 : 0.3 * normal;
    case 7:
        return i == 0 ? 16777215 : 16777214;
    case 8:
        return normal / (fabs(random_normal(r)) + 1e-6);
    case 9:
        return normal * pow(10, 20 * random_uniform(r) - 10);
    case 10:
        return i == 0 ? 4096 : 1 + 1e-3 * random_uniform(r); /* swamped */
    case 11:
        return i % 64 == 3 ? 600 * normal : 0.01 * normal;
    case 12:
        return i < 32 ? 5000 + normal : normal / 64; /* a bad mean of the first */
    default:
        return i < 64 ? normal / 2 : 5000 + normal; /* a bad shift of 0 */
    }
}

static void add_tensors(struct problem *b) {
    struct nb_inputs *in = &b->in;
    const size_t item = nb_formats[in->dtype].bytes;
    const unsigned long long n = (unsigned long long)(in->rows * in->cols);
    b->c.pass = NB_BACKWARD;
    b->c.formula.struct_size = sizeof b->c.formula;
    in->dy = nb_alloc(n, item);
    in->dresidual_out = nb_alloc(n, item);
    b->n_stats = b->c.op == NB_OP_BATCHNORM ? b->c.shape.c : in->rows;
    b->mean = nb_alloc((unsigned long long)b->n_stats, sizeof *b->mean);
    b->rstd = nb_alloc((unsigned long long)b->n_stats, sizeof *b->rstd);
}

void backward_init(struct problem *b, uint32_t op, enum nb_dtype dtype, int64_t rows, int64_t cols) {
    problem_init(b, op, dtype, rows, cols);
    add_tensors(b);
}

void backward_init_batchnorm(struct problem *b, uint32_t layout, enum nb_dtype dtype, int64_t n, int64_t channels,
                             int64_t hw) {
    problem_init_batchnorm(b, layout, dtype, n, channels, hw);
    add_tensors(b);
}

void backward_set_dy(struct problem *b, int64_t i, double v) { nb_set(b->in.dy, i, b->in.dtype, v); }

void backward_fill_normal(struct problem *b, double mean, double sd, uint64_t seed) {
    uint64_t r = seed ^ 0xdddd;
    problem_fill_normal(b, mean, sd, seed);
    for (int64_t i = 0; i < b->in.rows * b->in.cols; i++) {
        backward_set_dy(b, i, random_normal(&r));
        nb_set(b->in.dresidual_out, i, b->in.dtype, random_normal(&r));
    }
    backward_statistics(b);
}

void backward_statistics(struct problem *b) {
    struct nb_oracle o released_by(nb_oracle_release) = oracle_of(b);
    cr_assert_eq(o.n_truth, b->n_stats);
    nb_gradient_statistics(&o, b->mean, b->rstd);
}

struct nb_gradient backward_gradient(const struct problem *b) {
    struct nb_gradient g;
    cr_assert_eq(nb_gradient_init(&g, &b->c, &b->in, b->mean, b->rstd), 0);
    return g;
}
