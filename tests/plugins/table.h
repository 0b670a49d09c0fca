// SPDX-License-Identifier: Apache-2.0
/* TABLE(kernels): the table of a plugin whose kernels are all of that array. */
#pragma once

#include <stddef.h>

#include "kernel.h"

#define TABLE(kernels)                                                                                                 \
    const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {                                \
        static const struct nb_kernel *table[sizeof(kernels) / sizeof(kernels)[0]];                                    \
        *n = sizeof(kernels) / sizeof(kernels)[0];                                                                     \
        for (size_t i = 0; i < *n; i++) table[i] = &(kernels)[i];                                                      \
        return abi_version == NB_ABI_VERSION ? table : NULL;                                                           \
    }
