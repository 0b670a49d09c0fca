// SPDX-License-Identifier: Apache-2.0
/* Exports more than its table: a function and a number that its kernel reaches through the loader, so that another file which exports
 * them too can take their place. */
#include "gated.h"

#ifndef FACTOR
#define FACTOR 1.0f
#endif

extern float gate_test_factor;
#ifndef FACTOR_IS_ELSEWHERE
float gate_test_factor = FACTOR;
#endif
float gate_test_scale(float y);
float gate_test_scale(float y) { return y * gate_test_factor; }

static int global(ROWS) {
    correct_rows(call, begin, end);
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < call->cols; i++) row_y(call, row)[i] = gate_test_scale(row_y(call, row)[i]);
    return 0;
}

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static const struct nb_kernel kernel = GATED(global, global, ), *const table[] = {&kernel};
    *n = 1;
    return abi_version == NB_ABI_VERSION ? table : NULL;
}
