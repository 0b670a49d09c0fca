// SPDX-License-Identifier: Apache-2.0
/* The copy for a forward norm on a GPU. No arithmetic. */
#include "kernels/cuda/copies.h"

static int copy_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const struct copied tensors[] = {COPIED(x), COPIED(y)};
    return copy_tensors(call, tensors, 1, 1, 4);
}

NB_KERNEL(copy, .summary = "x -> y", .loads = 1, .stores = 1, .run = copy_run, CUDA_COPY);
