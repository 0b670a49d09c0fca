// SPDX-License-Identifier: Apache-2.0
/* A kernel as its table describes it, and where it comes from. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "src/core/kernel_fields.h"

#define NB_NO_FUNCTION UINT64_MAX

struct nb_entry {
    const struct nb_kernel *kernel; /* a copy in this program's own size: fields the file does not know are 0, variant
                                       is never null, summary neither */
    const char *plugin; /* null for the built-in kernels, else the plugin's name (file name without lib and .so) */
    bool is_peer;       /* an adapter to another library (peers.h); plugin is its name */
    const char *file;   /* the shared object, as the user named it, or "peer:NAME[=LIBRARY]" */
    char *id;           /* "[plugin:]variant" */
    char *kernel_id;    /* "[plugin:]kernel" */

    uint64_t functions[NB_N_KERNEL_FUNCTIONS]; /* where they lie in their file once that is loaded; or NB_NO_FUNCTION */
    char *code_file;                           /* the loaded file that run() lies in */
    bool is_apart;                             /* its functions lie in several files */
};
