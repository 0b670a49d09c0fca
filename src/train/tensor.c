// SPDX-License-Identifier: Apache-2.0
/* Arenas, rounding, activations. */
#include "src/train/tensor.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/models/blas.h"

enum { LINE = 64 };

void *nb_arena_take_bytes(struct nb_arena *arena, size_t bytes) {
    assert(arena && bytes > 0);
    arena->blocks = nb_realloc(arena->blocks, (unsigned)arena->n_blocks + 1, sizeof *arena->blocks);
    /* Zeroed pages are not touched before they are used: calloc, and the start moved up to a line. */
    char *block = nb_alloc(bytes + LINE, 1);
    arena->blocks[arena->n_blocks++] = block;
    arena->bytes += bytes;
    return block + (LINE - (uintptr_t)block % LINE) % LINE;
}

float *nb_arena_take(struct nb_arena *arena, int64_t n) {
    assert(n > 0);
    return nb_arena_take_bytes(arena, (size_t)n * sizeof(float));
}

void nb_arena_release(struct nb_arena *arena) {
    for (int i = 0; i < arena->n_blocks; i++) free(arena->blocks[i]);
    free(arena->blocks);
    *arena = (struct nb_arena){0};
}

/* ---- rounding ---- */

/* Rounding of f32 arrays to 16-bit formats and back, by the bits, so that a compiler without their instructions can do it fast. */

/* Half of the last place kept is added, less one where that place is even; a carry into the exponent is right, to infinity too. */
static float drop_bits(float x, int n) {
    const uint32_t u = nb_float_bits(x), odd = u >> n & 1;
    return nb_float_of((u + (1u << (n - 1)) - 1 + odd) & ~((1u << n) - 1));
}

static float round_bf16(float x) { return isnan(x) ? x : drop_bits(x, 16); }

/* Below 2^-14 the spacing of f16 is 2^-24, which is that of f32 in [1/2, 1): adding 3/4 rounds. */
static float round_f16(float x) {
    if (isnan(x)) return x;
    const float magnitude = fabsf(x);
    if (magnitude >= 65520.0f) return copysignf(INFINITY, x);
    if (magnitude < 0x1p-14f) return copysignf((magnitude + 0.75f) - 0.75f, x);
    return drop_bits(x, 13);
}

void nb_round_tensor(float *values, int64_t n, enum nb_dtype dtype) {
    if (dtype == NB_BF16)
        for (int64_t i = 0; i < n; i++) values[i] = round_bf16(values[i]);
    if (dtype == NB_F16)
        for (int64_t i = 0; i < n; i++) values[i] = round_f16(values[i]);
}

/* ---- activations ---- */

/* Sigmoid and tanh from one expm1: with x = n ln 2 + r, |r| <= ln 2 / 2, expm1(x) = 2^n expm1(r) + (2^n - 1), where nothing cancels, and
 * tanh(x) = e / (e + 2) with e = expm1(2x), sigmoid(x) = 1 / (e + 2) with e = expm1(-x). */

