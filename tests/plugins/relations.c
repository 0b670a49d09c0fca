// SPDX-License-Identifier: Apache-2.0
/* RMSNorms and a LayerNorm of f32 rows, one correct and each other with one fault that breaks a relation between calls; most of them
 * stay within the bound of every single result. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernel.h"

static const float *row_x(const struct nb_call *call, int64_t row) {
    return (const float *)call->x + row * call->x_stride;
}
static float *row_y(const struct nb_call *call, int64_t row) { return (float *)call->y + row * call->y_stride; }

static double mean_square(const struct nb_call *call, int64_t row, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)row_x(call, row)[i] * row_x(call, row)[i];
    return sum / (double)call->cols;
}

static double element(const struct nb_call *call, int64_t row, int64_t i, double m) {
    double y = row_x(call, row)[i] / sqrt(m + call->eps);
    return call->gamma ? y * ((const float *)call->gamma)[i] : y;
}

static int correct(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t row = begin; row < end; row++) {
        const double m = mean_square(call, row, call->cols);
        for (int64_t i = 0; i < call->cols; i++) row_y(call, row)[i] = (float)element(call, row, i, m);
    }
    return 0;
}

/* Every result rounded towards +Inf: f(-x) is not -f(x). */
static int rounds_up(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t row = begin; row < end; row++) {
        const double m = mean_square(call, row, call->cols);
        for (int64_t i = 0; i < call->cols; i++) {
            const double exact = element(call, row, i, m);
            const float near = (float)exact;
            row_y(call, row)[i] = near < exact ? nextafterf(near, INFINITY) : near;
        }
    }
    return 0;
}

static void next_all(const struct nb_call *call, int64_t row) {
    for (int64_t i = 0; i < call->cols; i++) {
        const float y = row_y(call, row)[i];
        row_y(call, row)[i] = nextafterf(y, copysignf(INFINITY, y));
    }
}

/* An ulp more in the second row. */
static int by_place(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    correct(call, phase, begin, end);
    if (begin <= 1 && end > 1) next_all(call, 1);
    return 0;
}

/* An ulp more in a call of one row. */
static int by_batch(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    correct(call, phase, begin, end);
    if (call->rows == 1) next_all(call, 0);
    return 0;
}

/* An ulp more in what begins a range. */
static int by_range(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    correct(call, phase, begin, end);
    if (begin > 0) next_all(call, begin);
    return 0;
}

/* An ulp more in every other call. */
static int by_turn(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    static int turn;
    correct(call, phase, begin, end);
    if (turn++ % 2) next_all(call, begin);
    return 0;
}

/* An ulp more for rows beyond 8, as a table of ranges would give. */
static int by_size(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    correct(call, phase, begin, end);
    for (int64_t row = begin; row < end; row++)
        if (mean_square(call, row, call->cols) > 64) next_all(call, row);
    return 0;
}

/* The last column is left out of the sum, which no one sees as long as it is 0. */
static int drops_last(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t row = begin; row < end; row++) {
        const double m = mean_square(call, row, call->cols - 1);
        for (int64_t i = 0; i < call->cols; i++) row_y(call, row)[i] = (float)element(call, row, i, m);
    }
    return 0;
}

/* eps is forgotten: the mean square of y is 1 and not v / (v + eps). */
static int no_eps(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct nb_call without = *call;
    without.eps = 0;
    return correct(&without, phase, begin, end);
}

/* A LayerNorm by E[x^2] - mean^2 in f32 that says it takes two passes. */
static int one_pass(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const float n = (float)call->cols;
    for (int64_t row = begin; row < end; row++) {
        float sum = 0, squares = 0;
        for (int64_t i = 0; i < call->cols; i++) {
            sum += row_x(call, row)[i];
            squares += row_x(call, row)[i] * row_x(call, row)[i];
        }
        const float mean = sum / n, rstd = 1 / sqrtf(squares / n - mean * mean + (float)call->eps);
        for (int64_t i = 0; i < call->cols; i++) row_y(call, row)[i] = (row_x(call, row)[i] - mean) * rstd;
    }
    return 0;
}

#define RMSNORM(name_, run_)                                                                                           \
    {                                                                                                                  \
        .struct_size = sizeof(struct nb_kernel), .op = NB_OP_RMSNORM, .width = NB_NATIVE, .name = name_,               \
        .variant = name_ "_f32",                                                                                       \
        .formulas = {.affines = 1u << NB_AFFINE_NONE | 1u << NB_AFFINE_GAMMA, .roots = 1u << NB_ROOT_MUL_RECIP},       \
        .loads = 2, .stores = 1, .flops = 4, .run = run_                                                               \
    }

static const struct nb_kernel kernels[] = {
    RMSNORM("correct", correct),
    RMSNORM("rounds_up", rounds_up),
    RMSNORM("by_place", by_place),
    RMSNORM("by_batch", by_batch),
    RMSNORM("by_range", by_range),
    RMSNORM("by_turn", by_turn),
    RMSNORM("by_size", by_size),
    RMSNORM("drops_last", drops_last),
    RMSNORM("no_eps", no_eps),
    {.struct_size = sizeof(struct nb_kernel),
     .op = NB_OP_LAYERNORM,
     .width = NB_NATIVE,
     .name = "one_pass",
     .variant = "one_pass_f32",
     .variance = NB_VAR_TWOPASS,
     .formulas = {.affines = 1u << NB_AFFINE_NONE, .roots = 1u << NB_ROOT_MUL_RECIP},
     .loads = 2,
     .stores = 1,
     .flops = 4,
     .run = one_pass},
};
enum { N = sizeof kernels / sizeof kernels[0] };

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static const struct nb_kernel *table[N];
    for (size_t i = 0; i < N; i++) table[i] = &kernels[i];
    *n = N;
    return abi_version == NB_ABI_VERSION ? table : NULL;
}
