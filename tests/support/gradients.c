// SPDX-License-Identifier: Apache-2.0
/* Problems for backward kernels, and their answers by the formulas as they are written down. */
#include "tests/support/gradients.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/random.h"

enum { MARGIN = 96 };
static const unsigned char untouched = 0x5a;

static void guarded_init(struct guarded *t, int64_t elements, size_t item, int64_t shift) {
    t->bytes = (size_t)elements * item + 2 * MARGIN;
    t->offset = 64 + (size_t)shift * item % 32;
    t->area = aligned_alloc(64, (t->bytes + 63) / 64 * 64);
    cr_assert_not_null(t->area);
    memset(t->area, untouched, t->bytes);
}
static void *data_of(const struct guarded *t) { return t->area + t->offset; }

static bool centres(enum nb_op op) { return op == NB_OP_LAYERNORM || op == NB_OP_ADD_LAYERNORM; }
static bool adds(enum nb_op op) { return op == NB_OP_ADD_RMSNORM || op == NB_OP_ADD_LAYERNORM; }

/* ---- the formulas ------------------------------------------------------------------------------------------------------ */

static double weight_of(const struct gradient_problem *p, int64_t i) {
    const struct nb_formula *f = &p->call.formula;
    if (f->affine == NB_AFFINE_NONE) return 1;
    return nb_get(p->gamma, i, f->param == NB_PARAM_X ? p->dtype : NB_F32) + f->weight_offset;
}
/* Rounded to f32 as a weight of the dtype or of f32 that 1 is added to: 9 bits and less here, so exact. */
static double xhat_of(const struct gradient_problem *p, int64_t row, int64_t i) {
    const double mean = centres(p->op) ? p->call.mean[row] : 0;
    return (nb_get(p->call.x, row * p->call.x_stride + i, p->dtype) - mean) * p->call.rstd[row];
}

static void solve_row(struct gradient_problem *p, int64_t row) {
    const struct nb_call *call = &p->call;
    const int64_t cols = call->cols, seen = p->op == NB_OP_PRMSNORM ? call->k : cols;
    double g_sum = 0, gx_sum = 0, g_size = 0, gx_size = 0;
    for (int64_t i = 0; i < cols; i++) {
        const double dy = nb_get(call->dy, row * call->dy_stride + i, p->dtype), g = dy * weight_of(p, i);
        const double xhat = xhat_of(p, row, i);
        g_sum += g;
        gx_sum += g * xhat;
        g_size += fabs(g);
        gx_size += fabs(g * xhat);
        p->dgamma_exact[i] += dy * xhat;
        p->dgamma_size[i] += fabs(dy * xhat);
        p->dbeta_exact[i] += dy;
        p->dbeta_size[i] += fabs(dy);
    }
    const double n = p->op == NB_OP_L2NORM ? 1 : (double)seen, rstd = call->rstd[row];
    const double mean_g = centres(p->op) ? g_sum / n : 0, mean_g_size = centres(p->op) ? g_size / n : 0;
    for (int64_t i = 0; i < cols; i++) {
        const double g = nb_get(call->dy, row * call->dy_stride + i, p->dtype) * weight_of(p, i);
        const double xhat = i < seen ? xhat_of(p, row, i) : 0;
        double past = 0;
        if (call->dresidual_out) past = nb_get(call->dresidual_out, row * call->dresidual_out_stride + i, p->dtype);
        p->dx_exact[row * cols + i] = rstd * (g - mean_g - xhat * (gx_sum / n)) + past;
        p->dx_size[row * cols + i] = rstd * (fabs(g) + mean_g_size + fabs(xhat) * (gx_size / n)) + fabs(past);
    }
}
static void solve(struct gradient_problem *p) {
    memset(p->dgamma_exact, 0, 4 * (size_t)p->call.cols * sizeof(double));
    for (int64_t r = 0; r < p->call.rows; r++) solve_row(p, r);
}

/* As a forward call leaves them: of the rows as stored, rounded to f32. */
static void set_statistics(struct gradient_problem *p) {
    struct nb_call *call = &p->call;
    const int64_t seen = p->op == NB_OP_PRMSNORM ? call->k : call->cols;
    for (int64_t r = 0; r < call->rows; r++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < seen; i++) sum += nb_get(call->x, r * call->x_stride + i, p->dtype);
        const double mean = centres(p->op) ? sum / (double)seen : 0;
        for (int64_t i = 0; i < seen; i++) squares += pow(nb_get(call->x, r * call->x_stride + i, p->dtype) - mean, 2);
        if (call->mean) call->mean[r] = (float)mean;
        call->rstd[r] = (float)(1 / sqrt((p->op == NB_OP_L2NORM ? squares : squares / (double)seen) + call->eps));
    }
}

