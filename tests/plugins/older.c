// SPDX-License-Identifier: Apache-2.0
/* A plugin built against an older header, whose struct ended after `run`: what stands behind it in memory is not the kernel's. It
 * gives no variant name and no summary either. */
#include "kernels/kernel.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++)
        for (int64_t col = 0; col < call->cols; col++)
            ((float *)call->y)[row * call->y_stride + col] = ((const float *)call->x)[row * call->x_stride + col];
    return 0;
}

/* The trap: a reader that does not honour struct_size would call this address. */
static struct nb_kernel kernel = {.struct_size = offsetof(struct nb_kernel, applicable),
                                  .op = NB_OP_RMSNORM,
                                  .dtype = NB_F32,
                                  .width = NB_NATIVE,
                                  .name = "copy",
                                  .run = run,
                                  .chain = (int64_t(*)(const struct nb_call *))(uintptr_t)0x10,
                                  .row_local = (int (*)(const struct nb_call *))(uintptr_t)0x10};

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static const struct nb_kernel *const table[] = {&kernel};
    *n = 1;
    return abi_version == NB_ABI_VERSION ? table : NULL;
}
