// SPDX-License-Identifier: Apache-2.0
/* What an adapter to another library (a peer) exports beside its kernels (kernel.h): where the library is, and how it is taken into
 * use. The library is loaded by name when the program asks for it, so that a build of the user's can stand in its place. */
#pragma once

#include "kernels/kernel.h"

struct nb_peer {
    uint32_t struct_size;
    const char *library; /* the file that the adapter was built for, absolute */
    /* Loads the library, before any kernel is asked; null: the file above. 0, or -1 with the reason written. Once a process. */
    int (*use)(const char *library, char *reason, size_t n);
    const char *(*version)(void); /* after use(): the library, its version, what runs its threads */
};

#ifdef __cplusplus
extern "C"
#endif
    NB_EXPORT const struct nb_peer *
    normbench_peer(void);