/* ---- problems ------------------------------------------------------------------------------------------------------------ */

static void fill(struct gradient_problem *p, const struct guarded *t, double offset, double scale, uint64_t stream) {
    const struct nb_random r = nb_random_stream(11, stream);
    for (int64_t row = 0; row < p->call.rows; row++)
        for (int64_t i = 0; i < p->call.cols; i++) {
            const int64_t at = row * p->call.x_stride + i;
            nb_set(data_of(t), at, p->dtype, offset + scale * nb_random_normal(r, (uint64_t)at));
        }
}

static struct nb_call call_of(enum nb_op op, int64_t rows, int64_t cols, int64_t turn) {
    struct nb_call call = {.struct_size = sizeof call, .n_threads = 1, .rows = rows, .cols = cols, .eps = 1e-5};
    call.k = op == NB_OP_PRMSNORM ? 1 + (cols - 1) * (turn % 5) / 4 : cols;
    call.x_stride = call.dy_stride = call.dx_stride = call.dresidual_out_stride = cols + turn % 3 * 5;
    call.formula = (struct nb_formula){.struct_size = sizeof call.formula, .root = NB_ROOT_MUL_RECIP};
    call.formula.affine = turn % 4 == 3 ? NB_AFFINE_NONE : turn % 4 == 2 ? NB_AFFINE_GAMMA : NB_AFFINE_GAMMA_BETA;
    call.formula.param = turn % 3 == 1 ? NB_PARAM_X : NB_PARAM_F32;
    call.formula.weight_offset = turn % 5 == 2;
    return call;
}

static void point_call(struct gradient_problem *p, int64_t turn) {
    struct nb_call *call = &p->call;
    call->x = data_of(&p->x);
    call->dy = data_of(&p->dy);
    call->dx = data_of(&p->dx);
    if (adds(p->op) && turn % 7 != 6) call->dresidual_out = data_of(&p->past);
    if (call->formula.affine != NB_AFFINE_NONE) call->dgamma = data_of(&p->dgamma);
    if (call->formula.affine == NB_AFFINE_GAMMA_BETA) call->dbeta = data_of(&p->dbeta);
    call->gamma = p->gamma = calloc((size_t)call->cols, sizeof(float));
    for (int64_t i = 0; i < call->cols; i++)
        nb_set(p->gamma, i, call->formula.param == NB_PARAM_X ? p->dtype : NB_F32, 1 + 0.125 * (double)(i % 9));
    if (centres(p->op)) call->mean = calloc((size_t)call->rows, sizeof(float));
    call->rstd = calloc((size_t)call->rows, sizeof(float));
}

void gradient_problem_init(struct gradient_problem *p, enum nb_op op, enum nb_dtype dtype, int64_t rows, int64_t cols,
                           int64_t turn) {
    *p = (struct gradient_problem){.call = call_of(op, rows, cols, turn), .op = op, .dtype = dtype};
    const size_t item = nb_formats[dtype].bytes, n = (size_t)cols;
    const int64_t elements = (rows - 1) * p->call.x_stride + cols;
    guarded_init(&p->x, elements, item, turn);
    guarded_init(&p->dy, elements, item, turn * 3);
    guarded_init(&p->past, elements, item, turn * 5);
    guarded_init(&p->dx, elements, item, turn * 7);
    guarded_init(&p->dgamma, cols, sizeof(float), turn * 3);
    guarded_init(&p->dbeta, cols, sizeof(float), turn);
    p->dx_exact = calloc(2 * (size_t)rows * n, sizeof(double));
    p->dx_size = p->dx_exact + (size_t)rows * n;
    p->dgamma_exact = calloc(4 * n, sizeof(double));
    p->dgamma_size = p->dgamma_exact + n;
    p->dbeta_exact = p->dgamma_size + n;
    p->dbeta_size = p->dbeta_exact + n;
    point_call(p, turn);
    fill(p, &p->x, 0.5, 1, 1);
    fill(p, &p->dy, 0.25, 1, 2);
    fill(p, &p->past, 0, 1, 3);
    set_statistics(p);
    solve(p);
}

void gradient_problem_ones(struct gradient_problem *p) {
    fill(p, &p->dy, 1, 0, 2);
    solve(p);
}

