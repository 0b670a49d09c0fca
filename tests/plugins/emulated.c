// SPDX-License-Identifier: Apache-2.0
/* Kernels of the backend cuda-emulated, one right and one wrong in every row, beside the same for the CPU; all for rows of f32. */
#include "rows.h"
#include "table.h"

static int run(ROWS) { return correct_rows(call, begin, end); }

static int run_wrong(ROWS) {
    correct_rows(call, begin, end);
    for (int64_t row = begin; row < end; row++) row_y(call, row)[0] += 1;
    return 0;
}

static int row_local(const struct nb_call *call) { return 1; }

#define KERNEL(name_, suffix, backend_, run_)                                                                          \
    {                                                                                                                  \
        OF_ROWS, .name = name_, .variant = name_ suffix, .summary = "RMSNorm, for tests", .run = run_,                 \
                 .row_local = row_local, .backend = backend_                                                           \
    }
static const struct nb_kernel kernels[] = {
    KERNEL("rmsnorm_rows", "_native_f32", NB_BACKEND_CPU, run),
    KERNEL("rmsnorm_rows", "_cuda_emulated_f32", NB_BACKEND_CUDA_EMULATED, run),
    KERNEL("rmsnorm_wrong", "_cuda_emulated_f32", NB_BACKEND_CUDA_EMULATED, run_wrong),
};
TABLE(kernels)
