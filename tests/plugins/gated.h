// SPDX-License-Identifier: Apache-2.0
/* Tables of RMSNorm kernels for the gate: two plugins that name the same kernels and differ in what those do. */
#pragma once

#include "rows.h"
#include "table.h"

#define GATED(kernel_name, run_, ...)                                                                                  \
    {                                                                                                                  \
        OF_ROWS, .name = "gated_" #kernel_name, .variant = "gated_" #kernel_name "_f32",                               \
                 .summary = "for the gate's tests", .run = run_, __VA_ARGS__                                           \
    }

#ifdef WAITS_BY
/* Beside the result, for each element sixteen times the plugin's instruction. */
static int waits(ROWS) {
#if defined(__x86_64__)
    for (int64_t i = 0; i < (end - begin) * call->cols; i++) __asm__ volatile(".rept 16\n" WAITS_BY "\n.endr");
#endif
    return correct_rows(call, begin, end);
}
#endif
