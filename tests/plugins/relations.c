// SPDX-License-Identifier: Apache-2.0
/* RMSNorms and a LayerNorm of f32 rows, one correct and each other with one fault that breaks a relation between calls; most of them
 * stay within the bound of every single result. */
#define KERNEL_NAME "correct"
#define OWN_TABLE
#include "plugin.h"

static int run(ROWS) { return correct_rows(call, begin, end); }

/* Every result rounded towards +Inf: f(-x) is not -f(x). */
static int rounds_up(ROWS) {
    for (int64_t row = begin; row < end; row++) {
        const double m = mean_square(call, row);
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
static int by_place(ROWS) {
    correct_rows(call, begin, end);
    if (begin <= 1 && end > 1) next_all(call, 1);
    return 0;
}
/* An ulp more in a call of one row. */
static int by_batch(ROWS) {
    correct_rows(call, begin, end);
    if (call->rows == 1) next_all(call, 0);
    return 0;
}
/* An ulp more in what begins a range. */
static int by_range(ROWS) {
    correct_rows(call, begin, end);
    if (begin > 0) next_all(call, begin);
    return 0;
}
/* An ulp more in every other call. */
static int by_turn(ROWS) {
    static int turn;
    correct_rows(call, begin, end);
    if (turn++ % 2) next_all(call, begin);
    return 0;
}
/* An ulp more for rows beyond 8, as a table of ranges would give. */
static int by_size(ROWS) {
    correct_rows(call, begin, end);
    for (int64_t row = begin; row < end; row++)
        if (mean_square(call, row) > 64) next_all(call, row);
    return 0;
}

/* The last column is left out of the sum, which no one sees as long as it is 0. */
static int drops_last(ROWS) {
    for (int64_t row = begin; row < end; row++) {
        const double last = row_x(call, row)[call->cols - 1];
        const double m = mean_square(call, row) - last * last / (double)call->cols;
        for (int64_t i = 0; i < call->cols; i++) row_y(call, row)[i] = (float)element(call, row, i, m);
    }
    return 0;
}

/* eps is forgotten: the mean square of y is 1 and not v / (v + eps). */
static int no_eps(ROWS) {
    struct nb_call without = *call;
    without.eps = 0;
    return correct_rows(&without, begin, end);
}

/* A LayerNorm by E[x^2] - mean^2 in f32 that says it takes two passes. */
static int one_pass(ROWS) {
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

#define FAULTS(X)                                                                                                      \
    X(rounds_up) X(by_place) X(by_batch) X(by_range) X(by_turn) X(by_size) X(drops_last) X(no_eps) X(one_pass)
static const struct {
    const char *name, *variant;
    int (*run)(const struct nb_call *call, int phase, int64_t begin, int64_t end);
} faults[] = {{"correct", "correct_f32", run},
#define X(name) {#name, #name "_f32", name},
              FAULTS(X)
#undef X
};
enum { N = sizeof faults / sizeof faults[0] };

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static struct nb_kernel kernels[N];
    static const struct nb_kernel *table[N];
    for (size_t i = 0; i < N; i++) {
        kernels[i] = kernel;
        kernels[i].name = faults[i].name;
        kernels[i].variant = faults[i].variant;
        kernels[i].run = faults[i].run;
        kernels[i].formulas.roots = 1u << NB_ROOT_MUL_RECIP;
        kernels[i].formulas.affines = 1u << NB_AFFINE_NONE | 1u << NB_AFFINE_GAMMA;
        kernels[i].formulas.params = 0;
        table[i] = &kernels[i];
    }
    struct nb_kernel *layernorm = &kernels[N - 1];
    layernorm->op = NB_OP_LAYERNORM;
    layernorm->variance = NB_VAR_TWOPASS;
    layernorm->formulas.affines = 1u << NB_AFFINE_NONE;
    *n = N;
    return abi_version == NB_ABI_VERSION ? table : NULL;
}
