// SPDX-License-Identifier: Apache-2.0
/* Backward of a residual add and RMSNorm: x is the sum that the forward call stored, and dx = dresidual_out + the norm's own gradient,
 * rounded once; otherwise as rmsnorm_backward_fast. */
#include "kernels/backward/gradient.h"

static struct gradient_form gradient_form_of_kernel(void) { return (struct gradient_form){.residual = true}; }

/* Loads: x and dy, twice, dresidual_out. */
NB_KERNEL(add_rmsnorm_backward_fast, .summary = "residual add and RMSNorm backward, one sweep", .op = NB_OP_ADD_RMSNORM,
          .pass = NB_BACKWARD, .formulas = GRADIENT_ADD_FORMULAS, .loads = 5, .stores = 1, .flops = 11,
          .flags = GRADIENT_FLAGS, .implementation = gradient_implementation, .run = gradient_run,
          .row_local = gradient_row_local, .chain = gradient_chain, .scratch_bytes = gradient_scratch,
          .n_phases = gradient_phases, .n_units = gradient_units, .range = gradient_range,
          .column_chain = gradient_column_chain);
