// SPDX-License-Identifier: Apache-2.0
/* Files with kernels that are started, and not loaded. What they are and how their kernels are asked is known in src/programs, which stands on
 * this folder: whoever starts a process that may meet such files tells the registry once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

struct nb_kernel_program;

struct nb_program_api {
    bool (*is)(const char *file);                                    /* is it to be started? */
    double load_s;                                                   /* the longest that this may take, as usual */
    struct nb_kernel_program *(*start)(const char *file, size_t *n); /* its table has n kernels; null after nb_error */
    const struct nb_kernel *(*table)(const struct nb_kernel_program *p, size_t i);
    void (*rest)(struct nb_kernel_program *p); /* it ends, or is left to whom it belongs; its table stays */
    void (*free)(struct nb_kernel_program *p); /* null: nothing */

    int (*run)(const struct nb_call *call, int phase, int64_t begin, int64_t end); /* of all kernels of programs */
    const char *(*applicable)(const struct nb_kernel *k, const struct nb_call *call);
    const struct nb_range *(*range)(const struct nb_kernel *k);
};

void nb_use_programs(const struct nb_program_api *api);
/* Never null: as long as nothing was told, no file is a program. */
const struct nb_program_api *nb_programs(void);
