// SPDX-License-Identifier: Apache-2.0
/* The copy for a residual add with a norm on a GPU. No arithmetic. */
#include "kernels/cuda/copies.h"

static int copy_add_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return copy_tensors(call,
                        (struct copy_args){.in = {call->x, call->residual},
                                           .out = {call->y, call->residual_out},
                                           .in_stride = {call->x_stride, call->residual_stride},
                                           .out_stride = {call->y_stride, call->residual_out_stride}},
                        2, 2, 2);
}

NB_KERNEL(copy_add, .summary = "x, residual -> y, residual_out", .loads = 2, .stores = 2, .run = copy_add_run,
          CUDA_COPY);
