// SPDX-License-Identifier: Apache-2.0
/* A table with one fault, which the environment variable NORMBENCH_TEST_FAULT names. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) { return 0; }

static struct nb_kernel good = {.struct_size = sizeof(struct nb_kernel),
                                .op = NB_OP_RMSNORM,
                                .width = NB_SCALAR,
                                .name = "good",
                                .variant = "good_scalar_f32",
                                .summary = "a kernel without fault",
                                .loads = 1,
                                .stores = 1,
                                .run = run};
static struct nb_kernel bad;
static char long_name[200];

static int is(const char *fault, const char *name) { return strcmp(fault, name) == 0; }

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static const struct nb_kernel *table[] = {&good, &bad};
    const char *fault = getenv("NORMBENCH_TEST_FAULT");
    bad = good;
    bad.name = "bad";
    bad.variant = "bad_scalar_f32";
    *n = 2;
    if (!fault || abi_version != NB_ABI_VERSION || is(fault, "abi")) return NULL;
    if (is(fault, "empty")) *n = 0;
    if (is(fault, "count")) *n = SIZE_MAX;
    if (is(fault, "null")) table[1] = NULL;
    if (is(fault, "size")) bad.struct_size = 8;
    if (is(fault, "huge")) bad.struct_size = 1u << 30;
    if (is(fault, "op")) bad.op = 99;
    if (is(fault, "pass")) bad.pass = NB_N_PASSES;
    if (is(fault, "dtype")) bad.dtype = NB_N_DTYPES;
    if (is(fault, "width")) bad.width = NB_N_WIDTHS;
    if (is(fault, "variance")) bad.variance = NB_N_VARIANCES;
    if (is(fault, "backend")) bad.backend = NB_N_BACKENDS;
    if (is(fault, "name")) bad.name = "";
    if (is(fault, "slash")) bad.variant = "bad/scalar";
    if (is(fault, "colon")) bad.name = "other:bad";
    if (is(fault, "space")) bad.variant = "bad one";
    if (is(fault, "run")) bad.run = NULL;
    if (is(fault, "loads")) bad.loads = NAN;
    if (is(fault, "duplicate")) bad.variant = good.variant;
    /* A function of another file: the C library's. */
    if (is(fault, "elsewhere")) bad.close = abort;
    if (is(fault, "long")) bad.variant = memset(long_name, 'x', sizeof long_name - 1);
    return table;
}
