// SPDX-License-Identifier: Apache-2.0
/* A kernel as the program knows it: what its table says, and where it comes from. */
#ifndef NB_ENTRY_H
#define NB_ENTRY_H

#include <stdbool.h>

#include "kernels/kernel.h"

struct nb_entry {
    const struct nb_kernel *kernel; /* a copy in this program's own size: fields the file does not know are 0, variant
                                       is never null, summary neither */
    const char *plugin; /* null for the built-in kernels, else the plugin's name (file name without lib and .so) */
    bool is_peer;       /* an adapter to another library (peers.h); plugin is its name */
    const char *file;   /* the shared object, as the user named it, or "peer:NAME[=LIBRARY]" */
    char *id;           /* "[plugin:]variant" */
    char *kernel_id;    /* "[plugin:]kernel" */
};

/* What loading returns of a file that serves another kernel ABI. */
#define NB_OTHER_ABI (-2)

#endif
