// SPDX-License-Identifier: Apache-2.0
/* Matrix products by OpenBLAS, row-major, f32. The library is loaded when it is first needed and not before: it may start threads, which no process
 * that measures kernels may have. */
#pragma once

/* cblas.h's values: the library is used by its stable C interface, so that no header and no link are needed. */
enum { NB_BLAS_ROW_MAJOR = 101, NB_BLAS_AS_STORED = 111, NB_BLAS_TRANSPOSED = 112 };
struct nb_blas {
    /* c = factor op(a) op(b) + keep c */
    void (*sgemm)(int order, int a_op, int b_op, int m, int n, int k, float factor, const float *a, int lda,
                  const float *b, int ldb, float keep, float *c, int ldc);
    void (*sgemv)(int order, int op, int m, int n, float factor, const float *a, int lda, const float *x, int x_step,
                  float keep, float *y, int y_step);
    void (*set_threads)(int n);
};
/* Once a process. Null after nb_error. */
const struct nb_blas *nb_blas_open(int n_threads);
/* Null, or why there is none, with the mend: it asks for the library without keeping it. */
const char *nb_blas_lacks(void);
