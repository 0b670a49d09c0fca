// SPDX-License-Identifier: Apache-2.0
/* The recipe of composed row backwards: the closed form of the gradient, an operation at a time, each over whole tensors in f32:
 *     xhat = (x - mean) * rstd         dgamma = sum over rows of (dy * xhat)     dbeta = sum over rows of dy
 *     g = dy * w                       c1 = mean over the row of g               c2 = mean over the row of (g * xhat)
 *     dx = ((g - c1) - xhat * c2) * rstd (+ dresidual_out)
 * as a framework runs it where the gradient of a norm is written in its own operators. 16-bit tensors are cast up first and dx
 * down at the end. xhat is computed anew: a call is given x, mean and rstd. */
#pragma once

#include "kernels/batchnorm/sum_operations.h"
#include "kernels/shared/composed_norm.h"

/* What the kernel that includes this file says of its op. */
#ifndef GRADIENT_CENTRE
#define GRADIENT_CENTRE false
#endif
#ifndef GRADIENT_RESIDUAL
#define GRADIENT_RESIDUAL false
#endif
#ifndef GRADIENT_LEADING
#define GRADIENT_LEADING false /* statistics of the first k columns */
#endif

/* Tensor loads and stores of the recipe with gamma (centred: and beta), in x's elements, casts beside them. Loads: xhat 1, dy * xhat 2, its sum 1,
 * g 1, g * xhat 2, its mean 1, xhat c2 1, - 2, * rstd 1; centred: x - mean, sum of dy, mean of g, g - c1. */
#define GRADIENT_LOADS (12 + (GRADIENT_CENTRE ? 4 : 0)) * F32_TENSOR
#define GRADIENT_STORES (7 + (GRADIENT_CENTRE ? 2 : 0)) * F32_TENSOR
#ifdef NB_DTYPE_IS_F32
#define GRADIENT_CAST_LOADS (GRADIENT_RESIDUAL ? 2 : 0)
#define GRADIENT_CAST_STORES (GRADIENT_RESIDUAL ? 1 : 0)
#else /* x and dy up, dx down; the residual's up, and the sum */
#define GRADIENT_CAST_LOADS (4 + (GRADIENT_RESIDUAL ? 5 : 0))
#define GRADIENT_CAST_STORES (5 + (GRADIENT_RESIDUAL ? 4 : 0))
#endif

static inline void sum_over_rows(struct program *p, struct tensor t, float *out) {
    const int64_t cols = p->call->cols, stride = (cols + 15) / 16 * 16;
    if (!out) return;
    const struct tensor partial = {.data = p->call->scratch, .stride = stride};
    p->partial_bytes = n_blocks(p->call) * stride * (int64_t)sizeof(float);
    if (append(p, partial))
        p->step = (struct step){op_sum_blocks, partial, t, .n_units = n_blocks(p->call), .cols = cols};
    emit_column(p, op_mean_blocks, partial, (struct tensor){.data = out, .stride = 1}, cols, 1.0f);
}

/* g - xhat * c2; where the statistics saw the first k columns alone, in those: a copy of g, a slice of which is changed. */
static inline struct tensor subtract_projection(struct program *p, struct tensor g, struct tensor xhat, int64_t k) {
    const int64_t rows = p->call->rows, cols = p->call->cols;
    struct tensor products = emit_full(p, op_mul_full, g, xhat, false);
    const struct tensor c2 = row_sum(p, products, cols, (float)k);
    drop(p, products);
    const struct tensor projection = new_full(p, false, cols);
    if (append(p, projection))
        p->step = (struct step){op_mul_row,      .dst = projection, .a = xhat,          .b = c2,
                                .n_units = rows, .cols = k,         .period = p->period};
    drop(p, c2);
    drop(p, xhat);
    struct tensor result;
    if (k == cols) {
        result = then(p, op_sub_full, g, projection);
    } else {
        result = then(p, op_cast, g, nothing);
        if (append(p, result))
            p->step =
                (struct step){op_sub_full, .dst = result, .a = result, .b = projection, .n_units = rows, .cols = k};
    }
    drop(p, projection);
    return result;
}

static void build(struct program *p) {
    const struct nb_call *call = p->call;
    const bool centre = GRADIENT_CENTRE, weighted = call->formula.affine != NB_AFFINE_NONE;
    const struct tensor rstd = {.data = call->rstd, .stride = 1}, mean = {.data = call->mean, .stride = 1};
    struct tensor xhat = widen(p, tensor_x(p)), g = widen(p, tensor_of(call->dy, call->dy_stride));
    if (centre) xhat = then(p, op_sub_row, xhat, mean);
    xhat = then(p, op_mul_row, xhat, rstd);
    if (weighted && call->dgamma) {
        const struct tensor products = emit_full(p, op_mul_full, g, xhat, false);
        sum_over_rows(p, products, call->dgamma);
        drop(p, products);
    }
    if (call->formula.affine == NB_AFFINE_GAMMA_BETA) sum_over_rows(p, g, call->dbeta);
    if (!call->dx) return;
    if (weighted) g = with_parameter(p, g, op_mul_col, call->gamma, call->cols, call->formula.weight_offset);
    struct tensor c1 = nothing;
    if (centre) c1 = row_mean(p, g);
    struct tensor dx = subtract_projection(p, g, xhat, GRADIENT_LEADING ? call->k : call->cols);
    if (centre) dx = then(p, op_sub_row, dx, c1);
    drop(p, c1);
    dx = then(p, op_mul_row, dx, rstd);
    if (call->dresidual_out) {
        const struct tensor past = widen(p, tensor_of(call->dresidual_out, call->dresidual_out_stride));
        dx = then(p, op_add_full, dx, past);
        drop(p, past);
    }
    finish(p, narrowed(p, dx), call->dx, call->dx_stride);
}

/* The product, then the tree within a group of rows, groups, single rows at the end, blocks. */
static inline int64_t composed_column_chain(const struct nb_call *call) { return 1 + columns_chain(call); }

#define COMPOSED_GRADIENT                                                                                              \
    .formulas = {NB_EVERY_GRADIENT, .round_sums = GRADIENT_RESIDUAL ? NB_ALL(2) : 0},                                  \
    .loads = GRADIENT_LOADS + GRADIENT_CAST_LOADS, .stores = GRADIENT_STORES + GRADIENT_CAST_STORES, COMPOSED_KERNEL,  \
    .scratch_bytes = composed_gradient_scratch, .chain = composed_chain, .column_chain = composed_column_chain
