// SPDX-License-Identifier: Apache-2.0
/* The two exported functions of an adapter. PEER_VARIANTS (a list of ENTRY(symbol)) and PEER_LIBRARY come from the build. */
#include "kernels/peers/adapter.h"

#define ENTRY(symbol) extern const struct peer_variant symbol;
PEER_VARIANTS
#undef ENTRY

#define ENTRY(symbol) &symbol,
static const struct peer_variant *const variants[] = {PEER_VARIANTS};
#undef ENTRY
enum { N_VARIANTS = sizeof variants / sizeof variants[0] };

static int64_t one_unit(const struct nb_call *call, int phase) { return 1; }

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static struct nb_kernel kernels[N_VARIANTS];
    static const struct nb_kernel *table[N_VARIANTS];
    for (size_t i = 0; i < N_VARIANTS; i++) {
        const struct peer_variant *v = variants[i];
        kernels[i] = (struct nb_kernel){.struct_size = sizeof kernels[i],
                                        .op = v->op,
                                        .pass = v->pass,
                                        .dtype = v->dtype,
                                        .width = NB_NATIVE,
                                        .name = v->name,
                                        .run = v->run,
                                        .applicable = v->applicable,
                                        .n_units = one_unit,
                                        .open = peer_open,
                                        .close = peer_close,
                                        .version = peer_version,
                                        .implementation = v->implementation};
        peer_describe(v, &kernels[i]);
        table[i] = &kernels[i];
    }
    *n = N_VARIANTS;
    return abi_version == NB_ABI_VERSION ? table : NULL;
}

static int use(const char *library, char *reason, size_t n) {
    return peer_use(library ? library : PEER_LIBRARY, reason, n);
}

const struct nb_peer *normbench_peer(void) {
    static const struct nb_peer peer = {
        .struct_size = sizeof peer, .library = PEER_LIBRARY, .use = use, .version = peer_version};
    return &peer;
}
