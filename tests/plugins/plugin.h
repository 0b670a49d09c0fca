// SPDX-License-Identifier: Apache-2.0
/* A correct RMSNorm of f32 rows and the table of a plugin with one kernel, for plugins that do one thing wrong. Before including this
 * a plugin defines KERNEL_NAME, KERNEL_FIELDS for what the kernel declares besides, and OWN_TABLE if the table is its own; after it, run(). */
#pragma once

#include <stdbool.h>
#include <unistd.h>

#include "rows.h"

#ifndef KERNEL_FIELDS
#define KERNEL_FIELDS
#endif
#ifndef KERNEL_SUMMARY
#define KERNEL_SUMMARY "RMSNorm with a fault, for tests"
#endif

static int run(ROWS);

static const struct nb_kernel kernel = {
    OF_ROWS, .name = KERNEL_NAME, .variant = KERNEL_NAME "_f32", .summary = KERNEL_SUMMARY, .run = run, KERNEL_FIELDS};

#ifndef OWN_TABLE
const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static const struct nb_kernel *const table[] = {&kernel};
    *n = 1;
    return abi_version == NB_ABI_VERSION ? table : NULL;
}
#endif

static pid_t loaded_by; /* the table's function sets it where is_late() is asked */

/* For kernels that are right while they are checked: does this call come later? A check is made in a fork of the process that loaded the kernel, and in
 * that process itself, of six calls where its units are rows, where it cannot be forked. A launch makes at least seven, however slow the machine
 * is: two that choose the length of its slots, one in each of four blocks, one whose result must be the checked one. */
static inline bool is_late(void) {
    enum { CHECKED = 6 };
    static int n_calls;
    return ++n_calls > CHECKED && getpid() == loaded_by;
}
