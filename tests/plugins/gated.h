// SPDX-License-Identifier: Apache-2.0
/* Tables of RMSNorm kernels for the gate: two plugins that name the same kernels and differ in what those do. */
#pragma once

#include "rows.h"
#include "table.h"

#define GATED(kernel_name, ...)                                                                                        \
    {                                                                                                                  \
        .struct_size = sizeof(struct nb_kernel), .op = NB_OP_RMSNORM, .dtype = NB_F32, .width = NB_NATIVE,             \
        .name = "gated_" #kernel_name, .variant = "gated_" #kernel_name "_f32", .summary = "for the gate's tests",     \
        .formulas = {.roots = 1u << NB_ROOT_DIV_SQRT | 1u << NB_ROOT_MUL_RECIP,                                        \
                     .affines = 1u << NB_AFFINE_NONE | 1u << NB_AFFINE_GAMMA | 1u << NB_AFFINE_GAMMA_BETA,             \
                     .params = 1u << NB_PARAM_F32 | 1u << NB_PARAM_X},                                                 \
        .loads = 2, .stores = 1, .flops = 4, .run = kernel_name, __VA_ARGS__                                           \
    }

/* What an instruction does to t, sixteen times, each after the one before. */
#define FOUR_TIMES(instruction) instruction instruction instruction instruction
#define SIXTEEN_TIMES(instruction) FOUR_TIMES(FOUR_TIMES(instruction))
