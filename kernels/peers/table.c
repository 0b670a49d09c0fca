// SPDX-License-Identifier: Apache-2.0
/* The two exported functions of an adapter. PEER_VARIANTS (a list of ENTRY(symbol)) and PEER_LIBRARY come from the build. */
#include "kernels/peers/adapter.h"

#define ENTRY(symbol) extern struct nb_kernel symbol;
PEER_VARIANTS
#undef ENTRY

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
#define ENTRY(symbol) &symbol,
    static struct nb_kernel *const kernels[] = {PEER_VARIANTS};
#undef ENTRY
    *n = sizeof kernels / sizeof kernels[0];
    for (size_t i = 0; i < *n; i++) peer_describe(kernels[i]);
    return abi_version == NB_ABI_VERSION ? (const struct nb_kernel *const *)kernels : NULL;
}

static int use(const char *library, char *reason, size_t n) {
    return peer_use(library ? library : PEER_LIBRARY, reason, n);
}

const struct nb_peer *normbench_peer(void) {
    static const struct nb_peer peer = {
        .struct_size = sizeof peer, .library = PEER_LIBRARY, .use = use, .version = peer_version};
    return &peer;
}
