// SPDX-License-Identifier: Apache-2.0
/* Row norms with known insides that neither the built-in kernels nor those of mistakes.c have, for probes to find out. Products that must be
 * rounded go through memory, whatever the compiler may fuse. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "rows.h"
#include "table.h"

static float stored(float x) {
    volatile float v = x;
    return v;
}

/* ---- sums of squares ---- */

static float squares_sequential(const float *x, int64_t n) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum = stored(sum + stored(x[i] * x[i]));
    return sum;
}

/* ---- rows ---- */

static void norm_row(const struct nb_call *call, int64_t row) {
    const float *x = (const float *)call->x + row * call->x_stride, *gamma = call->gamma, *beta = call->beta;
    float *y = (float *)call->y + row * call->y_stride;
    const float v = squares_sequential(x, call->cols) / (float)call->cols, r = 1 / sqrtf(stored(v + (float)call->eps));
    for (int64_t i = 0; i < call->cols; i++) {
        y[i] = stored(x[i] * r);
        if (gamma) y[i] = stored(y[i] * gamma[i]);
        if (beta) y[i] = stored(y[i] + beta[i]);
    }
}
static void norm_rows(const struct nb_call *call, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) norm_row(call, row);
}

/* Rounded up or down by the number of the call. */
static int run_random_last_bit(ROWS) {
    static int calls;
    norm_rows(call, begin, end);
    calls++;
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < call->cols; i++) {
            float *y = (float *)call->y + row * call->y_stride + i;
            if (((uint64_t)(i + calls) * 0x9e3779b97f4a7c15u) >> 63) *y = nextafterf(*y, 0);
        }
    return 0;
}
static int run_flush(ROWS) {
#if defined(__x86_64__)
    const unsigned state = _mm_getcsr();
    _mm_setcsr(state | 0x8040); /* FTZ, DAZ */
#elif defined(__aarch64__)
    unsigned long state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    __asm__ volatile("msr fpcr, %0" : : "r"(state | 1ul << 24)); /* FZ */
#endif
    norm_rows(call, begin, end);
#if defined(__x86_64__)
    _mm_setcsr(state);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(state));
#endif
    return 0;
}
/* bf16, in double, its last step cut off. */
static void truncate_rows(const struct nb_call *call, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
        const uint16_t *x = (const uint16_t *)call->x + row * call->x_stride;
        uint16_t *y = (uint16_t *)call->y + row * call->y_stride;
        double sum = 0;
        for (int turn = 0; turn < 2; turn++)
            for (int64_t i = 0; i < call->cols; i++) {
                uint32_t bits = (uint32_t)x[i] << 16;
                float f;
                memcpy(&f, &bits, sizeof f);
                if (turn == 0) sum += (double)f * f;
                f = (float)((double)f / sqrt(sum / (double)call->cols + call->eps));
                memcpy(&bits, &f, sizeof bits);
                if (turn == 1) y[i] = (uint16_t)(bits >> 16);
            }
    }
}

/* The same, cut off before the weight and after it. */
static int run_truncate_before(ROWS) {
    truncate_rows(call, begin, end);
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < call->cols; i++) {
            uint16_t *y = (uint16_t *)call->y + row * call->y_stride + i;
            uint32_t bits = (uint32_t)*y << 16;
            float f;
            memcpy(&f, &bits, sizeof f);
            f *= ((const float *)call->gamma)[i];
            memcpy(&bits, &f, sizeof bits);
            *y = (uint16_t)(bits >> 16);
        }
    return 0;
}
/* A LayerNorm in one pass, about the last element. */
static int run_about_last(ROWS) {
    for (int64_t row = begin; row < end; row++) {
        const float *x = (const float *)call->x + row * call->x_stride, last = x[call->cols - 1], n = (float)call->cols;
        float sum = 0, squares = 0;
        for (int64_t i = 0; i < call->cols; i++) {
            const float d = x[i] - last;
            sum += d;
            squares += d * d;
        }
        const float mean = sum / n, rstd = 1 / sqrtf(squares / n - mean * mean + (float)call->eps);
        for (int64_t i = 0; i < call->cols; i++)
            ((float *)call->y)[row * call->y_stride + i] = ((x[i] - last) - mean) * rstd;
    }
    return 0;
}

/* ---- the table ---- */

#define BOX(name_, op_, dtype_)                                                                                        \
    {                                                                                                                  \
        .struct_size = sizeof(struct nb_kernel), .op = op_, .pass = NB_FORWARD, .dtype = dtype_, .width = NB_NATIVE,   \
        .name = #name_, .variant = #name_ "_any", .summary = "a black box for probes",                                 \
        .formulas = {.roots = 1u << NB_ROOT_MUL_RECIP, .affines = 1u << NB_AFFINE_NONE}, .loads = 2, .stores = 1,      \
        .flops = 4, .run = run_##name_                                                                                 \
    }
static const struct nb_kernel kernels[] = {
    {.struct_size = sizeof(struct nb_kernel),
     .op = NB_OP_RMSNORM,
     .dtype = NB_BF16,
     .width = NB_NATIVE,
     .name = "truncate_before",
     .variant = "truncate_before_any",
     .formulas = {.roots = 1u << NB_ROOT_MUL_RECIP, .affines = 1u << NB_AFFINE_GAMMA, .casts = 1u << NB_CAST_BEFORE},
     .run = run_truncate_before},
    BOX(random_last_bit, NB_OP_RMSNORM, NB_F32),
    BOX(flush, NB_OP_RMSNORM, NB_F32),
    BOX(about_last, NB_OP_LAYERNORM, NB_F32),
};
TABLE(kernels)