enum { LANES = 4 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef uint32_t bits __attribute__((vector_size(LANES * sizeof(float))));

static inline lanes all(float v) { return (lanes){v, v, v, v}; }
static inline lanes choose(bits mask, lanes yes, lanes no) { return (lanes)((mask & (bits)yes) | (~mask & (bits)no)); }

/* A comparison with NaN is false, so that NaN passes. */
static inline lanes clamp(lanes x, float most) {
    x = choose((bits)(x > all(most)), all(most), x);
    return choose((bits)(x < all(-most)), all(-most), x);
}

/* For |x| <= 87. Adding 1.5 2^23 leaves the nearest integer in the lowest bits. The polynomial is Taylor's to r^7 / 7!: relative error
 * (ln 2 / 2)^7 / 8! = 2e-8. */
static inline lanes expm1_lanes(lanes x) {
    const lanes magic = all(0x1.8p23f);
    const lanes shifted = x * all(0x1.715476p+0f) + magic;
    const lanes n = shifted - magic;
    const lanes r = x - n * all(0x1.62e4p-1f) - n * all(0x1.7f7d1cp-20f);
    lanes p = all(1.0f / 5040);
    p = p * r + all(1.0f / 720);
    p = p * r + all(1.0f / 120);
    p = p * r + all(1.0f / 24);
    p = p * r + all(1.0f / 6);
    p = p * r + all(0.5f);
    const lanes q = p * r * r + r;
    const bits power = ((bits)shifted << 23) + (bits){127u << 23, 127u << 23, 127u << 23, 127u << 23};
    return (lanes)power * q + ((lanes)power - all(1));
}

static inline lanes sigmoid_lanes(lanes x) { return all(1) / (expm1_lanes(clamp(-x, 87)) + all(2)); }
static inline lanes tanh_lanes(lanes x) {
    const lanes e = expm1_lanes(clamp(x + x, 40));
    return e / (e + all(2));
}

static lanes load(const float *p) {
    lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* What is left at the end goes through a full vector too, so that an element's result does not depend on its position. */
static inline __attribute__((always_inline)) void apply(lanes (*function)(lanes), float *values, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const lanes y = function(load(values + i));
        memcpy(values + i, &y, sizeof y);
    }
    float rest[LANES] = {0};
    memcpy(rest, values + i, (size_t)(n - i) * sizeof *rest);
    const lanes y = function(load(rest));
    memcpy(values + i, &y, (size_t)(n - i) * sizeof *rest);
}

void nb_sigmoid_tensor(float *values, int64_t n) { apply(sigmoid_lanes, values, n); }
void nb_tanh_tensor(float *values, int64_t n) { apply(tanh_lanes, values, n); }

static float sigmoid(float v) { return 1 / (1 + expf(-v)); }

void nb_swiglu_forward(float *y, const float *gate, const float *up, int64_t n) {
    nb_op(2);
    for (int64_t i = 0; i < n; i++) y[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

/* silu' = s + v s (1 - s), s the sigmoid. */
void nb_swiglu_backward(float *dgate, float *dup, const float *dy, const float *gate, const float *up, int64_t n) {
    nb_op(3);
    for (int64_t i = 0; i < n; i++) {
        const float v = gate[i], s = sigmoid(v);
        dgate[i] = dy[i] * up[i] * (s + v * s * (1 - s));
        dup[i] = dy[i] * v * s;
    }
}

void nb_relu_forward(float *y, const float *x, int64_t n) {
    nb_op(1);
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0;
}

void nb_relu_backward(float *dx, const float *dy, const float *x, int64_t n) {
    nb_op(1);
    for (int64_t i = 0; i < n; i++) dx[i] = x[i] > 0 ? dy[i] : 0;
}

/* ---- matrix products ---- */

static const struct nb_blas *library; /* one a process, as the library itself is */
static nb_product_function *formed_otherwise;

int nb_matrix_open(int n_threads) {
    library = nb_blas_open(n_threads);
    return library ? 0 : -1;
}

static int as_int(int64_t v) {
    assert(v >= 0 && v <= INT_MAX);
    return (int)v;
}

void nb_matrix_form_by(nb_product_function *function) { formed_otherwise = function; }

struct nb_train_work nb_train_work;

/* Nothing else runs meanwhile, as in a framework that is bound by dispatch. */
void nb_op(int64_t n) {
    nb_train_work.ops += n;
    if (nb_train_work.dispatch_s <= 0) return;
    const double end = nb_now_s() + (double)n * nb_train_work.dispatch_s;
    while (nb_now_s() < end) continue;
}

static void multiply(const struct nb_product *p) {
    assert(library);
    if (formed_otherwise) {
        formed_otherwise(p);
        return;
    }
    library->sgemm(NB_BLAS_ROW_MAJOR, p->a_transposed ? NB_BLAS_TRANSPOSED : NB_BLAS_AS_STORED,
                   p->b_transposed ? NB_BLAS_TRANSPOSED : NB_BLAS_AS_STORED, as_int(p->m), as_int(p->n), as_int(p->k),
                   p->factor, p->a, as_int(p->a_stride), p->b, as_int(p->b_stride), p->keep, p->c, as_int(p->c_stride));
}

void nb_matrix_product(const struct nb_product *p) {
    const double start = nb_now_s();
    multiply(p);
    nb_train_work.product_seconds += nb_now_s() - start;
    nb_train_work.product_flops += 2 * (double)p->m * (double)p->n * (double)p->k;
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
    nb_op(1);
    for (int64_t r = 0; bias && r < rows; r++)
        for (int64_t i = 0; i < out; i++) y[r * out + i] = bias[i];
    nb_matrix_multiply(NB_B_TRANSPOSED, y, x, w, rows, out, in, bias ? 1 : 0);
}

void nb_linear_backward(float *dx, float *dw, float *dbias, const float *dy, const float *x, const float *w,
                        int64_t rows, int64_t in, int64_t out) {
    nb_op(1 + (dbias != NULL) + (dx != NULL));
    nb_matrix_multiply(NB_A_TRANSPOSED, dw, dy, x, out, in, rows, 1);
    for (int64_t r = 0; dbias && r < rows; r++)
        for (int64_t i = 0; i < out; i++) dbias[i] += dy[r * out + i];
    if (dx) nb_matrix_multiply(NB_AS_STORED, dx, dy, w, rows, in, out, 0);
}
