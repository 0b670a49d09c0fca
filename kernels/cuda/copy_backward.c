// SPDX-License-Identifier: Apache-2.0
/* The copy for a backward pass on a GPU. No arithmetic. */
#include "kernels/cuda/copies.h"

static int copy_backward_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return copy_tensors(call,
                        (struct copy_args){.in = {call->x, call->dy},
                                           .out = {call->dx},
                                           .in_stride = {call->x_stride, call->dy_stride},
                                           .out_stride = {call->dx_stride}},
                        2, 1, 2);
}

NB_KERNEL(copy_backward, .summary = "x, dy -> dx", .pass = NB_BACKWARD, .loads = 2, .stores = 1,
          .run = copy_backward_run, CUDA_COPY);
