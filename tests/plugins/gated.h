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

/* What an instruction does to t, sixteen times, each after the one before. */
#define FOUR_TIMES(instruction) instruction instruction instruction instruction
#define SIXTEEN_TIMES(instruction) FOUR_TIMES(FOUR_TIMES(instruction))
