// SPDX-License-Identifier: Apache-2.0
/* Two kernels in one file whose machine code is compared but never run. The build makes one file of it for each change. */
#include <immintrin.h>

#include "tests/identity/identity.h"

static const float table[40] = {
    1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
    21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, IF(table, 41, 40)};

static __attribute__((noinline)) float left(float x) { return x * 3.5f; }
static __attribute__((noinline)) float right(float x) { return x * 5.5f; }

/* Chosen through pointers that the loader fills. */
typedef float (*step)(float);
static const step steps[] = {IF(pointers, right, left), IF(pointers, left, right)};

static __attribute__((noinline)) float turn(float x, int64_t i) {
    return i & 1 ? IF(target, right, left)(x) : IF(target, left, right)(x);
}

static __attribute__((noinline)) void jump(void) {
    if (IF(jump, 1, 0))
        __asm__ volatile("jmp 2f\n1: nop\n2: nop");
    else
        __asm__ volatile("jmp 1f\n1: nop\n2: nop");
}

float (*identity_chosen)(float x);
int identity_repeats;

/* Set on loading, where the code that reads it is the same. */
static float shift;
__attribute__((constructor)) static void set_shift(void) {
    __asm__ volatile(""); /* clang runs constructors that it understands itself */
    shift = IF(constructor, 0.25f, 0.5f);
}

/* A constant of 32 bytes of which the compiler lets 3.0f below be a part. */
static __attribute__((noinline)) void add_vector(float *y) {
    const __m256 v = _mm256_setr_ps(1, 2, 3, 4, 5, 6, 7, IF(inside, 9.0f, 8.0f));
    _mm256_storeu_ps(y, _mm256_add_ps(_mm256_loadu_ps(y), v));
}

static int first(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const float *x = call->x;
    float *y = call->y;
    for (int64_t i = begin; i < end; i++)
        y[i] = turn(x[i], i) * IF(constant, 1.25f, 1.5f) + table[x[i] > 0 ? i % 40 : 1] +
               identity_helper(steps[i & 1](x[i])) + shift;
    for (int r = 0; r < identity_repeats; r++) y[0] = identity_chosen(y[0]);
    add_vector(y);
    jump();
    return 0;
}

static int second(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    float *y = call->y;
    for (int64_t i = begin; i < end; i++) y[i] = IF(other, y[i] * 3.0f + 7.0f, y[i] * 3.0f);
    return 0;
}

static int64_t chain(const struct nb_call *call) { return IF(chain, call->cols / 2, call->cols); }
static const char *applicable(const struct nb_call *call) {
    return call->cols > 7 ? NULL : IF(text, "rows are too short by far", "rows are too short for me");
}

const struct nb_kernel identity_first = {.struct_size = sizeof(struct nb_kernel),
                                         .op = NB_OP_RMSNORM,
                                         .width = NB_NATIVE,
                                         .name = "first",
                                         .variant = "first_f32",
                                         .flags = IF(flags, NB_FLAG_STREAMING, 0),
                                         .run = first,
                                         .chain = chain,
                                         .applicable = applicable};
const struct nb_kernel identity_second = {.struct_size = sizeof(struct nb_kernel),
                                          .op = NB_OP_RMSNORM,
                                          .width = NB_NATIVE,
                                          .name = "second",
                                          .variant = "second_f32",
                                          .run = second};
