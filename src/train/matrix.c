// SPDX-License-Identifier: Apache-2.0
/* CBLAS of OpenBLAS by its stable C interface: no header and no link are needed, and a program that does not train never loads it. */
#include "src/train/matrix.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "src/core/cpu.h"
#include "src/core/log.h"

/* cblas.h's values. */
enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };
typedef void sgemm_function(int order, int a_op, int b_op, int m, int n, int k, float alpha, const float *a, int lda,
                            const float *b, int ldb, float beta, float *c, int ldc);
typedef void threads_function(int n);

/* One a process, as the library itself is. */
static struct library {
    sgemm_function *sgemm;
    threads_function *set_threads;
} library;

static nb_product_function *formed_otherwise;

/* A thread of the library that has nothing to do spins for 2^value cycles before it sleeps; the default of 2^26 would take the core
 * from the normalizations that run between two products. */
static const char *const SPIN = "12";

/* An OpenBLAS older than its CPU takes its AVX2 products there: 0.3.21 (Debian 12) on AMD's family 26, 1.6 to 1.8 times slower than those
 * for AVX-512, which run on every CPU with these features. The user's own word stands. */
static void choose_core(void) {
    const uint32_t wanted = nb_width_features(NB_512);
    if (wanted && (nb_cpu_light()->features & wanted) == wanted) setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
}

static int load(void) {
    setenv("OPENBLAS_THREAD_TIMEOUT", SPIN, 0);
    choose_core();
    void *handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return nb_error("libopenblas.so.0 cannot be loaded, and training needs it for matrix products: apt-get install "
                        "libopenblas0-pthread (%s)",
                        dlerror());
    const struct library found = {.sgemm = (sgemm_function *)dlsym(handle, "cblas_sgemm"),
                                  .set_threads = (threads_function *)dlsym(handle, "openblas_set_num_threads")};
    if (!found.sgemm || !found.set_threads) {
        dlclose(handle);
        return nb_error("libopenblas.so.0 has no %s: apt-get install libopenblas0-pthread",
                        found.sgemm ? "openblas_set_num_threads" : "cblas_sgemm");
    }
    library = found; /* for as long as the process lives */
    return 0;
}

int nb_matrix_open(int n_threads) {
    assert(n_threads >= 1);
    if (!library.sgemm && load() != 0) return -1;
    library.set_threads(n_threads);
    return 0;
}

static int as_int(int64_t v) {
    assert(v >= 0 && v <= INT_MAX);
    return (int)v;
}

void nb_matrix_form_by(nb_product_function *function) { formed_otherwise = function; }

void nb_matrix_product(const struct nb_product *p) {
    assert(library.sgemm);
    if (formed_otherwise) {
        formed_otherwise(p);
        return;
    }
    library.sgemm(ROW_MAJOR, p->a_transposed ? TRANSPOSED : AS_IT_IS, p->b_transposed ? TRANSPOSED : AS_IT_IS,
                  as_int(p->m), as_int(p->n), as_int(p->k), p->factor, p->a, as_int(p->a_stride), p->b,
                  as_int(p->b_stride), p->keep, p->c, as_int(p->c_stride));
}

void nb_matrix_multiply(enum nb_transposed transposed, float *c, const float *a, const float *b, int64_t m, int64_t n,
                        int64_t k, float keep) {
    const bool of_a = transposed == NB_A_TRANSPOSED, of_b = transposed == NB_B_TRANSPOSED;
    nb_matrix_product(&(struct nb_product){.a = a,
                                           .b = b,
                                           .c = c,
                                           .a_stride = of_a ? m : k,
                                           .b_stride = of_b ? k : n,
                                           .c_stride = n,
                                           .m = m,
                                           .n = n,
                                           .k = k,
                                           .a_transposed = of_a,
                                           .b_transposed = of_b,
                                           .factor = 1,
                                           .keep = keep});
}

void nb_linear_forward(float *y, const float *x, const float *w, const float *bias, int64_t rows, int64_t in,
                       int64_t out) {
    for (int64_t r = 0; bias && r < rows; r++)
        for (int64_t i = 0; i < out; i++) y[r * out + i] = bias[i];
    nb_matrix_multiply(NB_B_TRANSPOSED, y, x, w, rows, out, in, bias ? 1 : 0);
}

void nb_linear_backward(float *dx, float *dw, float *dbias, const float *dy, const float *x, const float *w,
                        int64_t rows, int64_t in, int64_t out) {
    nb_matrix_multiply(NB_A_TRANSPOSED, dw, dy, x, out, in, rows, 1);
    for (int64_t r = 0; dbias && r < rows; r++)
        for (int64_t i = 0; i < out; i++) dbias[i] += dy[r * out + i];
    if (dx) nb_matrix_multiply(NB_AS_STORED, dx, dy, w, rows, in, out, 0);
}
