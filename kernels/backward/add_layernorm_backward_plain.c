// SPDX-License-Identifier: Apache-2.0
/* LayerNorm backward of a stored residual sum, plus the gradient that reaches the sum past the norm, in one fma: dx is rounded once. */
#include "kernels/backward/backward_plain.h"

static int add_layernorm_backward_plain_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return backward_phase(call, phase, begin, end,
                          (struct backward_form){.centre = true, .add = true, .affine = NB_AFFINE_GAMMA_BETA});
}

NB_KERNEL(add_layernorm_backward_plain, .summary = "residual add and LayerNorm backward, two sweeps a row",
          .op = NB_OP_ADD_LAYERNORM, .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT}, .flops = 15,
          .run = add_layernorm_backward_plain_run, BACKWARD_PLAIN);
