// SPDX-License-Identifier: Apache-2.0
/* The copy for a backward pass through a residual add and a norm on a GPU. No arithmetic. */
#include "kernels/cuda/copies.h"

static int copy_add_backward_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const struct copied tensors[] = {COPIED(x), COPIED(dy), COPIED(dresidual_out), COPIED(dx)};
    return copy_tensors(call, tensors, 3, 1, 2);
}

NB_KERNEL(copy_add_backward, .summary = "x, dy, dresidual_out -> dx", .pass = NB_BACKWARD, .loads = 3, .stores = 1,
          .run = copy_add_backward_run, CUDA_COPY);