void gradient_problem_powers(struct gradient_problem *p) {
    for (int64_t row = 0; row < p->call.rows; row++)
        for (int64_t i = 0; i < p->call.cols; i++)
            nb_set(data_of(&p->dy), row * p->call.dy_stride + i, p->dtype, ldexp(1, (int)row));
    solve(p);
}

void gradient_problem_release(struct gradient_problem *p) {
    struct guarded *const tensors[] = {&p->x, &p->dy, &p->past, &p->dx, &p->dgamma, &p->dbeta};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) free(tensors[i]->area);
    free(p->gamma);
    free(p->call.mean);
    free(p->call.rstd);
    free(p->dx_exact);
    free(p->dgamma_exact);
}

/* ---- outputs ------------------------------------------------------------------------------------------------------------- */

void gradient_problem_poison(struct gradient_problem *p) {
    struct guarded *const outputs[] = {&p->dx, &p->dgamma, &p->dbeta};
    for (size_t i = 0; i < 3; i++) memset(outputs[i]->area, untouched, outputs[i]->bytes);
}

static double in_units(double computed, double exact, double allowed) {
    const double error = fabs(computed - exact) / allowed;
    return error == error ? error : INFINITY;
}

/* Beside the sums some ten roundings, each of one of the terms. */
double gradient_problem_error(const struct gradient_problem *p, double chain, double column_chain) {
    const struct nb_call *call = &p->call;
    const double u = 0x1p-24;
    double worst = 0;
    for (int64_t r = 0; call->dx && r < call->rows; r++)
        for (int64_t i = 0; i < call->cols; i++) {
            const double exact = p->dx_exact[r * call->cols + i];
            const double got = nb_get(call->dx, r * call->dx_stride + i, p->dtype);
            const double f32 = (chain + 10) * u * p->dx_size[r * call->cols + i];
            if (isinf(got) && fabs(exact) + f32 >= nb_formats[p->dtype].overflow) continue;
            if (fabs(got - exact) <= worst * f32) continue;
            worst = fmax(worst, in_units(got, exact, f32 + 0.5 * nb_ulp(fabs(exact) + f32, p->dtype)));
        }
    for (int64_t i = 0; i < call->cols; i++) {
        const double h = (column_chain + 4) * u, least = 0x1p-149;
        if (call->dgamma)
            worst = fmax(worst, in_units(call->dgamma[i], p->dgamma_exact[i], h * p->dgamma_size[i] + least));
        if (call->dbeta) worst = fmax(worst, in_units(call->dbeta[i], p->dbeta_exact[i], h * p->dbeta_size[i] + least));
    }
    return worst;
}

static size_t touched(const struct guarded *t, size_t from, size_t to) {
    size_t n = 0;
    for (size_t i = from; i < to; i++) n += t->area[i] != untouched;
    return n;
}
/* Bytes written outside of rows of `row` bytes, `stride` bytes apart. */
static size_t damage(const struct guarded *t, size_t rows, size_t row, size_t stride) {
    size_t n = 0, behind = 0;
    for (size_t r = 0; r < rows; r++) {
        n += touched(t, behind, t->offset + r * stride);
        behind = t->offset + r * stride + row;
    }
    return n + touched(t, behind, t->bytes);
}
size_t gradient_problem_damage(const struct gradient_problem *p) {
    const struct nb_call *call = &p->call;
    const size_t item = nb_formats[p->dtype].bytes, cols = (size_t)call->cols;
    const size_t gamma = call->dgamma ? cols * sizeof(float) : 0, beta = call->dbeta ? cols * sizeof(float) : 0;
    return damage(&p->dx, call->dx ? (size_t)call->rows : 0, cols * item, (size_t)call->dx_stride * item) +
           damage(&p->dgamma, 1, gamma, cols * sizeof(float)) + damage(&p->dbeta, 1, beta, cols * sizeof(float));
}

uint64_t gradient_problem_hash(const struct gradient_problem *p) {
    const struct guarded *const outputs[] = {&p->dx, &p->dgamma, &p->dbeta};
    uint64_t hash = 0;
    for (size_t i = 0; i < 3; i++)
        for (size_t b = 0; b < outputs[i]->bytes; b += sizeof(uint64_t)) {
            uint64_t word = 0;
            const size_t left = outputs[i]->bytes - b;
            memcpy(&word, outputs[i]->area + b, left < sizeof word ? left : sizeof word);
            hash = nb_random_mix(hash + word);
        }
    return hash;
}
