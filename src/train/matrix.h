// SPDX-License-Identifier: Apache-2.0
/* Matrix products by CBLAS; row-major, f32. The library is loaded when training begins and not before: it starts threads, which
 * no process that measures kernels may have. */
#ifndef NB_TRAIN_MATRIX_H
#define NB_TRAIN_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

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

/* A linear layer y = x w^T (+ bias): w[out,in]. Backward adds to dw and dbias (which may be null) and overwrites dx (which may be null). */
void nb_linear_forward(float *y, const float *x, const float *w, const float *bias, int64_t rows, int64_t in,
                       int64_t out);
void nb_linear_backward(float *dx, float *dw, float *dbias, const float *dy, const float *x, const float *w,
                        int64_t rows, int64_t in, int64_t out);

#endif
