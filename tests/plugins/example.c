// SPDX-License-Identifier: Apache-2.0
/* A complete plugin in C: RMSNorm of f32 rows. kernel.h lies beside it, or -I says where. Built and tried with
 *     cc -O2 -shared -fPIC example.c -o example.so -lm
 *     normbench try ./example.so */
#include <math.h>

#include "kernel.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const float *gamma = call->gamma;
    (void)phase; /* there is one */
    for (int64_t row = begin; row < end; row++) {
        const float *x = (const float *)call->x + row * call->x_stride;
        float *y = (float *)call->y + row * call->y_stride, sum = 0;
        for (int64_t i = 0; i < call->cols; i++) sum += x[i] * x[i];
        float rstd = 1 / sqrtf(sum / (float)call->cols + (float)call->eps);
        for (int64_t i = 0; i < call->cols; i++) y[i] = gamma ? x[i] * rstd * gamma[i] : x[i] * rstd;
    }
    return 0;
}

/* What it claims to be accurate for: rows whose squares neither overflow nor vanish. */
static void range(const struct nb_call *call, struct nb_range *range) {
    (void)call;
    range->min_rms = 1e-15;
    range->max_abs = 1e15;
}

static const struct nb_kernel kernel = {
    .struct_size = sizeof(struct nb_kernel),
    .op = NB_OP_RMSNORM,
    .pass = NB_FORWARD,
    .dtype = NB_F32,
    .width = NB_NATIVE,
    .name = "example",
    .variant = "example_f32",
    .summary = "RMSNorm in plain C",
    .formulas = {.roots = 1 << NB_ROOT_MUL_RECIP, .affines = 1 << NB_AFFINE_NONE | 1 << NB_AFFINE_GAMMA},
    .loads = 2,
    .stores = 1,
    .flops = 4,
    .run = run,
    .range = range};

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static const struct nb_kernel *const table[] = {&kernel};
    *n = 1;
    return abi_version == NB_ABI_VERSION ? table : NULL;
}
