// SPDX-License-Identifier: Apache-2.0
/* A kernel in plain C that follows a case's formula and properties step by step in f32 (or, for low-precision statistics, with
 * every result rounded to the dtype), right or with one fault: what the bound must let pass, and what it must catch. */
#ifndef NB_TEST_SUPPORT_SOFTKERNEL_H
#define NB_TEST_SUPPORT_SOFTKERNEL_H

#include "src/accuracy/accuracy.h"
#include "src/accuracy/bias.h"
#include "tests/support/numerics.h"

enum fault {
    FAULT_NONE,
    FAULT_DIVISOR, /* variance by n - 1 */
    FAULT_EPS,     /* eps / 10 */
    FAULT_NO_EPS,
    FAULT_NO_NEWTON,     /* the raw estimate where the formula has a Newton step */
    FAULT_TRUNCATE,      /* the store truncates */
    FAULT_NARROW_RSTD,   /* the scale is rounded to x's dtype */
    FAULT_NARROW_SUM,    /* the accumulator is bf16 */
    FAULT_CAST_BEFORE,   /* the other cast order */
    FAULT_NARROW_OFFSET, /* 1 + gamma rounded to x's dtype */
    FAULT_CENTRED,       /* RMSNorm that subtracts the mean, LayerNorm that does not */
    FAULT_DROPS_LAST,    /* the last element is left out of the statistics */
    FAULT_FLUSH,         /* subnormal outputs become 0 */
    N_FAULTS
};
extern const char *const fault_names[N_FAULTS];

struct soft_kernel {
    int lanes; /* of the reductions: element i goes to lane i % lanes; the lanes are then added in order */
    enum fault fault;
    double estimate_error; /* relative error of the simulated rsqrt estimate */
};

/* Of all rows (of all ops but BatchNorm), by the oracle and the bound. */
struct nb_accuracy soft_accuracy(const struct soft_kernel *k, const struct problem *p, struct nb_bias *bias);

#endif
