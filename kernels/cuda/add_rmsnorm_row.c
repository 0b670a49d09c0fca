// SPDX-License-Identifier: Apache-2.0
/* Residual add and RMSNorm on a GPU in one launch. Error of the mean square as rmsnorm_row, about the sum that the formula names. */
#include "kernels/cuda/rows.h"

static int add_rmsnorm_row_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct row_args a = row_args_of(call, begin, end, false);
    a.residual = row_in(call->residual, call->residual_stride, begin);
    if (call->residual_out) a.residual_out = row_out(call->residual_out, call->residual_out_stride, begin);
    a.round_sum = sizeof(elem) < sizeof(float) && call->formula.round_sum;
    return launch_rows(call, &a);
}

NB_KERNEL(add_rmsnorm_row, .summary = "residual add and RMSNorm, rows in registers", .op = NB_OP_ADD_RMSNORM,
          .formulas = {NB_EVERY_FORMULA, .round_sums = NB_ALL(2)}, .loads = 2, .stores = 2, .flops = 5,
          .run = add_rmsnorm_row_run, .chain = rows_chain, .range = square_range, CUDA_ROWS);
