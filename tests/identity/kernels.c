// SPDX-License-Identifier: Apache-2.0
/* Two kernels in one file whose machine code is compared but never run. The build makes one file of it for each change: -DCHANGED_x
 * for one of the names below; CHANGED_same and CHANGED_moved change nothing. */
#include <immintrin.h>

#include "tests/identity/identity.h"

#if defined(CHANGED_constant)
#define FACTOR 1.25f
#else
#define FACTOR 1.5f
#endif
#if defined(CHANGED_inside)
#define LAST 9.0f
#else
#define LAST 8.0f
#endif
#if defined(CHANGED_table)
#define LAST_OF_TABLE 41
#else
#define LAST_OF_TABLE 40
#endif

static const float table[40] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,           13, 14,
                                15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,           27, 28,
                                29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, LAST_OF_TABLE};

static __attribute__((noinline)) float left(float x) { return x * 3.5f; }
static __attribute__((noinline)) float right(float x) { return x * 5.5f; }

/* Chosen through pointers that the loader fills. */
typedef float (*step)(float);
#if defined(CHANGED_pointers)
static const step steps[] = {right, left};
#else
static const step steps[] = {left, right};
#endif

static __attribute__((noinline)) float turn(float x, int64_t i) {
#if defined(CHANGED_target)
    return i & 1 ? right(x) : left(x);
#else
    return i & 1 ? left(x) : right(x);
#endif
}

static __attribute__((noinline)) void jump(void) {
#if defined(CHANGED_jump)
    __asm__ volatile("jmp 2f\n1: nop\n2: nop");
#else
    __asm__ volatile("jmp 1f\n1: nop\n2: nop");
#endif
}

float (*identity_chosen)(float x);
int identity_repeats;

/* Set on loading, where the code that reads it is the same. */
static float shift;
__attribute__((constructor)) static void set_shift(void) {
    __asm__ volatile(""); /* clang runs constructors that it understands itself */
#if defined(CHANGED_constructor)
    shift = 0.25f;
#else
    shift = 0.5f;
#endif
}

/* A constant of 32 bytes of which the compiler lets 3.0f below be a part. */
static __attribute__((noinline)) void add_vector(float *y) {
    const __m256 v = _mm256_setr_ps(1, 2, 3, 4, 5, 6, 7, LAST);
    _mm256_storeu_ps(y, _mm256_add_ps(_mm256_loadu_ps(y), v));
}

static int first(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const float *x = call->x;
    float *y = call->y;
    for (int64_t i = begin; i < end; i++)
        y[i] = turn(x[i], i) * FACTOR + table[x[i] > 0 ? i % 40 : 1] + identity_helper(steps[i & 1](x[i])) + shift;
    for (int r = 0; r < identity_repeats; r++) y[0] = identity_chosen(y[0]);
    add_vector(y);
    jump();
    return 0;
}

static int second(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    float *y = call->y;
#if defined(CHANGED_other)
    for (int64_t i = begin; i < end; i++) y[i] = y[i] * 3.0f + 7.0f;
#else
    for (int64_t i = begin; i < end; i++) y[i] = y[i] * 3.0f;
#endif
    return 0;
}

#if defined(CHANGED_chain)
static int64_t chain(const struct nb_call *call) { return call->cols / 2; }
#else
static int64_t chain(const struct nb_call *call) { return call->cols; }
#endif
static const char *applicable(const struct nb_call *call) {
#if defined(CHANGED_text)
    return call->cols > 7 ? NULL : "rows are too short by far";
#else
    return call->cols > 7 ? NULL : "rows are too short for me";
#endif
}

#if defined(CHANGED_flags)
#define FLAGS NB_FLAG_STREAMING
#else
#define FLAGS 0
#endif
const struct nb_kernel identity_first = {.struct_size = sizeof(struct nb_kernel),
                                         .op = NB_OP_RMSNORM,
                                         .width = NB_NATIVE,
                                         .name = "first",
                                         .variant = "first_f32",
                                         .flags = FLAGS,
                                         .run = first,
                                         .chain = chain,
                                         .applicable = applicable};
const struct nb_kernel identity_second = {.struct_size = sizeof(struct nb_kernel),
                                          .op = NB_OP_RMSNORM,
                                          .width = NB_NATIVE,
                                          .name = "second",
                                          .variant = "second_f32",
                                          .run = second};
