// SPDX-License-Identifier: Apache-2.0
/* A correct kernel of a case's formula and properties, by the emulator: in f32 or, for low-precision statistics, with every result rounded to
 * the dtype. What the bound must let pass; and two ways to be wrong, which it must catch. tests/plugins/mistakes.h has the others. */
#pragma once

#include "src/accuracy/accuracy.h"
#include "src/accuracy/bias.h"
#include "tests/support/numerics.h"

struct soft_kernel {
    int lanes;     /* of the reductions: element i goes to lane i % lanes */
    bool unbiased; /* the variance over n - 1, where eps stands inside the root */
    bool flushes;  /* subnormal outputs become 0 */
};

/* Of all rows (of all ops but DyT and BatchNorm), by the oracle and the bound. */
struct nb_accuracy soft_accuracy(const struct soft_kernel *k, const struct problem *p, struct nb_bias *bias);
