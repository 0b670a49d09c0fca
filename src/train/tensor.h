// SPDX-License-Identifier: Apache-2.0
/* The arrays that a model computes with: where they live, how mixed precision rounds them, functions of each element, and products of
 * matrices. */
#ifndef NB_TRAIN_TENSOR_H
#define NB_TRAIN_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

/* Arrays that live as long as a model, and how many bytes they take together. */
struct nb_arena {
    void **blocks;
    int n_blocks;
    size_t bytes;
};

/* n floats, zero, aligned to 64 bytes; the program ends where there is no memory. */
float *nb_arena_take(struct nb_arena *arena, int64_t n);
void *nb_arena_take_bytes(struct nb_arena *arena, size_t bytes); /* likewise */
void nb_arena_release(struct nb_arena *arena);

/* Where mixed precision rounds (Micikevicius et al. 2018): activations and their gradients are stored in the dtype, weights are kept
 * in f32 and rounded for use, gradients of weights leave their matrix product in the dtype; products, statistics, losses and the
 * optimizer work in f32. Here all tensors are f32 arrays, and what would be stored in the dtype is rounded in place, and the norms' kernels
 * are f32's: such a run shows how training goes, not what it costs. */

/* To nearest even, overflow to infinity; nothing happens with f32. */
void nb_round_tensor(float *values, int64_t n, enum nb_dtype dtype);

/* The two functions of gated networks over whole tensors, in place, four elements at a time: with the C library's they would take
 * longer than the normalizations between them. Errors against the exact values are below 4 ulp; NaN stays NaN. */

void nb_sigmoid_tensor(float *values, int64_t n); /* 1 / (1 + exp(-x)) */
void nb_tanh_tensor(float *values, int64_t n);

/* What stands between the matrices of a feed-forward sublayer: silu(gate) * up (Shazeer 2020), silu(v) = v / (1 + exp(-v)); or ReLU. */

void nb_swiglu_forward(float *y, const float *gate, const float *up, int64_t n);
/* Outputs lie apart from inputs. */
void nb_swiglu_backward(float *dgate, float *dup, const float *dy, const float *gate, const float *up, int64_t n);
void nb_relu_forward(float *y, const float *x, int64_t n);
/* The slope at 0 is 0. dx may be dy. */
void nb_relu_backward(float *dx, const float *dy, const float *x, int64_t n);

/* ---- matrix products by CBLAS; row-major, f32. The library is loaded when training begins and not before: it starts threads, which
 * no process that measures kernels may have ---- */

/* Loads the library, once a process, and sets its threads. -1 after nb_error. Products before it are a programmer's mistake. */
int nb_matrix_open(int n_threads);
enum nb_transposed { NB_AS_STORED, NB_A_TRANSPOSED, NB_B_TRANSPOSED };
/* c[m,n] = a[m,k] b[k,n] + keep * c; a transposed operand is stored as a[k,m] or b[n,k]. */
void nb_matrix_multiply(enum nb_transposed transposed, float *c, const float *a, const float *b, int64_t m, int64_t n,
                        int64_t k, float keep);

/* c = factor * op(a) op(b) + keep * c, op a transpose where said so; strides count elements between the starts of two rows, so that
 * blocks of larger matrices can be multiplied. c is m x n, the inner size is k. */
struct nb_product {
    const float *a, *b;
    float *c;
    int64_t a_stride, b_stride, c_stride, m, n, k;
    bool a_transposed, b_transposed;
    float factor, keep;
};
void nb_matrix_product(const struct nb_product *p);

/* From here on products are formed by a function in the library's place; null: by the library again. A library sums in the order that
 * suits its CPU, so tests ask what another order changes. */
typedef void nb_product_function(const struct nb_product *p);
void nb_matrix_form_by(nb_product_function *function);

/* What the models of this process have done since this was last set to 0, as an eager framework would launch it: elementary operations
 * (a matrix product, a sum, a sigmoid over a whole tensor), each of which may be made to cost a dispatch besides its work; and products. */
struct nb_train_work {
    int64_t ops;
    double dispatch_s; /* of an operation: 0 as it is here, else what a framework takes, spent by waiting */
    double product_seconds, product_flops;
}; /* one model works at a time */
extern struct nb_train_work nb_train_work;
/* n elementary operations begin: counted, and waited for, one after the other. Products count themselves but for nb_matrix_product's, of
 * which many may be one operation. */
void nb_op(int64_t n);

/* A linear layer y = x w^T (+ bias): w[out,in]. Backward adds to dw and dbias (which may be null) and overwrites dx (which may be null). */
void nb_linear_forward(float *y, const float *x, const float *w, const float *bias, int64_t rows, int64_t in,
                       int64_t out);
void nb_linear_backward(float *dx, float *dw, float *dbias, const float *dy, const float *x, const float *w,
                        int64_t rows, int64_t in, int64_t out);

#endif
