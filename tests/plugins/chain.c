// SPDX-License-Identifier: Apache-2.0
/* Declares a chain of roundings so long that the bound would let any result pass. */
#include "kernel.h"

static int64_t chain(const struct nb_call *call) {
    (void)call;
    return INT64_MAX;
}
#define KERNEL_NAME "bad_chain"
#define KERNEL_FIELDS .chain = chain
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < call->cols; i++) row_y(call, row)[i] = 3;
    return 0;
}
